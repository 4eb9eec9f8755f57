/*
 * kept_row.h: a row of the toy engine that keeps what it does with a recorder, checkpoints of it
 * whose images are as blurred as real ones, and the row made again of both. Expectations that do
 * not hold fail the cmocka test that runs. One thread.
 */
#ifndef ROLLCALL_TESTS_UNIT_ROW_KEPT_ROW_H
#define ROLLCALL_TESTS_UNIT_ROW_KEPT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "row/row_log.h"
#include "tests/support/fake_row.h"
#include "tests/support/recorder.h"

#define KEPT_CAPACITY 1000 /* of a table */
#define KEPT_FILL     900  /* kept_row_begin: at which the next one opens */
#define KEPT_FIRST    100000
#define KEPT_FAR      ((uint64_t)1000000000000u)
#define KEPT_SAMPLE   64
#define KEPT_IMAGES   256 /* of a checkpoint */

/* A row that keeps what it does, the ids it was given, and a row made again of that. */
struct kept {
    struct recorder recorder;
    struct row_config config;
    struct fake rows, again;
    uint64_t *ids; /* all that were ever added; may repeat */
    size_t count, room;
};

/* A new row, FIRST recorded. kept_row_begin: a tenth of a table is left for late ids. */
void kept_begin_with(struct kept *kept, const struct row_config *config);
void kept_row_begin(struct kept *kept, unsigned tables, bool recycle);
void kept_row_end(struct kept *kept);
/* In the place of the live row, which goes, stands one of no tables, to be made again. */
void kept_replace(struct kept *kept);

/* Notes an id that was added in another way. */
void kept_note(struct kept *kept, uint64_t id);
/* Adds an id; the keeper comes at once. */
enum fake_answer kept_add_one(struct kept *kept, uint64_t id);
void kept_add(struct kept *kept, uint64_t from, uint64_t n);          /* on end; none is refused */
size_t kept_events(const struct kept *kept, enum change_event event); /* recorded so far */
struct row_table *kept_table(struct kept *kept, size_t i); /* of the live row; it is there */

/* ---- made again: kept->again, which the caller ends with fake_fini ---- */

void again_begin(struct kept *kept);                                     /* a row of no tables */
void again_replay(struct kept *kept, uint64_t from, uint64_t rows_from); /* it must not fail */
/* Both are the same (row_equal), and hold the same ids in the same places; row_restore_end. */
void again_same(struct kept *kept, bool exact);
/* All of this of the whole journal. */
void expect_again(struct kept *kept);

/* ---- checkpoints ---- */

struct checkpoint {
    size_t count;
    struct fake_image images[KEPT_IMAGES]; /* the latest of each table */
    uint64_t since, m;                     /* LSNs; m 0: there has been none yet */
    bool fail;                             /* the next image cannot be kept */
    unsigned char space[ROW_SPACE_BYTES];
};

void checkpoint_begin(struct checkpoint *point, struct kept *kept);
/*
 * Makes the next image, with work() between its parts. False: that was all, m is now, and tables
 * that were to leave memory have left it.
 */
typedef void work_fn(struct kept *kept, void *context);
bool checkpoint_step(struct checkpoint *point, struct kept *kept, work_fn *work, void *context);
void checkpoint_fini(struct checkpoint *point);
/* Makes its tables in an empty row. */
void checkpoint_load(const struct checkpoint *point, struct fake *rows);
/* again_begin, then that. */
void again_load(struct kept *kept, const struct checkpoint *point);

#endif
