/*
 * test_cold_threads.c: workers that run requests of several pages over and over, as the server
 * does, while a keeper puts new generations of the files in place and forgets the old ones; every
 * page that is found is checked. On real files, and on a simulated disk whose reads fail now and
 * then.
 */
#include "store/cold.h"

#include "tests/unit/store/files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "store/open_files.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"
#include "tests/unit/store/table_run.h"

#define WORKERS      4
#define REQUESTS     3000u /* of each worker */
#define FILES        2
#define GENERATIONS  20
#define PAGES        150 /* of a file */
#define PAGES_MAX    12  /* of a request */
#define CACHE_PAGES  40
#define QUEUE        32
#define RUNS_MAX     1000
#define OPEN_MOST    1  /* files, of both: most reads open theirs anew, and some wait */
#define RELEASED     10 /* one in so many requests is dropped while it waits */
#define FORGOTTEN    20 /* one in so many of one page ends without a word, */
#define TICKETS_LOST 3  /* but no more than this of a worker: they keep their places */

struct generation {
    struct table_shape shape;
    struct table_file *file;
    char path[VFS_PATH_MAX];
};

struct world {
    struct vfs *vfs;
    const char *directory;
    struct cold *cold;
    struct open_files *files_open;
    bool fails;               /* reads may */
    pthread_rwlock_t switch_; /* a run holds it to read, a change of generation to write */
    struct generation files[FILES];
    _Atomic unsigned running;
    _Atomic uint64_t hits, failures, busy, runs, done;
};

struct worker {
    pthread_t thread;
    struct world *world;
    struct test_random random;
    uint64_t serial;
    unsigned lost;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_woken; /* for `serial` */
};

static void wake(void *target, uint64_t serial)
{
    struct worker *worker = target;
    pthread_mutex_lock(&worker->lock);
    worker->is_woken |= serial == worker->serial;
    pthread_cond_signal(&worker->woken);
    pthread_mutex_unlock(&worker->lock);
}

static void wait_woken(struct worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (!worker->is_woken) {
        pthread_cond_wait(&worker->woken, &worker->lock);
    }
    worker->is_woken = false;
    pthread_mutex_unlock(&worker->lock);
}

struct request {
    unsigned pages;
    struct {
        unsigned file;
        uint64_t number;
    } page[PAGES_MAX];
};

static enum cold_result get_one(struct worker *worker, const struct ticket *ticket, unsigned file,
                                uint64_t number)
{
    struct world *world = worker->world;
    const struct generation *from = &world->files[file];
    unsigned char page[TABLE_FILE_PAGE_BYTES], right[TABLE_FILE_PAGE_BYTES];
    char error[TABLE_FILE_ERROR_MAX] = "";
    enum cold_result result = cold_get(world->cold, from->file, number, ticket, page, error);
    if (result == COLD_HIT) {
        table_fill_page(&from->shape, number, right);
        CHECK(memcmp(page, right, sizeof(page)) == 0);
        world->hits++;
    } else if (result == COLD_FAILED) {
        CHECK(world->fails && strstr(error, "cannot read "));
        world->failures++;
    }
    return result;
}

/* All pages are asked for, as those of a get; the worst of what was said. */
static enum cold_result run_once(struct worker *worker, const struct ticket *ticket,
                                 const struct request *request)
{
    enum cold_result worst = COLD_HIT;
    pthread_rwlock_rdlock(&worker->world->switch_);
    for (unsigned i = 0; i < request->pages; i++) {
        enum cold_result result =
            get_one(worker, ticket, request->page[i].file, request->page[i].number);
        worst = result > worst ? result : worst;
    }
    pthread_rwlock_unlock(&worker->world->switch_);
    worker->world->runs++;
    return worst;
}

static void run_request(struct worker *worker, const struct request *request)
{
    struct world *world = worker->world;
    pthread_mutex_lock(&worker->lock);
    struct ticket ticket = {wake, worker, ++worker->serial};
    worker->is_woken = false;
    pthread_mutex_unlock(&worker->lock);
    enum cold_result result = COLD_PENDING;
    for (unsigned runs = 0; result == COLD_PENDING; runs++) {
        CHECK(runs < RUNS_MAX);
        result = run_once(worker, &ticket, request);
        if (result == COLD_PENDING && test_random_once_in(&worker->random, RELEASED)) {
            break;
        }
        if (result == COLD_PENDING) {
            wait_woken(worker);
        }
    }
    world->busy += result == COLD_BUSY;
    world->done += result == COLD_HIT;
    if (worker->lost < TICKETS_LOST && request->pages == 1 &&
        test_random_once_in(&worker->random, FORGOTTEN)) {
        worker->lost++;
        return;
    }
    cold_release(world->cold, &ticket);
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct request request;
    for (uint64_t left = test_scaled(REQUESTS); left > 0; left--) {
        request.pages = 1 + (unsigned)test_random_below(&worker->random, PAGES_MAX);
        for (unsigned i = 0; i < request.pages; i++) {
            request.page[i].file = (unsigned)test_random_below(&worker->random, FILES);
            request.page[i].number = test_random_below(&worker->random, PAGES);
        }
        run_request(worker, &request);
    }
    worker->world->running--;
    return NULL;
}

