/*
 * row.h: the row of tables of a space, shared by all engines: which table an id belongs to, when a
 * table is opened, given a layer, dumped or recycled. The row knows ids, counts and memory; the
 * engine knows what a table is made of, and embeds a struct row_table as the first member of its
 * own struct.
 *
 *     base 0            base 4,601              base 9,150
 *     | table 0, closed | table 1, closed       | table 2 ...... frontier ...... (ahead) ->
 *
 * Routing. An id belongs to the table with the largest base at or below it. Ranges have no gaps;
 * below the first base, after recycling, there is nothing.
 *
 * Frontier: the largest id of a table that is not *ahead*. Ahead ids never move it, so one typo
 * moves nothing. An id is ahead if it lies above the frontier and also above the table's window, or
 * above its *end*: a full table's range and an eighth, from its first id. While that range is not
 * known, an id is ahead if it lies further above the stream (all but its highest few ids) than the
 * table's reach, a part of what the table spans so far.
 *
 * Apart. Ahead ids are held exactly, in a dict of the row alone: `apart`. It has its image as the
 * tables have; openings, dumps and merges do not touch it. An id apart goes in place, as a new id
 * does, once it is not ahead any more and its table has room: when a table has opened at or below
 * it, when its table closes or leaves memory, and when room apart is needed. Each such move is a
 * change in the journal (CHANGE_INSIDE), made with the world stopped. A row's first table does not
 * know its ids: the first `sample` of them go apart, then the table settles: ids around the
 * shortest span that more than half of them are in set the frontier, so nearly half may be strays.
 *
 * Opening. A table that reaches its fill (capacity less late-room) opens a table at frontier + 1,
 * if no table begins there, and takes only late ids from then on: it is *closed*. Where the stream
 * nears the end of a table that is not full, the next one opens above that end. When ROW_CLUSTER
 * ahead ids of a table lie within its reach of each other, a table opens for them anywhere in the
 * row, a little below the smallest, since more may come in any order; ids between still go to the
 * older table. When the stream itself has left the table for ahead ids (the newest ROW_LEAP of them
 * are three in four of what came, and most new ids of the row belong to this table's range) and
 * there are ROW_BULK of them, or no more room for them, a table opens for most of them; its range
 * is not known. No table opens whose window would take fewer than ROW_CLUSTER of them.
 *
 * A table opened for ahead ids is a *jump* until it is a quarter full: the ids may be typos after
 * all. Half of the tables (one at least) may be jumps; without recycling jumps leave as many tables
 * free as the ids below them need (half of the tables at most). A further jump takes the place of
 * the oldest one, if tables are recycled and most ids do not come in there (a table is no jump once
 * ROW_CLUSTER ids came there); else its ids stay apart.
 *
 * A closed table at its capacity gets one layer, a table of the same shape, for every new id of its
 * range: an id never changes sides. When that is full too, or the memory for what spills is, both
 * are dumped out of turn if dumped tables grow (row/row_cold.h). Else, while it is in memory, up to
 * ROW_LAYERS_MAX follow, each for what the one before has no room for; in a row without a log, if
 * no region is free, a table that nothing came to gives its own.
 *
 * Memory. `tables` regions of `table_bytes` are reserved when the row is made. With `recycle` one
 * of them is always spare and zeroed: when it is taken, the table opened longest ago is recycled,
 * but no table that the opening needs, and not the one where most ids came in since the last
 * opening. If there is a table below the recycled one, that table takes over its range and
 * remembers up to where ids had come there (row/row_dropped.h): these are answered as ids below the
 * oldest table are, until the stream of the table below reaches them and a table opens there. With
 * `dump` the table is dumped instead (row/row_cold.h). Without either, new ids are refused once all
 * regions are used.
 *
 * Who acts. Workers only ask: row_admit() answers ROW_WAIT where the row must change first, the
 * engine leaves its ticket with row_wait() and answers pending. The keeper (one thread) calls
 * row_maintain(), which changes the row with the world stopped (base/barrier.h) and wakes them;
 * memory is cleared and zeroed outside the stop.
 *
 * With a log each such change is an event (row/row_log.h), and the log is asked for room first. If
 * it has none, nothing is changed, waiting requests are woken, and requests that would wait are
 * refused, except one now and then that has the keeper try again.
 *
 * Thread rule: row_find, row_admit, row_removed, row_too_far, row_wait: any thread inside the
 * barrier. row_maintain, row_populate: one thread each, outside. The rest: world stopped, or nobody
 * else there.
 */
