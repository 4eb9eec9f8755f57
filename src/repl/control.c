/* control.c: promote, follow-to and lead, from line to answer. */
#include "repl/control.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define WORDS_MAX 5u /* of a line */

static const char PROMOTE[] = "promote";
static const char FOLLOW_TO[] = "follow-to";
static const char LEAD[] = "lead";
static const char FORCE[] = "force";
static const char NEW_STREAM[] = "new-stream";

/* A line's words, copied. */
struct control_words {
    size_t count; /* WORDS_MAX + 1: there are more */
    char text[REPL_LINE_MAX + 1];
    char *at[WORDS_MAX];
};

static bool control_is(const char *line, size_t length, const char *word)
{
    size_t word_length = strlen(word);

    return length > word_length && memcmp(line, word, word_length) == 0 && line[word_length] == ' ';
}

bool repl_control_begins(const char *line, size_t length)
{
    return control_is(line, length, PROMOTE) || control_is(line, length, FOLLOW_TO) ||
           control_is(line, length, LEAD);
}

static void control_cut(const char *line, size_t length, struct control_words *words)
{
    char *rest = words->text;
    char *word;

    words->count = 0;
    snprintf(words->text, sizeof(words->text), "%.*s", (int)length, line);
    while ((word = strsep(&rest, " ")) != NULL && words->count <= WORDS_MAX) {
        if (words->count < WORDS_MAX) {
            words->at[words->count] = word;
        }
        words->count++;
    }
}

/* Takes off a last word, if it is that. At least two stay: the verb and its version. */
static bool control_ends_with(struct control_words *words, const char *word)
{
    bool ends = words->count > 2 && words->count <= WORDS_MAX &&
                strcmp(words->at[words->count - 1], word) == 0;

    words->count -= ends;
    return ends;
}

/* ---- who may ---- */

static bool control_is_loopback(const struct sockaddr_storage *peer)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)peer;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)peer;

    switch (peer->ss_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) &&
                six->sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
    default:
        return false;
    }
}

static bool control_is_local(int fd)
{
    struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof(peer);

    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && control_is_loopback(&peer);
}

/* ---- the answers ---- */

__attribute__((format(printf, 2, 3))) static size_t control_say(char answer[REPL_LINE_MAX],
                                                                const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(answer, REPL_LINE_MAX - 2, format, arguments);
    va_end(arguments);
    size_t end = length < (int)REPL_LINE_MAX - 2 ? (size_t)length : REPL_LINE_MAX - 3;

    memcpy(answer + end, "\r\n", 2);
    return end + 2;
}

/* A number of nothing but digits; 0: it is none. */
static uint64_t control_number(const char *text)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    return *end == '\0' && text[0] >= '0' && text[0] <= '9' ? number : 0;
}

static size_t control_promote(const struct repl_control *control, const struct control_words *words,
                              struct repl_promotion *promotion, char answer[REPL_LINE_MAX])
{
    char why[REPL_TEXT_MAX + 1];

    promotion->epoch = control_number(words->at[2]);
    if (promotion->epoch == 0 && strcmp(words->at[2], "-") != 0) {
        return control_say(answer, "SERVER_ERROR promote: %.32s is no epoch, nor -", words->at[2]);
    }
    if (!control->promote(control->context, promotion, why)) {
        return control_say(answer, "SERVER_ERROR %s", why);
    }
    return control_say(answer, "OK %llu %llu", (unsigned long long)promotion->epoch,
                       (unsigned long long)promotion->lsn);
}

static size_t control_follow(const struct repl_control *control, const struct control_words *words,
                             bool force, char answer[REPL_LINE_MAX], bool *again)
{
    char why[REPL_TEXT_MAX + 1];

    if (strlen(words->at[2]) >= REPL_ADDRESS_MAX) {
        return control_say(answer, "SERVER_ERROR follow-to: the address is too long");
    }
    return control->follow(control->context, words->at[2], force, again, why)
               ? control_say(answer, "OK")
               : control_say(answer, "SERVER_ERROR %s", why);
}

/* Is the name after the last one among those before it? */
static bool control_waits_already(const struct repl_waits *waits)
{
    for (size_t i = 0; i < waits->count; i++) {
        if (strcmp(waits->names[i], waits->names[waits->count]) == 0) {
            return true;
        }
    }
    return false;
}

/* One name or two with a comma, `-` or `*`. */
static bool control_read_waits(const char *text, struct repl_waits *waits)
{
    *waits = (struct repl_waits){.lacks = strcmp(text, "*") == 0};
    if (waits->lacks || strcmp(text, "-") == 0) {
        return true;
    }
    for (;;) {
        size_t length = strcspn(text, ",");

        if (waits->count == REPL_WAITS_MAX || !repl_name_good(text, length)) {
            return false;
        }
        memcpy(waits->names[waits->count], text, length);
        if (control_waits_already(waits)) {
            return false;
        }
        waits->count++;
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
}

static size_t control_lead(const struct repl_control *control, const struct control_words *words,
                           char answer[REPL_LINE_MAX])
{
    char why[REPL_TEXT_MAX + 1];
    char acked_words[64] = "";
    struct repl_waits waits;
    uint64_t written;
    uint64_t acked[REPL_WAITS_MAX];
    uint64_t epoch = control_number(words->at[2]);
    uint64_t until_ms = control_number(words->at[3]);

    if (epoch == 0 || until_ms == 0) {
        return control_say(answer, "SERVER_ERROR lead: %.32s or %.32s is no number", words->at[2],
                           words->at[3]);
    }
    if (!control_read_waits(words->at[4], &waits)) {
        return control_say(answer,
                           "SERVER_ERROR lead: %.128s is no node, nor two that differ, nor - or *",
                           words->at[4]);
    }
    if (!control->lead(control->context, epoch, until_ms, &waits, &written, acked, why)) {
        return control_say(answer, "SERVER_ERROR %s", why);
    }
    for (size_t i = 0; i < waits.count; i++) {
        size_t at = strlen(acked_words);

        snprintf(acked_words + at, sizeof(acked_words) - at, " %llu", (unsigned long long)acked[i]);
    }
    return control_say(answer, "OK %llu%s", (unsigned long long)written, acked_words);
}

size_t repl_control_run(const struct repl_control *control, int fd, const char *line, size_t length,
                        char answer[REPL_LINE_MAX], bool *again)
{
    struct control_words words;
    struct repl_promotion how = {0};

    *again = false;
    control_cut(line, length < REPL_LINE_MAX ? length : REPL_LINE_MAX, &words);
    if (control == NULL || !control_is_local(fd)) {
        return control_say(answer,
                           "SERVER_ERROR %s comes from this machine alone: over a unix "
                           "socket or a loopback address",
                           words.at[0]);
    }
    bool leads = strcmp(words.at[0], LEAD) == 0;
    bool promotes = strcmp(words.at[0], PROMOTE) == 0;

    how.force = !leads && control_ends_with(&words, FORCE);
    how.new_stream = promotes && control_ends_with(&words, NEW_STREAM);
    if (words.count != (leads ? WORDS_MAX : 3) || strcmp(words.at[1], "1") != 0) {
        return control_say(answer,
                           "SERVER_ERROR it is: promote 1 EPOCH|- [new-stream] [force], or: "
                           "follow-to 1 HOST:PORT [force], or: lead 1 EPOCH UNTIL WAITS");
    }
    return leads      ? control_lead(control, &words, answer)
           : promotes ? control_promote(control, &words, &how, answer)
                      : control_follow(control, &words, how.force, answer, again);
}
