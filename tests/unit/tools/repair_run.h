/*
 * repair_run.h: runs of `rollcall repair` over a data directory (data_directory.h), for its tests.
 * All abort the test on an error.
 */
#ifndef ROLLCALL_TESTS_UNIT_TOOLS_REPAIR_RUN_H
#define ROLLCALL_TESTS_UNIT_TOOLS_REPAIR_RUN_H

#include "tests/unit/tools/data_directory.h"

#include "store/journal_format.h"
#include "tools/rollcall/repair.h"

#define REPAIR_KEPT     "lost"
#define REPAIR_CAPACITY (DATA_SEGMENT_BYTES - JOURNAL_PAGE_BYTES) /* of the stream, a segment */

/* As said_run_teardown, of a directory that has been repaired. */
int repair_run_teardown(void **state);
#define REPAIR_RUN_TEST(name)                                                                      \
    cmocka_unit_test_setup_teardown(name, said_run_setup, repair_run_teardown)

/* What it says is in run->said until the next. */
enum verb_exit repair_run_with(struct said_run *run, struct vfs *vfs,
                               const struct repair_options *options);
enum verb_exit repair_run_look(struct said_run *run); /* without --yes: changes no file */
enum verb_exit repair_run_yes(struct said_run *run);
/* Looks, which changes nothing; then repairs, and nothing is left to do. What the repair said is in
 * run->said. */
void repair_run_whole(struct said_run *run);

void repair_run_has(const struct said_run *run, const char *part);
void repair_run_lacks(const struct said_run *run, const char *part);
/* `rollcall verify` finds nothing. */
void repair_run_assert_sound(struct said_run *run);

/* Bytes of rubbish, the same for one salt. */
void repair_run_overwrite(struct data *data, const char *name, uint64_t offset, size_t length,
                          uint64_t salt);
/* Where the LSN stands in the file of that segment. */
uint64_t repair_run_offset(unsigned segment, uint64_t lsn);

/* The changes in the journal: all of id 42, and the stream goes as far as it went. */
struct repair_run_records {
    uint64_t count, lsn_sum;
};
struct repair_run_records repair_run_records(struct said_run *run);

#endif
