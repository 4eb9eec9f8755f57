/*
 * table.h: one table of records: ids to packed slots, in groups of one cache line.
 *
 * x = permute(id - origin) is w bits wide; its high bits are the number of the id's *home* group,
 * the rest, the remainder, is stored: together they give the id back. A group of 64 bytes (256 for
 * wide schemas) holds S places:
 *
 *     offset            size   meaning
 *     0                 S*P    payload of place i at i*P
 *     end - meta - S*R  S*R    remainder of place i at i*R
 *     end - 8           4      only when S > 10: bit a place, set if it lies here as its alternate
 *     end - 4           4      verlock word: lock 1 | spilled 1 | overflow marks 8 | count |
 *                              (S <= 10: choice bit a place) | version, all that is left
 *
 * A record lies in its home or in its alternate, another group of the same 4 KiB page
 * (home ^ (1 + h(rem) mod (groups a page - 1)), its own inverse); a mark in the home (one of eight,
 * by h(rem)) says that some such record went there; when both are full one record of either moves
 * to its own other group; else the record goes to the extend dict and the home is marked `spilled`.
 * Deleting fills the hole with the group's last record: no tombstones. Ids outside the window
 * [origin, origin + 2^w) live in the extend dict; a stripe of lock words stands in for their home.
 * An unsettled table (row/row.h) has no window: every id is outside.
 *
 * In a row. A table is a struct row_table: the row routes ids to it and is asked, under the home's
 * lock, before a new one is stored. What belongs apart lies in a table of the row that is a dict
 * alone: an id is put there under its home's lock, so that it is not created twice; once there it
 * has its lock there. A further layer has the shape, schema and origin of its root;
 * once there is one, the root takes no new id: what is absent there is looked for, and created, in
 * the layer. The memory of the groups is the row's, all else the table's own.
 *
 * Locks: a change holds the home's lock from its decision until it is handed to the sink, and that
 * of any further group it touches (tried, never waited for: on failure all is released and it
 * begins again). The row's lock and buckets of dicts are taken last and briefly. Every insert,
 * delete or move of an id raises the version of its home; a reader that found nothing, or read a
 * dict, looks at the home again.
 *
 * Invariants (counter_table_check):
 *   T1 no group or stripe is locked
 *   T2 count <= S; no choice bit is set beyond count
 *   T3 each record's home, or alternate if its choice bit is set, is the group it lies in, and a
 *      record in its alternate is marked in its home
 *   T4 no id stands twice, in groups or extend dict
 *   T5 an id in the extend dict is outside the window or its home is marked spilled
 *   T6 a slot that is all ones has an aux entry, and an aux entry's record exists and says so
 *   T7 no record has all its slots unset (aux-only ones included)
 *   T8 the records add up to row.count
 *   T9 an id is within the range of the table, or that of its layer's root; it is not in both
 *
 * A dumped table (below) has no groups and no dicts; of it only T1 and
 *   T10 an entry of the overlay has an id of its range; an aux entry there has its record
 *
 * On the disk: a description (table_describe.c), the pages as they are in memory with lock and
 * version zero, each copied at one moment, and a section of entries for each dict.
 *
 * Cost: 1.2 lines a hit, 1.1 a miss; a look-up in a prefetched batch about 30 ns.
 * Thread rule: locate, look, read, edit, copy_pages, section, owns_aux: any thread, inside the
 * barrier. load: different tables by different threads. The rest: alone, or with the world stopped.
 */
#ifndef ROLLCALL_COUNTER_TABLE_H
#define ROLLCALL_COUNTER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counter/record.h"
#include "counter/schema.h"
#include "engine/change.h"
#include "engine/engine.h"
#include "row/table_kind.h"

#define TABLE_PAGE_BYTES    4096u
#define TABLE_GROUP_BYTES   64u
#define TABLE_PART_BYTES    128u /* of a part, as a rule */
#define TABLE_WIDE_BYTES    256u
#define TABLE_NARROW_PLACES 10u /* up to here the choice bits fit into the lock word */
#define TABLE_PLACES_MAX    32u /* choice bits of a wide group */
#define TABLE_STRIPES       1024u
/* A dict's default share of the table's bytes: one 32nd; two for the extend dict of small records.
 */
#define TABLE_POOL_SHARE 32u

/* The first id of a spaced table lies at 1 / WINDOW_BELOW of its window: late ones come below. */
#define WINDOW_BELOW 4u

