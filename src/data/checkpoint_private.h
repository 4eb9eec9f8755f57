/*
 * checkpoint_private.h: one round of a checkpoint, and the thread that makes rounds.
 *
 *     checkpoint.c           the thread: when, and what if it fails
 *     checkpoint_round.c     a round: C, images of all spaces, manifest
 *     checkpoint_images.c    the images of one space
 *     checkpoint_manifest.c  what is named now, and what goes
 *     checkpoint_dumps.c     images that engines go on to read where they lie
 *
 * A round. With the world stopped: C, the journal's head, and the state of each space. Then, space
 * by space, images until a stop finds none left; that stop is M of the space. Then the journal is
 * made durable beyond all that was seen, the manifest names the images and the older files of
 * tables that did not change, files it does not name go, and the journal below C.
 *
 * A row may roll faster than its tables can be written, so that each stop finds a further image.
 * After CHECKPOINT_IMAGES_TABLES times as many as there are tables (and CHECKPOINT_IMAGES_MORE)
 * the keeper is held (keeper_hold) until the space is done: nothing opens, settles or is recycled,
 * so what is left is at most one image a table. Reads and changes of ids go on; only requests that
 * need a further table wait. flush_all and reload, which touch tables too, do not: they bracket the
 * keeper out themselves, and should not take as long as a file takes to write. Should they come so
 * often that as many images again do not suffice, the rest is made in a bracket (keeper_stop),
 * which they wait for.
 *
 * Dumps (row/row_cold.h). Images of kind DUMP and MERGE are opened, named with the role dump, and
 * handed to their engines after the manifest, in one stop. From the M of their spaces until then
 * the round is in a bracket: no table is touched, so what the manifest says is dumped is what the
 * engines go on with. It begins when a stop, the keeper held, has found no image left, with one
 * more look: images found are written outside of it, and all is done again. So what is in the
 * bracket is a sync of the journal, right after another one, the manifest (a small file and its
 * directory, synced), and the handing over. Where there are no dumps, there is none; those of a
 * round whose manifest could not be stored, which wait for this one, are dumps as well.
 *
 * A round for dumps alone, when an engine has asked for one, because requests may wait for the
 * memory: of the spaces that want it only, with `since` 0: images of what leaves, what is merged
 * and what was touched, which is what M needs. C and state of all spaces and the journal's
 * beginning stay as they are. Its M moves on, which holds for tables that have older images too, as
 * none of them was touched since.
 *
 * Layer numbers in files: row_file_number() of row/row_data.h.
 *
 * Nothing is lost by a round that fails: the old manifest, its files and the journal from its C on
 * stay. Its own files go, and the tables count as changed again (row_image_failed).
 */
#ifndef ROLLCALL_DATA_CHECKPOINT_PRIVATE_H
#define ROLLCALL_DATA_CHECKPOINT_PRIVATE_H

#include "base/barrier.h"
#include "data/data_private.h"
#include "row/row_data.h"
#include "store/table_file.h"

#define CHECKPOINT_IMAGES_TABLES 2
#define CHECKPOINT_IMAGES_MORE   16

/* What the keeper may do meanwhile. */
enum checkpoint_keeper {
    CHECKPOINT_KEEPER_FREE,
    CHECKPOINT_KEEPER_HELD,
    CHECKPOINT_KEEPER_STOPPED, /* held, and in a bracket */
};

struct checkpoint_image {
    struct row_image image;
    struct manifest_file file;
    struct table_file *opened; /* of a dump, from before the manifest to its engine; else NULL */
};

/* What names it in the manifest that is being made. */
enum checkpoint_named { CHECKPOINT_NAMED_NOT, CHECKPOINT_NAMED_IMAGE, CHECKPOINT_NAMED_DUMP };

struct checkpoint_table {
    uint64_t serial;
    unsigned layer;
    enum checkpoint_named named;
};

struct checkpoint_space {
    struct space *space;
    uint64_t m;
    size_t state_bytes;
    unsigned char state[ENGINE_STATE_MAX];
    size_t image_count, image_room;
    /* Their files are durable. By serial and layer number, both rising: one a table, one an
     * overlay. */
    struct checkpoint_image **images;
    size_t written; /* images of this round, those that were thrown away too */
    size_t table_count, table_room;
    struct checkpoint_table *tables; /* that there are at M; before: at C. Sorted as well */
};

struct checkpoint_round {
    struct data *data;
    struct barrier *barrier;       /* NULL: nobody else is there */
    struct barrier_member *member; /* NULL likewise */
    const _Atomic bool *stop;
    bool dumps_only;
    enum checkpoint_keeper keeper;
    struct journal_writer writer; /* puts nothing: commits what others have put */
    uint64_t c;       /* images are wanted of what changed before it; dumps_only: 0, of nothing */
    uint64_t reached; /* the journal's head at the last look: must be durable at the end */
    uint64_t images, image_bytes;
    size_t count;
    struct checkpoint_space *spaces[SETTINGS_SPACES_MAX];
    char error[DATA_ERROR_MAX]; /* why it failed; "": it was stopped */
};

/* ---- checkpoint_round.c ---- */

/* *spaces is read with the world stopped. False: round->error; nothing has changed. */
bool checkpoint_round(struct checkpoint_round *round, struct spaces *const *spaces);

void checkpoint_stop_world(struct checkpoint_round *round); /* notes `reached` */
void checkpoint_go(struct checkpoint_round *round);

/* Sets what the keeper may do, until the end of the round or the next call. */
void checkpoint_set_keeper(struct checkpoint_round *round, enum checkpoint_keeper to);

/* ---- checkpoint_images.c ---- */

/*
 * Makes all images a space needs, until a stop finds none left. If there is one, a bracket becomes
 * a hold from then on. False: as above.
 */
bool checkpoint_images(struct checkpoint_round *round, struct checkpoint_space *space);
/* World stopped: the tables there are. */
void checkpoint_list_tables(struct checkpoint_space *space);
/* The image of a table, or of an overlay; NULL: there is none. */
struct checkpoint_image *checkpoint_find_image(const struct checkpoint_space *space,
                                               uint64_t serial, uint64_t layer);
void checkpoint_free_images(struct checkpoint_space *space);
/* What merges that failed have left in memory is put in order, in short stops (row/row_fold.h). */
void checkpoint_fold(struct checkpoint_round *round, struct row *row);

/* ---- checkpoint_dumps.c ---- */

bool checkpoint_is_dump(const struct row_image *image); /* or a merged one */
bool checkpoint_has_dumps(const struct checkpoint_space *space);
/* Dumps of this space wait for the next manifest. */
bool checkpoint_waits(const struct data *data, const struct space *space);
/* Before the manifest. False: round->error. */
bool checkpoint_open_dumps(struct checkpoint_round *round);
void checkpoint_close_dumps(struct checkpoint_space *space);
/* The manifest with them may be durable or not: they are finished after the next manifest, which
 * comes soon from a round of all spaces if this round was for dumps alone. */
void checkpoint_pend_dumps(struct checkpoint_round *round);
/* The manifest is durable: hands over the dumps of this round and those that waited, lets the
 * keeper go, and closes what they replace. */
void checkpoint_finish_dumps(struct checkpoint_round *round);

/* ---- checkpoint_manifest.c ---- */

/*
 * The manifest of this round, as data->manifest, stored; dumps to their engines; then deletes what
 * it does not name. False:
 * round->error. *taken: data->manifest has become this round's all the same: it may be on the disk,
 * and is what the next round goes on from.
 */
bool checkpoint_publish(struct checkpoint_round *round, bool *taken);

#endif
