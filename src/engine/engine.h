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
 * ENGINE_ABSENT, ENGINE_EXISTS as said at the enum. In role cache what is there in part is absent;
 * REPLACE, CAS, INCR and DECR that find it forget what they would have changed, since the store
 * that the cache is of has other numbers by now.
 *
 * A write of an id that `expires` stores nothing and removes what is there, as if it had been
 * carried out and deleted at once; of an existence key that is there where deletes are off:
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

#include "base/ticket.h"
#include "engine/change.h"

#define ENGINE_SLOTS_MAX      16   /* slots of a record */
#define ENGINE_VALUE_MAX      512  /* bytes of a value: 16 numbers of 20 digits and commas fit */
#define ENGINE_SLOT_RECORD    (-1) /* the whole record */
#define ENGINE_SLOT_SOME      (-2) /* several slots: `some` and `order` of the operation */
#define ENGINE_ORDER_BITS     4    /* of a slot in an order */
#define ENGINE_SPACE_NAME_MAX 32
#define ENGINE_COPIED_COLD    (32u << 10) /* a change of a dumped table counts as so many bytes */
#define ENGINE_STAT_TEXT_MAX  256

_Static_assert(ENGINE_SLOTS_MAX <= 1 << ENGINE_ORDER_BITS &&
                   ENGINE_SLOTS_MAX * ENGINE_ORDER_BITS <= 64,
               "an order has room for all slots");

enum engine_verb {
    ENGINE_READ,  /* value into `value` */
    ENGINE_TOUCH, /* as READ without the value: touch */
    ENGINE_SET,
    ENGINE_ADD,     /* DONE, or EXISTS if there */
    ENGINE_REPLACE, /* DONE, or ABSENT */
    ENGINE_CAS,     /* DONE, ABSENT, or EXISTS if the token differs */
    ENGINE_INCR, /* DONE with the new value, or ABSENT. One number for several slots: the first's */
    ENGINE_DECR,
    ENGINE_DELETE, /* DONE or ABSENT */
    ENGINE_APPEND, /* plain alone, as PREPEND: DONE or ABSENT */
    ENGINE_PREPEND,
};

enum engine_status {
    ENGINE_DONE,
    ENGINE_ABSENT,
    ENGINE_EXISTS,
    ENGINE_PENDING,
    ENGINE_ERROR,
};

/* Why an operation ended in ENGINE_ERROR; request/command.c holds the words for each. */
enum engine_error {
    ENGINE_E_NONE,
    ENGINE_E_NOT_A_NUMBER,  /* set: the value is not a number 0..2^64-1 */
    ENGINE_E_RECORD_FIELDS, /* the value has not one field a slot, each a number or empty */
    ENGINE_E_SOME_FIELDS,   /* the same of a key that names several slots */
    ENGINE_E_NOT_MEMBER,    /* set on an existence key: anything but 1 */
    ENGINE_E_NON_NUMERIC,   /* incr of a whole record by one number; incr of an existence key */
    ENGINE_E_BAD_DELTA,     /* delta neither a number nor fields */
    ENGINE_E_DELETES_OFF,   /* the space does not keep deletes */
    ENGINE_E_OUT_OF_MEMORY, /* no place left for it */
    ENGINE_E_NO_TABLE_FREE, /* the space's tables are full */
    ENGINE_E_ID_TOO_LARGE,  /* above max-id of an `ids: any` space */
    ENGINE_E_ID_TOO_FAR,    /* far ahead of all others, and the room for ids apart is full */
    ENGINE_E_ID_BELOW,      /* its table was recycled */
    ENGINE_E_BUSY,          /* the queue of disk reads is full; no room for what changes of a
                               dumped table, or no change of the tables, came in time */
    ENGINE_E_JOURNAL_BUSY,  /* the sink had no room */
    ENGINE_E_READ_FAILED,   /* the disk could not give it */
    ENGINE_E_TOO_LARGE,     /* a value longer than the space takes */
    /* The server says these of a JOURNAL_BUSY; no engine does. */
    ENGINE_E_JOURNAL_FULL,   /* the disk is full */
    ENGINE_E_JOURNAL_FAILED, /* no change is taken before a restart */
    ENGINE_E_NO_REPLICA,     /* the follower that acknowledges is away, or behind */
};

/* Why a read found nothing; counted by the server for the space. */
enum engine_miss {
    ENGINE_MISS_ABSENT,
    ENGINE_MISS_UNSET,
    ENGINE_MISS_INCOMPLETE, /* role cache: of what the key names some is set, some is not */
    ENGINE_MISS_BELOW,
    ENGINE_MISS_EXPIRED, /* plain alone */
};