/* What a table is made of. */
struct counter_shape {
    uint64_t table_bytes;
    uint64_t groups; /* a power of two; of a part whole pages */
    unsigned group_bits;
    unsigned group_bytes;   /* TABLE_GROUP_BYTES or TABLE_WIDE_BYTES */
    unsigned places;        /* S */
    unsigned payload_bytes; /* P */
    unsigned rem_bytes;     /* R */
    unsigned window_bits;   /* w */
    unsigned part_bits;     /* b of a part (table_part.c); 0: it is none */
    unsigned meta_bytes;    /* 4 or 8 */
    uint64_t capacity;      /* records at which about 1 % have spilled */
    uint64_t extend_bytes, aux_bytes;
};
/* range: ids a full table spans; 0: not known. */
void counter_shape_init(struct counter_shape *shape, const struct counter_config *config,
                        uint64_t range);

/*
 * Completes the shape of a part over 2^part_bits keys: the caller has set table_bytes,
 * payload_bytes, window_bits. capacity: records at which about 1/2 % have spilled.
 */
void counter_shape_part(struct counter_shape *shape, unsigned part_bits);

/* Makes the shape of a space's first table that of its ids apart: pools alone. */
void counter_shape_apart(struct counter_shape *shape, const struct counter_config *config);

/* Where an id belongs. */
struct counter_locus {
    uint64_t id;
    uint64_t group; /* home, or TABLE_OUTSIDE */
    uint64_t rem;
};
#define TABLE_OUTSIDE UINT64_MAX /* of the window: in the extend dict, if anywhere */

struct counter_table; /* its first member is a struct row_table */

static inline struct counter_table *counter_table_of(struct row_table *row_table)
{
    return (struct counter_table *)(void *)row_table;
}

static inline struct row_table *counter_table_in_row(struct counter_table *table)
{
    return (struct row_table *)(void *)table;
}

/*
 * As table_kind.create: config is valid, its table_bytes are those of the region. row NULL: a
 * table on its own, which admits what it has room for. A description without a region: a dumped
 * table, counter_table_restore_cold is next. NULL with errno when memory is refused, or a
 * description does not agree with what is wanted.
 */
struct counter_table *counter_table_create(const struct counter_config *config,
                                           const struct row_want *want, struct row *row);
/* NULL: no-op. All but the region. A dumped one's file is closed, which may block. */
void counter_table_destroy(struct counter_table *table);

/*
 * A table that was described (want->description) is in one of three states. *Previewed*, at first:
 * it is looked at with a configuration that it need not have known: names it lacks are not learned.
 * Once it takes part, set_view learns them. counter_table_restored, when all is there and it is
 * about to be shared: from then on its dicts, twice as large as described, keep the room that the
 * next restart needs. preview: the same for another configuration that was before its time.
 */
void counter_table_preview(struct counter_table *table, const struct counter_config *config);
bool counter_table_is_previewed(const struct counter_table *table);
void counter_table_restored(struct counter_table *table);

/* As table_kind.settle. */
void counter_table_settle(struct counter_table *table);

/*
 * Ids apart, in a table made with want->apart: a dict alone, every id outside of its window.
 * place, forget as in struct table_kind; a slot that `to` has no view of is lost.
 * drop_apart: the record is there no more, if it was. All stopped, or nobody else there.
 */
bool counter_table_place(struct counter_table *apart, struct counter_table *to, uint32_t space,
                         struct change_sink *sink);
uint64_t counter_table_forget(struct counter_table *apart, uint64_t first, uint64_t last);
void counter_table_drop_apart(struct counter_table *apart, uint64_t id);

const struct counter_shape *counter_table_shape(const struct counter_table *table);
const struct counter_schema *counter_table_schema(const struct counter_table *table);

/*
 * The slots the table is looked at with: those of the configuration it was created with, until
 * set_view. can_view: false if the table has no room for their names.
 */
const struct counter_view *counter_table_view(const struct counter_table *table);
bool counter_table_can_view(const struct counter_table *table, const struct counter_config *config);
void counter_table_set_view(struct counter_table *table, const struct counter_config *config);

/* As table_kind.describe and described_bytes. The format: table_describe.c. */
size_t counter_table_describe(const struct counter_table *table, unsigned char *bytes,
                              unsigned *doubles);