#ifndef ROLLCALL_ROW_ROW_H
#define ROLLCALL_ROW_ROW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/barrier.h"
#include "base/check.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "row/id_span.h"
#include "row/permute.h"
#include "row/row_config.h"
#include "row/row_dropped.h"

#define ROW_ID_MAX     ((uint64_t)INT64_MAX)
#define ROW_AHEAD_KEPT 1024 /* ahead ids remembered for finding clusters: the latest */
#define ROW_CLUSTER    16   /* ahead ids within reach of each other: not typos */
#define ROW_BULK       256  /* ahead ids that are no typos wherever they lie */
#define ROW_LEAP       64   /* ahead ids that are the stream itself, if few others came meanwhile */
#define ROW_REACH_MIN  1024 /* ids above the frontier are not ahead, whatever was seen */
#define ROW_SAMPLES    64   /* ids of a table that say how dense they are */
#define ROW_ARRIVALS   64   /* new ids of the row that say where the stream is */
#define ROW_LOOKED_AT  16   /* newest tables looked at one by one before a binary search */

/* Of tables for ids apart, from here on; others are below. */
#define ROW_APART_SERIALS (1ull << 40)

/* Layers of a table. Where dumped ones grow a second one is made of none (row_may_layer). */
#define ROW_LAYERS_MAX 15

/* Room for ids apart: a table's usual pool for one table in so many, and a small one at least for
 * each. */
#define ROW_APART_PART 4

#define ROW_IMAGE_SECTIONS_MAX 4

struct row;
struct table_file;
struct row_table;
struct table_kind;

/* What a new table is for. */
struct row_want {
    uint64_t base;
    uint64_t range; /* ids a full table spans, as the last one showed; 0: not known */
    bool first;     /* nothing is known: unsettled until its sample is full (not with any_ids) */
    bool apart;     /* a dict alone, for ids apart: no region, and the pools region_bytes give */
    const struct row_table *part_of;  /* not NULL: a part that takes records of this one: by its
                                         keys,  from base to last (row/row_parts.h) */
    uint64_t last;                    /* with part_of */
    const struct row_table *layer_of; /* not NULL: a layer of this table, of exactly its shape */
    /*
     * Not NULL: makes the table as it was described (table_kind.describe), whatever the
     * configuration says by now. The dicts are made twice as large, since entries that lay
     * elsewhere by another hash must fit.
     */
    const void *description;
    size_t description_bytes;
    void *region;          /* zeroed memory of region_bytes; NULL: it is dumped (row/row_cold.h) */
    uint64_t region_bytes; /* the memory it has, or had before its dump */
};

/* Bits of `wants`. */
#define ROW_WANT_SETTLE  1u
#define ROW_WANT_OPEN    2u /* at frontier + 1: the fill is reached */
#define ROW_WANT_RENEW   4u /* at frontier + 1: the configuration has changed */
#define ROW_WANT_CLUSTER 8u
#define ROW_WANT_BULK    16u
#define ROW_WANT_LAYER   32u
#define ROW_WANT_REACH   64u  /* where ids were recycled: the stream has come there */
#define ROW_WANT_PLACE   128u /* ids apart that are not ahead any more go in place */
#define ROW_WANT_LEAVE   256u /* it is full, and its layer: it is to be dumped, as its file grows */
/* Wants of parts (row/row_parts.h): to grow; to grow at once, as somebody waits. */
#define ROW_WANT_GROW     512u
#define ROW_WANT_GROW_NOW 1024u

struct row_region { /* under the row's lock, except memory and bytes: those stay */
    void *memory;
    uint64_t bytes;
    uint64_t resident; /* bytes from its start that were made resident */
    bool used;         /* by a table, retired or not, or left by a dump; else zeroed */
    bool left;         /* its table was dumped: the keeper clears it */
    bool gone;         /* of no use any more: given back with its last pin */
    bool loose;        /* of a part: it is in no list, and goes to the system with its part */
    unsigned pins;     /* by threads that make it resident */
    struct row_region *next_left; /* of a part that was dumped */
};