/* What only plain values can do, asked for by meta commands. */
struct engine_extended {
    bool vivify;        /* READ APPEND PREPEND: an absent one is created, empty, until vivify_s */
    bool vivify_first;  /* READ: touched after it came to be, not before */
    bool recache;       /* READ: a reader is told to renew it if it expires before recache_s */
    bool recache_first; /* READ: touched after that was judged */
    bool unnoticed;     /* READ: it does not count as read */
    bool invalidate;    /* DELETE: stays, stale; CAS: an older token stores what is stale at once */
    bool empty;         /* DELETE: its key stays, without a value, with the flags of the op */
    bool touch;         /* DELETE: what stays expires at expires_s */
    bool gives_token;   /* a change leaves `token` */
    uint64_t vivify_s;
    uint64_t recache_s;
    uint64_t token;
};

/* One operation on one key. The caller fills the first part, the engine the second. */
struct engine_op {
    enum engine_verb verb;
    int slot;    /* a slot number of the space's configuration, or ENGINE_SLOT_… */
    uint64_t id; /* 0 .. 2^63-1 */
    union {
        const char *member; /* existence keys only; valid while the op lives */
        uint64_t order;     /* ENGINE_SLOT_SOME: the slots, that of the key first lowest */
    };
    union {
        uint32_t member_length;
        uint32_t some; /* ENGINE_SLOT_SOME: bit a slot */
    };
    uint32_t text_length; /* SET ADD REPLACE CAS: the value; INCR DECR: the delta, as sent */
    const char *text;
    uint64_t cas;        /* CAS: the token */
    uint64_t initial;    /* INCR, DECR: value of what they create */
    bool compare;        /* INCR DECR DELETE APPEND PREPEND: EXISTS unless `cas` is the token */
    bool create_initial; /* INCR, DECR: an absent one becomes `initial`, the delta not applied */
    bool create_never;   /* INCR, DECR: an absent one stays absent, whatever the role */
    bool want_cas;       /* READ, and changes that end in DONE: the token then into `cas_now` */
    bool expires;        /* ids, SET ADD REPLACE CAS: it is to be gone at once */
    uint32_t flags;      /* plain, writes: kept with the value; TOUCH: those kept with it */
    bool touch;          /* plain, INCR and DECR: what is there expires … */
    uint64_t touch_s;    /* … at that second, as expires_s */
    uint64_t expires_s;  /* plain, writes, TOUCH: gone from that clock_monotonic_s() on; 0: never */
    const struct engine_extended *extended; /* plain: NULL: nothing of it. Lives as the op does */
    struct ticket ticket;

