/*
 * online.h: the verbs that ask a running daemon, and what they have in common: one table of
 * options, from which a verb names those it takes; help with examples first; exit statuses as
 * base/exit_status.h. Data goes to stdout, everything else to stderr.
 */
#ifndef ROLLCALL_TOOLS_ONLINE_H
#define ROLLCALL_TOOLS_ONLINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "tools/rollcall/online_link.h"

#define ONLINE_TIMEOUT_MS_MAX  600000u
#define ONLINE_INTERVAL_MS_MIN 100u
#define ONLINE_WORDS_MAX       1000 /* what follows the options */

enum online_sort {
    ONLINE_BY_NAME,
    ONLINE_BY_HELD,
    ONLINE_BY_MEMORY,
    ONLINE_BY_READS,
    ONLINE_BY_CHANGES,
    ONLINE_BY_FULL,
    ONLINE_SORTS
};
extern const char *const online_sorts[ONLINE_SORTS + 1];

struct online_options {
    struct online_target target;
    bool json, json_safe_ids, fail_missing, force, new_stream;
    enum online_sort sort;
    unsigned interval_ms, looks;
    /* of `plan` */
    uint64_t ids_per_day, pairs_per_day;
    unsigned days, pairs_days;
    char *slots, *from, *data;
    uint64_t id_spacing, memory_bytes, disk_bytes;
    double false_positives;
    bool deletes, recycle;
    /* of `agent` */
    char *etcd, *etcd_auth, *etcd_ca, *etcd_cert, *etcd_key;
    char *address, *group, *on_change;
    unsigned ttl_s;
    bool follows_only, not_alone, init;
    const char *words[ONLINE_WORDS_MAX];
    size_t word_count;
};

struct online_verb {
    const char *name;  /* conf diff: of two words */
    const char *words; /* what follows the options, for the usage line */
    const char *does;
    const char *examples;     /* lines */
    const char *const *takes; /* names of options, NULL at the end; those of a server always */
    size_t words_least, words_most;
    int (*run)(const struct online_options *options);
    bool server_word; /* the one word is the server, as of bench */
    bool no_server;
};

/* Parses and runs; returns the exit status. argv[0] is the verb. */
int online_main(const struct online_verb *verb, int argc, char **argv);

extern const struct online_verb verb_status, verb_tables, verb_hot, verb_get, verb_conf, verb_top,
    verb_plan, verb_promote, verb_follow, verb_completion;

int agent_main(int argc, char **argv); /* agent.c */

/*
 * With --json a program reads stdout: what was complained of last is the answer, as an object with
 * an error. None for a negative answer that was printed, of which nobody complained. Returns
 * status.
 */
int online_say_error(int status);

/* Prints a line of JSON; with --json-safe-ids numbers above 2^53 become text in the object. */
void online_put_json(const struct online_options *options, json_t *object);

/* Returns the row of an option as it is typed, -s or --NAME in full; NULL: no verb here has it. */
const struct option_row *online_option(const char *word);

/* May colours be used there: a terminal, no NO_COLOR, TERM not dumb. */
bool online_colours(int fd);

#endif
