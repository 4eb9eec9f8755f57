/*
 * engine.h: what every engine (counter, phantom) is to the server: a table of functions over one
 * space, and the operation they work on.
 *
 * The server fills an engine_op a key, lets the engine prepare all of a batch (hash, prefetch),
 * then reads runs of neighbouring reads together and makes changes one by one, in the order of the
 * connection. Every operation ends in one of
 *     done     it was carried out
 *     absent   there is nothing there (or the condition of the operation did not hold: see below)
 *     pending  what it needs is on its way: a page from disk, a table the keeper opens. Nothing was
 *              changed. The op's ticket is woken when it has come; the server then runs the whole
 *              request again
 *     error    `error` says why; nothing was changed
 * and these never share a value.
 *
 * Conditions: ADD on something present, REPLACE on something absent, CAS with another token end in
 * ENGINE_ABSENT, ENGINE_EXISTS as said at the enum.
 *
 * A write of an existence key that `expires` adds nothing and removes what is there, as if it had
 * been carried out and deleted at once; where deletes are off and it is there:
 * ENGINE_E_DELETES_OFF.
 *
 * Thread rule: all functions may be called by any number of workers at once, inside the barrier
 * (base/barrier.h); create, destroy and reconfigure only with the world stopped or before it runs;
 * populate and maintain by one thread each, outside the barrier.
 */
#ifndef ROLLCALL_ENGINE_ENGINE_H
#define ROLLCALL_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/change.h"

#define ENGINE_SLOTS_MAX      16   /* slots of a record */
#define ENGINE_VALUE_MAX      512  /* bytes of a value: 16 numbers of 20 digits and commas fit */
#define ENGINE_SLOT_RECORD    (-1) /* the whole record */
#define ENGINE_SPACE_NAME_MAX 32
#define ENGINE_STAT_TEXT_MAX  256

enum engine_verb {
    ENGINE_READ,  /* value into `value` */
    ENGINE_TOUCH, /* as READ without the value: touch */
    ENGINE_SET,
    ENGINE_ADD,     /* DONE, or EXISTS if there */
    ENGINE_REPLACE, /* DONE, or ABSENT */
    ENGINE_CAS,     /* DONE, ABSENT, or EXISTS if the token differs */
    ENGINE_INCR,    /* DONE with the new value, or ABSENT */
    ENGINE_DECR,
    ENGINE_DELETE, /* DONE or ABSENT */
};

enum engine_status {
    ENGINE_DONE,
    ENGINE_ABSENT,
    ENGINE_EXISTS,
    ENGINE_PENDING,
    ENGINE_ERROR,
};

/* Why an operation ended in ENGINE_ERROR; server/command.c holds the words for each. */
enum engine_error {
    ENGINE_E_NONE,
    ENGINE_E_NOT_A_NUMBER,  /* set: the value is not a number 0..2^64-1 */
    ENGINE_E_RECORD_FIELDS, /* the value has not one field a slot, each a number or empty */
    ENGINE_E_NOT_MEMBER,    /* set on an existence key: anything but 1 */
    ENGINE_E_NON_NUMERIC,   /* incr of a whole record by one number; incr of an existence key */
    ENGINE_E_BAD_DELTA,     /* delta neither a number nor fields */
    ENGINE_E_DELETES_OFF,   /* the space does not keep deletes */
    ENGINE_E_OUT_OF_MEMORY, /* no place left for it */
    ENGINE_E_NO_TABLE_FREE, /* the space's tables are full */
    ENGINE_E_ID_TOO_LARGE,  /* above max-id of an `ids: any` space */
    ENGINE_E_ID_TOO_FAR,    /* far ahead of all others, and the room for such is full */
    ENGINE_E_ID_BELOW,      /* its table was recycled */
    ENGINE_E_BUSY,          /* the queue of disk reads is full */
    ENGINE_E_JOURNAL_BUSY,  /* the sink had no room */
    ENGINE_E_READ_FAILED,   /* the disk could not give it */
};

/* Why a read found nothing; counted by the server for the space. */
enum engine_miss { ENGINE_MISS_ABSENT, ENGINE_MISS_UNSET, ENGINE_MISS_BELOW };

/* Whom to wake when a pending operation can be run again. A value: copy it. */
struct engine_ticket {
    void (*wake)(void *target, uint64_t serial); /* any thread; a serial that is gone is ignored */
    void *target;
    uint64_t serial;
};

