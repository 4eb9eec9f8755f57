/* test_journal_reader.c: a journal that grows, is trimmed and fails, read from its files meanwhile.
 */
#include "store/journal_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define RECORD_BYTES 1000u
#define PAYLOAD      (RECORD_BYTES - JOURNAL_HEADER_BYTES)
#define RECORDS_MANY 3500        /* of more than three segments */
#define HEADS_BYTES  (64u << 10) /* what is read to find a segment, at most */

struct world {
    struct vfs_sim *sim;
    struct journal_config config;
    struct journal *journal;
    struct journal_writer writer;
    uint64_t number; /* put last */
    /* what was read */
    uint64_t end, seen; /* LSN; records that are no pads */
    unsigned sums;
    uint64_t sum, sum_from; /* of the segment so far */
};

static void begin(struct world *world)
{
    *world = (struct world){.sim = vfs_sim_create(test_seed())};
    world->config = run_config(vfs_sim_vfs(world->sim), JOURNAL_SYNC_EVERYSEC);
    run_make_directory(world->config.vfs);
    world->journal = run_open(&world->config, NULL);
    journal_writer_init(&world->writer, world->journal);
}

static void end(struct world *world)
{
    journal_writer_fini(&world->writer);
    journal_close(world->journal);
    vfs_sim_destroy(world->sim);
}

static void write_some(struct world *world, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_true(run_write(&world->writer, 0, ++world->number, 0, PAYLOAD));
    }
}

static void take_record(struct world *world, const uint64_t *record)
{
    if (journal_word_type(*record) == RUN_TYPE) {
        assert_int_equal(journal_word_bytes(*record), RECORD_BYTES);
        world->seen++;
    } else {
        assert_int_equal(journal_word_type(*record), JOURNAL_PAD);
    }
    world->sum = journal_sum(world->sum, *record);
}

/* The sum of the segment that has ended is what its successor says. */
static void take_sum(struct world *world, const struct journal_reader *reader)
{
    assert_int_equal(reader->header.start, world->end);
    if (reader->header.previous.start == world->sum_from) {
        assert_true(reader->header.previous.sum == world->sum);
        world->sums++;
    }
    world->sum = 0;
    world->sum_from = world->end;
}

/* Everything below limit, each record sound and right after the one before. */
static enum journal_read read_all(struct world *world, struct journal_reader *reader,
                                  uint64_t limit)
{
    enum journal_read found;

    while ((found = journal_reader_next(reader, limit)) == JOURNAL_READ_RECORDS) {
        assert_true(reader->length > 0 && reader->length <= JOURNAL_READER_BYTES);
        assert_int_equal(reader->at - reader->length, world->end);
        assert_true(reader->at <= limit);
        if (reader->began) {
            take_sum(world, reader);
        }
        for (size_t at = 0; at < reader->length;) {
            const uint64_t *record = reader->records + at / sizeof(uint64_t);

            assert_true((uint32_t)*record == journal_record_checksum(record, world->end + at));
            take_record(world, record);
            at += journal_word_bytes(*record);
        }
        world->end = reader->at;
    }
    return found;
}

/* Over segments, to limits that lie where they like. */
static void test_follows(void **state)
{
    (void)state;
    struct world world;
    struct journal_reader reader;

    begin(&world);
    journal_reader_init(&reader, world.config.vfs, RUN_DIRECTORY, 0);
    assert_int_equal(journal_reader_next(&reader, 0), JOURNAL_READ_NOTHING);
    while (world.number < RECORDS_MANY) {
        write_some(&world, 37);
        uint64_t written = journal_written(world.journal);

        assert_int_equal(read_all(&world, &reader, written - 8), JOURNAL_READ_NOTHING);
        assert_true(world.end < written);
        assert_int_equal(read_all(&world, &reader, written), JOURNAL_READ_NOTHING);
        assert_int_equal(world.end, written);
    }
    assert_int_equal(world.seen, world.number);
    assert_int_equal(world.sums, 3);
    journal_reader_fini(&reader);
    end(&world);
}