uint64_t counter_table_described_bytes(const void *description, size_t length);
/*
 * For a reader of files: what a description says, each field as a name and a number (`slot NAME`:
 * its bits); and what an entry of a section holds, a slot that is set by name (`NAME in aux`: the
 * number says nothing). False, nothing told: these are not the bytes of one.
 */
bool counter_table_explain(const void *description, size_t length, row_state_field *field,
                           void *context);
bool counter_table_explain_entry(const void *description, size_t length, unsigned section,
                                 uint8_t sub, const void *value, size_t value_bytes,
                                 row_state_field *field, void *context);
/*
 * Makes a page of groups without a record, for the repair of a file with this description. Its
 * groups are marked spilled, so what of the lost page lies in the extend section is still found.
 * False: it is no description.
 */
bool counter_table_blank_page(const void *description, size_t length,
                              unsigned char page[TABLE_PAGE_BYTES]);
/* Computes where id belongs and asks for its line; for_change: it is about to be written. */
void counter_table_locate(const struct counter_table *table, uint64_t id, bool for_change,
                          struct counter_locus *locus);

enum counter_look {
    COUNTER_FOUND,
    COUNTER_ABSENT,
    COUNTER_FURTHER, /* not at home, maybe elsewhere: its line is on the way, use counter_table_read
                      */
    COUNTER_UNKNOWN, /* of a dumped table: struct counter_reader says why */
};

/*
 * Reads the slots of `wanted` (bits of the view) if the record lies in its home group and needs no
 * dict; else says COUNTER_ABSENT or COUNTER_FURTHER. values->set tells at least which of `wanted`
 * are set; COUNTER_FOUND is of any slot of the view.
 * COUNTER_ABSENT is of this table: a further layer is the caller's to look at.
 */
enum counter_look counter_table_look(const struct counter_table *table,
                                     const struct counter_locus *locus, uint32_t wanted,
                                     struct counter_values *values);
/*
 * The text of a whole record, as counter_record_print() has it, if it lies at home, needs no dict,
 * and any of it is set. text: room for ENGINE_VALUE_MAX bytes. *whole: all of its slots are set.
 * Returns the length; 0: it is not so, and *text says nothing; counter_table_look() knows.
 */
size_t counter_table_print(const struct counter_table *table, const struct counter_locus *locus,
                           char *text, bool *whole);
/* The same of one slot. */
size_t counter_table_print_one(const struct counter_table *table, const struct counter_locus *locus,
                               unsigned slot, char *text);

/* The same wherever it lies: COUNTER_FOUND or COUNTER_ABSENT. */
enum counter_look counter_table_read(const struct counter_table *table,
                                     const struct counter_locus *locus, uint32_t wanted,
                                     struct counter_values *values);

/* One change: filled by the caller but for the results. */
struct counter_edit {
    uint32_t named; /* slots whose values the decision needs and may change */
    /*
     * Decides under the lock: from the record as it is (present, values of `named`) to what it
     * becomes in `after` (only slots of `named` differ; of others `set` may say nothing).
     * ENGINE_DONE: make it so; anything else: leave it. Must be pure: it may be called again.
     */
    enum engine_status (*decide)(const struct counter_edit *edit, bool present,
                                 const struct counter_values *before, struct counter_values *after);
    void *context;
    bool deleted_hidden; /* the whole record goes, hidden slots too (delete of a record) */
    /* Results. */
    const struct counter_view *view; /* the table's */
    struct counter_values after;     /* when the status is ENGINE_DONE */
    bool elsewhere;                  /* not here, nothing was decided: edit it in the layer */
    bool apart;                      /* likewise: it is in the row's table for ids apart */
    bool created;                    /* replay alone: it was not there */
};

/* An increment of one slot. The caller fills all but `now`. */
struct counter_add {
    unsigned slot;
    bool down; /* decr: not below 0 */
    uint32_t space;
    uint64_t delta;
    struct change_sink *sink;
    uint64_t now; /* what the slot holds afterwards */
};

/*
 * Carries it out if it is a simple one: the record is in memory, at home, and its slot holds a
 * number that fits its place before and after. False: it is not, or the sink has no room; nothing
 * was changed: counter_table_edit() knows. Of an id that may be apart: not to be called.
 */
bool counter_table_add(struct counter_table *table, const struct counter_locus *locus,
                       struct counter_add *add);

/* New numbers for some slots, whatever they are. The caller fills all. */
struct counter_put {
    uint32_t named; /* bit a slot, one at least */
    uint32_t space;
    const uint64_t *values; /* [slot], of those named */
    struct change_sink *sink;
};

