/*
 * change.h: one change to the data as a record, and the sink that takes it.
 *
 * An engine asks the sink for room before it takes any lock (a sink may have none: a full journal)
 * and hands over each change after it has made it and while it still holds the lock, so that the
 * order of the sink is the order of the changes of an id. Values are results, not differences:
 * taking a change twice is harmless.
 * Without a data directory the sink is change_sink_null(); the journal is another one.
 * Thread rule: a sink is called by any number of threads at once.
 */
#ifndef ROLLCALL_ENGINE_CHANGE_H
#define ROLLCALL_ENGINE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANGE_SLOTS_MAX 16 /* slots of a record; the counter schema's limit */

enum change_type {
    CHANGE_SLOTS,      /* the slots of `named` became values[], unset where `set` lacks the bit */
    CHANGE_DELETE,     /* the id is gone */
    CHANGE_MEMBER_ADD, /* an existence key: the member is there */
    CHANGE_MEMBER_DELETE, /* it is not */
};

struct change {
    enum change_type type;
    uint32_t space; /* number of the space */
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
    /* Room for one change; false: none now, nothing may be changed. */
    bool (*reserve)(struct change_sink *sink);
    /* Takes the change that `reserve` was asked for. Returns its position (LSN). Never fails. */
    uint64_t (*put)(struct change_sink *sink, const struct change *change);
    /* Gives back a reserved room of a change that was not made. */
    void (*cancel)(struct change_sink *sink);
};

struct change_sink {
    const struct change_sink_functions *functions;
};

/* A sink that keeps nothing and always has room. Shared, never freed. */
struct change_sink *change_sink_null(void);

#endif
