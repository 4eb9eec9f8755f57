/*
 * table.h: a table of a row: a filter with its exceptions, its locks, and its layers; or the table
 * of the row for pairs apart, which is a dict alone.
 *
 * State of a pair, an id and a member of it:
 *     F  it is *in place*: its id has been reached by the frontier, and the filter of the table or
 *        of its layer says yes
 *     X  an exception stands for it
 *     A  it is apart, in the row's table for such
 * It is there if A, or F and not X. Adding takes an exception away, or sets bits, or puts the pair
 * apart (row_admit() says which); removing makes an exception, and what was apart is deleted there.
 * Bits of ids above the frontier are never set, so a yes of the filter to one of them means nothing
 * and is not believed: a pair of one is always apart, never only taken for there. What is apart of
 * a table's ids is changed under the table's lock of the pair.
 *
 * Exceptions and what is apart are exact: the dict's key is the hash the filter uses and the low
 * byte of a second hash of its own secret, and its value holds the whole second hash: two pairs are
 * taken for one with a probability of 2^-128. What is apart has its id and both hashes: all that
 * any table needs, since the hashes are the same in all tables of a space.
 *
 * A layer has the shape of its table, so a pair has the same line in both and pairs of one line
 * have one lock. It has no locks and exceptions of its own.
 *
 * What survives a restart (row/row_log.h): the shape as a description, the filter's pages as
 * they are in memory, exceptions and what is apart as sections of entries. A change says by its
 * place (enum change_place) which of bits, exception and apart it touched, and replay does just
 * that, by the two hashes alone: it asks neither the filter nor the frontier, which in an image are
 * those of some time. Bits of changes above an image's S only come earlier than they would.
 *
 * A table that leaves memory (row/row_cold.h) keeps its exceptions and its locks there; only the
 * lines of its filter go (phantom/dump.h), and come back page by page when they are asked for. A
 * table and its layer go one after the other: each is asked where it is. While one is away the
 * functions below that say so are to be used in place of the quick ones.
 *
 * Invariants, held whenever no lock is taken (phantom_table_check):
 *   T1 no stripe is locked
 *   T2 members put into a filter are at most its capacity
 *   T3 set bits are at most `bits` a member put in, and some if there is a member
 *   T4 the filter, or the layer's, says yes to every exception
 *   T5 exceptions and what is apart are sound dicts
 *   T6 ids apart are at or above apart_first of their table
 *   T7 no exception stands for what is apart
 *   T8 a layer has exactly the shape of its table
 *   T9 the overlay of a filter that is in memory has no bit that is not set there
 *   T10 a filter has words in memory, or a file; `away` says so of the table and its layer
 * T3 and T4 are not looked at where they would need the disk.
 *
 * Thread rule: hashes, prefetch, holds, stats, copy_pages by any thread at any time; add and remove
 * between phantom_table_lock() and unlock of that member; load by one thread, nobody else uses the
 * table; the rest with the world stopped.
 */
#ifndef ROLLCALL_PHANTOM_TABLE_H
#define ROLLCALL_PHANTOM_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/verlock.h"
#include "phantom/dump.h"
#include "phantom/filter.h"
#include "phantom/phantom.h"
#include "row/row_cold.h"

#define PHANTOM_STRIPES       8192 /* locks of a table; a power of two */
#define PHANTOM_APART_SHARE   64   /* this part of a table's size is the pool of what is apart */
#define PHANTOM_WINDOW_RANGES 8    /* a frontier is pushed at most this many ranges from its base */

#define PHANTOM_DESCRIPTION_BYTES 64 /* of a shape */

/*
 * Sections of a table's file, beside its pages; a layer has none. The image of an overlay has no
 * pages and one more, also of a layer, where the others are empty.
 */
enum phantom_section {
    PHANTOM_SECTION_EXCEPTIONS,
    PHANTOM_SECTION_APART,
    PHANTOM_SECTIONS,
    PHANTOM_SECTION_LINES = PHANTOM_SECTIONS,
    PHANTOM_OVERLAY_SECTIONS
};

