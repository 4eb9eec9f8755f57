/*
 * row_data.h: what a data directory asks of a row: its state and images for a checkpoint, its dumps
 * and merges, and all of it back at a start. The order of things, and why it is sound, stands in
 * row/row_log.h; dumped tables in row/row_cold.h.
 *
 * Storing: row_set_log and row_log_begin for a space that is new; changes go to a sink that stores
 * them. A checkpoint calls, with the world stopped, row_images_begin, row_state_write, and
 * row_image_next until there is no next; between two of them row_image_write. For each image that
 * became durable, and is named by a manifest, row_image_done; for each other one row_image_failed.
 *
 * Restoring, nobody else there: row_restore_begin with the state that was stored; row_restore_file
 * and row_restore_load, or row_restore_dumped, for each file in the order of their tables, layers
 * after theirs; row_restore_complete; row_replay and row_replay_event in the order of the journal;
 * row_set_log and row_restore_end, which may put events.
 *
 * Thread rule: row_images_wanted: any thread. row_image_write, row_images_settle: one thread,
 * outside the barrier. The
 * rest: world stopped, or nobody else there.
 */
#ifndef ROLLCALL_ROW_ROW_DATA_H
#define ROLLCALL_ROW_ROW_DATA_H

#include "row/row_log.h"

struct table_file;
struct table_file_writer;

/* ---- storing ---- */

/* Changes of the row go to this log from now on; the row's number is its engine's. */
void row_set_log(struct row *row, struct change_log *log);
/* Puts SPACE and FIRST: replay of a new space begins with them. */
void row_log_begin(struct row *row);
/* Puts SPACE: what the kind needs of the space has changed. Without a log: nothing. */
void row_log_space(struct row *row);
/* Forgets everything, and puts SPACE and FIRST: flush_all. As row_clear(). */
void row_flush(struct row *row);
/* Before row_flush(), outside the barrier, by the thread that maintains the row: has memory for the
 * first table. The system, asked in the stop, may fill all of it there (lock-memory). */
void row_flush_ready(struct row *row);
/* Clears the memory of what was retired, and gives back what is too much, which row_maintain() does
 * else. By the thread that maintains the row, outside the barrier. */
void row_clean_up(struct row *row);

/* Writes the space as it is but its tables; returns how many bytes. */
size_t row_state_write(const struct row *row, unsigned char bytes[ENGINE_STATE_MAX]);

/*
 * Sets what reads dumped tables. Before row_restore_begin; without it, or with NULL, no table is
 * dumped.
 */
void row_set_cold(struct row *row, struct engine_cold *cold);

/*
 * True: a table is to be dumped, or a file to be merged: row_image_next yields it. row->imager is
 * told when that becomes so.
 */
bool row_images_wanted(const struct row *row);

/*
 * Writes the image. GONE: the table was touched meanwhile; STOPPED: *stop was true; FAILED: see
 * table_file_writer_error(). Then the writer is to be abandoned. Blocks; takes `member` in and out
 * of the barrier in pieces of less than a millisecond (NULL: nobody else is there).
 */
enum engine_image row_image_write(const struct row *row, const struct row_image *image,
                                  struct barrier_member *member, struct table_file_writer *writer,
                                  const _Atomic bool *stop);
/*
 * The image is durable, and so is a manifest that names it. DUMP, MERGE: `file` is it, open, the
 * table's from now on. Returns the file that it replaces (NULL: none), which nobody reads any more
 * once the world goes: the caller's, to forget (store/cold.h) and close.
 */
struct table_file *row_image_done(struct row *row, const struct row_image *image,
                                  struct table_file *file);
/*
 * Call after each stop in which images began, ended or failed, when the world goes: wakes requests
 * that wait for a merge, and destroys what images have made useless, both too long for a stop.
 */
void row_images_settle(struct row *row);
/*
 * The round failed, whatever the cause: requests that wait for a dump or a merge are refused, until
 * it is tried again. The taps stay on: the manifest that names a dump may be on the disk.
 */
