/*
 * dump.h: the lines of a filter that are out of memory: the table file they lie in, and the
 * *overlay* in memory, which holds the bits that were added since the file's image began. A line is
 * what the file has of it, with the bits of the overlay set: bits are only ever added, so nothing
 * else is needed, and a bit that stands in both does no harm.
 *
 *     tapped   the file is being written, of the filter in memory; the overlay takes what is added
 *              meanwhile
 *     cold     the file is open: a line costs a page, unless the overlay alone says yes
 *     merging  a next file is being written, of the present one and the *older* overlay, which is
 *              the one by then and changes no more; a new one takes what is added. If it fails,
 *              both become one again (row/row_fold.h)
 *
 * The overlay is a dict of line numbers with a line each; the older one and the new one have
 * different sub-keys, so that the lines of both can be kept in one section of an image. Its memory
 * is reserved when the first line comes, and counts against engine_cold.overlay_bytes_max by the
 * lines it holds.
 *
 * It has holders: the table, and the thread that writes a merge, which reads the file while the
 * table may go.
 *
 * Thread rule: room and add under the lock of the line; line, page by any thread inside the
 * barrier; hold and release by any thread, the last release blocks; load by whoever holds it; the
 * rest with the world stopped, or nobody else there.
 */
#ifndef ROLLCALL_PHANTOM_DUMP_H
#define ROLLCALL_PHANTOM_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dict.h"
#include "engine/engine.h"
#include "phantom/filter.h"
#include "row/table_kind.h"
#include "store/cold.h"

#define PHANTOM_OVERLAY_SHARE      32 /* this part of the table's size is the overlay's pool */
#define PHANTOM_OVERLAY_BYTES_MIN  (16u << 10)
#define PHANTOM_OVERLAY_LINE_BYTES 86 /* of a line in an overlay, with its share of the bucket */

struct phantom_dump;

/* Tapped, with one holder. Its first overlay has more room after overruns (row/row_cold.h). */
struct phantom_dump *phantom_dump_create(struct engine_cold *cold, uint64_t table_bytes,
                                         unsigned overruns);
void phantom_dump_hold(struct phantom_dump *dump);
/* The last one forgets and closes the file. NULL: no-op. */
void phantom_dump_release(struct phantom_dump *dump);

/* ---- adding ---- */

/* Returns whether there is a place for this line, now and for good. False: the dict, or the memory,
 * is full. */
bool phantom_dump_room(struct phantom_dump *dump, uint64_t line);
/* The same in a replay: the dict grows, whatever it may hold. False: memory is refused. */
bool phantom_dump_grow(struct phantom_dump *dump, uint64_t line);
/* Sets the bits of a member in a line. False: the line has no place. */
bool phantom_dump_add(struct phantom_dump *dump, uint64_t line, unsigned bits, uint64_t hash);
/* Sets bits of an image's line. False: memory is refused. */
bool phantom_dump_restore(struct phantom_dump *dump, uint64_t line, const uint64_t *words);

/* ---- reading ---- */

/* Sets the bits the overlays have of a line in `words`. */
void phantom_dump_line(const struct phantom_dump *dump, uint64_t line, uint64_t *words);
/* Sets the bits the file has of it; as cold_get. */
enum cold_result phantom_dump_page(const struct phantom_dump *dump, uint64_t line,
                                   const struct ticket *ticket, uint64_t *words);
/* Pages (to an aligned `to`) as the file and the older overlay have them. Not inside the barrier:
 * the caller is a holder. */
enum table_file_result phantom_dump_load(const struct phantom_dump *dump, uint64_t first,
                                         uint64_t count, uint64_t *to,
                                         char error[TABLE_FILE_ERROR_MAX]);

/* ---- its stages ---- */

/* From now on it is cold; the file is the dump's. */
void phantom_dump_open(struct phantom_dump *dump, struct table_file *file);
struct table_file *phantom_dump_file(const struct phantom_dump *dump); /* NULL: tapped */
/* A file that was just given is the caller's again. */
void phantom_dump_take_back(struct phantom_dump *dump);

/* As file_begin and file_end of struct table_kind. Merge CHECKs that there is an overlay and no
 * older one; merged gives what is to be destroyed outside the stop. */
void phantom_dump_size(const struct phantom_dump *dump, struct row_overlay_size *size);
void phantom_dump_merge(struct phantom_dump *dump);
struct table_file *phantom_dump_merged(struct phantom_dump *dump, struct table_file *file,
                                       struct dict **spent);
/* Returns the overlay of a tapped one that comes to nothing: it counts no more. NULL: none. */
struct dict *phantom_dump_give_up(struct phantom_dump *dump);
/* The steps of table_kind.fold: inside the barrier; in a stop, with what is to be destroyed. */
enum row_fold phantom_dump_fold_prepare(struct phantom_dump *dump);
enum row_fold phantom_dump_fold(struct phantom_dump *dump, unsigned most, struct dict *spent[2]);

/* ---- for images, figures and checks ---- */

/* The overlays: 0 the older one, 1 the present one; NULL: there is none. */
const struct dict *phantom_dump_overlay(const struct phantom_dump *dump, unsigned which);
uint64_t phantom_dump_lines(const struct phantom_dump *dump); /* of both */
uint64_t phantom_dump_pool_bytes(const struct phantom_dump *dump);
/* CHECKs the dicts, and that lines are below `lines`. World stopped. */
void phantom_dump_check(const struct phantom_dump *dump, uint64_t lines);

#endif
