/*
 * row_log.h: what of a row goes to the disk, and how it comes back: the state of a table as bytes,
 * events as they happen, images for a checkpoint, and replay.
 *
 * Events. With a log (row->log) every change of the row is one event, put while the world is
 * stopped, so all changes of ids lie before or after it. An event is a table as it is after the
 * event: its row_state (ROW_STATE_BYTES), then the engine's description (table_kind.describe).
 * OPEN holds the new table, LAYER the new layer. DROP is ROW_DROP_BYTES: serial and base of the
 * recycled table; then the ranges that the table below is to know as recycled, two words each: of
 * its ids, or over ranges that table knows already, where they become one. WHOLE is
 * ROW_WHOLE_BYTES, serial and base of a table that is to be dumped (row/row_cold.h). An opening
 * that took its table's place (the same base) needs no DROP, nor do tables that FIRST ends. PART is
 * a part that has grown (row/row_parts.h). APART is the new table for ids apart, which takes all of
 * the one before. Replay works out what else follows (the range of the table below, which table
 * closes) as it was worked out before.
 *
 * Ids apart. Where a change was made it says (enum change_place), so the table for ids apart is
 * replayed by its own S and needs no routing. An id that goes in place is one change: from its LSN
 * on it is in its table, and not apart. So an image of the one may have it still and that of the
 * other not yet, or neither or both: whichever S lies below that change, it is replayed there.
 *
 * Images. A table is written to disk while it is used, so its image is blurred: each id as it was
 * at some time between S, noted with the world stopped when the image began, and E, when it ended.
 * Replay of every change of the table from S on makes it exact, as each change is a result. An
 * event that changes which ids a table holds (settling, opening from it, taking over a range, its
 * layer; ids apart that are forgotten) *touches* the table: an image begun before is of no use, and
 * another one is made. So a set of images with none touched since, taken together with the row as
 * it is at that moment (M), can be replayed with the routing of M: a change below a table's S is
 * left out, and no id has ever belonged to another table between its table's S and M. Events below
 * M are left out. A layer has an S of its own. No change of the layer lies between that S and a
 * later S of its table (the layer gets a new image then), so the table's S says for both what is
 * left out. A change replayed on a layer below its own S does no harm where results are set, but
 * must not be counted by flags a second time.
 *
 * Replay. row_restore_begin; tables from images; changes and events in their order;
 * row_restore_end. Nobody else is there. The engine looks an id up, then tells the row what it did.
 * What the row decides by (which ids are ahead, what they are, how far the stream came) follows
 * from the changes and from what lies apart.
 *
 * Dumped tables: row/row_cold.h.
 *
 * Thread rule: row_image_table by a thread inside the barrier; all else with the world stopped, or
 * nobody else there.
 */
#ifndef ROLLCALL_ROW_ROW_LOG_H
#define ROLLCALL_ROW_ROW_LOG_H

#include "row/row.h"

#define ROW_STATE_WORDS     (26 + 2 * ROW_DROPPED_MAX) /* the first is the format's version */
#define ROW_STATE_BYTES     (ROW_STATE_WORDS * 8)
#define ROW_WHOLE_BYTES     16
#define ROW_DROP_BYTES      16 /* and the ranges recycled */
#define ROW_DROP_BYTES_MAX  (ROW_DROP_BYTES + 16 * ROW_DROPPED_MAX)
#define ROW_DESCRIPTION_MAX (CHANGE_EVENT_BYTES_MAX - ROW_STATE_BYTES) /* of the engine's part */
#define ROW_TABLE_BYTES_MAX CHANGE_EVENT_BYTES_MAX                     /* both */
#define ROW_SPACE_BYTES     64                                         /* of row_describe */
#define ROW_KIND_SPACE_MAX  1952 /* of the kind's part, less than an event: its head */
#define ROW_ERROR_MAX       256

/* ---- tables as bytes ---- */

