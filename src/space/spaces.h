/*
 * spaces.h: the set of spaces: engines and the pattern set that finds them, published as one value.
 *
 * A set is immutable to workers: they read it inside the barrier, and it is replaced as a whole
 * with the world stopped. A space is shared by the old and the new set of a reload, so its engine
 * and its figures live on; spaces_drop() frees a set and those of its spaces that another set
 * lacks.
 *
 * Cost: finding a key's space is a walk of the key in one radix tree (key/pattern.h).
 * Thread rule: building and dropping by one thread at a time; reading by anyone inside the barrier;
 * a worker writes only its own figures.
 */
#ifndef ROLLCALL_SPACE_SPACES_H
#define ROLLCALL_SPACE_SPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"
#include "config/settings.h"
#include "engine/engine.h"
#include "key/pattern.h"
#include "space/keeper.h"

#define SPACES_ERROR_MAX 512 /* bytes of an error text, NUL included */
#define SPACES_WORDS_MAX 64  /* bytes of a refusal that names a space */

/* One row a figure of a space: counted per worker. */
#define SPACE_METRICS(X)                                                                           \
    X(hits, "keys read and found")                                                                 \
    X(misses_absent, "keys read whose id is not there")                                            \
    X(misses_unset, "keys read whose id is there and the slot unset")                              \
    X(misses_incomplete, "keys read that are there only in part (role cache)")                     \
    X(misses_below, "keys read below the oldest table")                                            \
    X(bad_keys, "keys that begin like the space's and do not parse")                               \
    X(changes, "changes made")                                                                     \
    X(refused_value, "writes refused: not a number, not n numbers, not 1")                         \
    X(refused_delta, "increments refused: no number to increment, or by no number")                \
    X(refused_append, "append and prepend refused")                                                \
    X(refused_deletes_off, "deletes refused: the space keeps none")                                \
    X(refused_memory, "writes refused: no place left")                                             \
    X(refused_no_table, "writes refused: no table free")                                           \
    X(refused_id_large, "writes refused: id above max-id")                                         \
    X(refused_id_far, "writes refused: id too far ahead")                                          \
    X(refused_id_below, "writes refused: id below the oldest table")                               \
    X(refused_busy, "operations refused: disk queue or journal full")                              \
    X(refused_read, "operations that failed on a disk read")                                       \
    X(refused_noreply, "refusals nobody was told of")                                              \
    X(evictions, "writes dropped for want of room (role cache)")

struct space_metrics {
    metric none; /* takes what a command does not count */
    SPACE_METRICS(METRIC_FIELD)
} __attribute__((aligned(64)));

struct space {
    struct engine *engine;
    struct keeper_job job; /* what the engine notifies */
    uint32_t index;        /* in its set: below SETTINGS_SPACES_MAX */
    char name[ENGINE_SPACE_NAME_MAX + 1];
    char bad_key_words[SPACES_WORDS_MAX];  /* bad key for space NAME */
    char id_large_words[SPACES_WORDS_MAX]; /* id above max-id of space NAME */
    char similar_words[SPACES_WORDS_MAX];  /* no space for key: did you mean NAME? */
    char record_words[SPACES_WORDS_MAX];   /* record needs N numbers: A,B, or NAME=N */
    char slot_words[SPACES_WORDS_MAX];     /* bad key for space NAME: slots A,B */
    char delta_words[SPACES_WORDS_MAX];    /* needs N numbers: A,B, or name a slot */
    struct space_settings settings;        /* what it runs with */
    struct space_metrics *metrics;         /* [workers]; one more: what `stats reset` subtracts */
};

struct spaces {
    struct pattern_set *patterns;
    size_t count;
    uint32_t value_max;  /* the longest value any of them takes */
    struct space *plain; /* takes the keys that are of no other; NULL: nobody does */
    struct space *at[SETTINGS_SPACES_MAX];
    struct space *of_pattern[SETTINGS_SPACES_MAX];
};

/* Makes the engine of a space: NULL with `error` when it cannot. Its `space` is `number`. */
typedef struct engine *space_engine_fn(const struct space_settings *settings, uint32_t number,
                                       char error[SPACES_ERROR_MAX]);

/* The engine of a space's kind (spaces_engine.c): a space_engine_fn. */
struct engine *space_engine_create(const struct space_settings *settings, uint32_t number,
                                   char error[SPACES_ERROR_MAX]);

/*
 * Has a running space take a changed configuration, with the world stopped: what a restart must
 * take keeps its value. False with `error` and nothing changed when it cannot.
 */
bool space_reconfigure(struct space *space, const struct space_settings *next,
                       char error[SPACES_ERROR_MAX]);

/* Fills the words of a space from its settings, which are new. World stopped, or nobody has it. */
void space_words_make(struct space *space);
/* Writes `no slot NAME: A,B` for the first NAME= of a record's text that is none of its slots.
 * False: there is none that can be shown. */
bool space_words_unknown(const struct space *space, const char *text, size_t length,
                         char words[SPACES_WORDS_MAX]);

/* Takes the last space_reconfigure() back: also slots it has let go. */
bool space_undo(struct space *space, const struct space_settings *before,
                char error[SPACES_ERROR_MAX]);
/* Writes what space_reconfigure() would lose to losses[]; returns how many. Called while nothing is
 * maintained; reads all tables in memory where a slot is missing. */
size_t space_losses(const struct space *space, const struct space_settings *next,
                    struct engine_loss losses[ENGINE_LOSSES_MAX]);

/* The line of the log that says what a space holds: "4 + 1 tables x 16 MiB, about 4.5 million …".
 */
void space_describe(const struct space_settings *settings, char *text, size_t size);

/*
 * The set `settings` asks for: spaces that `now` (may be NULL) has by name are shared as they are,
 * the others get an engine from `create` and figures for `workers` workers. NULL with `error` on
 * any failure, everything new freed. The caller publishes it, then drops `now`.
 */
struct spaces *spaces_create(const struct settings *settings, const struct spaces *now,
                             unsigned workers, space_engine_fn *create,
                             char error[SPACES_ERROR_MAX]);

/* Frees a set, and with their engines those of its spaces that `keep` (may be NULL) lacks. NULL:
 * no-op */
void spaces_drop(struct spaces *spaces, const struct spaces *keep);

/* The space of that name, or NULL. */
struct space *spaces_find(const struct spaces *spaces, const char *name);

/*
 * Numbers the spaces of a set: when it is published, with the world stopped. Not their engines:
 * those keep what they were made with, or what data gave them (data.h).
 */
void spaces_number(struct spaces *spaces);

#endif
