/* online_role.c: rollcall promote, rollcall follow: what a node is to the others (repl/control.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repl/wire.h"
#include "tools/rollcall/online.h"
#include "tools/rollcall/verb.h"

#define COMMAND_MAX     400
#define ADDRESS_MAX     255
#define NUMBER_TEXT_MAX 24

static void role_take(void *context, const char *line, size_t length)
{
    char *answer = context;

    snprintf(answer, ONLINE_ERROR_MAX, "%.*s", (int)length, line);
}

/* Asks, and puts the answer after OK into answer[]. Any other answer is printed. */
static enum exit_status role_ask(const struct online_options *options, const char *command,
                                 char answer[ONLINE_ERROR_MAX])
{
    static const char refused[] = "SERVER_ERROR ";
    struct online_link *link = online_open(&options->target, false);
    enum exit_status status = online_status(link);

    answer[0] = '\0';
    if (status == EXIT_STATUS_DONE && !online_ask(link, command, role_take, answer)) {
        status = online_status(link);
    }
    online_close(link);
    if (status == EXIT_STATUS_DONE && strncmp(answer, "OK", 2) != 0) {
        const char *why =
            answer + (strncmp(answer, refused, strlen(refused)) == 0 ? strlen(refused) : 0);

        (void)verb_complain(stderr, "%s refuses: %s", options->target.wire.server, why);
        status = EXIT_STATUS_REFUSED;
    }
    return status;
}

static bool role_no_page(const struct online_options *options)
{
    if (online_is_http(&options->target)) {
        (void)verb_complain(stderr, "the status page is for looking only: give -s the address that "
                                    "memcached clients use");
    }
    return online_is_http(&options->target);
}

/* ---- promote ---- */

static int role_promote(const struct online_options *options)
{
    char command[COMMAND_MAX];
    char answer[ONLINE_ERROR_MAX];
    unsigned long long epoch;
    unsigned long long lsn;

    if (role_no_page(options)) {
        return EXIT_STATUS_USAGE;
    }
    snprintf(command, sizeof(command), "promote 1 -%s%s\r\n",
             options->new_stream ? " new-stream" : "", options->force ? " force" : "");
    enum exit_status status = role_ask(options, command, answer);

    if (status == EXIT_STATUS_DONE && sscanf(answer, "OK %llu %llu", &epoch, &lsn) == 2) {
        printf("%s leads%s in epoch %llu, from LSN %llu on.\nTake replication.follow out of its "
               "configuration: a restart does what that says.\n%s",
               options->target.wire.server, options->new_stream ? " a new stream" : "", epoch, lsn,
               options->new_stream ? ""
                                   : "The old leader must not lead: start it with "
                                     "replication.follow, or: rollcall follow\n");
    }
    return (int)status;
}

static const char *const promote_takes[] = {"force", "new-stream", NULL};

const struct online_verb verb_promote = {
    .name = "promote",
    .words = "",
    .does = "Has a follower lead, at once. Refused where something would be lost, or that is "
            "not known;\nit says how much. On the daemon's machine. With --new-stream it leads "
            "a shard of its own, beside\nthe node it followed.",
    .examples = "  rollcall promote\n"
                "  rollcall promote --force -s /run/rollcall.sock\n",
    .takes = promote_takes,
    .run = role_promote,
};

/* ---- what following would cost a leader ---- */

/* Of `stats replication`. */
struct role_place {
    char role[16], name[REPL_NAME_MAX + 1], group[REPL_NAME_MAX + 1];
    char stream[REPL_STREAM_DIGITS + 1];
    char epoch[NUMBER_TEXT_MAX], written[NUMBER_TEXT_MAX];
};

static void role_note(void *context, const char *line, size_t length)
{
    struct role_place *place = context;
    const struct {
        const char *key;
        char *to;
        size_t size;
    } words[] = {{"role", place->role, sizeof(place->role)},
                 {"name", place->name, sizeof(place->name)},
                 {"group", place->group, sizeof(place->group)},
                 {"stream", place->stream, sizeof(place->stream)},
                 {"epoch", place->epoch, sizeof(place->epoch)},
                 {"written", place->written, sizeof(place->written)}};
    char key[16], value[REPL_NAME_MAX + 1];

    (void)length;
    if (sscanf(line, "STAT %15s %64s", key, value) != 2) {
        return;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(key, words[i].key) == 0) {
            snprintf(words[i].to, words[i].size, "%s", value);
        }
    }
}

