/* control.c: promote and follow-to, from line to answer. */
#include "repl/control.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define WORDS_MAX 4u /* of a line */

static const char PROMOTE[] = "promote";
static const char FOLLOW_TO[] = "follow-to";

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
    return control_is(line, length, PROMOTE) || control_is(line, length, FOLLOW_TO);
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

static size_t control_promote(const struct repl_control *control, const struct control_words *words,
                              bool force, char answer[REPL_LINE_MAX])
{
    char why[REPL_TEXT_MAX + 1];
    uint64_t lsn;
    uint64_t epoch = 0;
    char *end = words->at[2];

    if (strcmp(words->at[2], "-") != 0) {
        epoch = strtoull(words->at[2], &end, 10);
        if (*end != '\0' || epoch == 0 || words->at[2][0] < '0' || words->at[2][0] > '9') {
            return control_say(answer, "SERVER_ERROR promote: %.32s is no epoch, nor -",
                               words->at[2]);
        }
    }
    if (!control->promote(control->context, force, &epoch, &lsn, why)) {
        return control_say(answer, "SERVER_ERROR %s", why);
    }
    return control_say(answer, "OK %llu %llu", (unsigned long long)epoch, (unsigned long long)lsn);
}

static size_t control_follow(const struct repl_control *control, const struct control_words *words,
                             bool force, char answer[REPL_LINE_MAX], bool *again)
{
    char why[REPL_TEXT_MAX + 1];

    if (strlen(words->at[2]) >= REPL_ADDRESS_MAX) {
        return control_say(answer, "SERVER_ERROR follow-to: the address is too long");
    }
    *again = control->follow(control->context, words->at[2], force, why);
    return *again ? control_say(answer, "OK") : control_say(answer, "SERVER_ERROR %s", why);
}

size_t repl_control_run(const struct repl_control *control, int fd, const char *line, size_t length,
                        char answer[REPL_LINE_MAX], bool *again)
{
    struct control_words words;

    *again = false;
    control_cut(line, length < REPL_LINE_MAX ? length : REPL_LINE_MAX, &words);
    bool force = words.count == WORDS_MAX && strcmp(words.at[3], "force") == 0;

    if (control == NULL || !control_is_local(fd)) {
        return control_say(answer,
                           "SERVER_ERROR %s comes from this machine alone: over a unix "
                           "socket or a loopback address",
                           words.at[0]);
    }
    if (words.count < 3 || words.count > WORDS_MAX || (words.count == WORDS_MAX && !force) ||
        strcmp(words.at[1], "1") != 0) {
        return control_say(answer, "SERVER_ERROR it is: promote 1 EPOCH|- [force], or: follow-to 1 "
                                   "HOST:PORT [force]");
    }
    return strcmp(words.at[0], PROMOTE) == 0
               ? control_promote(control, &words, force, answer)
               : control_follow(control, &words, force, answer, again);
}