/* What was trimmed is gone for one that begins there, and not for one that has it open. */
static void test_trimmed(void **state)
{
    (void)state;
    struct world world;
    struct journal_reader reader, late;

    begin(&world);
    write_some(&world, 100);
    journal_reader_init(&reader, world.config.vfs, RUN_DIRECTORY, 0);
    assert_int_equal(read_all(&world, &reader, 50 * RECORD_BYTES), JOURNAL_READ_NOTHING);
    write_some(&world, RECORDS_MANY);
    assert_true(journal_sync_now(world.journal));
    struct journal_stats stats;
    RUN_WAIT_FOR((journal_trim(world.journal, journal_durable(world.journal)),
                  journal_stats(world.journal, &stats), stats.oldest > 2 * RUN_SEGMENT_BYTES));
    assert_int_equal(read_all(&world, &reader, journal_written(world.journal)), JOURNAL_READ_GONE);
    assert_true(world.end > 1000 * RECORD_BYTES && world.end <= RUN_SEGMENT_BYTES);
    journal_reader_init(&late, world.config.vfs, RUN_DIRECTORY, 0);
    assert_int_equal(journal_reader_next(&late, journal_written(world.journal)), JOURNAL_READ_GONE);
    journal_reader_fini(&late);
    journal_reader_fini(&reader);
    end(&world);
}

/* No record begins in the midst of one, nor after what is written. */
static void test_no_record(void **state)
{
    (void)state;
    struct world world;
    struct journal_reader reader;

    begin(&world);
    write_some(&world, 10);
    journal_reader_init(&reader, world.config.vfs, RUN_DIRECTORY, RECORD_BYTES + 8);
    assert_int_equal(journal_reader_next(&reader, journal_written(world.journal)),
                     JOURNAL_READ_BAD);
    assert_non_null(strstr(reader.error, "1008"));
    journal_reader_fini(&reader);
    journal_reader_init(&reader, world.config.vfs, RUN_DIRECTORY, 10 * RECORD_BYTES);
    assert_int_equal(journal_reader_next(&reader, 20 * RECORD_BYTES), JOURNAL_READ_BAD);
    journal_reader_fini(&reader);
    end(&world);
}

static uint64_t sum_of(const struct world *world, uint64_t from, uint64_t lsn)
{
    struct journal_reader reader;
    uint64_t sum = 0;

    journal_reader_init(&reader, world->config.vfs, RUN_DIRECTORY, from);
    while (journal_reader_next(&reader, lsn) == JOURNAL_READ_RECORDS) {
        for (size_t at = 0; at < reader.length;) {
            uint64_t word = reader.records[at / sizeof(uint64_t)];

            sum = journal_sum(sum, word);
            at += journal_word_bytes(word);
        }
    }
    assert_int_equal(reader.at, lsn);
    journal_reader_fini(&reader);
    return sum;
}

static void expect_before(const struct world *world, uint64_t lsn, uint64_t from, uint64_t last)
{
    struct journal_before before;

    assert_int_equal(journal_reader_before(world->config.vfs, RUN_DIRECTORY, lsn,
                                           journal_written(world->journal), &before),
                     JOURNAL_READ_RECORDS);
    assert_int_equal(before.from, from);
    assert_int_equal(before.last, last);
    assert_true(before.sum != 0 && before.last_sum != 0);
    assert_int_equal(before.crosses, lsn % RECORD_BYTES != 0);
    assert_int_equal(before.sum == before.last_sum, from == last);
}

/* What stands before an LSN: in the same segment, in the one before, beyond the LSN, and nothing.
 */
