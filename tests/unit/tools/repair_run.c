#include "tests/unit/tools/repair_run.h"

#include <stdlib.h>
#include <string.h>

#include "engine/change_record.h"
#include "tests/support/random.h"
#include "tools/rollcall/verify.h"

static void empty_kept(struct said_run *run)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s/" REPAIR_KEPT, run->data->directory);
    assert_int_equal(system(command), 0);
}

int repair_run_teardown(void **state)
{
    empty_kept(*state);
    return said_run_teardown(state);
}

enum verb_exit repair_run_with(struct said_run *run, struct vfs *vfs,
                               const struct repair_options *options)
{
    said_free(&run->said);
    said_begin(&run->said);
    enum verb_exit status = repair_directory(vfs, options, run->said.out, run->said.errors);
    said_end(&run->said);
    return status;
}

enum verb_exit repair_run_look(struct said_run *run)
{
    const struct repair_options options = {.directory = run->data->directory,
                                           .drop_from = REPAIR_DROP_NOTHING};
    return repair_run_with(run, data_only_read(),
                           &options); /* which fails the test if a file is changed */
}

enum verb_exit repair_run_yes(struct said_run *run)
{
    const struct repair_options options = {
        .directory = run->data->directory, .yes = true, .drop_from = REPAIR_DROP_NOTHING};
    return repair_run_with(run, vfs_real(), &options);
}

void repair_run_has(const struct said_run *run, const char *part)
{
    said_has(run->said.out_text, part);
}

void repair_run_lacks(const struct said_run *run, const char *part)
{
    said_lacks(run->said.out_text, part);
}

void repair_run_assert_sound(struct said_run *run)
{
    const struct verify_options options = {.directory = run->data->directory};
    struct said said;
    said_begin(&said);
    enum verb_exit status = verify_directory(data_only_read(), &options, said.out, said.errors);
    said_end(&said);
    if (status != VERB_SOUND) {
        fail_msg("not sound: %s%s\nrepaired: %s%s", said.out_text, said.errors_text,
                 run->said.out_text, run->said.errors_text);
    }
    said_free(&said);
}

void repair_run_whole(struct said_run *run)
{
    assert_int_equal(repair_run_look(run), VERB_DAMAGED);
    repair_run_has(run, "nothing was changed: `rollcall repair --yes ");
    if (repair_run_yes(run) != VERB_SOUND) {
        fail_msg("not repaired: %s%s", run->said.out_text, run->said.errors_text);
    }
    repair_run_assert_sound(run);
    char *said = strdup(run->said.out_text);
    assert_int_equal(repair_run_look(run), VERB_SOUND);
    said_free(&run->said);
    said_begin(&run->said);
    fputs(said, run->said.out);
    said_end(&run->said);
    free(said);
}

void repair_run_overwrite(struct data *data, const char *name, uint64_t offset, size_t length,
                          uint64_t salt)
{
    struct test_random random = {.state = salt};
    unsigned char *bytes = malloc(length);
    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char)test_random_next(&random);
    }
    data_write(data, name, offset, bytes, length);
    free(bytes);
}

uint64_t repair_run_offset(unsigned segment, uint64_t lsn)
{
    return JOURNAL_PAGE_BYTES + lsn - segment * REPAIR_CAPACITY;
}

static bool count_record(void *context, const struct journal_record *record)
{
    struct repair_run_records *records = context;
    struct change change;
    struct change_record_event event;
    assert_int_equal(change_record_decode(record->type, record->a, record->b, record->payload,
                                          record->bytes, &change, &event),
                     CHANGE_RECORD_IS_CHANGE);
    assert_int_equal(change.id, 42);
    records->count++;
    records->lsn_sum += record->lsn;
    return true;
}

struct repair_run_records repair_run_records(struct said_run *run)
{
    struct repair_run_records records = {0};
    struct journal_scan scan = {.from = JOURNAL_FROM_OLDEST};
    enum journal_scan_end end =
        journal_scan(vfs_real(), run->data->directory, &scan, count_record, &records);
    assert_true(end == JOURNAL_SCAN_CLEAN || end == JOURNAL_SCAN_TORN);
    assert_true(scan.end >= run->data->end_lsn);
    return records;
}