struct phantom_shape {
    uint64_t table_bytes;
    uint64_t exceptions_bytes; /* of the pool, 0: none; of a layer 0 */
    uint64_t apart_bytes; /* of the pool of the one for pairs apart; of a table 0, of a space its */
    uint64_t capacity;    /* members */
    struct phantom_plan plan;
};
/* About a millisecond: not with the world stopped for a new table. */
void phantom_shape_init(struct phantom_shape *shape, const struct phantom_config *config);
uint64_t phantom_shape_bytes(const struct phantom_shape *shape);    /* all that a table holds */
uint64_t phantom_apart_bytes(const struct phantom_config *config);  /* of all that is apart */
unsigned phantom_apart_sample(const struct phantom_config *config); /* row_config.sample */
/* Whether and in how much memory deletes are kept; exceptions_bytes 0: the usual part. */
void phantom_shape_deletes(struct phantom_shape *shape, bool on, uint64_t exceptions_bytes);

/* Write a shape as bytes, and read it. read: false if the bytes are not what describe wrote. */
void phantom_shape_describe(const struct phantom_shape *shape,
                            unsigned char bytes[PHANTOM_DESCRIPTION_BYTES]);
bool phantom_shape_read(struct phantom_shape *shape, const void *bytes, size_t length);
/* Tells a reader of files what the bytes say, each field as a name and a number. False, with
 * nothing told: as read. */
bool phantom_shape_explain(const void *bytes, size_t length, row_state_field *field, void *context);

/* Of a space, the same in all its tables. */
struct phantom_secrets {
    uint64_t first;  /* of the filters' hash */
    uint64_t second; /* of the one that tells two pairs of equal hashes apart */
};

/* The member of an operation. `bytes` are the caller's and live as long as it. */
struct phantom_member {
    uint64_t id;
    uint64_t hash; /* phantom_hash() of the rest */
    const char *bytes;
    size_t length;
    uint64_t second; /* phantom_second_hash(), for changes only */
};

/* Open only for what is inlined below. */
struct phantom_table {
    struct row_table row; /* first: a pointer to it is one to the table */
    uint32_t magic;
    bool away;                      /* its filter or its layer's is not in memory */
    struct phantom_filter filter;   /* its words are the row's region */
    struct phantom_dump *dump;      /* NULL: it is in memory, and is not about to leave */
    struct dict *apart;             /* NULL: it is not the one for pairs apart */
    uint64_t apart_max;             /* entries, so that all of it fits another's as well */
    struct dict *exceptions;        /* NULL: deletes are off and none stands, or a layer */
    uint64_t exceptions_max;        /* entries: what was described has a larger pool than is used */
    verlock *stripes;               /* [PHANTOM_STRIPES]; NULL: a layer */
    struct phantom_secrets secrets; /* of the space */
    struct phantom_shape shape;
};

static inline struct phantom_table *phantom_table_of(struct row_table *table)
{
    return (struct phantom_table *)table;
}

/* phantom_hash() of a member of more than HASH_SHORT_MAX bytes. */
uint64_t phantom_hash_long(const struct phantom_secrets *secrets, uint64_t id, const char *bytes,
                           size_t length);

static inline uint64_t phantom_hash(const struct phantom_secrets *secrets, uint64_t id,
                                    const char *bytes, size_t length)
{
    return LIKELY(length <= HASH_SHORT_MAX) ? hash_short(bytes, length, id, secrets->first)
                                            : phantom_hash_long(secrets, id, bytes, length);
}

uint64_t phantom_second_hash(const struct phantom_secrets *secrets,
                             const struct phantom_member *member);

/*
 * For struct table_kind: of this shape, of the one described or, as a layer, of its table's. NULL
 * when memory is refused, or (EINVAL) the description is none or does not go with `ids:` or the
 * table.
 */
struct phantom_table *phantom_table_create(const struct phantom_shape *shape,
                                           const struct phantom_secrets *secrets,
                                           const struct row_want *want);
void phantom_table_destroy(struct phantom_table *table); /* but its region. NULL: no-op */
/* Of the table for pairs apart. */
bool phantom_table_place(struct row *row, struct phantom_table *apart, struct phantom_table *to,
                         struct change_sink *sink);
uint64_t phantom_table_forget(struct phantom_table *apart, uint64_t first, uint64_t last);

const struct phantom_shape *phantom_table_shape(const struct phantom_table *table);

/*
 * Turns removing on or off; exceptions_bytes: of the pool, 0: the usual part of the table.
 * Exceptions that stand go on standing. False, nothing changed, when the memory is refused.
 */
