/*
 * table_kind.h: what a row asks of its tables: counters, filters, and the toy of the tests are such
 * kinds. A kind embeds struct row_table as the first member of its own struct.
 *
 * The row decides which table is opened, imaged, dumped or merged, and when; a kind says what a
 * table is as memory and as bytes. A function that may be NULL says so. Those of a part that a kind
 * does not have (images, dumps) may be NULL all together.
 *
 * Thread rule: unless a function says otherwise the world is stopped, or nobody else is there.
 */
#ifndef ROLLCALL_ROW_TABLE_KIND_H
#define ROLLCALL_ROW_TABLE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "row/row.h"
#include "row/row_fold.h"
#include "row/row_log.h"

struct dict;
struct row_writing;
struct table_file;

/* What is in memory of a table that is dumped, or is about to be. */
struct row_overlay_size {
    uint64_t entries, bytes, held_bytes; /* of the older one, too, but for `bytes` */
    uint64_t older_bytes;                /* 0: no merge is under way */
    bool half;                           /* half of its places are taken, or one found none */
    bool merges;                         /* it has something that a merge would free */
};

#define ROW_REPLAY_BATCH 64u /* changes */

/*
 * For a kind: `object` is of no use from here on, and is destroyed outside the stop, which would
 * last longer for it. The row does that at the latest when it ends.
 */
void row_discard(struct row *row, void *object, void (*destroy)(void *object));

struct table_kind {
    const char *name;          /* "counter": what its files and stats say */
    unsigned overlay_sections; /* of the image of an overlay */
    unsigned apart_section;    /* with an entry for each record or pair apart */
    bool apart_in_value;       /* its id is the first word of the entry's value; else its key */
    unsigned excepted; /* sections whose entries are of what is counted, and not there: bits */
    unsigned sifted;   /* sections of images that `owns` is asked about: bit s is section s */

    /* ---- a table ---- */

    /*
     * Fills capacity, window_last, is_apart, apart_first (UINT64_MAX), of a part keys and
     * pool_bytes, and for images sections and section_bytes, of a new zeroed struct. NULL: memory
     * is refused.
     */
    struct row_table *(*create)(struct engine *engine, const struct row_want *want);
    /* Frees all but its region, if it has one; nobody can reach it, others may use other tables. */
    void (*destroy)(struct row_table *table);
    /* A first table knows its ids: `low` and the frontier have been set. NULL: any ids are fine. */
    void (*settle)(struct engine *engine, struct row_table *table);
    /* Ids that row_route() gave no table for have one again. NULL: the kind need not know. */
    void (*reopened)(struct engine *engine);

    /* ---- parts of a row of any ids (row/row_parts.h); NULL: its one table never grows ---- */

    /* Returns the records at which a part of these keys and bytes is to grow. */
    uint64_t (*part_fill)(const struct row_table *table, uint64_t base, uint64_t last,
                          uint64_t bytes);
    /*
     * Moves all records of to's keys into `to`, a new part, and counts them there. Of `from` they
     * are no more; where it has other keys, too, it is sound afterwards. False: memory is refused,
     * `from` is as it was, and `to` is to be destroyed.
     */
    bool (*part_move)(struct row_table *from, struct row_table *to);
    /*
     * A dumped part, with an older overlay since file_begin(), comes back to memory in two steps.
     * Outside the stop `loaded`, a table as it is described that has what its file has, is given
     * what the older overlay has. In the stop (`stopped`) the part takes all that is in `loaded`,
     * and what the newer overlay has; `loaded` is to be destroyed, with the file, and its region is
     * the part's. False: memory is refused, to the first step.
     */
    bool (*recall)(struct row_table *part, struct row_table *loaded, bool stopped);

    /* ---- ids apart ---- */

    /*
     * Takes ids of to's range from `apart` into `to`, or its layer, in rising order, until
     * row_place() says no for one or there is no room; changes, each whole, go to the sink. `to`
     * may be a new table for ids apart: its dict grows. False, with nothing changed: it cannot. An
     * id without a visible slot is taken off `apart` alone.
     */
    bool (*place)(struct engine *engine, struct row_table *apart, struct row_table *to,
                  struct change_sink *sink);
    /* Forgets ids apart from `first` to `last`; returns how many records or pairs they were. */
    uint64_t (*forget)(struct row_table *apart, uint64_t first, uint64_t last);

    /* ---- as bytes ---- */