static bool role_look(struct online_link *link, struct role_place *place)
{
    memset(place, 0, sizeof(*place));
    return online_ask(link, "stats replication\r\n", role_note, place) && place->role[0] != '\0';
}

/* Asks as a follower would, and hangs up at the answer, which has what the two have in common. */
static void role_weigh(struct online_link *link, const char *address, const struct role_place *here)
{
    char command[COMMAND_MAX];
    char answer[ONLINE_ERROR_MAX] = "it does not say";
    unsigned long long lsn;
    unsigned long long written = strtoull(here->written, NULL, 10);

    snprintf(command, sizeof(command), "follow %u %s %s %s %s %s\r\n", REPL_VERSION, here->group,
             here->name, here->stream, here->epoch, here->written);
    (void)online_ask(link, command, role_take, answer);
    if (strncmp(answer, "STREAM ", strlen("STREAM ")) == 0) {
        (void)verb_complain(stderr, "at this moment %s has all of this node's journal", address);
    } else if (sscanf(answer, "REWIND %*u %llu", &lsn) == 1 && lsn <= written) {
        (void)verb_complain(stderr,
                            "%llu bytes of this node's journal are not at %s, about %llu changes: "
                            "they would be lost",
                            written - lsn, address, (written - lsn) / REPL_CHANGE_BYTES);
    } else if (strncmp(answer, "COPY ", strlen("COPY ")) == 0) {
        (void)verb_complain(stderr, "%s would replace all that this node has by a copy: %s",
                            address, answer + strlen("COPY "));
    } else {
        (void)verb_complain(stderr, "what would be lost is not known: %s: %s", address, answer);
    }
}

static void role_say_loss(const struct online_options *options, const char *address)
{
    static const char plain[] = "notls:";
    struct role_place here, there;
    struct online_target target = options->target;
    struct online_link *link = online_open(&options->target, true);
    bool leads = role_look(link, &here) && strcmp(here.role, "leader") == 0;

    online_close(link);
    if (!leads) {
        return;
    }
    target.wire.server = (char *)address;
    if (strncmp(address, plain, strlen(plain)) == 0) {
        target.wire = (struct wire_target){.server = (char *)(address + strlen(plain)),
                                           .auth_file = options->target.wire.auth_file};
    }
    link = online_open(&target, true);
    if (!role_look(link, &there)) {
        (void)verb_complain(stderr, "what would be lost is not known: %s", online_error(link));
    } else if (strcmp(there.role, "leader") != 0) {
        (void)verb_complain(stderr, "%s does not lead: its role is %s", address, there.role);
    } else {
        role_weigh(link, address, &here);
    }
    online_close(link);
}

/* ---- follow ---- */

static int role_follow(const struct online_options *options)
{
    char command[COMMAND_MAX];
    char answer[ONLINE_ERROR_MAX];
    const char *address = options->words[0];

    if (role_no_page(options)) {
        return EXIT_STATUS_USAGE;
    }
    if (strlen(address) > ADDRESS_MAX || strpbrk(address, " \t\r\n") != NULL) {
        return (int)verb_complain(stderr, "\"%.64s\" is no HOST:PORT, nor the path of a socket",
                                  address);
    }
    snprintf(command, sizeof(command), "follow-to 1 %s%s\r\n", address,
             options->force ? " force" : "");
    enum exit_status status = role_ask(options, command, answer);

    if (status == EXIT_STATUS_REFUSED) {
        role_say_loss(options, address);
    }
    if (status == EXIT_STATUS_DONE) {
        printf("%s begins anew, and follows %s.\nPut that into its configuration, as "
               "replication.follow: a restart does what that says.\n",
               options->target.wire.server, address);
    }
    return (int)status;
}

static const char *const follow_takes[] = {"force", NULL};

const struct online_verb verb_follow = {
    .name = "follow",
    .words = "HOST:PORT",
    .does = "Has a node follow another one. One that leads must be forced, and is told what would "
            "be lost:\nwhat of its journal the other one has not. On the daemon's machine.",
    .examples = "  rollcall follow 10.0.0.2:11211\n"
                "  rollcall follow --force 10.0.0.2:11211\n",
    .takes = follow_takes,
    .words_least = 1,
    .words_most = 1,
    .run = role_follow,
};
