/* test_dir_lock.c: one user of a directory at a time, whatever files in it are removed. */
#include "store/dir_lock.h"

#include "tests/unit/store/files.h"

#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIRECTORY "/data"
#define LOCK_FILE DIRECTORY "/" DIR_LOCK_NAME

static int setup(void **state)
{
    struct vfs_sim *sim = vfs_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    *state = sim;
    return 0;
}

static int teardown(void **state)
{
    vfs_sim_destroy(*state);
    return 0;
}

static bool is_free(struct vfs *vfs)
{
    struct dir_lock lock;
    bool taken = dir_lock_take_reading(vfs, DIRECTORY, &lock) == DIR_LOCK_TAKEN;
    dir_lock_give(&lock);
    return taken;
}

static void expect(struct vfs *vfs, enum dir_lock_result wanted, long holder)
{
    struct dir_lock lock;
    assert_int_equal(dir_lock_take(vfs, DIRECTORY, &lock), wanted);
    assert_int_equal(lock.holder, holder);
    assert_null(lock.vfs); /* there is nothing to give back */
    assert_int_equal(dir_lock_take_reading(vfs, DIRECTORY, &lock), wanted);
    assert_int_equal(lock.holder, holder);
    dir_lock_give(&lock);
}

static void test_taken(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    struct dir_lock lock;
    char signature[32];
    assert_true(is_free(vfs));
    assert_int_equal(dir_lock_take(vfs, DIRECTORY, &lock), DIR_LOCK_TAKEN);
    assert_false(lock.weak);
    assert_false(files_exist(vfs, LOCK_FILE));
    expect(vfs, DIR_LOCK_HELD, 0);
    assert_true(dir_lock_sign(vfs, DIRECTORY));
    expect(vfs, DIR_LOCK_HELD, getpid());
    assert_int_equal(vfs->functions->unlink(vfs, LOCK_FILE), 0);
    expect(vfs, DIR_LOCK_HELD, 0);
    files_write(vfs, LOCK_FILE, "not a number", false);
    expect(vfs, DIR_LOCK_HELD, 0);
    files_write(vfs, LOCK_FILE, "-12345678901", false);
    expect(vfs, DIR_LOCK_HELD, 0);
    assert_true(dir_lock_sign(vfs, DIRECTORY)); /* over a longer one */
    snprintf(signature, sizeof(signature), "%ld\n", (long)getpid());
    assert_true(files_hold(vfs, LOCK_FILE, signature));
    dir_lock_give(&lock);
    assert_null(lock.vfs);
    dir_lock_give(&lock);
    assert_true(is_free(vfs));
}

static void test_words(void **state)
{
    (void)state;
    char words[DIR_LOCK_WORDS_MAX];
    struct dir_lock lock = {.holder = LONG_MAX};
    assert_string_equal(dir_lock_words(&lock, words),
                        "is in use by rollcalld (pid 9223372036854775807)");
    lock.holder = 0;
    assert_string_equal(dir_lock_words(&lock, words),
                        "is in use by rollcalld, or by a verb such as rollcall verify");
}

/* One that reads has it as any other, and a process that is gone is not named for it. */
static void test_reading(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    struct dir_lock lock;
    char signature[32];
    pid_t gone = fork();
    if (gone == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    assert_int_equal(dir_lock_take_reading(vfs, DIRECTORY, &lock), DIR_LOCK_TAKEN);
    assert_false(files_exist(vfs, LOCK_FILE));
    expect(vfs, DIR_LOCK_HELD, 0);
    snprintf(signature, sizeof(signature), "%ld\n", (long)gone);
    files_write(vfs, LOCK_FILE, signature, false);
    expect(vfs, DIR_LOCK_HELD, 0);
    dir_lock_give(&lock);
    assert_true(is_free(vfs));
}

static void test_killed(void **state)
{
    struct dir_lock lock;
    assert_int_equal(dir_lock_take(vfs_sim_vfs(*state), DIRECTORY, &lock), DIR_LOCK_TAKEN);
    vfs_sim_kill(*state);
    struct vfs *vfs = vfs_sim_vfs(*state);
    assert_int_equal(dir_lock_take(vfs, DIRECTORY, &lock), DIR_LOCK_TAKEN);
    dir_lock_give(&lock);
}

/* NFS: a directory is not locked, its file is. */
static void test_weak(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    struct dir_lock lock;
    char signature[32];
    const struct vfs_sim_fault no_directories = {
        .op = VFS_SIM_LOCK, .first = 1, .times = 1, .error = EBADF};
    vfs_sim_fault(*state, &no_directories);
    assert_false(is_free(vfs)); /* there is nothing to lock */
    assert_false(files_exist(vfs, LOCK_FILE));
    snprintf(signature, sizeof(signature), "%ld", (long)getppid());
    files_write(vfs, LOCK_FILE, signature, false);
    vfs_sim_fault(*state, &no_directories);
    assert_int_equal(dir_lock_take(vfs, DIRECTORY, &lock), DIR_LOCK_TAKEN);
    assert_true(lock.weak);
    vfs_sim_fault(*state, &no_directories);
    struct dir_lock other;
    assert_int_equal(dir_lock_take(vfs, DIRECTORY, &other), DIR_LOCK_HELD);
    assert_int_equal(other.holder, getppid());
    dir_lock_give(&lock);
}

static void test_failed(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    struct dir_lock lock;
    assert_int_equal(dir_lock_take(vfs, "/nowhere", &lock), DIR_LOCK_FAILED);
    assert_int_equal(errno, ENOENT);
    vfs_sim_fault(*state, &(struct vfs_sim_fault){.op = VFS_SIM_LOCK, .error = EIO});
    assert_int_equal(dir_lock_take(vfs, DIRECTORY, &lock), DIR_LOCK_FAILED);
    assert_int_equal(errno, EIO);
    assert_false(files_exist(vfs, LOCK_FILE)); /* nor was it tried there */
    assert_false(is_free(vfs));
    dir_lock_give(&lock);
}

#define UNIT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_taken),   cmocka_unit_test(test_words),
        UNIT(test_reading), UNIT(test_killed),
        UNIT(test_weak),    UNIT(test_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