    enum engine_status status;
    enum engine_error error; /* PENDING: NONE; BUSY: to be answered if it takes too long */
    enum engine_miss miss;   /* when READ or TOUCH ended in ABSENT */
    uint32_t value_length;
    char *value;           /* caller: room for ENGINE_VALUE_MAX bytes; engine: the text, no NUL */
    bool created;          /* caller: false; INCR, DECR: nothing was there, it became `initial` */
    bool wants_table;      /* PENDING: for a table, else for a page */
    uint32_t copied_bytes; /* caller: 0; changes: that were copied, for fairness */
    int32_t ttl_s;         /* plain, changes that end in DONE: as plain_hit's … */
    int32_t ttl_touched_s; /* … likewise … */
    int32_t ttl_made_s;    /* … likewise */
    uint32_t stored_bytes; /* plain, writes that end in DONE: of the whole value */
    uint64_t cas_now;      /* with want_cas: the token; 0: a change left nothing there */
    uint64_t scratch[4];   /* the engine's, from prepare to the end of the op */
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

/* What an engine says of itself in numbers. */
struct engine_figures {
    struct engine_memory memory[ENGINE_MEMORY_KINDS];
    uint64_t recycled; /* records or members that went with their tables so far */
};

/* Told, by any thread, that row_maintain() has something to do; must return at once. */
struct engine_keeper {
    void (*notify)(void *context); /* NULL: nobody is told */
    void *context;
};

/* Memory that spaces of any ids share, beyond what is set aside for each (row/row_parts.h). */
struct engine_growth {
    _Atomic uint64_t most, used; /* bytes */
};

struct barrier;
struct cold;
struct engine_slots;
struct row;
struct engine; /* the first member of every engine's own struct */

#define ENGINE_STATE_MAX 4096 /* bytes of a space's state, the row's part included */
#define ENGINE_ERROR_MAX 512  /* of a text */

/* What an engine would lose by another configuration: counter_losses(), phantom_losses(). */
#define ENGINE_LOSSES_MAX (ENGINE_SLOTS_MAX + 2)
struct engine_loss {
    char name[ENGINE_SPACE_NAME_MAX + 1]; /* of a slot, or ENGINE_LOSS_DUMPS, ENGINE_LOSS_TABLES */
    bool slot;
    uint64_t tables;  /* not a slot: that would be dropped, */
    uint64_t records; /* and what is in them; a slot: records in memory that have it */
    uint64_t dumped;  /* a slot: records of dumped tables that may have it */
};
#define ENGINE_LOSS_DUMPS  "dumps-max" /* as the keys that bring it about */
#define ENGINE_LOSS_TABLES "tables"

enum engine_image {
    ENGINE_IMAGE_DONE,
    ENGINE_IMAGE_GONE,
    ENGINE_IMAGE_STOPPED,
    ENGINE_IMAGE_FAILED
};

/* A change with its place in the journal. */
struct engine_replay {
    uint64_t lsn;
    struct change change;
};

/* Gets a table as files name it: serial, and the number of the layer it is of that table; 0: none.
 */
typedef void engine_table_visit(void *context, uint64_t serial, unsigned layer);

/* Where dumped tables are read, and what may be held in memory of their changes, all together. */
struct engine_cold {
    struct cold *cold;              /* store/cold.h */
    uint64_t overlay_bytes_max;     /* `cold: {overlay}` */
    _Atomic uint64_t overlay_bytes; /* held now, by all spaces */
};

/* One part in this many is for tables that are being dumped, since new ids wait for their memory;
 * changes of dumped tables wait until a merge makes room. */
#define ENGINE_OVERLAY_DUMPS 4

/* Returns what overlays may hold before that of a table which is being dumped, or is dumped, takes
 * no more. */
static inline uint64_t engine_overlay_most(const struct engine_cold *cold, bool dumped)
{
    uint64_t most = cold->overlay_bytes_max;
    return dumped ? most - most / ENGINE_OVERLAY_DUMPS : most;
}

/* How far one has to look for a record: it lies where it is looked for first, in another place of
 * the table, or in a dict beside it. */
enum engine_reach { ENGINE_REACH_HOME, ENGINE_REACH_OTHER, ENGINE_REACH_DICT, ENGINE_REACHES };

struct engine_slot_survey {
    uint64_t largest;
    uint64_t beside;      /* values too large for the slot, which are kept beside the table */
    uint64_t by_bits[65]; /* of these, how many need a slot of this many bits */
};

/* A look at the values of a space, which goes on from step to step. All zero at first. */
struct engine_survey {
    uint64_t from, at; /* where it is: the engine's */
    unsigned layer, part;
    bool apart;
    uint64_t reach[ENGINE_REACHES]; /* records met */
    struct engine_slot_survey slots[ENGINE_SLOTS_MAX];
};

struct engine_functions {
    const char *kind; /* "counter", "phantom", "plain" */
    /* Hashes n ops and asks for their memory. Changes nothing. ops may repeat ids. */
    void (*prepare)(struct engine *engine, struct engine_op *const *ops, size_t n);
    /* READ and TOUCH of n prepared ops: fills status and results of each. */
    void (*read)(struct engine *engine, struct engine_op *const *ops, size_t n);
    /* Any other verb, one prepared op. Hands the change, if one was made, to the sink. */
    void (*change)(struct engine *engine, struct engine_op *op, struct change_sink *sink);
    void (*stats_space)(const struct engine *engine, engine_stat_fn *emit, void *context);
    /*
     * Figures of the table that id `from` belongs to (below the oldest: that), names prefixed
     * "<serial number>:". Returns the smallest id of the next one; 0: there is none.
     */
    uint64_t (*stats_table)(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                            void *context);
    /* Fills in its figures, which are all zero. */
    void (*figures)(const struct engine *engine, struct engine_figures *figures);
    void (*destroy)(struct engine *engine);
};

struct engine {
    const struct engine_functions *functions;
    const struct engine_slots *slots; /* engine/slots.h; NULL: its keys name none */
    uint32_t space;                   /* number of the space, for changes */
    uint32_t flags;                   /* value-flags: the flags values are read back with */
    bool role_cache;                  /* role: cache, else store */
    char only_value; /* what each key that is there reads as, of one byte, with one token; 0: they
                        have values */
    struct engine_keeper keeper;  /* set by the server before the engine is shared */
    struct engine_keeper imager;  /* likewise: told that row_images_wanted() */
    struct engine_growth *growth; /* likewise; NULL: there is none */
    const char *name;             /* of its space, for the log; NULL: it has none */
    struct row *row; /* its tables; NULL: it has none, and nothing survives a restart */
};

/* Returns the memory of all kinds that it has set aside. */
static inline uint64_t engine_held_bytes(const struct engine *engine)
{
    struct engine_figures figures = {0};
    uint64_t bytes = 0;
    engine->functions->figures(engine, &figures);
    for (size_t kind = 1; kind < ENGINE_MEMORY_KINDS; kind++) {
        bytes += figures.memory[kind].held_bytes;
    }
    return bytes;
}

static inline uint64_t engine_recycled(const struct engine *engine)
{
    struct engine_figures figures = {0};
    engine->functions->figures(engine, &figures);
    return figures.recycled;
}

#endif
