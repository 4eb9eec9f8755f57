/* A stream taken by another journal: the same bytes at the same LSNs, whatever its segments are,
 * and through kills, power cuts and stops of both. */
#include "store/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "store/journal_chain.h"
#include "store/journal_private.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/journal_run.h"

#define STREAM_MAX (8u << 20)
#define LIVES      4
#define PIECE_MAX  (96u << 10)
#define WORDS_MAX  (JOURNAL_PAYLOAD_MAX / 8 - 1) /* of a record */

struct stream {
    uint64_t *words; /* from LSN 0 */
    uint64_t bytes;
};

/* ---- what a directory holds ---- */

static void read_segment(struct vfs *vfs, const struct journal_found *live, struct stream *stream)
{
    char path[VFS_PATH_MAX];
    assert_true(vfs_path(path, RUN_DIRECTORY, live->name));
    int fd = vfs->functions->open(vfs, path, 0);
    assert_true(fd >= 0 && live->end <= STREAM_MAX);
    char *to = (char *)stream->words + live->header.start;
    assert_true(vfs_read_all(vfs, fd, to, live->end - live->header.start, JOURNAL_PAGE_BYTES) >= 0);
    vfs->functions->close(vfs, fd);
}

static void read_stream(struct vfs *vfs, uint64_t end, struct stream *stream)
{
    struct journal_chain chain;
    char error[JOURNAL_ERROR_MAX];
    assert_true(end <= STREAM_MAX);
    *stream = (struct stream){.words = memory_zalloc(STREAM_MAX), .bytes = end};
    assert_true(journal_chain_init(&chain, vfs, RUN_DIRECTORY, error));
    for (size_t i = 0; i < chain.live_count; i++) {
        read_segment(vfs, chain.live[i], stream);
    }
    journal_chain_fini(&chain);
}

/* A leader's: records of up to so many words, clean ends, reigns, pads. */
static void make_stream(struct vfs_sim *sim, size_t words_max, struct test_random *random,
                        struct stream *stream)
{
    struct journal_config config = run_config(vfs_sim_vfs(sim), JOURNAL_SYNC_EVERYSEC);
    struct recovered recovered = {.end = JOURNAL_SCAN_CLEAN};
    uint64_t number = 0;
    run_make_directory(config.vfs);
    for (uint64_t life = 0; life < LIVES; life++) {
        struct journal_writer writer;
        struct journal *journal = run_open(&config, life > 0 ? &recovered : NULL);
        struct journal_reign reign = {.epoch = 1 + life, .unix_s = life};
        assert_true(journal_begin_reign(journal, &reign));
        journal_writer_init(&writer, journal);
        while (journal_head(journal) < (life + 1) * (STREAM_MAX / (LIVES + 1))) {
            size_t words = 2 + test_random_below(random, words_max - 1);
            assert_true(run_write(&writer, 0, ++number, life, 8 * words));
        }
        journal_writer_fini(&writer);
        journal_close(journal);
        run_scan(config.vfs, life > 0 ? recovered.scan.end : 0, &recovered);
        assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    }
    read_stream(config.vfs, recovered.scan.end, stream);
}

/* ---- taking it ---- */

/* Where a random number of whole records from lsn on ends. */
static uint64_t some_records(const struct stream *stream, uint64_t lsn, struct test_random *random)
{
    uint64_t least = lsn + test_random_below(random, PIECE_MAX);
    while (lsn < stream->bytes && lsn <= least) {
        lsn += journal_word_bytes(stream->words[lsn / 8]);
    }
    return lsn;
}

/* Gives it what comes next until `until`. */
static void give(struct journal *journal, const struct stream *stream, uint64_t until,
                 struct test_random *random)
{
    char error[JOURNAL_ERROR_MAX];
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    while (journal_head(journal) < until) {
        uint64_t at = journal_head(journal);
        uint64_t end = some_records(stream, at, random);
        size_t taken;
        enum journal_appended result =
            journal_append(&writer, stream->words + at / 8, end - at, &taken, error);
        assert_int_equal(journal_head(journal), at + taken);
        if (result == JOURNAL_APPEND_NO_ROOM) {
            assert_true(journal_sync_now(journal));
        } else {
            assert_int_equal(result, JOURNAL_APPENDED);
            assert_int_equal(taken, end - at);
        }
    }
    journal_writer_fini(&writer);
}

