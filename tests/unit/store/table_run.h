/* table_run.h: table files whose contents tell where they belong, for the tests of table_file. All
 * abort the test on what is not said here. */
#ifndef ROLLCALL_TESTS_UNIT_STORE_TABLE_RUN_H
#define ROLLCALL_TESTS_UNIT_STORE_TABLE_RUN_H

#include "store/table_file.h"
#include "tests/support/vfs_sim.h"

#define TABLE_DIRECTORY "data"
#define TABLE_NAME      "feed-7.table"
#define TABLE_PATH      TABLE_DIRECTORY "/" TABLE_NAME
#define TABLE_START_LSN 4096u
#define TABLE_END_LSN   8192u

struct table_shape {
    uint64_t salt; /* files of different salts differ in every page and value */
    uint64_t pages;
    unsigned sections;
    struct table_file_section section[TABLE_FILE_SECTIONS_MAX];
};

/* A few pages of everything: 3 of the table, 2 + 0 + 3 of entries. */
extern const struct table_shape table_small;

/* A simulated disk with the directory, durable. */
struct vfs_sim *table_sim_create(uint64_t seed);

/* What stands in the page, and in the entry, of a shape. Keys: even i have sub 0, odd ones the same
 * id and a sub; between two ids there are others. */
void table_fill_page(const struct table_shape *shape, uint64_t number, void *page);
void table_entry_of(const struct table_shape *shape, unsigned section, uint64_t i, uint64_t *id,
                    uint8_t *sub, unsigned char *value);

struct table_file_info table_info_of(const struct table_shape *shape);
/* Writes it whole. False with `error`: as soon as something fails. */
bool table_write(struct vfs *vfs, const char *directory, const char *name,
                 const struct table_shape *shape, char *error);
void table_write_sound(struct vfs *vfs, const char *name, const struct table_shape *shape);

struct table_file *table_open_sound(struct vfs *vfs, const char *path, bool direct);
/* Everything in it is what table_write wrote. */
void table_check(struct vfs *vfs, const char *path, bool direct, const struct table_shape *shape);
/* Reads all of it: the first result that is not DONE. Never wrong contents. */
enum table_file_result table_read_all(struct vfs *vfs, const char *path,
                                      const struct table_shape *shape, char *error);

void *table_pages(uint64_t pages); /* aligned, freed with free() */

#endif