/* Ids that came in place, chosen evenly over the life of a table. Under the row's lock. */
struct row_samples {
    size_t count;
    uint64_t stride; /* ids from one to the next, on average */
    uint64_t ids[ROW_SAMPLES];
    uint64_t began;           /* ids admitted when the first was taken: after a restart, some */
    _Atomic uint64_t next;    /* ids admitted when the next one is taken; read by any thread */
    _Atomic uint64_t arrival; /* the same for the next one the row takes for its own */
};

struct row_table {
    /* Changed with the world stopped. */
    uint64_t serial;      /* of its opening; names the table in stats */
    unsigned layer;       /* 0: it is none; else its number, rising, in images and files */
    uint64_t base, last;  /* its range of ids */
    uint64_t window_last; /* ids above it are ahead wherever the frontier is */
    uint64_t low;         /* where its ids really begin: base, or what settling found */
    uint64_t step;        /* from the frontier of the table it followed to low */
    uint64_t range;       /* ids a full table spans, as earlier ones showed; 0: not known */
    uint64_t reach_min;   /* while range is 0: ids up to this far above `trusted` are not ahead */
    uint64_t capacity;    /* records or members */
    const struct permute *keys; /* of a part: alike in all parts of a row (row/row_parts.h) */
    uint64_t grows_to;          /* what it takes dumped: merges write larger files; 0: capacity */
    uint64_t fill;              /* at which the next table opens */
    uint64_t opened_s;          /* wall clock */
    uint64_t closed_serial;     /* tables made by the time it closed */
    struct row *owner;          /* NULL: an engine's table on its own */
    struct row_table *further;  /* its next layer; the last one takes every new id */
    struct row_region *region;  /* NULL: it is dumped */
    bool settled;
    bool closed;          /* frontier = last: only late ids come */
    bool refused;         /* no table can be had for it, until the row changes */
    bool refused_jump;    /* no table can be had for its ahead ids; it may have room yet */
    bool refused_layer;   /* no layer can be had for it; ids above its frontier may have a table */
    bool warned;          /* `refused` was logged; until a table opens */
    bool jumped;          /* it was opened for ahead ids */
    bool is_apart;        /* it is a row's `apart`, and stands nowhere */
    bool cold;            /* it is dumped: it has no region (row/row_cold.h) */
    bool leaving;         /* it is to be dumped, with its layer */
    bool tapped;          /* the image of its dump is being made */
    bool whole;           /* each change is journaled as the whole record: WHOLE (row/row_cold.h) */
    bool merging;         /* its next file is being written, or nothing came of that: folding */
    bool folding;         /* its overlays become one again (row/row_fold.h) … */
    bool fold_waits;      /* … later, as memory was refused */
    bool awaiting;        /* its wants wait until a dump has ended */
    bool touched;         /* an image of it must begin anew (row/row_log.h) */
    _Atomic bool starved; /* its memory had no room for an id; by any thread */
    bool layer_first;     /* a table above gave its region for a layer: none opens there before */
    bool layer_due;       /* restoring: it has a layer, which is still to come */
    uint64_t touches;     /* times it was touched */
    uint64_t start_lsn;   /* S of its last image, or of the event that made it */
    uint64_t cluster_from, bulk_from; /* `noted` at which its ahead ids may open one again */
    uint64_t seen;                    /* ids that had come by the last opening */
    uint64_t merge_lsn;               /* S of the merge under way */
    uint64_t merge_us;                /* clock before which it is not merged; 0: none has failed */
    uint64_t pool_bytes;              /* of a part in memory: of its pools; by the kind */
    struct table_file *file;          /* of a dumped part; by the kind */
    unsigned sections;                /* of an image, beside its pages */
    uint32_t section_bytes[ROW_IMAGE_SECTIONS_MAX]; /* of a value; so of an overlay's image */
    struct row_dropped dropped;                     /* ids in its range of recycled tables */
    /* By any thread. */
    _Alignas(64) _Atomic uint64_t frontier;
    /*
     * What the stream has passed for sure: the smallest of ROW_CLUSTER ids above the old value,
     * again and again. The reach is measured from here, so that strays taken in do not let further
     * ones in.
     */
    _Atomic uint64_t trusted;
    _Atomic uint64_t newer_least; /* of the ids above `trusted`; UINT64_MAX: none yet */
    _Atomic uint32_t newer;       /* how many ids came above `trusted` */
    _Atomic uint64_t count;       /* ids (pairs) it holds; a layer counts its own */
    _Atomic uint64_t gone;  /* ids that were in place, here or in its layer, and were removed */
    _Atomic uint64_t late;  /* admitted since it closed, to its layer too */
    _Atomic uint64_t apart; /* ids (pairs) of its range that are apart, about */
    _Atomic uint64_t apart_first; /* no id of its range below it is apart; UINT64_MAX: none is */
    _Atomic uint64_t clear_to; /* ids up to it need no look at the limit and the end: row_admit.c */
    _Atomic uint64_t place_at; /* the frontier at which enough of those apart have been passed */
    _Atomic uint32_t wants;    /* ROW_WANT_* */
    _Atomic bool changed;      /* since its last image: row_changed() */
    _Atomic uint8_t tap;       /* enum row_tap: row/row_cold.h */
    struct id_span ids;
    struct row_samples samples;
};

