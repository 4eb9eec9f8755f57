/*
 * dict_image.h: a dict as a section of a table file, both ways: collected in pieces while others
 * change it (base/dict.h: dict_walk), sorted, written; and read back.
 *
 * What was collected is held in memory, DICT_KEY_BYTES + the value rounded up to words an entry,
 * from the system and beside every budget: a dict is a 32nd of its table, and one is written at a
 * time.
 *
 * Thread rule: a dict_image belongs to one thread.
 */
#ifndef ROLLCALL_STORE_DICT_IMAGE_H
#define ROLLCALL_STORE_DICT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dict.h"
#include "store/table_file.h"

#define DICT_IMAGE_PIECE 4096 /* entries a call of collect visits at most, about */
#define DICT_IMAGE_SIFT  512  /* entries a call of sift looks at: the caller's look costs more */

struct dict_image {
    size_t value_bytes;
    uint64_t at; /* of the walk */
    size_t count, room;
    size_t sifted, kept; /* of count: looked at by sift, and wanted */
    unsigned char *entries;
    bool failed; /* memory was refused */
};

void dict_image_init(struct dict_image *image, size_t value_bytes);
void dict_image_fini(struct dict_image *image);
/*
 * The next piece; inside the barrier. True: there is more. front not NULL: entries whose ids have
 * an entry of sub 0 there are left out, as what it has is collected next.
 */
bool dict_image_collect(struct dict_image *image, const struct dict *dict,
                        const struct dict *front);
/*
 * Called when all has been collected, for a dict whose entries may be there for a moment only:
 * looks through the next piece, inside the barrier, and forgets entries that `wanted` does not
 * want. True: there is more.
 */
typedef bool dict_image_wanted(void *context, uint64_t id, uint8_t sub, const uint64_t *value);
bool dict_image_sift(struct dict_image *image, dict_image_wanted *wanted, void *context);
/* Sorts what was collected and appends it; outside the barrier. False: table_file_writer_error(),
 * or memory was refused. */
bool dict_image_write(struct dict_image *image, struct table_file_writer *writer, unsigned section);

/*
 * Puts every entry of a section for which `wanted` (NULL: all) says so into the dict, which nobody
 * else uses. DAMAGED too if an entry finds no room. `error` as table_file_each_entry.
 */
enum table_file_result dict_image_load(const struct table_file *file, unsigned section,
                                       struct dict *dict, dict_image_wanted *wanted, void *context,
                                       char error[TABLE_FILE_ERROR_MAX]);

#endif
