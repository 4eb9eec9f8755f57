/*
 * command.h: what every command means, in one table: verb x kind of key.
 *
 * A row says which operation of the engine a command is on such a key, what each of the engine's
 * answers is called on the wire, and which figures it counts. A second table holds the words for
 * everything an engine may refuse. Dispatch runs rows; it knows no command by name.
 *
 * Reads, and writes that only look (append: NOT_STORED or refused), are calls of kind READ and are
 * run in batches; all others change one key. Cost: one table look-up a key. Pure but for the
 * figures; any thread with its own.
 */
#ifndef ROLLCALL_REQUEST_COMMAND_H
#define ROLLCALL_REQUEST_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/metrics.h"
#include "engine/engine.h"
#include "protocol/protocol.h"
#include "space/spaces.h"

#define COMMAND_EXPTIME_RELATIVE_MAX                                                               \
    (60 * 60 * 24 * 30) /* seconds; beyond it a date since 1970                                    \
                         */

/* What a key is in the configuration of the moment. */
enum key_kind {
    KEY_NONE, /* of no space */
    KEY_BAD,  /* begins with a space's fixed text and does not parse */
    KEY_SLOT,
    KEY_RECORD,
    KEY_MEMBER,
    KEY_PLAIN,        /* of no other space, where one takes those */
    KEY_LARGE,        /* a write of an id's value that is too long */
    KEY_SLOT_UNKNOWN, /* KEY_BAD: of an id, and no slot of its space */
    KEY_SIMILAR,      /* KEY_NONE, and so much like one of the space's that it is not plain */
    KEY_KINDS
};

/* One row a figure: see base/metrics.h. Counted per worker, with memcached's names and meaning. */
#define COMMAND_METRICS(X)                                                                         \
    X(cmd_get, "keys read")                                                                        \
    X(cmd_set, "storage commands")                                                                 \
    X(cmd_flush, "flush_all commands")                                                             \
    X(cmd_touch, "touch and gat keys")                                                             \
    X(auth_cmds, "attempts to authenticate")                                                       \
    X(auth_errors, "failed ones")                                                                  \
    X(auth_delayed, "attempts that waited for wrong passwords of the same address")                \
    X(auth_refused, "logins refused after a delay: the password was not looked at")                \
    X(unauthenticated, "other commands before a login")                                            \
    X(cmd_meta, "meta commands")                                                                   \
    X(get_hits, "keys read and found")                                                             \
    X(get_misses, "keys read and not found")                                                       \
    X(get_expired, "of those, keys of plain values that had expired")                              \
    X(delete_misses, "deletes of what is not there")                                               \
    X(delete_hits, "deletes")                                                                      \
    X(incr_misses, "increments of what is not there")                                              \
    X(incr_hits, "increments")                                                                     \
    X(decr_misses, "decrements of what is not there")                                              \
    X(decr_hits, "decrements")                                                                     \
    X(cas_misses, "cas of what is not there")                                                      \
    X(cas_hits, "cas that stored")                                                                 \
    X(cas_badval, "cas with another token")                                                        \
    X(touch_hits, "touches of what is there")                                                      \
    X(touch_misses, "touches of what is not there")                                                \
    X(store_too_large, "writes refused for their length")                                          \
    X(total_items, "writes that stored")                                                           \
    X(evictions, "writes dropped for want of room (role cache); stats add what was recycled")      \
    X(no_space, "keys of no space")                                                                \
    X(refused_noreply, "refusals nobody was told of")                                              \
    X(suspensions, "requests that waited for a table or a disk read")

struct command_metrics {
    metric none; /* takes what a command does not count */
    COMMAND_METRICS(METRIC_FIELD)
} __attribute__((aligned(64)));

enum command_call {
    COMMAND_CALL_NONE, /* answered without an engine: `absent` is the answer */
    COMMAND_CALL_READ,
    COMMAND_CALL_VISIT, /* plain_visit(): runs alone */
    COMMAND_CALL_CHANGE,
};

struct command_answer {
    enum reply_status status;
    const char *words; /* of a refusal, unless it has words of the space's own */
    enum reply_detail detail;
    uint16_t own; /* of a refusal: offset in struct space of its words; 0: `words` */
};