/* An ahead id, how many ids its table had in place when it came, and how often it came so far. */
struct row_ahead {
    uint64_t id, placed, times;
};

struct row_waiters {
    size_t count, room;
    struct ticket *tickets;
};

/* What became of a change that was replayed beside readers (row/row_follow.h). */
enum row_replayed {
    ROW_REPLAYED,
    ROW_REPLAY_LATER,  /* nothing was done: pages were asked for */
    ROW_REPLAY_UNREAD, /* likewise: one cannot be read */
    ROW_REPLAY_FAILED,
};

struct row {
    /* Read inside the barrier, changed with the world stopped. */
    size_t count;
    uint64_t bases[ROW_ROUTES_MAX]; /* rising */
    struct row_table *tables[ROW_ROUTES_MAX];
    struct row_table *apart; /* ids apart; NULL: any_ids, or nothing is restored yet */
    bool apart_old;          /* it is of another configuration: the keeper makes it anew */
    bool parted;             /* any_ids, and its tables are parts: bases are keys (row_parts.h) */
    unsigned places_left;    /* ids that may go in place before the log is asked again */
    struct row_config config;
    const struct table_kind *kind;
    struct engine *engine;
    struct engine_cold *cold; /* NULL: no table leaves memory */
    double late_room;         /* of the next table */
    uint64_t serials;         /* tables made so far */
    uint64_t recycled_tables, recycled_ids;
    uint64_t dropped_ranges; /* of all tables */
    /* What the configuration before a restart said, until row_reconfigure; tables 0: nothing. */
    struct row_bounds {
        uint64_t dumps_max, tables, table_bytes;
    } stored;
    bool follows; /* its replay goes on while others read (row/row_follow.h) */
    /* Replay asks for pages of dumped tables with it; NULL: it reads them at once. */
    const struct ticket *replay_ticket;
    enum row_replayed replayed; /* by the kind: LATER or UNREAD, where that is why it says false */
    bool untidy; /* the keeper may find memory of retired tables, or for a new configuration */
    bool growth_warned;           /* that a part cannot grow was logged; until one does */
    uint64_t growth_told;         /* bytes at which growing was logged */
    uint64_t charged;             /* bytes of all parts that it has of engine->growth */
    _Atomic uint64_t loose_bytes; /* of regions of parts */
    /* Called when the keeper has something to do. NULL: a test calls row_maintain() itself. */
    const struct engine_keeper *keeper;
    /*
     * Called when row_cold_wanted() becomes true. Set before the row is shared; NULL: nobody is
     * told.
     */
    const struct engine_keeper *imager;
    struct change_log *log;     /* NULL: the row is in memory alone. Set before it is shared */
    uint32_t space;             /* its number, for the log */
    _Atomic bool asked;         /* some table wants something */
    _Atomic bool denied;        /* the log had no room: new ids that need it: BUSY; no growth */
    bool dump_failed;           /* the last dump failed: new ids that need memory are refused */
    bool dump_paused;           /* no dump for the rest of this round of images */
    bool merge_paused;          /* likewise no merge: one has failed */
    bool round_failed;          /* the last round: no change waits for a merge until the next */
    bool overrun_told;          /* an overrun was logged since the last dump that succeeded */
    unsigned overruns;          /* dumps in a row that changes overran (row/row_cold.h) */
    unsigned merges, folds;     /* under way; of these: folded now (row/row_fold.h) */
    unsigned folds_put_off;     /* likewise later, as memory was refused */
    unsigned fold_records;      /* that move in one stop */
    _Atomic bool wake_due;      /* what waits for a merge is to be looked at again */
    _Atomic bool dump_wanted;   /* row_cold_wanted() */
    _Atomic bool merge_wanted;  /* of some overlay that is too large */
    _Atomic uint64_t denied_us; /* clock at which it is tried again, if asked for; 0: not denied */
    _Atomic uint64_t waited_us; /* likewise, as a wait for the row has ended in vain */
    _Atomic uint64_t again_us;  /* likewise, after a dump failed or memory was refused */
    _Atomic uint64_t merges_us; /* clock at which a failed merge is tried again; 0: none waits */
    /* Some of the newest new ids, in no order; UINT64_MAX: none. By any thread. */
    _Atomic uint64_t arrivals[ROW_ARRIVALS];
    _Atomic uint32_t arrivals_at, arrivals_refused; /* refused ids: some count as well */
    /* The rest under `lock`, a leaf: nothing else is taken while it is held. */
    pthread_mutex_t lock;
    size_t sample_count; /* creations of the unsettled table */
    uint64_t sample[ROW_SAMPLE_MAX];
    size_t ahead_count, unseen_count;
    struct row_ahead ahead[ROW_AHEAD_KEPT]; /* distinct, the oldest first */
    struct row_ahead unseen[ROW_LEAP];      /* the newest that came while a table was to open */
    uint64_t noted;                         /* ahead ids so far */
    uint64_t waits;                         /* tickets left so far */
    struct row_waiters waiters;
    size_t region_count;
    struct row_region *regions[ROW_REGIONS_MAX];
    struct row_region *parts_left;   /* of dumped parts, to be given back by the keeper */
    struct row_table *retired;       /* linked by `further`, to be destroyed by the keeper */
    struct row_discarded *discarded; /* row_discard(): to be destroyed outside a stop */
};