bool phantom_table_deletes(struct phantom_table *table, bool on, uint64_t exceptions_bytes);

/* Asks for the lines a member has in the table and its layer, if they are in memory. Returns the
 * table's; NULL: they are not. */
static inline const shared_word *phantom_table_prefetch(const struct phantom_table *table,
                                                        uint64_t hash)
{
    const struct row_table *layer = table->row.further;
    if (UNLIKELY(table->away)) {
        return NULL;
    }
    for (; UNLIKELY(layer != NULL); layer = layer->further) {
        phantom_filter_prefetch(&((const struct phantom_table *)layer)->filter, hash);
    }
    return phantom_filter_prefetch(&table->filter, hash);
}

/* Returns the row's table for pairs apart; NULL: ids: any, or a table on its own. */
static inline struct phantom_table *phantom_apart_of(const struct phantom_table *table)
{
    return table->row.owner ? phantom_table_of(table->row.owner->apart) : NULL;
}

/* Returns what new members go to: the last layer, or the table if it has none. */
struct phantom_table *phantom_table_holder(struct phantom_table *table);

/* Returns whether the pair is apart (A). */
bool phantom_apart_holds(const struct phantom_table *table, const struct phantom_member *member);
/* A filter says yes: returns whether the id is reached, and no exception stands. */
bool phantom_table_confirms(const struct phantom_table *table, const struct phantom_member *member);

/* Returns whether a filter says yes, the table's or its layer's. Neither is away. */
static inline bool phantom_table_filtered(const struct phantom_table *table, uint64_t hash)
{
    const struct row_table *layer = table->row.further;
    bool holds = phantom_filter_holds(&table->filter, hash);
    for (; UNLIKELY(layer != NULL) && !holds; layer = layer->further) {
        holds = phantom_filter_holds(&((const struct phantom_table *)layer)->filter, hash);
    }
    return holds;
}

/* What the table's filter says of pairs with ids below this is the answer: nothing is away, in a
 * layer, apart or an exception, and the ids are reached. As nearly always. */
static inline uint64_t phantom_filter_decides_below(const struct phantom_table *table)
{
    if (table->away || table->row.further != NULL || table->exceptions != NULL) {
        return 0;
    }
    uint64_t apart = atomic_load_explicit(&table->row.apart_first, memory_order_relaxed);
    uint64_t reached = atomic_load_explicit(&table->row.frontier, memory_order_relaxed) + 1;
    return apart < reached ? apart : reached;
}

/* Returns whether the pair is there. Here and below `table` is never a layer. Nothing is away. */
static inline bool phantom_table_holds(const struct phantom_table *table,
                                       const struct phantom_member *member)
{
    if (UNLIKELY(row_may_be_apart(&table->row, member->id)) && phantom_apart_holds(table, member)) {
        return true;
    }
    return phantom_table_filtered(table, member->hash) && phantom_table_confirms(table, member);
}

/* ---- where something is away ---- */

/* Of several answers other than YES the last in this order counts. */
enum phantom_answer {
    PHANTOM_NO,
    PHANTOM_YES,
    PHANTOM_FAILED, /* the disk could not give it */
    PHANTOM_BUSY,   /* no room to wait */
    PHANTOM_PENDING /* the ticket will be woken: who comes again learns of the others */
};

/* What the files have of a member's line, in the table and in its layers. */
struct phantom_lines {
    uint64_t words[1 + ROW_LAYERS_MAX][PHANTOM_LINE_WORDS];
};

/* As phantom_table_holds, for a table with a part away. */
enum phantom_answer phantom_table_ask(const struct phantom_table *table,
                                      const struct phantom_member *member,
                                      const struct ticket *ticket);
/*
 * For a change: YES and NO (of the filters alone) have filled `lines` with what is to be known
 * under the lock, as long as the caller stays inside the barrier.
 */
enum phantom_answer phantom_table_look(const struct phantom_table *table, uint64_t hash,
                                       const struct ticket *ticket, struct phantom_lines *lines);
/* Under the lock; `lines` of look, NULL: nothing is away. */
bool phantom_table_holds_by(const struct phantom_table *table, const struct phantom_member *member,
                            const struct phantom_lines *lines);
