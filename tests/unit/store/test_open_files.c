/*
 * test_open_files.c: table files that share a few descriptors: never more are open, the one read
 * longest ago goes, none goes while it is read, and what is opened again must be the same file. Who
 * waits for room is woken by whatever makes some.
 */
#include "store/open_files.h"

#include "tests/unit/store/files.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/check.h"
#include "store/table_file.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"
#include "tests/unit/store/table_run.h"

#define FILES   12
#define PAGES   5
#define LIMIT   3
#define READERS 6
#define READS   2000u

struct shared {
    struct vfs_sim *sim;
    struct vfs *vfs;
    struct open_files *set;
    struct table_shape shapes[FILES];
    struct table_file *files[FILES];
};

static void path_of(unsigned file, char path[64])
{
    snprintf(path, 64, TABLE_DIRECTORY "/feed-%u.table", file);
}

static uint64_t open_now(const struct shared *s)
{
    return vfs_sim_calls(s->sim, VFS_SIM_OPEN, NULL) - vfs_sim_calls(s->sim, VFS_SIM_CLOSE, NULL);
}

static void setup(struct shared *s, unsigned limit)
{
    *s = (struct shared){.sim = table_sim_create(1)};
    s->vfs = vfs_sim_vfs(s->sim);
    s->set = open_files_create(s->vfs, limit);
    for (unsigned i = 0; i < FILES; i++) {
        char path[64];
        s->shapes[i] = (struct table_shape){.salt = i + 1, .pages = PAGES};
        path_of(i, path);
        table_write_sound(s->vfs, path + strlen(TABLE_DIRECTORY "/"), &s->shapes[i]);
    }
    vfs_sim_counts_clear(s->sim);
    for (unsigned i = 0; i < FILES; i++) {
        char path[64];
        path_of(i, path);
        s->files[i] = table_open_sound(s->vfs, path, true);
        table_file_share(s->files[i], s->set);
        assert_true(open_now(s) <= limit);
    }
}

static void destroy(struct shared *s)
{
    for (unsigned i = 0; i < FILES; i++) {
        table_file_close(s->files[i]);
    }
    open_files_destroy(s->set);
    vfs_sim_destroy(s->sim);
}

static enum table_file_result read_one(const struct shared *s, unsigned file, uint64_t number,
                                       char *error)
{
    _Alignas(TABLE_FILE_PAGE_BYTES) unsigned char page[TABLE_FILE_PAGE_BYTES];
    unsigned char right[TABLE_FILE_PAGE_BYTES];
    enum table_file_result result = table_file_read_page(s->files[file], number, page, error);
    if (result == TABLE_FILE_DONE) {
        table_fill_page(&s->shapes[file], number, right);
        CHECK(memcmp(page, right, sizeof(page)) == 0);
    }
    return result;
}

/* Reads, and says whether the file had to be opened for it. */
static bool opens(const struct shared *s, unsigned file)
{
    char error[TABLE_FILE_ERROR_MAX];
    uint64_t before = vfs_sim_calls(s->sim, VFS_SIM_OPEN, NULL);
    assert_int_equal(read_one(s, file, file % PAGES, error), TABLE_FILE_DONE);
    assert_true(open_now(s) <= LIMIT);
    return vfs_sim_calls(s->sim, VFS_SIM_OPEN, NULL) > before;
}

static void test_least_recent(void **state)
{
    (void)state;
    struct shared s;
    struct open_files_stats stats;
    setup(&s, LIMIT);
    for (unsigned i = 0; i < LIMIT; i++) { /* those shared last are open */
        assert_false(opens(&s, FILES - 1 - i));
    }
    assert_true(opens(&s, 0)); /* for 11, */
    assert_false(opens(&s, 10));
    assert_true(opens(&s, 11)); /* for 9, as 10 was read since */
    assert_false(opens(&s, 10));
    assert_false(opens(&s, 0));
    assert_true(opens(&s, 9));
    open_files_stats(s.set, &stats);
    assert_true(stats.limit == LIMIT && stats.open == LIMIT && stats.opened == 3);
    destroy(&s);
}