struct command {
    enum command_call call;
    enum engine_verb verb;
    struct command_answer done;   /* what ENGINE_DONE is called */
    struct command_answer absent; /* ENGINE_ABSENT */
    struct command_answer exists; /* ENGINE_EXISTS */
    enum reply_status dropped;    /* role cache without room; REPLY_OK: refused as in role store */
    uint16_t counts;              /* offset of a figure in command_metrics: every one */
    uint16_t hit;                 /* done */
    uint16_t miss;                /* absent */
    uint16_t badval;              /* exists */
    uint16_t stored;              /* done */
    uint16_t refused;             /* offset in space_metrics: `done` or `absent` is a refusal */
    bool delta;                   /* the text must be one, whatever the engine answers */
};

/* By verb and kind of key, as long as nothing else is to be asked; NULL: a verb without keys. */
extern const struct command *const command_rows[VERB_COUNT][KEY_KINDS];

/*
 * Returns the row of a verb on a kind of key; past: with an exptime in the past. Never NULL for a
 * verb with keys.
 */
const struct command *command_find(enum verb verb, enum key_kind kind, bool past);

/* The row of an add without a value, which only asks whether the key is there; NULL: it is an add
 * like any other. */
const struct command *command_find_look(const struct space *space, enum key_kind kind, bool past);

/* The row of a meta command with flags that only plain values honour: in place of `command`. */
const struct command *command_find_extended(const struct command *command,
                                            const struct request *request, enum key_kind kind);

/* Returns whether the verb takes keys. */
static inline bool command_has_keys(enum verb verb)
{
    return command_rows[verb][KEY_NONE] != NULL;
}

/*
 * Returns whether what a command of this verb read must be deleted afterwards when the exptime is
 * past. Writes are not taken back: their engine is told (engine_op.expires), because a delete may
 * find no room, and what is once added stays in a filter.
 */
bool command_deletes_after(enum verb verb, enum key_kind kind);

/* Returns whether an exptime as sent lies in the past. */
bool command_exptime_past(int64_t exptime);
/*
 * The second of clock_monotonic_s() an exptime as sent means; 0: none. Past ones are 1. A date is
 * converted by what the wall clock says now: setting it later changes nothing.
 */
uint64_t command_exptime_at(int64_t exptime);

struct command_result {
    struct reply reply;
    bool refused;
    bool dropped;                 /* what stood there is out of date now: delete it */
    char words[SPACES_WORDS_MAX]; /* of a refusal that names what was sent */
};

/*
 * The answer to one key whose operation has ended (not PENDING), and its figures. `space` is NULL
 * for KEY_NONE; `own` are the space's figures of this worker, NULL like it. The reply points into
 * op, space, result or constants.
 */
void command_finish(const struct command *command, const struct space *space,
                    const struct engine_op *op, struct command_metrics *metrics,
                    struct space_metrics *own, struct command_result *result);

/* The same of a change of an id that is DONE, as nearly all are: never a refusal. The caller counts
 * it with command_count_done(). */
void command_done(const struct command *command, const struct space *space,
                  const struct engine_op *op, struct reply *reply);

/* figure: as struct command has it. */
static inline void command_count(struct command_metrics *metrics, uint16_t figure, uint64_t n)
{
    metric_add((metric *)((char *)metrics + figure), n);
}

/* Counts n changes of an id that are DONE. */
static inline void command_count_done(const struct command *command,
                                      struct command_metrics *metrics, struct space_metrics *own,
                                      uint64_t n)
{
    command_count(metrics, command->counts, n);
    command_count(metrics, command->hit, n);
    command_count(metrics, command->stored, n);
    metric_add(&own->changes, n);
}

/* Counts the keys of a get or gat that was answered. */
static inline void command_count_reads(enum verb verb, uint32_t hits, uint32_t misses,
                                       struct command_metrics *metrics)
{
    const struct command *command = command_rows[verb][KEY_SLOT];
    command_count(metrics, command->counts, hits + misses);
    command_count(metrics, command->hit, hits);
    command_count(metrics, command->miss, misses);
}

/* The reply for an engine's refusal alone: what a read of several keys answers. Counts it. */
void command_refuse(const struct space *space, const struct engine_op *op,
                    struct space_metrics *own, struct command_result *result);

#endif
