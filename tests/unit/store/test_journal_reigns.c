/* Reigns in the stream: given back where they were put, never taken for anything else. */
#include "store/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal_format.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define REIGNS     5
#define FIRST_FILE RUN_DIRECTORY "/journal-0000000000000000"

struct found {
    size_t count, records;
    struct journal_reign at[REIGNS + 1];
};

static bool take_reign(void *context, const struct journal_reign *reign)
{
    struct found *found = context;
    assert_true(found->count <= REIGNS);
    found->at[found->count++] = *reign;
    return found->count <= REIGNS;
}

static bool take_record(void *context, const struct journal_record *record)
{
    struct found *found = context;
    assert_int_equal(record->type, RUN_TYPE);
    found->records++;
    return true;
}

static enum journal_scan_end scan(struct vfs *vfs, uint64_t from, struct found *found)
{
    struct journal_scan scan = {.from = from, .reign = take_reign};
    *found = (struct found){.count = 0};
    return journal_scan(vfs, RUN_DIRECTORY, &scan, take_record, found);
}

/* One life after another, each with a reign and two records. */
static void live(struct vfs_sim *sim, struct journal_reign put[REIGNS])
{
    struct journal_config config = run_config(vfs_sim_vfs(sim), JOURNAL_SYNC_EVERYSEC);
    struct recovered recovered = {.end = JOURNAL_SCAN_CLEAN};
    run_make_directory(config.vfs);
    for (uint64_t life = 0; life < REIGNS; life++) {
        struct journal_writer writer;
        struct journal *journal = run_open(&config, life > 0 ? &recovered : NULL);
        put[life] = (struct journal_reign){.epoch = 3 + life, .node = 77 * life, .unix_s = life};
        assert_true(journal_begin_reign(journal, &put[life]));
        assert_true(put[life].lsn + JOURNAL_REIGN_BYTES == journal_written(journal));
        journal_writer_init(&writer, journal);
        assert_true(run_write(&writer, 0, 2 * life + 1, life, RUN_PAYLOAD_MIN));
        assert_true(run_write(&writer, 0, 2 * life + 2, life, RUN_PAYLOAD_MIN));
        journal_writer_fini(&writer);
        journal_close(journal);
        run_scan(config.vfs, life > 0 ? recovered.scan.end : 0, &recovered);
    }
}

static void test_come_back(void **unused)
{
    (void)unused;
    struct vfs_sim *sim = vfs_sim_create(1);
    struct journal_reign put[REIGNS];
    struct found found;
    live(sim, put);
    for (size_t from = 0; from < REIGNS; from++) {
        assert_int_equal(scan(vfs_sim_vfs(sim), put[from].lsn, &found), JOURNAL_SCAN_CLEAN);
        assert_int_equal(found.count, REIGNS - from);
        assert_int_equal(found.records, 2 * (REIGNS - from));
        assert_memory_equal(found.at, put + from, found.count * sizeof(put[0]));
    }
    assert_int_equal(scan(vfs_sim_vfs(sim), put[0].lsn + JOURNAL_REIGN_BYTES, &found),
                     JOURNAL_SCAN_CLEAN);
    assert_int_equal(found.count, REIGNS - 1); /* not those below */
    struct journal_scan others = {.from = 0};
    found.records = 0;
    assert_int_equal(journal_scan(vfs_sim_vfs(sim), RUN_DIRECTORY, &others, take_record, &found),
                     JOURNAL_SCAN_CLEAN);
    assert_int_equal(found.records, 2 * REIGNS); /* nobody wanted reigns */
    vfs_sim_destroy(sim);
}

/* Sound by its checksum, of a length that no reign has. */
static void test_wrong_length(void **unused)
{
    (void)unused;
    assert_true(journal_word_known(journal_record_word(0, JOURNAL_REIGN, 4, 0, 0)));
    assert_false(journal_word_known(journal_record_word(0, JOURNAL_REIGN, 3, 0, 0)));
    assert_false(journal_word_known(journal_record_word(0, JOURNAL_REIGN, 5, 0, 0)));
    assert_false(journal_word_known(journal_record_word(0, JOURNAL_REIGN + 1, 4, 0, 0)));
    assert_true(journal_word_known(journal_record_word(0, JOURNAL_TYPES_RESERVED, 2, 0, 0)));
}

/* A flipped bit makes it damage as any other record. */
static void test_damaged(void **unused)
{
    (void)unused;
    struct vfs_sim *sim = vfs_sim_create(1);
    struct journal_reign put[REIGNS];
    struct found found;
    live(sim, put);
    assert_true(vfs_sim_flip(sim, FIRST_FILE, JOURNAL_PAGE_BYTES + 9, 2));
    assert_int_equal(scan(vfs_sim_vfs(sim), 0, &found), JOURNAL_SCAN_DAMAGED);
    assert_int_equal(found.count, 0);
    vfs_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_come_back),
        cmocka_unit_test(test_wrong_length),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
