/*
 * collect.h: the records of a space in the order of their ids, a batch at a time: what lists of
 * keys and exports are made of (counter_collect).
 *
 * Tables hold ids in the order of a hash. So a batch is found by a look at all of one range: it
 * keeps the smallest `most` ids at or above `from`, sorted, each once. The next batch goes on above
 * the last of them. So an id that is there all the while is met exactly once, whatever else comes,
 * goes or moves, and anyone can take up a list again at any id.
 *
 * An item with a text was read from a file, as it was then; one without is to be read when it is
 * wanted, and may be gone by then.
 *
 * Memory: 64 bytes an id of `most`, and ENGINE_COLLECT_TEXT bytes of text an id on average; a batch
 * with longer texts becomes smaller.
 *
 * Thread rule: a collect belongs to one thread at a time.
 */
#ifndef ROLLCALL_ENGINE_COLLECT_H
#define ROLLCALL_ENGINE_COLLECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENGINE_COLLECT_TEXT  32u /* bytes of texts an id */
#define ENGINE_COLLECT_COSTS (64u + ENGINE_COLLECT_TEXT)
#define ENGINE_COLLECT_STEP  16384u /* ids that one step inside the barrier may add */
#define ENGINE_COLLECT_ERROR 512

struct engine_collected {
    uint64_t id;
    uint32_t text_at; /* in texts */
    uint32_t text_length;
};

enum engine_collect_end {
    ENGINE_COLLECT_DONE,
    ENGINE_COLLECT_GONE,    /* enter() said false */
    ENGINE_COLLECT_STOPPED, /* *stop was true */
    ENGINE_COLLECT_FAILED,  /* `error` says why */
};

struct engine_collect {
    /* The caller's. */
    uint64_t from;
    size_t most;
    /* Enter and leave the barrier. enter: false, and outside: the engine is gone. */
    bool (*enter)(void *context);
    void (*leave)(void *context);
    void *context;
    const _Atomic bool *stop;
    _Atomic uint64_t steps; /* so far: it goes on */
    /* The batch: all records from `from` up to below `next`. */
    size_t count;
    struct engine_collected *items;
    char *texts;
    uint64_t next;
    bool ended; /* there is nothing from `next` on */
    char error[ENGINE_COLLECT_ERROR];
    /* Inside. */
    uint64_t last; /* ids above it are not wanted (any more) */
    bool cut;      /* some were dropped, above `last` */
    struct engine_collected *spare;
    size_t room;
    size_t texts_length, texts_room, texts_max;
};

/* Fills all but the caller's functions. */
void engine_collect_init(struct engine_collect *collect, size_t most);
void engine_collect_fini(struct engine_collect *collect);

/* ---- for engines ---- */

/* Empties it: ids from collect->from to last are wanted. */
void engine_collect_begin(struct engine_collect *collect, uint64_t last);

static inline bool engine_collect_wants(const struct engine_collect *collect, uint64_t id)
{
    return id >= collect->from && id <= collect->last;
}

/* Makes room, outside the barrier: afterwards a step may add ENGINE_COLLECT_STEP ids. */
void engine_collect_make_room(struct engine_collect *collect);
/* Adds an id that is wanted. Of equal ones the first that was added stays. */
void engine_collect_add(struct engine_collect *collect, uint64_t id);
/* Outside the barrier: adds one with its text, and makes room. */
void engine_collect_add_text(struct engine_collect *collect, uint64_t id, const char *text,
                             size_t length);
/* All of the range was looked at: sorts, and sets `next`. top: no id is above the range. */
void engine_collect_settle(struct engine_collect *collect, bool top);

#endif