static void end_life(struct vfs_sim *sim, struct journal *journal, unsigned how, uint64_t seed)
{
    if (how == 1) {
        vfs_sim_kill(sim);
    } else if (how == 2) {
        vfs_sim_power_cut(sim, seed);
    }
    journal_close(journal);
}

static void check_equal(struct vfs *vfs, uint64_t end, const struct stream *stream)
{
    struct stream taken;
    assert_true(end <= stream->bytes);
    read_stream(vfs, end, &taken);
    assert_memory_equal(taken.words, stream->words, end);
    free(taken.words);
}

static void follow_once(uint64_t seed)
{
    struct vfs_sim *leader = vfs_sim_create(seed);
    struct vfs_sim *sim = vfs_sim_create(seed + 1);
    struct test_random random;
    struct stream stream;
    struct recovered recovered = {.end = JOURNAL_SCAN_CLEAN};
    random.state = seed;
    make_stream(leader, WORDS_MAX, &random, &stream);
    run_make_directory(vfs_sim_vfs(sim));
    for (unsigned life = 0; recovered.scan.end < stream.bytes; life++) {
        struct journal_config config = run_config(vfs_sim_vfs(sim), JOURNAL_SYNC_EVERYSEC);
        config.segment_bytes += 4096 * test_random_below(&random, 64);
        config.follows = true;
        struct journal *journal = run_open(&config, life > 0 ? &recovered : NULL);
        uint64_t more = STREAM_MAX / 4 + test_random_below(&random, STREAM_MAX / 4);
        uint64_t until = recovered.scan.end + more;
        give(journal, &stream, until < stream.bytes ? until : stream.bytes, &random);
        end_life(sim, journal, life % 3, seed + life);
        recovered = (struct recovered){.end = JOURNAL_SCAN_CLEAN};
        run_scan(vfs_sim_vfs(sim), 0, &recovered);
        assert_true(recovered.end == JOURNAL_SCAN_CLEAN || recovered.end == JOURNAL_SCAN_TORN);
        check_equal(vfs_sim_vfs(sim), recovered.scan.end, &stream);
    }
    assert_int_equal(recovered.scan.end, stream.bytes);
    free(stream.words);
    vfs_sim_destroy(sim);
    vfs_sim_destroy(leader);
}

static void test_same_bytes(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        follow_once(100 * seed);
    }
}

/* A journal that has taken nothing yet, in an empty directory, and the stream that is to come. */
struct follower {
    struct vfs_sim *leader, *sim;
    struct test_random random;
    struct stream stream;
    struct journal *journal;
    struct journal_writer writer;
    char error[JOURNAL_ERROR_MAX];
    size_t taken;
};

/* Records have up to so many words; segments are `more` bytes larger than the leader's. */
static void follower_begin(struct follower *follower, uint64_t seed, size_t words_max,
                           uint64_t more)
{
    *follower = (struct follower){
        .leader = vfs_sim_create(seed), .sim = vfs_sim_create(seed + 1), .random = {.state = seed}};
    struct vfs *vfs = vfs_sim_vfs(follower->sim);
    struct journal_config config = run_config(vfs, JOURNAL_SYNC_EVERYSEC);
    make_stream(follower->leader, words_max, &follower->random, &follower->stream);
    run_make_directory(vfs);
    config.follows = true;
    config.segment_bytes += more;
    follower->journal = run_open(&config, NULL);
}

static enum journal_appended append(struct follower *follower, const uint64_t *words, size_t bytes)
{
    return journal_append(&follower->writer, words, bytes, &follower->taken, follower->error);
}

static void follower_end(struct follower *follower)
{
    free(follower->stream.words);
    vfs_sim_destroy(follower->sim);
    vfs_sim_destroy(follower->leader);
}

/* A bit of a record, one cut short, one of another place, an unknown type: nothing after it is
 * taken, all in front of it is. */