/* ---- generations ---- */

static struct generation make_generation(struct world *world, uint64_t salt)
{
    struct generation made = {.shape = {.salt = salt, .pages = PAGES}};
    char error[TABLE_FILE_ERROR_MAX];
    char name[32];
    snprintf(name, sizeof(name), "feed-%u.table", (unsigned)salt);
    CHECK(vfs_path(made.path, world->directory, name));
    CHECK(table_write(world->vfs, world->directory, name, &made.shape, error));
    enum table_file_result opened;
    do {
        opened = table_file_open(world->vfs, made.path, true, &made.file, error);
    } while (opened == TABLE_FILE_FAILED && world->fails);
    CHECK(opened == TABLE_FILE_DONE);
    table_file_share(made.file, world->files_open);
    return made;
}

/* Nobody reads it: its name is not needed any more. */
static void end_generation(struct world *world, const struct generation *old)
{
    table_file_close(old->file);
    CHECK(world->vfs->functions->unlink(world->vfs, old->path) == 0);
}

/* The keeper; and whoever looks, meanwhile. */
static void change_generations(struct world *world)
{
    uint64_t salt = FILES;
    struct cold_stats stats;
    while (world->running > 0) {
        if (salt < GENERATIONS) {
            struct generation next = make_generation(world, ++salt);
            struct generation *at = &world->files[salt % FILES];
            pthread_rwlock_wrlock(&world->switch_);
            struct generation old = *at;
            *at = next;
            pthread_rwlock_unlock(&world->switch_);
            cold_forget(world->cold, old.file);
            end_generation(world, &old);
        }
        cold_check(world->cold);
        cold_stats(world->cold, &stats);
        assert_true(stats.promised <= QUEUE && stats.depth <= stats.promised);
        for (unsigned i = 0; i < 50; i++) {
            give_way();
        }
    }
}

static void check_figures(struct world *world)
{
    struct cold_stats stats;
    cold_check(world->cold);
    cold_stats(world->cold, &stats);
    assert_int_equal(stats.hits, world->hits);
    assert_int_equal(stats.misses, stats.queued + stats.joined + stats.again + stats.put_off +
                                       stats.busy + world->failures);
    assert_true(stats.bad_pages == 0 && (stats.failed > 0) == world->fails);
    assert_true(stats.cached_pages <= CACHE_PAGES);
    uint64_t timed = 0;
    for (unsigned i = 0; i < COLD_LATENCY_BUCKETS; i++) {
        timed += stats.latency_us[i];
    }
    assert_int_equal(timed, stats.reads);
    assert_true(world->done > 0);
    printf("%llu hits, %llu queued, %llu joined, %llu put off, %llu busy, %llu failed, "
           "%llu dropped, %llu robbed, %llu runs, %llu done\n",
           (unsigned long long)stats.hits, (unsigned long long)stats.queued,
           (unsigned long long)stats.joined, (unsigned long long)stats.put_off,
           (unsigned long long)stats.busy, (unsigned long long)stats.failed,
           (unsigned long long)stats.dropped, (unsigned long long)stats.robbed,
           (unsigned long long)world->runs, (unsigned long long)world->done);
}

static void run_world(struct world *world)
{
    static struct worker workers[WORKERS];
    struct cold_config config = {.vfs = world->vfs,
                                 .threads = 3,
                                 .queue = QUEUE,
                                 .cache_bytes = CACHE_PAGES * (TABLE_FILE_PAGE_BYTES + 80)};
    uint64_t seed = test_seed();
    world->cold = cold_create(&config);
    assert_non_null(world->cold);
    world->running = WORKERS;
    pthread_rwlock_init(&world->switch_, NULL);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];
        *worker = (struct worker){.world = world, .random = {.state = seed + i}};
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->woken, NULL);
        assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
    }
    change_generations(world);
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
    }
    check_figures(world);
    cold_destroy(world->cold);
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_mutex_destroy(&workers[i].lock);
        pthread_cond_destroy(&workers[i].woken);
    }
    for (unsigned i = 0; i < FILES; i++) {
        end_generation(world, &world->files[i]);
    }
    open_files_destroy(world->files_open);
    pthread_rwlock_destroy(&world->switch_);
}

static void make_first(struct world *world)
{
    world->files_open = open_files_create(world->vfs, OPEN_MOST);
    for (uint64_t i = 0; i < FILES; i++) {
        world->files[i] = make_generation(world, i);
    }
}

static void test_real(void **state)
{
    (void)state;
    char folder[128];
    const char *top = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/rollcall-cold-XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(folder));
    struct world world = {.vfs = vfs_real(), .directory = folder};
    make_first(&world);
    run_world(&world);
    assert_int_equal(rmdir(folder), 0);
}

static void test_failing(void **state)
{
    (void)state;
    struct vfs_sim *sim = table_sim_create(1);
    struct world world = {.vfs = vfs_sim_vfs(sim), .directory = TABLE_DIRECTORY, .fails = true};
    make_first(&world);
    struct vfs_sim_fault fault = {.op = VFS_SIM_PREAD, .one_in = 30, .kind = VFS_SIM_FAIL};
    vfs_sim_fault(sim, &fault);
    run_world(&world);
    vfs_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real),
        cmocka_unit_test(test_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
