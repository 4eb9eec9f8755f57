/* test_cold.c: one step after the other: each read is held at a gate until the test lets it go. */
#include "store/cold.h"

#include "tests/unit/store/files.h"

#include "store/cold_cache.h"
#include "tests/unit/store/cold_run.h"

#define HOLD ((uint64_t)COLD_HOLD_US)

/* ---- reading and joining ---- */

static void test_read(void **state)
{
    (void)state;
    struct run *run = run_create(1, 4, 4);
    run_read(run, 1, 7);
    assert_int_equal(run_get(run, 2, 7), COLD_HIT);
    assert_int_equal(run_preads(run), 1);
    assert_int_equal(vfs_sim_bytes(run->sim, VFS_SIM_PREAD, NULL), TABLE_FILE_PAGE_BYTES);
    struct cold_stats stats = run_stats(run);
    assert_int_equal(stats.hits, 2);
    assert_int_equal(stats.misses, 1);
    assert_int_equal(stats.queued, 1);
    assert_int_equal(stats.reads, 1);
    assert_int_equal(stats.promised, 0);
    assert_int_equal(stats.depth, 0);
    assert_int_equal(stats.depth_highest, 1);
    assert_int_equal(stats.cached_pages, 1);
    run_destroy(run);
}

static void test_joined(void **state)
{
    (void)state;
    struct run *run = run_create(2, 4, 4);
    run_close_gate(run);
    for (uint64_t serial = 1; serial <= 5; serial++) {
        assert_int_equal(run_get(run, serial, 7), COLD_PENDING);
        run_wait_at_gate(run, 1);
    }
    assert_int_equal(run_get(run, 1, 7), COLD_PENDING);
    struct cold_stats stats = run_stats(run);
    assert_int_equal(stats.joined, 4);
    assert_int_equal(stats.again, 1);
    assert_int_equal(stats.promised, 1);
    run_open_gate(run);
    for (uint64_t serial = 1; serial <= 5; serial++) {
        run_wait_woken(run, serial, 1);
        assert_int_equal(run_get(run, serial, 7), COLD_HIT);
    }
    assert_int_equal(run_preads(run), 1);
    run_destroy(run);
}

static void test_one_wake(void **state)
{
    (void)state;
    struct run *run = run_create(3, 40, 0);
    run_close_gate(run);
    for (unsigned round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 40; i++) {
            assert_int_equal(run_get_of(run, i % 2, 1, i, NULL), COLD_PENDING);
        }
    }
    assert_int_equal(run_stats(run).depth_highest, 40);
    run_open_gate(run);
    run_wait_woken(run, 1, 1);
    for (uint64_t i = 0; i < 40; i++) {
        assert_int_equal(run_get_of(run, i % 2, 1, i, NULL), COLD_HIT);
    }
    assert_int_equal(run_preads(run), 40);
    run_destroy(run);
}

/* ---- the cache ---- */

static void test_lru(void **state)
{
    (void)state;
    struct run *run = run_create(1, 4, 4);
    for (uint64_t number = 0; number < 4; number++) {
        run_read(run, 1, number);
    }
    assert_int_equal(run_get(run, 1, 0), COLD_HIT);
    run_read(run, 1, 4);
    assert_int_equal(run_stats(run).evicted, 1);
    static const uint64_t kept[] = {2, 0, 4, 3}; /* used in this order, they go in it */
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(run_get(run, 1, kept[i]), COLD_HIT);
    }
    run_read(run, 1, 10);
    run_read(run, 1, 11);
    assert_int_equal(run_get(run, 1, 4), COLD_HIT);
    assert_int_equal(run_get(run, 1, 3), COLD_HIT);
    run_read(run, 1, 2);
    run_read(run, 1, 0);
    struct cold_stats stats = run_stats(run);
    assert_int_equal(stats.cached_pages, 4);
    assert_int_equal(stats.evicted, 5);
    run_destroy(run);
}

static void test_bound(void **state)
{
    (void)state;
    struct run *run = run_create(4, 64, 1000);
    uint64_t bytes_max = 1000 * (TABLE_FILE_PAGE_BYTES + 100);
    for (uint64_t number = 0; number < RUN_PAGES; number++) {
        run_read(run, 1, number);
    }
    struct cold_stats stats = run_stats(run);
    assert_in_range(stats.cached_bytes, bytes_max * 9 / 10, bytes_max);
    assert_true(stats.evicted > 0 && stats.cached_pages + stats.evicted == RUN_PAGES);
    assert_int_equal(stats.promised, 0);
    run_destroy(run);
}