/* One operation on one key. The caller fills the first part, the engine the second. */
struct engine_op {
    enum engine_verb verb;
    int slot;           /* a slot number of the space's configuration, or ENGINE_SLOT_RECORD */
    uint64_t id;        /* 0 .. 2^63-1 */
    const char *member; /* existence keys only; valid while the op lives */
    uint32_t member_length;
    uint32_t text_length; /* SET ADD REPLACE CAS: the value; INCR DECR: the delta, as sent */
    const char *text;
    uint64_t cas;        /* CAS: the token */
    uint64_t initial;    /* INCR, DECR: value of what they create */
    bool create_initial; /* INCR, DECR: an absent one becomes `initial`, the delta not applied */
    bool create_never;   /* INCR, DECR: an absent one stays absent, whatever the role */
    bool want_cas;       /* READ: compute the token into `cas_now` */
    bool expires;        /* existence keys, writes: it is to be gone at once */
    struct engine_ticket ticket;

    enum engine_status status;
    enum engine_error error;
    enum engine_miss miss;  /* when READ or TOUCH ended in ABSENT */
    uint32_t fields_wanted; /* with ENGINE_E_RECORD_FIELDS: the number of slots */
    uint32_t value_length;
    char *value;         /* caller: room for ENGINE_VALUE_MAX bytes; engine: the text, no NUL */
    uint64_t cas_now;    /* READ: the token, never 0 */
    uint64_t scratch[4]; /* the engine's, from prepare to the end of the op */
};

/* Gets one figure of a space or table: a name of letters, digits and '_', and its text. */
typedef void engine_stat_fn(void *context, const char *name, const char *text);

/* The memory of one kind an engine holds, for `stats slabs` and `stats items`. */
enum engine_memory_kind {
    ENGINE_MEMORY_TABLES = 1,
    ENGINE_MEMORY_AUX = 2,
    ENGINE_MEMORY_EXTEND = 3,
    ENGINE_MEMORY_COLD = 4,
    ENGINE_MEMORY_FILTERS = 5,
    ENGINE_MEMORY_PLAIN = 6,
    ENGINE_MEMORY_KINDS = 7
};
struct engine_memory {
    uint64_t items;      /* records, entries or members */
    uint64_t item_bytes; /* one of them */
    uint64_t used_bytes;
    uint64_t held_bytes; /* reserved */
};

/* Told, by any thread, that maintain() has something to do; must return at once. */
struct engine_keeper {
    void (*notify)(void *context); /* NULL: nobody is told */
    void *context;
};

struct barrier;
struct engine; /* the first member of every engine's own struct */

struct engine_functions {
    const char *kind; /* "counter", "phantom" */
    /*
     * The slot a key's tail names: the bytes behind the id, without the member. "" and "." are the
     * whole record, ".like" a slot. False: no such slot (a bad key).
     */
    bool (*slot)(const struct engine *engine, const char *tail, size_t length, int *slot);
    /* Hashes n ops and asks for their memory. Changes nothing. ops may repeat ids. */
    void (*prepare)(struct engine *engine, struct engine_op *const *ops, size_t n);
    /* READ and TOUCH of n prepared ops: fills status and results of each. */
    void (*read)(struct engine *engine, struct engine_op *const *ops, size_t n);
    /* Any other verb, one prepared op. Hands the change, if one was made, to the sink. */
    void (*change)(struct engine *engine, struct engine_op *op, struct change_sink *sink);
    /* Forgets everything: flush_all. With the world stopped. */
    void (*clear)(struct engine *engine);
    void (*stats_space)(const struct engine *engine, engine_stat_fn *emit, void *context);
    /* Figures of each table, oldest first, names prefixed "<serial number>:". */
    void (*stats_tables)(const struct engine *engine, engine_stat_fn *emit, void *context);
    void (*memory)(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS]);
    /* Makes resident what was reserved at creation; blocks; stops early once *stop is true. */
    void (*populate)(struct engine *engine, const _Atomic bool *stop);
    /*
     * Does what operations have asked for since the last call: opens, recycles, moves. Blocks;
     * stops the world only for the switch. `barrier` may be NULL when no other thread is there.
     */
    void (*maintain)(struct engine *engine, struct barrier *barrier);
    /* Records or members that were dropped with their tables, so far. */
    uint64_t (*recycled)(const struct engine *engine);
    void (*destroy)(struct engine *engine);
};

struct engine {
    const struct engine_functions *functions;
    uint32_t space;              /* number of the space, for changes */
    uint32_t flags;              /* value-flags: the flags values are read back with */
    bool role_cache;             /* role: cache, else store */
    struct engine_keeper keeper; /* set by the server before the engine is shared */
};

#endif