/* One read costs one pread, and another one for the header where the file is opened for it. */
static void test_cost(void **state)
{
    (void)state;
    struct shared s;
    setup(&s, LIMIT);
    vfs_sim_counts_clear(s.sim);
    assert_true(opens(&s, 0));
    assert_int_equal(vfs_sim_calls(s.sim, VFS_SIM_PREAD, NULL), 2);
    assert_false(opens(&s, 0));
    assert_int_equal(vfs_sim_calls(s.sim, VFS_SIM_PREAD, NULL), 3);
    struct open_files_stats stats;
    open_files_stats(s.set, &stats);
    assert_int_equal(stats.waits, 0);
    destroy(&s);
}

/* Its pages are just as the other file's checksums want them: only the header tells. */
static void test_swapped(void **state)
{
    (void)state;
    struct shared s;
    char error[TABLE_FILE_ERROR_MAX] = "", path[64], other[64];
    const struct vfs_functions *file;
    setup(&s, 1);
    file = s.vfs->functions;
    path_of(0, path);
    path_of(1, other);
    assert_int_equal(file->rename(s.vfs, path, TABLE_DIRECTORY "/aside"), 0);
    assert_int_equal(read_one(&s, 0, 1, error), TABLE_FILE_FAILED);
    assert_non_null(strstr(error, "feed-0.table: cannot open"));
    assert_int_equal(file->rename(s.vfs, other, path), 0);
    assert_int_equal(read_one(&s, 0, 1, error), TABLE_FILE_DAMAGED);
    assert_non_null(strstr(error, "feed-0.table: is not the file"));
    assert_int_equal(file->rename(s.vfs, TABLE_DIRECTORY "/aside", path), 0);
    assert_int_equal(read_one(&s, 0, 1, error), TABLE_FILE_DONE);
    destroy(&s);
}

static void test_cannot_open(void **state)
{
    (void)state;
    struct shared s;
    char error[TABLE_FILE_ERROR_MAX] = "";
    setup(&s, LIMIT);
    struct vfs_sim_fault fault = {
        .op = VFS_SIM_OPEN, .one_in = 1, .kind = VFS_SIM_FAIL, .error = ENFILE};
    vfs_sim_fault(s.sim, &fault);
    for (unsigned i = 0; i < 2 * LIMIT; i++) { /* what failed keeps no room */
        assert_int_equal(read_one(&s, i, 0, error), TABLE_FILE_FAILED);
        assert_non_null(strstr(error, "cannot open"));
    }
    vfs_sim_faults_end(s.sim);
    struct open_files_stats stats;
    open_files_stats(s.set, &stats);
    assert_int_equal(stats.open, LIMIT - 1); /* the first has closed one */
    for (unsigned i = 0; i < FILES; i++) {
        assert_int_equal(read_one(&s, i, 0, error), TABLE_FILE_DONE);
    }
    destroy(&s);
}

/* ---- one reads meanwhile ---- */

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum vfs_sim_op op; /* of file 0, that waits while it is closed */
    bool closed;
    unsigned at_gate;
};

static void gate(void *context, enum vfs_sim_op op, const char *path)
{
    struct gate *at = context;
    if (op != at->op || !strstr(path, "feed-0.table")) {
        return;
    }
    pthread_mutex_lock(&at->lock);
    bool waits = at->at_gate++ == 0;
    pthread_cond_broadcast(&at->changed);
    while (waits && at->closed) {
        pthread_cond_wait(&at->changed, &at->lock);
    }
    pthread_mutex_unlock(&at->lock);
}

struct reader {
    struct shared *s;
    unsigned file;
    _Atomic bool done;
};

static void *read_in_thread(void *context)
{
    struct reader *reader = context;
    char error[TABLE_FILE_ERROR_MAX];
    CHECK(read_one(reader->s, reader->file, 1, error) == TABLE_FILE_DONE);
    reader->done = true;
    return NULL;
}

