/*
 * change.h: one change to the data as a record, and the sink that takes it; and the events of a
 * space, which say what its tables are, with the log that takes those.
 *
 * An engine asks the sink for room before it takes any lock (a sink may have none: a full journal)
 * and hands over each change after it has made it and while it still holds the lock, so that the
 * order of the sink is the order of the changes of an id. Values are results, not differences:
 * taking a change twice is harmless. What a change does not say is where a new id was put; `place`
 * does, so that replay of changes and events in their order makes the same tables. Without a data
 * directory the sink is change_sink_null(); the journal is another one.
 *
 * Events happen with the world stopped: all changes of a space are before or after each.
 *
 * Thread rule: a sink is used by one thread at a time (a worker has its own), different sinks by
 * any number at once. A log: with the world stopped, or nobody else there.
 */
#ifndef ROLLCALL_ENGINE_CHANGE_H
#define ROLLCALL_ENGINE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define CHANGE_SLOTS_MAX  16 /* slots of a record; the counter schema's limit */
#define CHANGE_LAYERS_MAX 15 /* of a table (row/row.h) */

enum change_type {
    CHANGE_SLOTS,      /* the slots of `named` became values[], unset where `set` lacks the bit */
    CHANGE_DELETE,     /* the id is gone */
    CHANGE_MEMBER_ADD, /* an existence key: the member is there */
    CHANGE_MEMBER_DELETE, /* it is not */
};

/* The place where a changed record or member lay or was put (row/row.h). */
enum change_place {
    /* SLOTS: it was in place. DELETE: in the table. MEMBER_ADD: an exception was taken away */
    CHANGE_THERE = 0,
    /*
     * New in place, or whole as it came there from apart. DELETE: it lay in a layer of the table.
     * MEMBER_DELETE: an exception was made
     */
    CHANGE_INSIDE = 1,
    CHANGE_APART = 2,       /* new, apart. DELETE, MEMBER_DELETE: it was apart and is no more */
    CHANGE_THERE_APART = 3, /* SLOTS: it was there, apart */
    CHANGE_BOTH = 3,        /* MEMBER_DELETE: INSIDE and APART */
};

struct change {
    enum change_type type;
    uint32_t space; /* number of the space */
    enum change_place place;
    unsigned layer; /* DELETE: the layer it lay in, 1 to CHANGE_LAYERS_MAX; else than INSIDE 0 */
    uint64_t id;
    uint32_t named; /* bit a slot that changed */
    uint32_t set;   /* of those, which now hold a number */
    union {
        /* By slot; only those in `named` and `set` mean anything. */
        uint64_t values[CHANGE_SLOTS_MAX];
        /* MEMBER_ADD, MEMBER_DELETE: its two hashes, with the secrets of its space. */
        uint64_t member[2];
    };
};

struct change_sink;

struct change_sink_functions {
    /* Takes room for one change. False: there is none now, and nothing may be changed. */
    bool (*reserve)(struct change_sink *sink);
    /* Takes the change that `reserve` was asked for. Returns its position (LSN). Never fails. */
    uint64_t (*put)(struct change_sink *sink, const struct change *change);
    /* The same of what most changes are: SLOTS of one slot, which was THERE and now holds `value`.
     * NULL: `put` takes it. */
    uint64_t (*put_slot)(struct change_sink *sink, uint32_t space, uint64_t id, unsigned slot,
                         uint64_t value);
    /* Gives back a reserved room of a change that was not made. */
    void (*cancel)(struct change_sink *sink);
};

struct change_sink {
    const struct change_sink_functions *functions;
};

/* A sink that keeps nothing and always has room. Shared, never freed. */
struct change_sink *change_sink_null(void);

/* put_slot() of a sink that has none. */
uint64_t change_sink_put_whole(struct change_sink *sink, uint32_t space, uint64_t id, unsigned slot,
                               uint64_t value);

static inline uint64_t change_sink_put_slot(struct change_sink *sink, uint32_t space, uint64_t id,
                                            unsigned slot, uint64_t value)
{
    if (LIKELY(sink->functions->put_slot != NULL)) {
        return sink->functions->put_slot(sink, space, id, slot, value);
    }
    return change_sink_put_whole(sink, space, id, slot, value);
}

enum change_event {
    CHANGE_EVENT_SPACE = 1, /* what the engine keeps for the space: slots, secrets */
    CHANGE_EVENT_FIRST,     /* all tables are gone but this new one */
    CHANGE_EVENT_SETTLE,    /* the first table knows its ids (row/row.h) */
    CHANGE_EVENT_OPEN,      /* a table was opened */
    CHANGE_EVENT_LAYER,     /* a table got its layer */
    CHANGE_EVENT_DROP,      /* a table is gone, and what lay apart up to its frontier */
    CHANGE_EVENT_APART,     /* ids apart lie in a new table, of the configuration of now */
    CHANGE_EVENT_WHOLE,     /* from here on every change of a table is whole */
    CHANGE_EVENT_PART,      /* a part has grown (row/row_parts.h) */
};

#define CHANGE_EVENT_BYTES_MAX  2000        /* of one event: fits a journal's record */
#define CHANGE_EVENTS_BYTES_MAX (64u << 10) /* of all between two calls of reserve */
#define CHANGE_STOPPED_MAX      256         /* changes in their place */

struct change_log {
    /* Takes room for CHANGE_EVENTS_BYTES_MAX of events. False: there is none now, and nothing may
     * be changed. */
    bool (*reserve)(struct change_log *log);
    /* Waits until there is this room, and keeps it for the next reserve. Gives up after a while.
     * Outside the barrier, on a thread that may wait for the disk. NULL: there always is room. */
    void (*await)(struct change_log *log);
    /* Takes an event. Never fails. */
    void (*put)(struct change_log *log, uint32_t space, enum change_event event, const void *bytes,
                size_t length);
    /*
     * Takes a change that was made with the world stopped: at most CHANGE_STOPPED_MAX between two
     * calls of reserve, and no events. Never fails.
     */
    void (*change)(struct change_log *log, const struct change *change);
};

/* NULL, as a space without data has it: no-op. */
static inline void change_log_await(struct change_log *log)
{
    if (log != NULL && log->await != NULL) {
        log->await(log);
    }
}

#endif
