/* test_backup.c: what a backup holds of a directory that changes while it is opened. */
#include "tools/rollcall/backup_private.h"

#include "tests/unit/tools/data_directory.h"

#include <stdlib.h>
#include <string.h>

#include "base/point.h"

struct run {
    struct data *data;
    struct copy copy;
    struct backup_set set;
};

static int setup(void **state)
{
    struct run *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    run->data = data_directory_create();
    *state = run;
    return 0;
}

static int teardown(void **state)
{
    struct run *run = *state;

    backup_let_go(&run->set);
    data_directory_destroy(run->data);
    free(run);
    return 0;
}

static bool take(struct run *run)
{
    assert_true(copy_begin(&run->copy, run->data->directory, "/nonexistent"));
    return backup_take(&run->copy, &run->set);
}

static void test_takes_all(void **state)
{
    struct run *run = *state;

    assert_true(take(run));
    assert_int_equal(run->set.table_count, DATA_TABLES);
    assert_int_equal(run->set.segment_count, DATA_SEGMENTS);
}

/* A directory that was read while segments went away may show one without its successor. */
static void test_refuses_a_gap(void **state)
{
    struct run *run = *state;

    run->data->journal_lsn = run->data->second_lsn;
    data_store_manifest(run->data);
    data_remove(run->data, run->data->segment[1]);
    assert_false(take(run));
    said_has(run->copy.error, "does not reach back");
}

static void test_leaves_out_what_lies_before_a_gap(void **state)
{
    struct run *run = *state;

    run->data->journal_lsn = run->data->end_lsn;
    data_store_manifest(run->data);
    data_remove(run->data, run->data->segment[1]);
    assert_true(take(run));
    assert_int_equal(run->set.segment_count, 1);
    assert_string_equal(run->set.segments[0].pin.name, run->data->segment[2]);
}

#ifdef ROLLCALL_POINTS

static void remove_journal(void *context, const char *name)
{
    struct run *run = context;

    if (strcmp(name, BACKUP_POINT_MANIFEST) == 0) {
        for (unsigned i = 0; i + 1 < DATA_SEGMENTS; i++) {
            data_remove(run->data, run->data->segment[i]);
        }
    }
}

/* What the manifest needs of the journal is held before the manifest is read. */
static void test_holds_the_journal_before_the_manifest(void **state)
{
    struct run *run = *state;

    point_set(remove_journal, run);
    bool taken = take(run);

    point_set(NULL, NULL);
    assert_true(taken);
    assert_int_equal(run->set.segment_count, DATA_SEGMENTS);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_takes_all, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refuses_a_gap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leaves_out_what_lies_before_a_gap, setup, teardown),
#ifdef ROLLCALL_POINTS
        cmocka_unit_test_setup_teardown(test_holds_the_journal_before_the_manifest, setup,
                                        teardown),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
