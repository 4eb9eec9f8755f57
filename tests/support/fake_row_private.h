/*
 * fake_row_private.h: what the files of the toy engine share. A cold table is its file with what
 * was added and removed since; a tapped one has the latter beside what it holds.
 *
 * Thread rule: under the fake's lock, or one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_FAKE_ROW_PRIVATE_H
#define ROLLCALL_TESTS_SUPPORT_FAKE_ROW_PRIVATE_H

#include "row/table_kind.h"
#include "tests/support/fake_row.h"
#include "tests/support/fake_set.h"

struct fake_table {
    struct row_table row; /* first */
    struct fake *fake;
    uint64_t window; /* as the fake's when it was made or settled, or as described */
    uint64_t region_bytes;
    bool described;
    struct fake_set placed;               /* in memory */
    struct fake_set file, added, removed; /* dumped; since its S */
};

/* As in struct table_kind. */
bool fake_replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                 char error[ENGINE_ERROR_MAX]);
bool fake_file_begin(struct row_table *table, struct engine_cold *cold, unsigned overruns);
struct table_file *fake_file_end(struct row_table *table, struct table_file *file);

bool fake_holds(const struct row_table *table, uint64_t id); /* itself; NULL: no */
void fake_put(struct row_table *table, uint64_t id);
void fake_take(struct row_table *table, uint64_t id);
/* Which of a table (NULL: no) and its layers holds it; NULL: none. */
const struct row_table *fake_holder_of(const struct row_table *table, uint64_t id);
struct row_table *fake_holder_of_new(struct row_table *table);
/* It is in the table or its layer: gone from there, and counted. */
void fake_take_out(struct row_table *table, uint64_t id);
uint64_t fake_count_cold(const struct fake_table *mine); /* what a cold one holds */

#endif