/*
 * Makes a row with its first table, of an engine that tells its keeper and its imager; the config
 * is valid. False with errno: memory was refused, and nothing is left behind.
 */
bool row_init(struct row *row, const struct row_config *config, const struct table_kind *kind,
              struct engine *engine);
void row_fini(struct row *row);

/* The bytes of a pool for ids apart of this many tables; for one: usual, at least `least`. */
static inline uint64_t row_apart_pool(unsigned tables, uint64_t usual, uint64_t least)
{
    uint64_t bytes = usual;
    for (unsigned n = ROW_APART_PART; n < tables; n *= 2) { /* pools are powers of two */
        bytes *= 2;
    }
    while (bytes < least * tables) {
        bytes *= 2;
    }
    return bytes;
}

/* Returns how many of the first n bases are at or below id. */
static inline size_t row_rank(const struct row *row, uint64_t id, size_t n)
{
    size_t low = 0;
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        if (row->bases[middle] <= id) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return low;
}

/* Returns the table of an id; NULL: below the oldest. A few ns: the newest are looked at first. */
static inline struct row_table *row_find(const struct row *row, uint64_t id)
{
    size_t i = row->count;
    if (LIKELY(i > 0) && LIKELY(id >= row->bases[i - 1])) {
        return row->tables[i - 1];
    }
    size_t looked = i > ROW_LOOKED_AT ? i - ROW_LOOKED_AT : 0;
    while (i > looked && id < row->bases[i - 1]) {
        i--;
    }
    if (UNLIKELY(i == looked)) {
        i = row_rank(row, id, i);
    }
    return LIKELY(i > 0) ? row->tables[i - 1] : NULL;
}

/* As above; for an id below the oldest table: that table. */
static inline struct row_table *row_find_from(const struct row *row, uint64_t id)
{
    struct row_table *table = row_find(row, id);
    return table != NULL ? table : row->tables[0];
}

/* As row_find(), of an id of a parted row. */
static inline uint64_t row_part_key(const struct row_table *table, uint64_t id)
{
    return permute_forward(table->keys, id & table->keys->mask);
}
struct row_table *row_find_part(const struct row *row, uint64_t id);