    /*
     * Writes what the kind needs of the space, but for the row's part; returns how many bytes.
     * take: the same again, at `lsn` of the journal. False with `error`: they are of another kind
     * of space, or of one that cannot become this.
     */
    size_t (*write_space)(const struct engine *engine, unsigned char bytes[ROW_KIND_SPACE_MAX]);
    bool (*take_space)(struct engine *engine, uint64_t lsn, const void *bytes, size_t length,
                       char error[ENGINE_ERROR_MAX]);
    /*
     * Writes what `create` needs to make the table again, at most ROW_DESCRIPTION_MAX
     * (row/row_log.h). doubles not NULL: as the file of the merge under way will have it; where its
     * capacity and fill are 2^n times as large *doubles, which is 0, becomes n.
     */
    size_t (*describe)(const struct row_table *table, unsigned char *bytes, unsigned *doubles);
    /* Returns the bytes of region that a description needs. 0: it is no description. */
    uint64_t (*described_bytes)(const void *description, size_t bytes);
    /*
     * Replays changes of the space, in order, ROW_REPLAY_BATCH at most: all their memory is asked
     * for before the first is used. False with `error`: one cannot be carried out.
     */
    bool (*replay)(struct engine *engine, const struct engine_replay *changes, size_t n,
                   char error[ENGINE_ERROR_MAX]);
    /*
     * Returns whether this change needs pages of a dumped table's file (row.replay_ticket), which
     * `ticket` asks for; NULL: nobody does. The function is NULL where no change ever does.
     */
    bool (*replay_reads)(struct engine *engine, const struct engine_replay *replay,
                         const struct ticket *ticket);

    /* ---- images ---- */

    /*
     * Copies at most `most` pages (TABLE_FILE_PAGE_BYTES) from page `first` on, each as it is at
     * one moment; returns how many, 0 at the end. Inside the barrier, while the table is used.
     */
    uint64_t (*copy_pages)(const struct row_table *table, uint64_t first, uint64_t most, void *to);
    /*
     * Returns the dict whose entries are a part of a section, in order; NULL: there is none (any
     * more). *front: NULL, or as dict_image_collect has it. Inside the barrier.
     */
    const struct dict *(*section)(const struct row_table *table, unsigned section, unsigned part,
                                  const struct dict **front);
    /* False: the entry stood there for a moment only, no journal tells of it. Inside the barrier.
     */
    bool (*owns)(const struct row_table *table, uint64_t id, uint8_t sub);
    /*
     * Fills a new table with what its file has. `done` is raised by the bytes read so far. False
     * with `error`, which is empty if the cause was *stop. Several tables at once, each by a thread
     * of its own.
     */
    bool (*load)(struct engine *engine, struct row_table *table, const struct table_file *file,
                 _Atomic uint64_t *done, const _Atomic bool *stop, char error[ENGINE_ERROR_MAX]);
    /* All was replayed, the table is about to be shared. NULL: nothing is to be done. */
    void (*restored)(struct engine *engine, struct row_table *table);

    /* ---- dumps (row/row_cold.h) ---- */

    /*
     * A file of the table is about to be written: its changes go into a new, empty overlay from
     * here on. Of a table in memory, whose image this is: its changes go there, too, in place of
     * the overlay of a dump that came to nothing; there is more room after overruns. Of a dumped
     * one: the overlay becomes the older one, which changes no more. False: memory is refused.
     */
    bool (*file_begin)(struct row_table *table, struct engine_cold *cold, unsigned overruns);
    /*
     * `file` is the table's own from here on, with what changed since file_begin() before it: the
     * table leaves memory, or the file that is returned gives way. NULL, of a table in memory:
     * nothing came of it, and the overlay goes; returns NULL.
     */
    struct table_file *(*file_end)(struct row_table *table, struct table_file *file);
    /*
     * Nothing came of the next file of a dumped table: a step of making both overlays one, as
     * row/row_fold.h has it. most 0: inside the barrier, by the thread of images; else in a stop,
     * in which at most so many records move. Returns what comes next.
     */
    enum row_fold (*fold)(struct row_table *table, unsigned most);
    /*
     * Makes a table dumped that was made without a region: `file` has its pages, `overlay` (NULL:
     * there is none) what changed since. True: the file is the table's own. False with `error`.
     */
    bool (*load_dumped)(struct engine *engine, struct row_table *table, struct engine_cold *cold,
                        struct table_file *file, const struct table_file *overlay,
                        char error[ENGINE_ERROR_MAX]);
    /* Any thread inside the barrier. */
    void (*overlay_size)(const struct row_table *table, struct row_overlay_size *size);
    /*
     * Writes the table's next file from its file and its older overlay. Outside the barrier, but
     * for row_writing_enter() (row/row_image.h); may block.
     */
    enum engine_image (*merge_write)(const struct row_writing *w);
};

#endif