/* The address of a closed file may be another's, an identity is a random number: both count. */
static void test_keys(void **state)
{
    (void)state;
    struct run *run = run_create(1, 1, 0);
    const struct table_file *one = run->files[0].file, *other = run->files[1].file;
    const struct cold_key others[] = {{other, 1, 7}, {one, 2, 7}, {one, 1, 8}};
    unsigned char page[TABLE_FILE_PAGE_BYTES] = {1};
    struct cold_cache *cache = cold_cache_create(TABLE_FILE_PAGE_BYTES + 100);
    cold_cache_put(cache, &(struct cold_key){one, 1, 7}, page);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(cold_cache_get(cache, &others[i], page));
    }
    cold_cache_forget(cache, other);
    assert_true(cold_cache_get(cache, &(struct cold_key){one, 1, 7}, page));
    cold_cache_forget(cache, one);
    assert_false(cold_cache_get(cache, &(struct cold_key){one, 1, 7}, page));
    cold_cache_check(cache);
    cold_cache_destroy(cache);
    run_destroy(run);
}

/* ---- promises ---- */

/*
 * A request of `count` pages, each of which says that one more is needed. Returns its runs. Between
 * them another request uses up the cache.
 */
static unsigned run_request(struct run *run, uint64_t count)
{
    bool pending = true;
    unsigned runs = 0;
    for (; pending; runs++) {
        pending = false;
        assert_true(runs < 10);
        run_close_gate(run);
        for (uint64_t number = 0; number < count; number++) {
            enum cold_result first = run_get(run, 1, number);
            enum cold_result second =
                first == COLD_HIT ? run_get(run, 1, 500 + number) : COLD_PENDING;
            assert_true(first != COLD_BUSY && second != COLD_BUSY);
            pending |= second == COLD_PENDING;
        }
        run_open_gate(run);
        if (pending) {
            run_wait_woken(run, 1, runs + 1);
            run_read(run, 2, 1000 + runs);
        }
    }
    run_release(run, 1);
    return runs;
}

static void request_with_cache(uint64_t cache_pages)
{
    struct run *run = run_create(2, 101, cache_pages);
    assert_int_equal(run_request(run, 50), 3);
    assert_int_equal(run_preads(run), 102);
    assert_int_equal(run_stats(run).promised, 0);
    run_destroy(run);
}

static void test_tiny_cache(void **state)
{
    (void)state;
    request_with_cache(0);
    request_with_cache(1);
    request_with_cache(60);
}

static void test_busy(void **state)
{
    (void)state;
    struct run *run = run_create(1, 4, 0);
    run_close_gate(run);
    for (uint64_t serial = 0; serial < 4; serial++) {
        assert_int_equal(run_get(run, serial, serial), COLD_PENDING);
    }
    assert_int_equal(run_get(run, 4, 4), COLD_BUSY);
    assert_int_equal(run_get(run, 0, 4), COLD_PENDING); /* waits anyway */
    struct cold_stats stats = run_stats(run);
    assert_int_equal(stats.busy, 1);
    assert_int_equal(stats.put_off, 1);
    assert_int_equal(stats.promised, 4);
    /* Nor may any number join. */
    for (uint64_t serial = 4; serial < 4 * COLD_JOINS; serial++) {
        assert_int_equal(run_get(run, serial, 3), COLD_PENDING);
    }
    assert_int_equal(run_get(run, 4 * COLD_JOINS, 3), COLD_BUSY);
    run_open_gate(run);
    for (uint64_t serial = 0; serial < 4 * COLD_JOINS; serial++) {
        run_wait_woken(run, serial, 1);
    }
    /* What was read keeps its place until somebody has done with it. */
    assert_int_equal(run_get(run, 0, 0), COLD_HIT);
    assert_int_equal(run_get(run, 0, 4), COLD_BUSY);
    run_release(run, 0);
    assert_int_equal(run_get(run, 0, 4), COLD_PENDING);
    run_wait_woken(run, 0, 2);
    (void)run_stats(run);
    run_destroy(run);
}

/* What was asked for at once is read at once: threads that rest call each other. */
static void test_called(void **state)
{
    enum { THREADS = 4 };
    (void)state;
    struct run *run = run_create(THREADS, THREADS, 0);
    run_close_gate(run);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(run_get(run, 0, i), COLD_PENDING);
    }
    run_wait_at_gate(run, THREADS);
    run_open_gate(run);
    run_wait_woken(run, 0, 1);
    run_release(run, 0);
    run_destroy(run);
}