/* As row_find(), whatever the bases are. */
static inline struct row_table *row_table_of(const struct row *row, uint64_t id)
{
    return UNLIKELY(row->parted) ? row_find_part(row, id) : row_find(row, id);
}

/*
 * Returns the table that a key of the id is looked for in. NULL: below the oldest, or among ids
 * that were recycled with their table; for a new id there ask row_admit_again().
 */
static inline struct row_table *row_route(const struct row *row, uint64_t id)
{
    struct row_table *table = row_table_of(row, id);
    if (UNLIKELY(row->dropped_ranges > 0) && table != NULL &&
        row_dropped_has(&table->dropped, id)) {
        return NULL;
    }
    return table;
}

/* For who routes many ids: the newest table, of all from *from on. Others are for row_route(). */
static inline struct row_table *row_newest(const struct row *row, uint64_t *from)
{
    bool known = row->count > 0 && !row->parted && row->dropped_ranges == 0;
    *from = known ? row->bases[row->count - 1] : UINT64_MAX;
    return known ? row->tables[row->count - 1] : NULL;
}

/* Returns what takes new ids of its range: its last layer, or the table itself. */
static inline struct row_table *row_last_layer(struct row_table *table)
{
    while (table->further != NULL) {
        table = table->further;
    }
    return table;
}

/* Returns the smallest id above a table's range; 0: there is none. */
static inline uint64_t row_next_base(const struct row_table *table)
{
    return table->last == ROW_ID_MAX ? 0 : table->last + 1;
}

enum row_verdict {
    ROW_INSIDE,   /* store it in place, in the layer if there is one */
    ROW_APART,    /* store it in row->apart: ahead, or the table does not know its ids yet */
    ROW_WAIT,     /* the row changes first: row_wait(), answer pending */
    ROW_NO_TABLE, /* refused: all tables are in use, or no room apart: it may be tried again */
    ROW_BUSY,     /* refused: the row cannot change for a moment (denied, waited_us), full or not */
    ROW_TOO_FAR,  /* refused: ahead of all the tables hold, and there is no room apart */
    ROW_BELOW,    /* refused: its table was recycled */
};

/*
 * Asked under the id's lock, when it is sure that a new id (or pair) is to be stored in the range
 * of `table`, the table that row_find gives. INSIDE and APART have been counted; if the id cannot
 * be stored after all, row_removed() takes that back.
 */
enum row_verdict row_admit(struct row *row, struct row_table *table, uint64_t id);

/*
 * Asked under the id's lock: the memory of `table`, or its layer, has no room for an id that was
 * admitted, and what row_admit() counted was taken back; or, not anew, for what an id that is there
 * is to become: a further layer would not help that. ROW_WAIT: the table is dumped, out of its
 * turn if need be, or the part grows, and takes the id then. ROW_NO_TABLE: it stays refused;
 * ROW_BUSY: for a moment.
 */
enum row_verdict row_no_memory(struct row *row, struct row_table *table, bool anew);

/*
 * Asked for a new id that row_route() gave no table for. ROW_BELOW; or, where the stream has come
 * to recycled ids and a table opens there: ROW_WAIT, ROW_BUSY or ROW_NO_TABLE.
 */
enum row_verdict row_admit_again(struct row *row, uint64_t id);

/*
 * An id (or pair) of `table` was removed; holder: the table or the layer that held it, or, table
 * being the one for ids apart, itself.
 */
void row_removed(struct row_table *table, struct row_table *holder, uint64_t id);

/*
 * Asked when the room apart is used up, for an id that was to go there. ROW_WAIT; ROW_BUSY;
 * ROW_NO_TABLE while no table can be had, since it is then not known whether the id is far or just
 * next; where the stream has passed it; and where trying again helps, as the stream comes to it
 * before all tables are full, or a table opens for it and others near it. Else ROW_TOO_FAR.
 */
enum row_verdict row_too_far(struct row *row, struct row_table *table, uint64_t id);

/* Has the ticket woken when the row has changed. After ROW_WAIT, in the same turn. */
void row_wait(struct row *row, const struct ticket *ticket);

/*
 * A request has waited as long as it may: all that wait for the row, or would, are refused for a
 * second (ROW_BUSY). Any thread inside.
 */
void row_waited(struct row *row);