static void test_bad_records(void **unused)
{
    (void)unused;
    struct follower f;
    follower_begin(&f, 7, WORDS_MAX, 0);
    journal_writer_init(&f.writer, f.journal);
    uint64_t *words = f.stream.words;
    uint64_t first = journal_word_bytes(words[0]);
    uint64_t *unknown = words + first / 8;
    uint64_t second = journal_word_bytes(*unknown);
    assert_int_equal(append(&f, unknown, second), JOURNAL_APPEND_BAD); /* not its place */
    assert_non_null(strstr(f.error, "LSN 0: its checksum does not fit"));
    assert_int_equal(append(&f, words, first + second - 8), JOURNAL_APPEND_BAD);
    assert_int_equal(f.taken, first); /* the first is sound */
    assert_int_equal(append(&f, unknown, second - 8), JOURNAL_APPEND_BAD);
    assert_non_null(strstr(f.error, "it is not whole"));
    unknown[1] ^= 1u << 9;
    assert_int_equal(append(&f, unknown, second), JOURNAL_APPEND_BAD);
    assert_int_equal(f.taken, 0);
    unknown[1] ^= 1u << 9;
    uint64_t before = unknown[0];
    unknown[0] = journal_record_word(0, JOURNAL_TYPES_RESERVED - 1, (uint8_t)(second / 8), 0, 0);
    unknown[0] |= journal_record_checksum(unknown, first);
    assert_int_equal(append(&f, unknown, second), JOURNAL_APPEND_BAD);
    assert_non_null(strstr(f.error, "its type 15 is unknown"));
    unknown[0] = before;
    assert_int_equal(append(&f, unknown, second), JOURNAL_APPENDED);
    journal_writer_fini(&f.writer);
    journal_close(f.journal);
    check_equal(vfs_sim_vfs(f.sim), first + second, &f.stream);
    follower_end(&f);
}

/* Promoted, it goes on after what it took, with segments of its own. */
static void test_goes_on_by_itself(void **unused)
{
    (void)unused;
    struct follower f;
    struct recovered recovered = {.end = JOURNAL_SCAN_CLEAN};
    follower_begin(&f, 17, WORDS_MAX, 4096);
    give(f.journal, &f.stream, f.stream.bytes / 2, &f.random);
    uint64_t end = journal_head(f.journal);
    assert_true(journal_stop_following(f.journal));
    struct journal_reign reign = {.epoch = 99};
    assert_true(journal_begin_reign(f.journal, &reign));
    assert_int_equal(reign.lsn, end);
    journal_writer_init(&f.writer, f.journal);
    while (journal_head(f.journal) < end + 3 * RUN_SEGMENT_BYTES) {
        assert_true(run_write(&f.writer, 1, ++recovered.count[1], 0, 32 * RUN_PAYLOAD_MIN));
    }
    journal_writer_fini(&f.writer);
    uint64_t puts = recovered.count[1];
    journal_close(f.journal);
    recovered = (struct recovered){.end = JOURNAL_SCAN_CLEAN};
    run_scan(vfs_sim_vfs(f.sim), end, &recovered);
    assert_int_equal(recovered.end, JOURNAL_SCAN_CLEAN);
    assert_int_equal(recovered.count[1], puts);
    follower_end(&f);
}

/* Where the segment has no place for the record of a reign it ends: no pad comes before that. */
static void test_reign_at_an_end(void **unused)
{
    (void)unused;
    struct follower f;
    uint64_t last = 0;
    follower_begin(&f, 23, 2, 4096);
    uint64_t end = journal_ring_segment_end(&f.journal->ring, 0);
    journal_writer_init(&f.writer, f.journal);
    while (end - last >= JOURNAL_REIGN_BYTES) {
        const uint64_t *next = f.stream.words + last / 8;
        enum journal_appended result = append(&f, next, journal_word_bytes(*next));
        assert_true(result == JOURNAL_APPENDED || journal_sync_now(f.journal));
        last += f.taken;
    }
    assert_true(last < end);
    journal_writer_fini(&f.writer);
    assert_true(journal_stop_following(f.journal));
    struct journal_reign reign = {.epoch = 99};
    assert_true(journal_begin_reign(f.journal, &reign));
    assert_int_equal(reign.lsn, last);
    journal_close(f.journal);
    follower_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_bad_records),
        cmocka_unit_test(test_goes_on_by_itself),
        cmocka_unit_test(test_reign_at_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