/* Half of the queue is for who waits for nothing yet. */
static void test_spare(void **state)
{
    enum { QUEUE = 8 };
    (void)state;
    struct run *run = run_create(1, QUEUE, 0);
    run_close_gate(run);
    for (unsigned i = 0; i < QUEUE; i++) {
        assert_int_equal(cold_spare(run->cold), i < QUEUE / 2 ? QUEUE / 2 - i : 0);
        assert_int_equal(run_get(run, 0, i), COLD_PENDING);
    }
    run_open_gate(run);
    run_wait_woken(run, 0, 1);
    run_release(run, 0);
    assert_int_equal(cold_spare(run->cold), QUEUE / 2);
    run_destroy(run);
}

/* Whoever goes first has the next place that becomes free, and all may have it again afterwards. */
static void test_first(void **state)
{
    (void)state;
    struct run *run = run_create(1, 2, 0);
    for (uint64_t serial = 0; serial < 2; serial++) {
        assert_int_equal(run_get(run, serial, serial), COLD_PENDING);
        run_wait_woken(run, serial, 1);
    }
    assert_int_equal(run_get(run, RUN_FIRST, 5), COLD_BUSY);
    run_release(run, 0);
    assert_int_equal(run_get(run, 2, 2), COLD_BUSY);
    assert_int_equal(run_get(run, 1, 1), COLD_HIT); /* what one has it keeps */
    assert_int_equal(run_get(run, RUN_FIRST, 5), COLD_PENDING);
    run_wait_woken(run, RUN_FIRST, 1);
    run_release(run, 1);
    run_read(run, 2, 2);
    run_read(run, 3, 3);
    assert_int_equal(run_get(run, 4, 4), COLD_PENDING);
    run_wait_woken(run, 4, 1);
    assert_int_equal(run_get(run, RUN_FIRST, 6), COLD_BUSY);
    run_release(run, RUN_FIRST); /* it wants nothing any more */
    assert_int_equal(run_get(run, 5, 5), COLD_PENDING);
    run_wait_woken(run, 5, 1);
    (void)run_stats(run);
    run_destroy(run);
}

static void test_released(void **state)
{
    (void)state;
    struct run *run = run_create(1, 4, 4);
    run_close_gate(run);
    assert_int_equal(run_get(run, 1, 0), COLD_PENDING);
    run_wait_at_gate(run, 1);
    assert_int_equal(run_get(run, 2, 1), COLD_PENDING);
    assert_int_equal(run_get(run, 3, 1), COLD_PENDING);
    run_release(run, 1);
    run_release(run, 2);
    assert_int_equal(run_stats(run).depth, 2);
    run_release(run, 3);
    run_release(run, 3);
    assert_int_equal(run_stats(run).depth, 1); /* nobody wants page 1 any more */
    assert_int_equal(run_get(run, 4, 2), COLD_PENDING);
    run_open_gate(run);
    run_wait_woken(run, 4, 1);
    assert_int_equal(run_preads(run), 2);
    assert_int_equal(run_get(run, 5, 0), COLD_HIT); /* nobody waited, but it is cached */
    assert_int_equal(run_wakes(run, 1) + run_wakes(run, 2) + run_wakes(run, 3), 0);
    assert_int_equal(run_stats(run).dropped, 1);
    run_destroy(run);
}

/* Tickets that nobody releases: the one that was silent for longest goes first. */
static void test_lost(void **state)
{
    (void)state;
    struct run *run = run_create(1, 3, 0);
    vfs_sim_set_clock(run->sim, 1000);
    for (uint64_t serial = 0; serial < 3; serial++) {
        assert_int_equal(run_get(run, serial, serial), COLD_PENDING);
        run_wait_woken(run, serial, 1);
    }
    vfs_sim_set_clock(run->sim, 1000 + HOLD - 1);
    assert_int_equal(run_get(run, 3, 3), COLD_BUSY);
    assert_int_equal(run_get(run, 0, 0), COLD_HIT); /* is alive */
    vfs_sim_set_clock(run->sim, 1000 + HOLD);
    assert_int_equal(run_get(run, 3, 3), COLD_PENDING);
    run_wait_woken(run, 3, 1);
    assert_int_equal(run_stats(run).robbed, 1);
    assert_int_equal(run_get(run, 0, 0), COLD_HIT);
    assert_int_equal(run_get(run, 0, 2), COLD_HIT);
    assert_int_equal(run_get(run, 3, 3), COLD_HIT);
    assert_int_equal(run_get(run, 1, 1), COLD_PENDING); /* was taken for lost; robs 2 in turn */
    run_wait_woken(run, 1, 2);
    assert_int_equal(run_get(run, 2, 2), COLD_BUSY);
    run_destroy(run);
}