/* The same for these: what they replace lies in its place, set or not, and the numbers fit. */
bool counter_table_put(struct counter_table *table, const struct counter_locus *locus,
                       const struct counter_put *put);

/*
 * Carries out an edit. Returns its status, or ENGINE_ERROR with *error, or ENGINE_PENDING: a new id
 * for which the row changes first; row_wait() is the caller's. The sink gets the change, if any, in
 * the terms of the view's slots.
 */
enum engine_status counter_table_edit(struct counter_table *table,
                                      const struct counter_locus *locus, struct counter_edit *edit,
                                      uint32_t space, struct change_sink *sink,
                                      enum engine_error *error);

/* The same for an id that is apart, in the table for ids apart; `elsewhere`: it is not. */
enum engine_status counter_table_edit_apart(struct counter_table *apart,
                                            const struct counter_locus *locus,
                                            struct counter_edit *edit, uint32_t space,
                                            struct change_sink *sink, enum engine_error *error);

enum counter_replayed {
    COUNTER_REPLAYED,
    COUNTER_REPLAY_FURTHER, /* not here, nothing was done: replay it on the layer */
    COUNTER_REPLAY_FULL,    /* it finds no room: memory is refused */
    COUNTER_REPLAY_UNREAD,  /* of a dumped table: its file cannot be read */
    COUNTER_REPLAY_PENDING, /* likewise: its pages come; nothing was done */
};

/*
 * Makes a SLOTS or DELETE again, its slots in the terms of the view; nobody else is there.
 * *created: a record that was not there is, and is not counted yet; what is deleted is not counted
 * any more.
 */
enum counter_replayed counter_table_replay(struct counter_table *table,
                                           const struct counter_locus *locus,
                                           const struct change *change, bool *created);

/* ---- parts (table_part.c, row/row_parts.h): as part_* of struct table_kind ---- */

uint64_t counter_table_part_fill(const struct counter_table *table, uint64_t base, uint64_t last,
                                 uint64_t bytes);
bool counter_table_part_move(struct counter_table *from, struct counter_table *to);
/* b, of a part with these keys: 2^b of them from a multiple of that on. last may be ROW_ID_MAX. */
unsigned counter_part_bits(uint64_t base, uint64_t last, unsigned window_bits);

/* ---- images (store/table_file.h): the groups' pages, and a section for each dict ---- */

enum { COUNTER_TABLE_EXTEND, COUNTER_TABLE_AUX, COUNTER_TABLE_SECTIONS };

struct dict;
struct table_file;

/* Records of a table in memory that have the slot, about if it is changed meanwhile. Any thread,
 * while the table stays. */
uint64_t counter_table_count_slot(const struct counter_table *t, const struct counter_slot *slot);

#define COUNTER_SURVEY_VALUES 40960u /* of a step in groups, and those of one group more */
/*
 * A step of counter_survey() in a table: `slots` are those of its view, as configured.
 * False: it is through, or the table is dumped. Any thread, inside the barrier.
 */
bool counter_table_survey(const struct counter_table *t, const struct counter_slot *slots,
                          struct engine_survey *survey);

/* Copies pages as they are, each at one moment, without locks and versions. Inside the barrier. */

uint64_t counter_table_pages(const struct counter_table *table); /* 0: it has no groups */
void counter_table_copy_pages(const struct counter_table *table, uint64_t first, unsigned count,
                              void *to);
/*
 * The dict of a section, as table_kind.section: to be collected when the pages have been, in this
 * order. Of a part that comes back meanwhile both overlays are parts of a section, and only both
 * together are the image: its file stays as it was.
 */
const struct dict *counter_table_section(const struct counter_table *table, unsigned section,
                                         unsigned part, const struct dict **front);
/*
 * Returns whether an aux entry is a record's. One that was collected may have been there for a
 * moment, for a change that then found no room. Inside.
 */
bool counter_table_owns_aux(const struct counter_table *table, uint64_t id, uint8_t sub);
/*
 * Fills an empty table, as described in the file, with what it has; counts the records. As
 * table_kind.load. Touches nothing but the table.
 */
bool counter_table_load(struct counter_table *table, const struct table_file *file,
                        _Atomic uint64_t *done, const _Atomic bool *stop,
                        char error[ENGINE_ERROR_MAX]);

