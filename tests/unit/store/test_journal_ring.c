/* test_journal_ring.c: room, pads, wrapping, and the walk over what is filled. */
#include "store/journal_ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/journal.h"
#include "store/journal_format.h"
#include "tests/support/random.h"

#define RING_BYTES JOURNAL_BUFFER_BYTES_MIN
#define CAPACITY   100008u /* of a segment: several within the ring */
#define ORIGIN     777777777776ull
#define ROUNDS     20000u

static struct journal_ring *make_ring(void)
{
    struct journal_ring *ring = aligned_alloc(MEMORY_LINE_BYTES, sizeof(*ring));
    assert_non_null(ring);
    assert_true(journal_ring_init(ring, RING_BYTES, ORIGIN, CAPACITY));
    return ring;
}

static void free_ring(struct journal_ring *ring)
{
    journal_ring_fini(ring);
    free(ring);
}

/* Reads a record as it lies in the ring, and clears it. */
static uint64_t take_out(struct journal_ring *ring, uint64_t lsn, uint64_t *record)
{
    uint64_t bytes = 8;
    memcpy(record, journal_ring_at(ring, lsn, &bytes), 8);
    uint64_t whole = journal_word_bytes(record[0]);
    for (uint64_t at = 8; at < whole; at += 8) {
        bytes = 8;
        memcpy(record + at / 8, journal_ring_at(ring, lsn + at, &bytes), 8);
    }
    assert_int_equal((uint32_t)record[0], journal_record_checksum(record, lsn));
    journal_ring_clear(ring, lsn, lsn + whole);
    return whole;
}

/* Records and pads one after another, over many turns of the ring and ends of segments. */
static void test_stream(void **state)
{
    (void)state;
    struct journal_ring *ring = make_ring();
    struct test_random random = {.state = test_seed()};
    struct journal_run run = {.end = ORIGIN};
    uint64_t read = ORIGIN;
    uint64_t numbers = 0;
    uint64_t pads = 0;
    uint64_t record[JOURNAL_RECORD_MAX / 8];
    uint64_t payload[JOURNAL_RECORD_MAX / 8] = {0};
    for (uint64_t n = 1; n <= test_scaled(ROUNDS); n++) {
        journal_ring_limit(ring, read, UINT64_MAX - RING_BYTES);
        size_t words = 1 + test_random_below(&random, JOURNAL_PAYLOAD_MAX / 8);
        uint64_t whole = journal_ring_record_bytes(words);
        assert_int_equal(whole, 8 + 8 * words);
        uint64_t credit = journal_ring_take(ring, whole);
        assert_true(credit >= whole);
        payload[0] = n;
        uint64_t lsn = journal_ring_put(ring, 50, 1, 2, payload, words);
        assert_int_equal(journal_ring_head(ring), lsn + whole);
        assert_true((lsn - ORIGIN) / CAPACITY == (lsn + whole - 1 - ORIGIN) / CAPACITY);
        assert_int_equal((journal_ring_segment_end(ring, lsn) - ORIGIN) % CAPACITY, 0);
        journal_ring_give(ring, credit - whole);
        journal_ring_walk(ring, &run, UINT64_MAX);
        assert_int_equal(run.end, lsn + whole);
        assert_int_equal(run.records, n);
        while (read < run.end) {
            read += take_out(ring, read, record);
            bool pad = journal_word_type(record[0]) == JOURNAL_PAD;
            pads += pad;
            numbers += !pad;
            assert_true(pad ? (read - ORIGIN) % CAPACITY == 0 : record[1] == numbers);
        }
        /* all that was promised is the head, when no credit is out */
        assert_int_equal(atomic_load(&ring->promised), journal_ring_head(ring));
    }
    assert_true(pads > 0);
    free_ring(ring);
}

/* The walk ends before a record that has its LSN but is not filled. */
static void test_gap(void **state)
{
    (void)state;
    struct journal_ring *ring = make_ring();
    struct journal_run run = {.end = ORIGIN};
    uint64_t payload = 1;
    journal_ring_limit(ring, ORIGIN, ORIGIN + RING_BYTES);
    assert_true(journal_ring_take(ring, 48) >= 48);
    journal_ring_put(ring, 50, 0, 0, &payload, 1);
    atomic_fetch_add(&ring->head, 16); /* as another thread between its two steps */
    journal_ring_put(ring, 50, 0, 0, &payload, 1);
    journal_ring_walk(ring, &run, UINT64_MAX);
    assert_int_equal(run.end, ORIGIN + 16);
    assert_int_equal(run.records, 1);
    uint64_t sum = run.sum;
    journal_ring_walk(ring, &run, UINT64_MAX);
    assert_int_equal(run.end, ORIGIN + 16);
    assert_int_equal(run.sum, sum);
    free_ring(ring);
}

/* No more is promised than what was cleared and allocated, pads and the clean end included. */
static void test_room(void **state)
{
    (void)state;
    struct journal_ring *ring = make_ring();
    assert_int_equal(journal_ring_take(ring, 8), 0);
    journal_ring_limit(ring, ORIGIN, ORIGIN + 50000);
    uint64_t total = 0;
    for (uint64_t taken; (taken = journal_ring_take(ring, 400)) > 0; total += taken) {
        assert_true(taken >= 400 && taken % 8 == 0);
    }
    assert_true(total > 40000 - 3 * JOURNAL_RECORD_MAX && total < 50000 - JOURNAL_RECORD_MAX);
    journal_ring_give(ring, total);
    assert_int_equal(journal_ring_take(ring, 50000), 0);
    journal_ring_limit(ring, ORIGIN, UINT64_MAX - RING_BYTES);
    assert_int_equal(journal_ring_take(ring, RING_BYTES), 0);
    uint64_t most = journal_ring_take(ring, RING_BYTES - 8 * JOURNAL_RECORD_MAX);
    assert_int_equal(most, RING_BYTES - 8 * JOURNAL_RECORD_MAX);
    /* the limit may fall below what is promised: then there is none */
    journal_ring_limit(ring, ORIGIN, ORIGIN + 50000);
    assert_int_equal(journal_ring_take(ring, 8), 0);
    free_ring(ring);
}

/* Filled to the last byte that is promised, with the worst of pads, nothing is overwritten: put
 * checks that its place is clear. */
static void test_brim(void **state)
{
    (void)state;
    struct journal_ring *ring = make_ring();
    struct test_random random = {.state = test_seed()};
    uint64_t payload[JOURNAL_RECORD_MAX / 8] = {0};
    uint64_t cleared = ORIGIN;
    struct journal_run run = {.end = ORIGIN};
    for (unsigned round = 0; round < 200; round++) {
        journal_ring_limit(ring, cleared, UINT64_MAX - RING_BYTES);
        for (;;) {
            size_t words = test_random_once_in(&random, 2) ? JOURNAL_PAYLOAD_MAX / 8 : 1;
            uint64_t whole = journal_ring_record_bytes(words);
            uint64_t credit = journal_ring_take(ring, whole);
            if (credit == 0) {
                break;
            }
            journal_ring_give(ring, credit - whole);
            journal_ring_put(ring, 50, 0, 0, payload, words);
        }
        /* and still the clean end */
        assert_true(journal_ring_head(ring) + 16 + JOURNAL_RECORD_MAX <= cleared + RING_BYTES);
        journal_ring_walk(ring, &run, UINT64_MAX);
        assert_int_equal(run.end, journal_ring_head(ring));
        journal_ring_clear(ring, cleared, run.end);
        cleared = run.end;
    }
    free_ring(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_brim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