static void await_gate(struct gate *at)
{
    pthread_mutex_lock(&at->lock);
    while (at->at_gate == 0) {
        pthread_cond_wait(&at->changed, &at->lock);
    }
    pthread_mutex_unlock(&at->lock);
}

static void open_gate(struct gate *at)
{
    pthread_mutex_lock(&at->lock);
    at->closed = false;
    pthread_cond_broadcast(&at->changed);
    pthread_mutex_unlock(&at->lock);
}

/* The only descriptor is read: a second reader waits for it, and does not take it away. */
static void test_being_read(void **state)
{
    (void)state;
    struct shared s;
    struct open_files_stats stats = {0};
    struct gate at = {.op = VFS_SIM_PREAD, .closed = true};
    pthread_t threads[2];
    setup(&s, 1);
    struct reader readers[2] = {{.s = &s, .file = 0}, {.s = &s, .file = 1}};
    pthread_mutex_init(&at.lock, NULL);
    pthread_cond_init(&at.changed, NULL);
    vfs_sim_hook(s.sim, gate, &at);
    assert_int_equal(pthread_create(&threads[0], NULL, read_in_thread, &readers[0]), 0);
    await_gate(&at);
    assert_int_equal(pthread_create(&threads[1], NULL, read_in_thread, &readers[1]), 0);
    while (stats.waits == 0) {
        open_files_stats(s.set, &stats);
        give_way();
    }
    assert_false(readers[0].done || readers[1].done);
    assert_int_equal(open_now(&s), 1);
    open_gate(&at);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_true(readers[i].done);
    }
    vfs_sim_hook(s.sim, NULL, NULL);
    pthread_cond_destroy(&at.changed);
    pthread_mutex_destroy(&at.lock);
    destroy(&s);
}

/* A file that becomes shared while all others are read gives its descriptor back at once. */
static void test_no_room_to_share(void **state)
{
    (void)state;
    struct shared s;
    struct gate at = {.op = VFS_SIM_PREAD, .closed = true};
    struct reader reader = {.s = &s, .file = 0};
    pthread_t thread;
    char error[TABLE_FILE_ERROR_MAX], path[64];
    setup(&s, 1);
    pthread_mutex_init(&at.lock, NULL);
    pthread_cond_init(&at.changed, NULL);
    vfs_sim_hook(s.sim, gate, &at);
    assert_int_equal(pthread_create(&thread, NULL, read_in_thread, &reader), 0);
    await_gate(&at);
    table_file_close(s.files[1]);
    path_of(1, path);
    s.files[1] = table_open_sound(s.vfs, path, true);
    table_file_share(s.files[1], s.set);
    assert_int_equal(open_now(&s), 1);
    open_gate(&at);
    pthread_join(thread, NULL);
    vfs_sim_hook(s.sim, NULL, NULL);
    assert_int_equal(read_one(&s, 1, 0, error), TABLE_FILE_DONE);
    pthread_cond_destroy(&at.changed);
    pthread_mutex_destroy(&at.lock);
    destroy(&s);
}

/* Nobody waits for an opening of somebody else: the second reader opens the file as well. */
static void test_opened_twice(void **state)
{
    (void)state;
    struct shared s;
    struct gate at = {.op = VFS_SIM_OPEN, .closed = true};
    struct reader reader = {.s = &s, .file = 0};
    struct open_files_stats stats;
    pthread_t thread;
    char error[TABLE_FILE_ERROR_MAX];
    setup(&s, 2);
    pthread_mutex_init(&at.lock, NULL);
    pthread_cond_init(&at.changed, NULL);
    vfs_sim_hook(s.sim, gate, &at);
    assert_int_equal(pthread_create(&thread, NULL, read_in_thread, &reader), 0);
    await_gate(&at);
    assert_int_equal(read_one(&s, 0, 0, error), TABLE_FILE_DONE);
    assert_false(reader.done);
    open_gate(&at);
    pthread_join(thread, NULL);
    vfs_sim_hook(s.sim, NULL, NULL);
    open_files_stats(s.set, &stats);
    assert_true(reader.done && stats.open == 1 && stats.opened == 2 && stats.waits == 0);
    assert_int_equal(open_now(&s), 1);
    pthread_cond_destroy(&at.changed);
    pthread_mutex_destroy(&at.lock);
    destroy(&s);
}