/* ---- failures ---- */

static void test_failure(void **state)
{
    (void)state;
    struct run *run = run_create(1, 4, 4);
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct vfs_sim_fault fault = {.op = VFS_SIM_PREAD, .times = 1, .kind = VFS_SIM_FAIL};
    vfs_sim_fault(run->sim, &fault);
    run_close_gate(run);
    assert_int_equal(run_get(run, 1, 3), COLD_PENDING);
    assert_int_equal(run_get(run, 2, 3), COLD_PENDING);
    run_open_gate(run);
    for (uint64_t serial = 1; serial <= 2; serial++) {
        run_wait_woken(run, serial, 1);
        assert_int_equal(run_get_of(run, 0, serial, 3, error), COLD_FAILED);
        assert_non_null(strstr(error, "feed-0.table: cannot read page 3 at offset"));
    }
    run_release(run, 1);
    assert_int_equal(run_get(run, 2, 3), COLD_FAILED);
    assert_int_equal(run_get(run, 3, 3), COLD_FAILED);
    assert_int_equal(run_preads(run), 1);
    run_release(run, 2);
    run_read(run, 3, 3);
    assert_int_equal(run_preads(run), 2);
    struct cold_stats stats = run_stats(run);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.bad_pages, 0);
    assert_int_equal(stats.reads, 2);
    assert_int_equal(run->failures, 1);
    run_destroy(run);
}

/* One that never comes back does not keep the page from the others. */
static void test_failure_forgotten(void **state)
{
    (void)state;
    struct run *run = run_create(1, 4, 4);
    struct vfs_sim_fault fault = {.op = VFS_SIM_PREAD, .times = 1, .kind = VFS_SIM_FAIL};
    vfs_sim_fault(run->sim, &fault);
    vfs_sim_set_clock(run->sim, 1000);
    assert_int_equal(run_get(run, 1, 3), COLD_PENDING);
    run_wait_woken(run, 1, 1);
    vfs_sim_set_clock(run->sim, 1000 + HOLD - 1);
    assert_int_equal(run_get(run, 2, 3), COLD_FAILED);
    vfs_sim_set_clock(run->sim, 1000 + HOLD);
    assert_int_equal(run_get(run, 1, 3), COLD_FAILED); /* is told however late */
    run_read(run, 2, 3);
    assert_int_equal(run_get(run, 1, 3), COLD_HIT);
    assert_int_equal(run_stats(run).promised, 0);
    run_destroy(run);
}

static void test_bad_page(void **state)
{
    (void)state;
    struct run *run = run_create(1, 4, 4);
    char error[TABLE_FILE_ERROR_MAX] = "";
    const char *path = table_file_path(run->files[0].file);
    uint64_t offset = 4 * TABLE_FILE_PAGE_BYTES + 100; /* of page 3, after the header */
    assert_true(vfs_sim_flip(run->sim, path, offset, 3));
    run_close_gate(run);
    assert_int_equal(run_get(run, 1, 3), COLD_PENDING);
    assert_int_equal(run_get(run, 1, 2), COLD_PENDING);
    run_open_gate(run);
    run_wait_woken(run, 1, 1);
    assert_int_equal(run_get(run, 1, 2), COLD_HIT);
    assert_int_equal(run_get_of(run, 0, 1, 3, error), COLD_FAILED);
    assert_non_null(strstr(error, "does not match its checksum"));
    run_release(run, 1);
    assert_int_equal(run_stats(run).bad_pages, 1);
    assert_int_equal(run_stats(run).failed, 0);
    assert_true(vfs_sim_flip(run->sim, path, offset, 3));
    run_read(run, 2, 3);
    run_destroy(run);
}

/* ---- ends ---- */

static void *forget_first(void *context)
{
    struct run *run = context;
    cold_forget(run->cold, run->files[0].file);
    table_file_close(run->files[0].file);
    run->files[0].file = NULL;
    return NULL;
}