/* State and description of a table or layer; returns their bytes. */
size_t row_describe_table(const struct row *row, const struct row_table *table,
                          unsigned char bytes[ROW_TABLE_BYTES_MAX]);
/* The same as the file of the merge under way will have it. */
size_t row_describe_next(const struct row *row, const struct row_table *table,
                         unsigned char bytes[ROW_TABLE_BYTES_MAX]);

/* Decodes a state for a reader of files: calls `field` with each field as a name and a number. */
typedef void row_state_field(void *context, const char *name, uint64_t value);
/* False: the bytes are no state. *description: where the engine's part begins. */
bool row_state_read(const void *bytes, size_t length, row_state_field *field, void *context,
                    size_t *description);

/* What of a space's files a repair found lost, as one table's state is to say it. */
struct row_amend {
    uint64_t last; /* where its range ends now: tables above it were lost */
    bool layered;  /* a layer after it, if it had one, is there still */
};

/*
 * Changes the state in `bytes` (of a table, its overlay or its layer) by that. The ids of the lost
 * tables count as those of recycled ones, as DROP has it; *left_out: so many of them not, as a
 * table remembers ROW_DROPPED_MAX ranges. *changed: it was not so already. False: the bytes are no
 * state, or of a table that takes over no range (`ids: any`, ids apart).
 */
bool row_state_amend(void *bytes, size_t length, const struct row_amend *amend, bool *changed,
                     uint64_t *left_out);

/* ---- events ---- */

/* Decodes a DROP for a reader of files. False: the bytes are no DROP. */
bool row_drop_read(const void *bytes, size_t length, uint64_t *serial, uint64_t *base,
                   struct row_dropped *dropped);

/* Puts FIRST, with the only table of a new row. Without a log: nothing. */
void row_log_first(struct row *row);

/* ---- images ---- */

enum row_image_kind {
    ROW_IMAGE_TABLE,   /* of a table in memory */
    ROW_IMAGE_DUMP,    /* the same, of a table to be dumped (row/row_cold.h) */
    ROW_IMAGE_OVERLAY, /* of a dumped table: what changed since its file was written */
    ROW_IMAGE_MERGE,   /* a dumped table's next file: its file with its older overlay */
};

struct row_image {
    enum row_image_kind kind;
    uint64_t serial;
    uint64_t base, last;
    uint64_t start_lsn; /* S */
    uint64_t touches;   /* touches of the table when the image began */
    unsigned layer;     /* its number; 0: it is none */
    size_t table_bytes; /* of `table` */
    unsigned char table[ROW_TABLE_BYTES_MAX];
    /* As the table and its kind say. */
    unsigned sections;
    uint32_t section_value_bytes[ROW_IMAGE_SECTIONS_MAX];
};

/* Returns the layer of this number, 0: the table itself; NULL: it has none. */
static inline struct row_table *row_layer_of(struct row_table *table, unsigned layer)
{
    while (table != NULL && table->layer != layer) {
        table = table->further;
    }
    return table;
}

/* A round of images begins: what was put off for the rest of the last round may be done again. */
void row_images_begin(struct row *row);
/*
 * Begins the next image: a merge that is due; or of a table that was touched since its last image,
 * or changed and has no image with S >= since, or is to be dumped. DUMP: its tap is on from here.
 * now: the journal's head, which becomes S. False: no table needs an image, which M requires.
 */
bool row_image_next(struct row *row, uint64_t since, uint64_t now, struct row_image *image);
/*
 * Returns the table, if it was not touched since the image began. NULL: abandon the image; also for
 * a DUMP whose tap is off. A MERGE shows the past, so its table is returned touched or not.
 */
struct row_table *row_image_table(const struct row *row, const struct row_image *image);
/* The image failed: the table is as if it were touched. DUMP: the tap is off; MERGE: it is
 * folded, see row/row_fold.h. */
void row_image_failed(struct row *row, const struct row_image *image);