/* ---- the set by itself: who is woken ---- */

struct alone {
    struct vfs_sim *sim;
    struct open_files *set;
    struct open_file files[2];
};

struct holder {
    struct alone *alone;
    unsigned file;
    void (*meanwhile)(struct holder *holder); /* while the file is opened */
    bool fails;
    struct holder *others;
    _Atomic bool held, ends;
    pthread_t thread;
};

static int open_alone(void *context)
{
    struct holder *holder = context;
    struct vfs *vfs = vfs_sim_vfs(holder->alone->sim);
    const char *path = TABLE_DIRECTORY "/alone";
    if (holder->meanwhile) {
        holder->meanwhile(holder);
    }
    return holder->fails ? -1 : vfs->functions->open(vfs, path, O_RDWR | O_CREAT);
}

static int hold(struct holder *holder)
{
    return open_files_hold(holder->alone->set, &holder->alone->files[holder->file], open_alone,
                           holder);
}

static void let_go(const struct holder *holder, int fd)
{
    open_files_let_go(holder->alone->set, &holder->alone->files[holder->file], fd);
}

static void *hold_in_thread(void *context)
{
    struct holder *holder = context;
    int fd = hold(holder);
    CHECK(fd >= 0);
    holder->held = true;
    while (!holder->ends) {
        give_way();
    }
    let_go(holder, fd);
    return NULL;
}

/* Starts it, and returns once it waits. */
static void start_waiting(struct holder *holder)
{
    struct open_files_stats stats;
    open_files_stats(holder->alone->set, &stats);
    uint64_t before = stats.waits;
    CHECK(pthread_create(&holder->thread, NULL, hold_in_thread, holder) == 0);
    while (stats.waits == before) {
        give_way();
        open_files_stats(holder->alone->set, &stats);
    }
}

static void await_held(const struct holder *holder)
{
    while (!holder->held) {
        give_way();
    }
}

static void end_holder(struct holder *holder)
{
    await_held(holder);
    holder->ends = true;
    pthread_join(holder->thread, NULL);
}

static void alone_init(struct alone *alone, unsigned limit)
{
    *alone = (struct alone){.sim = table_sim_create(1)};
    alone->set = open_files_create(vfs_sim_vfs(alone->sim), limit);
}

static void alone_fini(struct alone *alone)
{
    for (unsigned i = 0; i < 2; i++) {
        open_files_remove(alone->set, &alone->files[i]);
    }
    open_files_destroy(alone->set);
    vfs_sim_destroy(alone->sim);
}

static void test_let_go_wakes(void **state)
{
    (void)state;
    struct alone alone;
    alone_init(&alone, 1);
    struct holder here = {.alone = &alone};
    struct holder other = {.alone = &alone, .file = 1};
    int fd = hold(&here);
    assert_int_equal(hold(&here), fd); /* an open file is waited for by nobody */
    start_waiting(&other);
    let_go(&here, fd);
    let_go(&here, fd);
    end_holder(&other);
    alone_fini(&alone);
}

static void others_wait(struct holder *holder)
{
    start_waiting(&holder->others[0]);
    if (!holder->fails) {
        start_waiting(&holder->others[1]);
    }
}

/* Of two that wait the second one is for this file, and need not wait any more. */
static void test_opened_wakes_all(void **state)
{
    (void)state;
    struct alone alone;
    alone_init(&alone, 1);
    struct holder others[] = {{.alone = &alone, .file = 1}, {.alone = &alone}};
    struct holder here = {.alone = &alone, .meanwhile = others_wait, .others = others};
    int fd = hold(&here);
    end_holder(&others[1]);
    assert_false(others[0].held);
    let_go(&here, fd);
    end_holder(&others[0]);
    alone_fini(&alone);
}