static void check_forget(unsigned queue, uint64_t cache_pages)
{
    pthread_t thread;
    struct run *run = run_create(1, queue, cache_pages);
    run_read(run, 9, 7);
    run_close_gate(run);
    assert_int_equal(run_get(run, 1, 0), COLD_PENDING);
    run_wait_at_gate(run, 1);
    assert_int_equal(run_get(run, 2, 1), COLD_PENDING);
    assert_int_equal(run_get_of(run, 1, 1, 0, NULL), COLD_PENDING);
    assert_int_equal(pthread_create(&thread, NULL, forget_first, run), 0);
    run_wait_woken(run, 2, 1); /* of the queued one, while another is being read */
    assert_int_equal(run_wakes(run, 1), 0);
    assert_non_null(run->files[0].file);
    run_open_gate(run);
    pthread_join(thread, NULL);
    run_wait_woken(run, 1, 1);
    assert_int_equal(run_get_of(run, 1, 1, 0, NULL), COLD_HIT);
    run_release(run, 1);
    struct cold_stats stats = run_stats(run);
    assert_int_equal(stats.cached_pages, 1);
    assert_int_equal(stats.promised, 0);
    assert_int_equal(stats.reads, 3);
    /* The next generation, under the old name or not, is read anew. */
    run->files[0].shape.salt = 5;
    table_write_sound(vfs_sim_vfs(run->sim), "feed-5.table", &run->files[0].shape);
    run->files[0].file =
        table_open_sound(vfs_sim_vfs(run->sim), TABLE_DIRECTORY "/feed-5.table", true);
    run_read(run, 3, 7);
    run_destroy(run);
}

/* A file of more pages than there are places, and one of fewer: it is looked for in another way. */
static void test_forget(void **state)
{
    (void)state;
    check_forget(8, 8);
    check_forget(RUN_PAGES + 1, 2 * RUN_PAGES);
}

static void *stop(void *context)
{
    cold_stop(((struct run *)context)->cold);
    return NULL;
}

static void test_stop(void **state)
{
    (void)state;
    pthread_t thread;
    struct run *run = run_create(1, 8, 8);
    run_close_gate(run);
    assert_int_equal(run_get(run, 1, 0), COLD_PENDING);
    run_wait_at_gate(run, 1);
    assert_int_equal(run_get(run, 2, 1), COLD_PENDING);
    assert_int_equal(pthread_create(&thread, NULL, stop, run), 0);
    run_wait_woken(run, 2, 1);
    assert_int_equal(run_wakes(run, 1), 0);
    assert_int_equal(run_get(run, 2, 1), COLD_BUSY);
    assert_int_equal(run_get(run, 1, 0), COLD_PENDING);
    assert_int_equal(run_get(run, 1, 1), COLD_BUSY);
    run_open_gate(run);
    pthread_join(thread, NULL);
    assert_int_equal(run_wakes(run, 1), 1);
    assert_int_equal(run_get(run, 1, 0), COLD_HIT);
    assert_int_equal(run_get(run, 1, 1), COLD_BUSY);
    assert_int_equal(run_stats(run).depth, 0);
    cold_stop(run->cold);
    run_destroy(run);
}

/* With reads queued and under way, pages and a failure promised. */
static void test_destroy(void **state)
{
    (void)state;
    struct run *run = run_create(2, 32, 8);
    struct vfs_sim_fault fault = {.op = VFS_SIM_PREAD, .times = 1, .kind = VFS_SIM_FAIL};
    vfs_sim_fault(run->sim, &fault);
    assert_int_equal(run_get(run, 0, 0), COLD_PENDING);
    run_wait_woken(run, 0, 1);
    for (uint64_t serial = 1; serial < 32; serial++) {
        assert_int_equal(run_get(run, serial, serial), COLD_PENDING);
    }
    cold_destroy(run->cold);
    run->cold = NULL;
    for (uint64_t serial = 1; serial < 32; serial++) {
        assert_int_equal(run_wakes(run, serial), 1);
    }
    cold_destroy(NULL);
    run_destroy(run);
}

/* ---- figures ---- */

static void test_latency(void **state)
{
    (void)state;
    struct run *run = run_create(1, 8, 0);
    static const struct {
        uint64_t us;
        unsigned bucket;
    } reads[] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {100, 7}, {1u << 24, 25}, {UINT32_MAX, 25}};
    vfs_sim_set_clock(run->sim, 1000);
    run_read(run, 1, 0);
    assert_int_equal(run_stats(run).latency_us[0], 1);
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        uint64_t before = run_stats(run).latency_us[reads[i].bucket];
        run->take_us = reads[i].us;
        run_read(run, 1, i);
        assert_int_equal(run_stats(run).latency_us[reads[i].bucket], before + 1);
    }
    run_destroy(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_one_wake),
        cmocka_unit_test(test_lru),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_tiny_cache),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_called),
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_released),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_failure),
        cmocka_unit_test(test_failure_forgotten),
        cmocka_unit_test(test_bad_page),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_destroy),
        cmocka_unit_test(test_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