/*
 * ---- dumped tables (row/row_cold.h) ----
 *
 * A dumped table has no memory and no dicts: what it held is in a file, as an image has it, and in
 * front of that lies the *overlay*: whole records that changed since, the values beside included.
 * An entry with nothing set says that the id is gone. While the file and the overlay are merged
 * into the next file, that overlay is the *older* one, unchanging, and an empty one lies in front;
 * if that fails, both become one again (table_fold.c).
 * Where the table has come to hold more than its file is shaped for, the next file has two, four,
 * eight times as many groups (table_merge.c).
 * A stripe's lock stands in for every id's home.
 */

/* Reads pages of files for one operation. */
struct counter_reader {
    struct cold *cold;       /* NULL: they are read at once, nobody else is there */
    struct ticket ticket;    /* woken when what is pending has come */
    bool pending;            /* something is */
    enum engine_error error; /* BUSY, READ_FAILED: of any page; goes before `pending` */
};

/* As counter_table_read and counter_table_edit, of a dumped table. UNKNOWN and PENDING: see reader;
 * PENDING with nothing pending there: the row changes first. */
enum counter_look counter_table_read_cold(const struct counter_table *table,
                                          const struct counter_locus *locus, uint32_t wanted,
                                          struct counter_values *values,
                                          struct counter_reader *reader);
enum engine_status counter_table_edit_cold(struct counter_table *table,
                                           const struct counter_locus *locus,
                                           struct counter_edit *edit, uint32_t space,
                                           struct change_sink *sink, struct counter_reader *reader,
                                           enum engine_error *error);
/*
 * As counter_table_replay, of a dumped table; what it holds is counted by the caller, deletes too.
 * Reads the file where the change does not name the whole record, or the table has a layer.
 */
enum counter_replayed counter_table_replay_cold(struct counter_table *table,
                                                const struct counter_locus *locus,
                                                const struct change *change,
                                                struct counter_reader *reader, bool *created);
/* Returns whether that needs the file. reader: its pages are asked for; NULL: none are. */
bool counter_table_replay_reads(const struct counter_table *table,
                                const struct counter_locus *locus, const struct change *change,
                                struct counter_reader *reader);

/* A table's file and the readers of it that go on when the table has gone. */
struct counter_file;
struct engine_cold;

/* What follows is as in struct table_kind. A change of a tapped table for which the overlay has no
 * room goes on all the same, and the dump is given up. */
bool counter_table_file_begin(struct counter_table *table, struct engine_cold *cold,
                              unsigned overruns);
struct table_file *counter_table_file_end(struct counter_table *table, struct table_file *file);
enum row_fold counter_table_fold(struct counter_table *table, unsigned most);
bool counter_table_restore_cold(struct counter_table *table, struct engine_cold *cold,
                                struct table_file *file, const struct table_file *overlay,
                                char error[ENGINE_ERROR_MAX]);

void counter_table_overlay_size(const struct counter_table *table, struct row_overlay_size *size);
uint64_t counter_table_file_bytes(const struct counter_table *table); /* 0: it is in memory */

/*
 * Writes file and older overlay as one file: create inside the barrier; write outside, in a thread
 * that may block. What is read stays until destroy, whatever becomes of the table.
 */
struct counter_merge;
struct counter_merge *counter_merge_create(const struct counter_table *table);
struct table_file_writer;
enum engine_image counter_merge_write(struct counter_merge *merge, struct table_file_writer *writer,
                                      const _Atomic bool *stop);
void counter_merge_destroy(struct counter_merge *merge); /* may block. NULL: no-op */

/* The steps of table_kind.recall. */
bool counter_table_recall_older(const struct counter_table *table, struct counter_table *loaded);
void counter_table_recall(struct counter_table *table, struct counter_table *loaded);

struct counter_table_stats {
    uint64_t records, aux, extend;
    uint64_t aux_used_bytes, aux_pool_bytes, extend_used_bytes, extend_pool_bytes;
    uint64_t aux_entry_bytes, extend_entry_bytes;
    uint64_t first_id, last_id; /* ever inserted; meaningless while nothing was */
    uint64_t window_first;      /* meaningless while unsettled */
    bool settled;
    bool cold;
};
void counter_table_stats(const struct counter_table *table, struct counter_table_stats *stats);

/* CHECKs T1 to T10. O(records). */
void counter_table_check(const struct counter_table *table);

#endif