static void test_cannot_open_wakes(void **state)
{
    (void)state;
    struct alone alone;
    alone_init(&alone, 1);
    struct holder other = {.alone = &alone, .file = 1};
    struct holder here = {
        .alone = &alone, .meanwhile = others_wait, .others = &other, .fails = true};
    assert_int_equal(hold(&here), -1);
    end_holder(&other);
    alone_fini(&alone);
}

static void open_too(struct holder *holder)
{
    CHECK(hold(holder->others) >= 0);
}

/* The second descriptor of a file is closed when it was read: that is room, too. */
static void test_closed_wakes(void **state)
{
    (void)state;
    struct alone alone;
    alone_init(&alone, 2);
    struct holder first = {.alone = &alone};
    struct holder here = {.alone = &alone, .meanwhile = open_too, .others = &first};
    struct holder other = {.alone = &alone, .file = 1};
    int second = hold(&here);
    assert_true(second >= 0 && second != alone.files[0].fd);
    start_waiting(&other);
    let_go(&here, second);
    end_holder(&other);
    let_go(&first, alone.files[0].fd);
    alone_fini(&alone);
}

/* ---- many ---- */

struct worker {
    struct shared *s;
    struct test_random random;
    uint64_t failed;
};

/* Descriptors; a file is opened only where one has been closed. */
static void check_bound(void *context, enum vfs_sim_op op, const char *path)
{
    _Atomic unsigned *open = context;
    (void)path;
    if (op == VFS_SIM_OPEN) {
        CHECK(atomic_fetch_add(open, 1) < LIMIT);
    } else if (op == VFS_SIM_CLOSE) {
        atomic_fetch_sub(open, 1);
    }
}

static void *work(void *context)
{
    struct worker *worker = context;
    char error[TABLE_FILE_ERROR_MAX];
    for (uint64_t left = test_scaled(READS); left > 0; left--) {
        unsigned file = (unsigned)test_random_below(&worker->random, FILES);
        uint64_t number = test_random_below(&worker->random, PAGES);
        enum table_file_result result = read_one(worker->s, file, number, error);
        CHECK(result == TABLE_FILE_DONE || result == TABLE_FILE_FAILED);
        worker->failed += result == TABLE_FILE_FAILED;
    }
    return NULL;
}

/* Twice as many readers as descriptors; reading, of headers too, fails now and then. */
static void test_threads(void **state)
{
    (void)state;
    struct shared s;
    struct worker workers[READERS];
    pthread_t threads[READERS];
    uint64_t seed = test_seed(), failed = 0;
    setup(&s, LIMIT);
    _Atomic unsigned open = (unsigned)open_now(&s);
    vfs_sim_hook(s.sim, check_bound, &open);
    struct vfs_sim_fault fault = {.op = VFS_SIM_PREAD, .one_in = 50, .kind = VFS_SIM_FAIL};
    vfs_sim_fault(s.sim, &fault);
    for (unsigned i = 0; i < READERS; i++) {
        workers[i] = (struct worker){.s = &s, .random = {.state = seed + i}};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        failed += workers[i].failed;
    }
    vfs_sim_hook(s.sim, NULL, NULL);
    vfs_sim_faults_end(s.sim);
    struct open_files_stats stats;
    open_files_stats(s.set, &stats);
    assert_true(failed > 0 && stats.opened > FILES && stats.open <= LIMIT);
    assert_int_equal(stats.open, open_now(&s));
    for (unsigned i = 0; i < FILES; i++) {
        opens(&s, i);
    }
    destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recent),     cmocka_unit_test(test_cost),
        cmocka_unit_test(test_swapped),          cmocka_unit_test(test_cannot_open),
        cmocka_unit_test(test_being_read),       cmocka_unit_test(test_no_room_to_share),
        cmocka_unit_test(test_opened_twice),     cmocka_unit_test(test_let_go_wakes),
        cmocka_unit_test(test_opened_wakes_all), cmocka_unit_test(test_cannot_open_wakes),
        cmocka_unit_test(test_closed_wakes),     cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