/*
 * Returns whether the overlay has room, if one is needed. Under the lock, before add. A dump that
 * is being made is given up rather than answering no.
 */
bool phantom_table_room(struct phantom_table *table, const struct phantom_member *member);

void phantom_table_lock(struct phantom_table *table, const struct phantom_member *member);
void phantom_table_unlock(struct phantom_table *table, const struct phantom_member *member);

/*
 * Under the lock: adds one that is not there. ROW_INSIDE or ROW_APART: done, *place says how; else
 * nothing changed, and the verdict says why (ROW_WAIT: the caller calls row_wait()).
 */
enum row_verdict phantom_table_add(struct row *row, struct phantom_table *table,
                                   const struct phantom_member *member, enum change_place *place);
/* Likewise: removes one that is there. False, nothing changed: no room for an exception. `lines`
 * as for holds_by. */
bool phantom_table_remove(struct phantom_table *table, const struct phantom_member *member,
                          const struct phantom_lines *lines, enum change_place *place);

/* ---- kept and restored (row/row_log.h) ---- */

struct table_file;

/* Copies pages (TABLE_FILE_PAGE_BYTES) of the filter, while others set bits in it. */
uint64_t phantom_table_pages(const struct phantom_table *table); /* in memory */
void phantom_table_copy_pages(const struct phantom_table *table, uint64_t first, uint64_t count,
                              uint64_t *to);

/*
 * Reads the contents of a new table or layer. `done` is raised by what was read. False with
 * `error`, which is empty if it was *stop.
 */
bool phantom_table_load(struct phantom_table *table, const struct table_file *file,
                        _Atomic uint64_t *done, const _Atomic bool *stop,
                        char error[ENGINE_ERROR_MAX]);

/*
 * Opens a dumped table or layer: `file` has its pages, `overlay` (NULL: there is none) what changed
 * since. `holder` was made without a region. True: the file is the table's.
 */
bool phantom_table_load_dumped(struct phantom_table *holder, struct engine_cold *cold,
                               struct table_file *file, const struct table_file *overlay,
                               char error[ENGINE_ERROR_MAX]);

/* As in struct table_kind; `holder`: the table or its layer. Returns what is to be destroyed
 * outside the stop. NULL: nothing. */
struct dict *phantom_table_file_begin(struct phantom_table *holder, struct engine_cold *cold,
                                      unsigned overruns);
/* In memory: nothing came of its file, returns as above; or it leaves. */
struct dict *phantom_table_stay(struct phantom_table *holder);
void phantom_table_leave(struct phantom_table *table, struct phantom_table *holder,
                         struct table_file *file);
/* Something of the table may have left: notes whether. */
void phantom_table_note_away(struct phantom_table *table);
bool phantom_table_is_cold(const struct phantom_table *holder);

/*
 * Carries out a change again, as its place says, in the table of its id (NULL: it was recycled),
 * its layer, or the one for pairs apart: what lies below the start_lsn of whichever it is, is left
 * out. False with `error`: it is no change of a phantom table, or memory is refused.
 */
bool phantom_table_replay(struct row *row, struct phantom_table *table,
                          const struct engine_replay *replay, char error[ENGINE_ERROR_MAX]);

/* Of a table and its layer. */
struct phantom_table_stats {
    uint64_t members;    /* put in, less the exceptions */
    uint64_t put;        /* into filters, or apart */
    uint64_t capacity;   /* of all layers */
    uint64_t exceptions; /* standing */
    uint64_t pools_used_bytes;
    uint64_t pools_bytes;
    uint64_t exceptions_bytes; /* of pools_bytes */
    unsigned layers;           /* 1 or 2 */
    unsigned cold;             /* of them */
    uint64_t put_cold;         /* of `put`, into these */
    uint64_t overlay_lines, overlay_pools_bytes;
    uint64_t file_bytes;       /* of the cold ones' files */
    uint64_t files_held_bytes; /* of memory, for reading them */
};
void phantom_table_stats(const struct phantom_table *table, struct phantom_table_stats *stats);

/* The present share of wrong answers, over all layers, from a sample of lines: some 0.1 ms. Of what
 * is away: what its count says. */
double phantom_table_rate(const struct phantom_table *table);

/* Of a table; its layer is walked with it. */
void phantom_table_check(const struct phantom_table *table);

#endif