/*
 * Writes what the row is besides its tables, ROW_SPACE_BYTES: counts of serials and recycled
 * tables, and how many tables it may have.
 */
void row_describe(const struct row *row, unsigned char bytes[ROW_SPACE_BYTES]);

/* ---- recovery ---- */

/* Takes the tables away: no id is found in the row. */
void row_restore_clear(struct row *row);
bool row_restore_space(struct row *row, const void *bytes, size_t length,
                       char error[ROW_ERROR_MAX]);
/*
 * Makes a table again, in memory of its own, empty; tables in any order, layers after their table,
 * in the order of their numbers (0: it is none).
 * The engine loads its contents. Changes below start_lsn are not to be replayed on it. NULL with
 * `error`: the bytes are no table, or memory is refused.
 */
struct row_table *row_restore_table(struct row *row, const void *table_bytes, size_t length,
                                    unsigned layer, uint64_t start_lsn, char error[ROW_ERROR_MAX]);
/*
 * All tables are there; where that of ids apart is not, it begins empty. False with `error`: their
 * ranges do not meet.
 */
bool row_restore_complete(struct row *row, char error[ROW_ERROR_MAX]);

/* Replays an event of a table (not SPACE) at lsn. */
bool row_replay_table(struct row *row, enum change_event event, uint64_t lsn, const void *bytes,
                      size_t length, char error[ROW_ERROR_MAX]);
/*
 * Is a change of id left out of the tables, as its own is not there any more? None of them has an
 * image from before that one was dropped, so this is of a table whose file was lost
 * (row_state_amend). The table for ids apart may have one, and is told the change. table: of the
 * id's range, or NULL.
 */
static inline bool row_replay_was_dropped(const struct row_table *table, uint64_t id)
{
    return table != NULL && table->dropped.count > 0 && row_dropped_has(&table->dropped, id);
}
/*
 * Returns the table to replay a change of id at lsn on; NULL: leave the change out. The id may also
 * be in the table's layer.
 */
static inline struct row_table *row_replay_find(const struct row *row, uint64_t id, uint64_t lsn)
{
    struct row_table *table = row_table_of(row, id);
    bool stands = table != NULL && table->start_lsn <= lsn && !row_replay_was_dropped(table, id);
    return stands ? table : NULL;
}
/* Returns the table for ids apart, to replay a change at lsn on; NULL: leave it out there. */
static inline struct row_table *row_replay_find_apart(const struct row *row, uint64_t lsn)
{
    return row->apart != NULL && row->apart->start_lsn <= lsn ? row->apart : NULL;
}
/* The same for a change that put an id in place: NULL, too, if it was never apart. */
static inline struct row_table *row_replay_was_apart(const struct row *row, uint64_t id,
                                                     uint64_t lsn)
{
    struct row_table *apart = row_replay_find_apart(row, lsn);
    bool may = apart != NULL && id >= id_span_first(&apart->ids) && id <= id_span_last(&apart->ids);
    return may ? apart : NULL;
}
/*
 * A change that put id in place was replayed: the frontier follows. counted: the id was not there
 * before (in a blurred image it may have been), so it counts in `holder`, the table or its layer. A
 * table that does not count what it holds when it is loaded counts every creation and every
 * removal. What is apart is counted in the end.
 */
void row_replay_created(struct row *row, struct row_table *table, struct row_table *holder,
                        uint64_t id, bool counted);
/* A change that put id apart was replayed. */
void row_replay_apart(struct row *row, uint64_t id, bool counted);
/* For a removed id: row_removed(). */

/*
 * Everything was replayed: counts what lies apart, finds samples and ahead ids in it again
 * (row_apart_each), and tables ask for what they need. False: there was no table at all
 * and one was made as for a new row; the caller then calls row_log_first(). CHECKs that memory
 * suffices.
 */
bool row_restore_decide(struct row *row);

#endif