/* Call before changing anything of the table (or layer) that holds it. Any thread inside. */
static inline void row_changed(struct row_table *holder)
{
    if (UNLIKELY(!atomic_load_explicit(&holder->changed, memory_order_relaxed))) {
        atomic_store_explicit(&holder->changed, true, memory_order_relaxed);
    }
}

/*
 * True: the id may be apart; so look there where its table has it not, and before a dumped one is
 * asked. Nothing goes from apart into a table but with the world stopped. Any thread inside.
 */
static inline bool row_may_be_apart(const struct row_table *table, uint64_t id)
{
    return id >= atomic_load_explicit(&table->apart_first, memory_order_relaxed);
}

/*
 * For `place`. True: the id goes in place in `to` (or its layer), where it is counted and moves the
 * frontier; the caller calls row_removed() for what it was apart. False: it stays apart. Stopped.
 */
bool row_place(struct row *row, struct row_table *to, uint64_t id);
/* Likewise, of an id that is to be dropped instead. False: it stays; there is no room to log it. */
bool row_place_drop(struct row *row);

/*
 * Does what was asked for, then makes up to 16 MiB of new or cleared memory resident, and has the
 * keeper notified while there is more. Blocks. barrier NULL: nobody else is there (tests).
 */
void row_maintain(struct row *row, struct barrier *barrier);
/* True: the keeper has something to do. */
bool row_asked(const struct row *row);

/* Makes regions resident, those of tables first. Blocks; ends early once *stop is true. */
void row_populate(struct row *row, const _Atomic bool *stop);

/*
 * Forgets everything and leaves one unsettled first table. The keeper clears memory, this call only
 * where the system refuses one table more. With a log, its reserve() has said true; so below.
 */
void row_clear(struct row *row);

/*
 * Takes a changed configuration (any_ids stays). It holds from the next table on; memory that
 * exceeds a smaller configuration is given back as tables are recycled. renew: a table of the new
 * configuration follows the newest table at once, if that holds anything.
 */
void row_reconfigure(struct row *row, const struct row_config *config, bool renew);

/*
 * Tells which tables that stay with the configuration of now (of before a restart)
 * row_reconfigure() would lose: at most two losses, appended to losses[0 .. *count]. Where tables
 * are recycled in their turn, or dumped one by one, the change loses nothing. World stopped, or
 * while nothing is maintained.
 */
void row_losses(const struct row *row, const struct row_config *next, struct engine_loss *losses,
                size_t *count);

/* Calls visit for each table and layer, oldest first, and at last for the one of ids apart. */
typedef void row_visit(void *context, struct row_table *table, bool layer);
void row_each(const struct row *row, row_visit *visit, void *context);

/* Calls visit for the id of each record or pair apart; there is a table for them. Stopped. */
void row_apart_each(const struct row *row, void (*visit)(void *context, uint64_t id),
                    void *context);

/* Figures every kind has. Of a table: names prefixed "<serial>:", layers summed into it. */
void row_emit_space(const struct row *row, const struct emitter *to);
void row_emit_table(const struct row *row, const struct row_table *table, const struct emitter *to);
uint64_t row_held_bytes(const struct row *row); /* of all regions */

/*
 * CHECKs: R1 bases rise, ranges meet, the last ends at ROW_ID_MAX; R2 frontier is within base - 1
 * .. last, trusted not above it; R3 closed says what it means (a table that came to its end between
 * two others closes at the next change); R4 layers have the range of their table,
 * and numbers that rise; R5 each used
 * region has one table, and tables are at most what was configured unless it shrank; R6 a table's
 * count is at most its capacity (dumped, or whole and filled by a node that has dumped it: what it
 * grows to there), and no id apart is below its table's apart_first; R7 `sample` only with an
 * unsettled table; R8 serials differ and are below `serials`, nothing is half restored; R9 dumped
 * tables have no region, they and those that leave are whole, tapped ones are leaving, and so is
 * their layer, a table that awaits a dump wants something; R10 recycled ids lie in the range of the
 * table that remembers them, and the ranges are counted.
 */
void row_check(const struct row *row);

/*
 * From here on the memory that a row of parts holds beyond what was set aside for it counts there,
 * and nowhere else. growth NULL: nowhere. The same as before: nothing. Nobody else there.
 */
void row_parts_share(struct row *row, struct engine_growth *growth);

#endif