static void test_before(void **state)
{
    (void)state;
    struct world world;
    struct journal_reader reader;
    struct journal_before before, first;

    begin(&world);
    write_some(&world, 3);
    uint64_t written = journal_written(world.journal);

    expect_before(&world, RECORD_BYTES, 0, 0);
    expect_before(&world, 3 * RECORD_BYTES, 0, 2 * RECORD_BYTES);
    expect_before(&world, 2 * RECORD_BYTES + 8, 0, 2 * RECORD_BYTES);
    assert_int_equal(journal_reader_before(world.config.vfs, RUN_DIRECTORY, 0, written, &before),
                     JOURNAL_READ_NOTHING);
    assert_int_equal(
        journal_reader_before(world.config.vfs, RUN_DIRECTORY, written + 8, written, &before),
        JOURNAL_READ_BAD);
    write_some(&world, RECORDS_MANY);
    journal_reader_init(&reader, world.config.vfs, RUN_DIRECTORY, 0);
    while (!reader.began) { /* as far as the second segment */
        assert_int_equal(journal_reader_next(&reader, journal_written(world.journal)),
                         JOURNAL_READ_RECORDS);
    }
    uint64_t bytes = vfs_sim_bytes(world.sim, VFS_SIM_PREAD, NULL);

    assert_int_equal(journal_reader_before(world.config.vfs, RUN_DIRECTORY, reader.header.start,
                                           journal_written(world.journal), &first),
                     JOURNAL_READ_RECORDS);
    assert_true(vfs_sim_bytes(world.sim, VFS_SIM_PREAD, NULL) - bytes <
                JOURNAL_BEFORE_BYTES + HEADS_BYTES); /* not all of the segment */
    assert_int_equal(first.from % RECORD_BYTES, 0);
    assert_in_range(reader.header.start - first.from, JOURNAL_BEFORE_BYTES - RECORD_BYTES + 1,
                    JOURNAL_BEFORE_BYTES);
    assert_true(first.sum == sum_of(&world, first.from, reader.header.start));
    assert_true(first.last_sum == sum_of(&world, first.last, reader.header.start));
    assert_true(first.last > first.from && !first.crosses);
    journal_reader_fini(&reader);
    end(&world);
}

/* What looks like a record where the look begins is in the payload of one, and followed by none. */
static void test_before_payload(void **state)
{
    enum { AT = 800, LOOK = 133 * RECORD_BYTES }; /* in a record that the look begins in */
    const uint64_t lsn = 400 * RECORD_BYTES;
    uint64_t words[PAYLOAD / sizeof(uint64_t)], payload = 7;
    struct world world;
    struct journal_before before;

    (void)state;
    assert_in_range(lsn - JOURNAL_BEFORE_BYTES - 2 * JOURNAL_RECORD_MAX, LOOK, LOOK + AT);
    memset(words, 0, sizeof(words));
    uint64_t word = journal_record_word(0, RUN_TYPE, 2, 0, 0);

    word |= journal_checksum(journal_hash(word, &payload, 1), LOOK + AT);
    words[AT / sizeof(uint64_t) - 1] = word;
    words[AT / sizeof(uint64_t)] = payload;
    begin(&world);
    write_some(&world, LOOK / RECORD_BYTES);
    run_reserve(&world.writer, PAYLOAD + 2 * JOURNAL_HEADER_BYTES);
    assert_int_equal(journal_put(&world.writer, RUN_TYPE, 0, 0, words, PAYLOAD), LOOK);
    assert_true(journal_commit(&world.writer));
    write_some(&world, 300);
    assert_int_equal(journal_reader_before(world.config.vfs, RUN_DIRECTORY, lsn,
                                           journal_written(world.journal), &before),
                     JOURNAL_READ_RECORDS);
    assert_true(before.sum == sum_of(&world, before.from, lsn));
    end(&world);
}

/* A failed sync: another file takes the place of the one that is open here. */
static void test_replaced(void **state)
{
    (void)state;
    struct world world;
    struct journal_reader reader;
    struct vfs_sim_fault fault = {.op = VFS_SIM_FDATASYNC, .times = 1, .kind = VFS_SIM_SYNC_LOST};

    begin(&world);
    write_some(&world, 100);
    assert_true(journal_sync_now(world.journal));
    write_some(&world, 100);
    journal_reader_init(&reader, world.config.vfs, RUN_DIRECTORY, 0);
    assert_int_equal(read_all(&world, &reader, 150 * RECORD_BYTES), JOURNAL_READ_NOTHING);
    vfs_sim_fault(world.sim, &fault);
    assert_true(journal_sync_now(world.journal));
    write_some(&world, RECORDS_MANY);
    assert_int_equal(read_all(&world, &reader, journal_written(world.journal)),
                     JOURNAL_READ_NOTHING);
    assert_int_equal(world.end, journal_written(world.journal));
    assert_int_equal(world.seen, world.number);
    journal_reader_fini(&reader);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows),        cmocka_unit_test(test_trimmed),
        cmocka_unit_test(test_no_record),      cmocka_unit_test(test_before),
        cmocka_unit_test(test_before_payload), cmocka_unit_test(test_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