void row_images_failed(struct row *row);

/*
 * The number of a table's file (table_file_info.layer, and in its name): of a table 0, of its first
 * layer 1, of the further ones 20, 30 and so on; of an overlay 2 more. So a program from before
 * there were further ones wrote the same, and what lies under an overlay comes before it in the
 * order of names.
 */
#define ROW_FILE_OVERLAY 2u
#define ROW_FILE_LAYER   10u /* from the second one on */

static inline uint32_t row_file_number(unsigned layer, bool overlay)
{
    return (layer < 2 ? layer : layer * ROW_FILE_LAYER) + (overlay ? ROW_FILE_OVERLAY : 0);
}

static inline bool row_file_is_overlay(uint64_t number)
{
    return (number < ROW_FILE_LAYER ? number : number % ROW_FILE_LAYER) >= ROW_FILE_OVERLAY;
}

/* Of the file that an overlay lies over; of another file, itself. */
static inline uint64_t row_file_under(uint64_t number)
{
    return row_file_is_overlay(number) ? number - ROW_FILE_OVERLAY : number;
}

static inline unsigned row_file_layer(uint64_t number)
{
    uint64_t under = row_file_under(number);
    return (unsigned)(under < 2 ? under : under / ROW_FILE_LAYER);
}

/* Returns whether files have this number. */
static inline bool row_file_is_known(uint64_t number)
{
    return number <= row_file_number(ROW_LAYERS_MAX, true) &&
           number == row_file_number(row_file_layer(number), row_file_is_overlay(number));
}

/* Calls visit for each table and layer as files name it: a checkpoint retains their files. */
void row_each_serial(const struct row *row, engine_table_visit *visit, void *context);

/* ---- restoring ---- */

/*
 * Takes the tables away, then takes the state that was stored. length 0: the space has begun, and
 * there was no checkpoint since; SPACE and FIRST come in the journal, unless it ended before that.
 */
bool row_restore_begin(struct row *row, const void *state, size_t length,
                       char error[ENGINE_ERROR_MAX]);
/* Returns what the tables of a stored state take in memory at most; 0: the state says nothing of
 * them. */
uint64_t row_stored_bytes(const void *state, size_t length);
/*
 * Makes a table of the file's description and start_lsn, and prepares its memory. One at a time.
 * NULL with `error`.
 */
struct row_table *row_restore_file(struct row *row, const struct table_file *file,
                                   char error[ENGINE_ERROR_MAX]);
/* Reads the table's contents, as table_kind.load. Several tables at once, a thread each. */
bool row_restore_load(struct row *row, struct row_table *table, const struct table_file *file,
                      _Atomic uint64_t *done, const _Atomic bool *stop,
                      char error[ENGINE_ERROR_MAX]);
/*
 * In place of both: a dumped table, with the image of its overlay (NULL: there is none). True:
 * `file` is the row's; `overlay` stays the caller's.
 */
bool row_restore_dumped(struct row *row, struct table_file *file, const struct table_file *overlay,
                        char error[ENGINE_ERROR_MAX]);
/*
 * Replays changes of this space, in order: give 64 or so at a time, which are prefetched together.
 * False with `error`: one cannot be carried out.
 */
bool row_replay(struct row *row, const struct engine_replay *changes, size_t n,
                char error[ENGINE_ERROR_MAX]);
/* rows: events of tables count too (not below M); else SPACE alone. */
bool row_replay_event(struct row *row, enum change_event event, uint64_t lsn, bool rows,
                      const void *bytes, size_t length, char error[ENGINE_ERROR_MAX]);
/*
 * All was replayed: tables take part, and ask for what they need; those that are too many leave or
 * go, for which the log was asked for room. False: nothing was restored at all and nothing was put,
 * the row is as new: row_log_begin comes next. CHECKs that memory suffices.
 */
bool row_restore_end(struct row *row);

#endif
