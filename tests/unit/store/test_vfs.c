/* test_vfs.c: the system's files behind the table, and the helpers, those also under faults. */
#include "store/vfs.h"

#include "tests/unit/store/files.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/give_way.h"
#include "tests/support/vfs_sim.h"

#define SEEDS   200
#define SIGNALS 50
#define TURNS   1000 /* to wait for a signal's handler, which a sanitizer may put off */

/* ---- the real one, in a folder of its own ---- */

struct folder {
    struct vfs *vfs;
    char path[128];
    char file[160];
    char other[160];
};

static int folder_setup(void **state)
{
    struct folder *folder = calloc(1, sizeof(*folder));
    assert_non_null(folder);
    const char *top = getenv("TMPDIR");
    snprintf(folder->path, sizeof(folder->path), "%s/rollcall-vfs-XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof(folder->file), "%s/file", folder->path);
    snprintf(folder->other, sizeof(folder->other), "%s/other", folder->path);
    folder->vfs = vfs_real();
    *state = folder;
    return 0;
}

static int folder_teardown(void **state)
{
    struct folder *folder = *state;
    unlink(folder->file);
    unlink(folder->other);
    rmdir(folder->other);
    int result = rmdir(folder->path);
    free(folder);
    return result;
}

static void test_real_files(void **state)
{
    struct folder *folder = *state;
    struct vfs *vfs = folder->vfs;
    const struct vfs_functions *functions = vfs->functions;
    char text[8] = "";
    struct stat about;
    assert_errno(functions->open(vfs, folder->file, O_RDWR), ENOENT);
    int fd = files_open(vfs, folder->file, O_RDWR | O_CREAT | O_EXCL);
    assert_errno(functions->open(vfs, folder->file, O_RDWR | O_CREAT | O_EXCL), EEXIST);
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(functions->pwrite(vfs, fd, "abcdef", 6, 2), 6);
    assert_int_equal(functions->pread(vfs, fd, text, 3, 3), 3);
    assert_memory_equal(text, "bcd", 3);
    assert_int_equal(functions->size(vfs, fd), 8);
    assert_int_equal(functions->writeback(vfs, fd, 0, 8), 0);
    assert_int_equal(functions->readahead(vfs, fd, 0, 8), 0);
    assert_int_equal(functions->fdatasync(vfs, fd), 0);
    assert_int_equal(functions->truncate(vfs, fd, 5), 0);
    assert_int_equal(functions->size(vfs, fd), 5);
    assert_int_equal(functions->pread(vfs, fd, text, 8, 0), 5);
    assert_memory_equal(text, "\0\0abc", 5);
    files_close(vfs, fd);
    assert_errno(functions->close(vfs, fd), EBADF);
    files_close(vfs, files_open(vfs, folder->file, O_RDWR | O_TRUNC));
    assert_true(files_hold(vfs, folder->file, ""));
}

static void test_real_allocate(void **state)
{
    struct folder *folder = *state;
    struct vfs *vfs = folder->vfs;
    struct stat about;
    int fd = files_open(vfs, folder->file, O_RDWR | O_CREAT);
    assert_true(vfs_write_all(vfs, fd, "abc", 3, 0));
    assert_int_equal(vfs->functions->allocate(vfs, fd, 1 << 20), 0);
    assert_int_equal(fstat(fd, &about), 0);
    assert_int_equal(about.st_size, 1 << 20);
    assert_true(about.st_blocks * 512 >= 1 << 20);
    char text[8];
    assert_int_equal(vfs_read_all(vfs, fd, text, 8, 0), 8);
    assert_memory_equal(text, "abc\0\0\0\0\0", 8);
    assert_int_equal(vfs->functions->allocate(vfs, fd, 4096), 0); /* less: nothing changes */
    assert_int_equal(vfs->functions->size(vfs, fd), 1 << 20);
    assert_int_equal(vfs->functions->allocate(vfs, fd, INT64_MAX), -1);
    assert_int_equal(vfs->functions->size(vfs, fd), 1 << 20);
    files_close(vfs, fd);
}

static void count_entry(void *context, const char *name)
{
    unsigned *seen = context;
    *seen |= strcmp(name, "file") == 0 ? 1u : strcmp(name, "other") == 0 ? 2u : 4u;
}

/* Of a held directory that is moved the files are made where it is, not where another took its
 * place; what is not below it is found as ever. */
static void test_real_held(void **state)
{
    struct folder *folder = *state;
    const struct vfs_functions *functions = folder->vfs->functions;
    char away[160], inner[192], moved[192];
    snprintf(away, sizeof(away), "%s/away", folder->path);
    snprintf(inner, sizeof(inner), "%s/x", folder->other);
    snprintf(moved, sizeof(moved), "%s/x", away);
    assert_int_equal(functions->mkdir(folder->vfs, folder->other), 0);
    int fd = files_open(folder->vfs, folder->other, O_RDONLY | O_DIRECTORY);
    struct vfs *held = vfs_hold(folder->vfs, folder->other, fd);
    assert_true(vfs_is_in_place(held));
    assert_int_equal(functions->rename(folder->vfs, folder->other, away), 0);
    assert_false(vfs_is_in_place(held));
    assert_int_equal(functions->mkdir(folder->vfs, folder->other), 0);
    assert_false(vfs_is_in_place(held));

    assert_true(vfs_replace_file(held, folder->other, "x", "abc", 3));
    assert_true(files_hold(held, inner, "abc"));
    assert_true(files_hold(folder->vfs, moved, "abc"));
    assert_false(files_exist(folder->vfs, inner));
    unsigned seen = 0;
    assert_int_equal(functions->list(held, folder->other, count_entry, &seen), 0);
    assert_int_equal(seen, 4);
    assert_int_equal(functions->mode(held, folder->other), 0700);
    uint64_t all = 0, free_bytes = functions->free_bytes(held, folder->other, &all);

    assert_true(free_bytes > 0 && free_bytes <= all);
    assert_int_equal(functions->link(held, inner, folder->file), 0);
    assert_true(files_hold(folder->vfs, folder->file, "abc"));
    assert_int_equal(functions->unlink(held, inner), 0);
    assert_int_equal(functions->mkdir(held, inner), 0);

    assert_int_equal(rmdir(moved), 0);
    vfs_let_go(held);
    files_close(folder->vfs, fd);
    assert_int_equal(rmdir(away), 0);
}

static void test_real_names(void **state)
{
    struct folder *folder = *state;
    struct vfs *vfs = folder->vfs;
    const struct vfs_functions *functions = vfs->functions;
    unsigned seen = 0;
    struct stat about;
    files_write(vfs, folder->file, "new", true);
    files_write(vfs, folder->other, "old", true);
    assert_int_equal(functions->list(vfs, folder->path, count_entry, &seen), 0);
    assert_int_equal(seen, 3);
    assert_int_equal(functions->rename(vfs, folder->file, folder->other), 0);
    assert_true(files_hold(vfs, folder->other, "new"));
    files_sync_dir(vfs, folder->path);
    assert_int_equal(functions->unlink(vfs, folder->other), 0);
    assert_errno(functions->unlink(vfs, folder->other), ENOENT);
    assert_errno(functions->rename(vfs, folder->file, folder->other), ENOENT);
    assert_errno(functions->sync_dir(vfs, folder->other), ENOENT);
    assert_errno(functions->list(vfs, folder->other, count_entry, &seen), ENOENT);
    assert_int_equal(functions->mkdir(vfs, folder->other), 0);
    assert_errno(functions->mkdir(vfs, folder->other), EEXIST);
    assert_int_equal(stat(folder->other, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
}

static void test_real_lock(void **state)
{
    struct folder *folder = *state;
    struct vfs *vfs = folder->vfs;
    int first = files_open(vfs, folder->file, O_RDWR | O_CREAT);
    int second = files_open(vfs, folder->file, O_RDWR);
    assert_int_equal(vfs->functions->lock(vfs, first), 0);
    assert_errno(vfs->functions->lock(vfs, second), EWOULDBLOCK);
    files_close(vfs, first);
    assert_int_equal(vfs->functions->lock(vfs, second), 0);
    files_close(vfs, second);
    uint64_t before = vfs->functions->now_us(vfs);
    assert_true(before > 0 && vfs->functions->now_us(vfs) >= before);
}

/* O_DIRECT reaches the system: it refuses it, or the descriptor has it. */
static void test_real_direct(void **state)
{
    struct folder *folder = *state;
    struct vfs *vfs = folder->vfs;
    files_write(vfs, folder->file, "text", true);
    int fd = vfs->functions->open(vfs, folder->file, O_RDONLY | O_DIRECT);
    if (fd < 0) {
        assert_int_equal(errno, EINVAL);
        return;
    }
    assert_true(fcntl(fd, F_GETFL) & O_DIRECT);
    files_close(vfs, fd);
}

/* Signals that cut an open of a pipe short; then the other end is opened. */
struct opener {
    const char *path;
    pthread_t thread;
    atomic_bool done;
};

static atomic_uint signals_handled;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals_handled, 1);
}

static void *interrupt_opener(void *context)
{
    struct opener *opener = context;
    for (unsigned i = 1; i <= SIGNALS && !atomic_load(&opener->done); i++) {
        pthread_kill(opener->thread, SIGUSR1);
        for (int turn = 0; turn < TURNS && atomic_load(&signals_handled) < i; turn++) {
            give_way();
        }
    }
    int fd = -1;
    while (fd < 0 && !atomic_load(&opener->done)) { /* ENXIO until somebody is in open */
        fd = open(opener->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        give_way();
    }
    if (fd >= 0) {
        close(fd);
    }
    return NULL;
}

static void test_real_interrupted(void **state)
{
    struct folder *folder = *state;
    struct opener opener = {.path = folder->file, .thread = pthread_self()};
    struct sigaction counting = {.sa_handler = count_signal}; /* no SA_RESTART */
    struct sigaction before;
    pthread_t interrupter;
    assert_int_equal(mkfifo(folder->file, 0600), 0);
    assert_int_equal(sigaction(SIGUSR1, &counting, &before), 0);
    assert_int_equal(pthread_create(&interrupter, NULL, interrupt_opener, &opener), 0);
    int fd = folder->vfs->functions->open(folder->vfs, folder->file, O_RDONLY);
    int error = errno;
    atomic_store(&opener.done, true);
    pthread_join(interrupter, NULL);
    sigaction(SIGUSR1, &before, NULL);
    if (fd < 0) {
        fail_msg("%s after %u signals", strerror(error), atomic_load(&signals_handled));
    }
    files_close(folder->vfs, fd);
}

/* ---- the helpers, on simulated files ---- */

static int sim_setup(void **state)
{
    *state = vfs_sim_create(1);
    return 0;
}

static int sim_teardown(void **state)
{
    vfs_sim_destroy(*state);
    return 0;
}

static void test_all(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    char text[20];
    int fd = files_open(vfs, "file", O_RDWR | O_CREAT);
    vfs_sim_fault(sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .kind = VFS_SIM_SHORT, .bytes = 3});
    vfs_sim_fault(sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .kind = VFS_SIM_SHORT, .bytes = 4});
    assert_true(vfs_write_all(vfs, fd, "0123456789", 10, 2));
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PWRITE, NULL), 4);
    assert_int_equal(vfs_read_all(vfs, fd, text, 9, 3), 9);
    assert_memory_equal(text, "123456789", 9);
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_PREAD, NULL), 3);
    assert_int_equal(vfs_read_all(vfs, fd, text, 20, 6), 6); /* the end */
    assert_int_equal(vfs_read_all(vfs, fd, text, 20, 50), 0);
    vfs_sim_faults_end(sim);

    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .first = 2});
    vfs_sim_fault(sim,
                  &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .kind = VFS_SIM_SHORT, .bytes = 1});
    assert_errno(vfs_read_all(vfs, fd, text, 2, 0), EIO);
    vfs_sim_faults_end(sim);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .kind = VFS_SIM_SHORT});
    assert_false(vfs_write_all(vfs, fd, "x", 1, 0)); /* a write of nothing, for ever */
    assert_int_equal(errno, EIO);
    vfs_sim_faults_end(sim);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PWRITE, .error = ENOSPC});
    assert_false(vfs_write_all(vfs, fd, "x", 1, 0));
    assert_int_equal(errno, ENOSPC);
}

static void test_in_directory(void **state)
{
    struct vfs *vfs = vfs_sim_vfs(*state);
    char longest[VFS_PATH_MAX];
    size_t length;
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(vfs->functions->mkdir(vfs, "d"), 0);
    files_write(vfs, "d/file", "ten bytes.", true);
    int fd = vfs_open_in(vfs, "d", "file", O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(vfs->functions->close(vfs, fd), 0);
    char *text = vfs_read_in(vfs, "d", "file", 10, &length);
    assert_string_equal(text, "ten bytes.");
    free(text);
    assert_int_equal(vfs_size_in(vfs, "d", "file"), 10);
    assert_int_equal(vfs_size(vfs, "d/file"), 10);
    assert_int_equal(vfs_unlink_in(vfs, "d", "file"), 0);
    assert_int_equal(vfs_unlink_in(vfs, "d", "file"), -1);
    assert_int_equal(vfs_size_in(vfs, "d", "file"), -1);
    assert_int_equal(errno, ENOENT);
    errno = 0;
    assert_int_equal(vfs_open_in(vfs, "d", longest, O_RDONLY), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    errno = 0;
    assert_null(vfs_read_in(vfs, "d", longest, 10, &length));
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(vfs_size_in(vfs, "d", longest), -1);
    assert_int_equal(vfs_unlink_in(vfs, "d", longest), -1);
}

static void test_read_file(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    size_t length = 77;
    assert_null(vfs_read_file(vfs, "file", 100, &length));
    assert_int_equal(errno, ENOENT);
    files_write(vfs, "file", "ten bytes.", true);
    assert_null(vfs_read_file(vfs, "file", 9, &length));
    assert_int_equal(errno, EFBIG);
    char *text = vfs_read_file(vfs, "file", 10, &length);
    assert_non_null(text);
    assert_int_equal(length, 10);
    assert_string_equal(text, "ten bytes."); /* a NUL comes after it */
    free(text);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .error = EIO});
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_CLOSE, .error = EDQUOT});
    assert_null(vfs_read_file(vfs, "file", 10, &length));
    assert_int_equal(errno, EIO); /* the reason, not what closing said */
    assert_int_equal(vfs_sim_calls(sim, VFS_SIM_OPEN, "file") - 1,
                     vfs_sim_calls(sim, VFS_SIM_CLOSE, "file"));
}

static void test_replace_file(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    files_write(vfs, "name.tmp", "left over from a crash, and long", false);
    assert_true(vfs_replace_file(vfs, "/", "name", "first", 5));
    assert_true(files_hold(vfs, "name", "first"));
    assert_true(vfs_replace_file(vfs, "/", "name", "2nd", 3));
    assert_false(files_exist(vfs, "name" VFS_TEMPORARY));
    vfs_sim_power_cut(sim, 5);
    assert_true(files_hold(vfs_sim_vfs(sim), "name", "2nd"));
}

/* Each call it makes fails once: the old file is whole, nothing is left over. */
static void test_replace_fails(void **state)
{
    static const enum vfs_sim_op ops[] = {VFS_SIM_OPEN, VFS_SIM_PWRITE, VFS_SIM_FDATASYNC,
                                          VFS_SIM_RENAME};
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    assert_true(vfs_replace_file(vfs, "/", "name", "old", 3));
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = ops[i], .times = 1, .error = ENOSPC});
        assert_false(vfs_replace_file(vfs, "/", "name", "new", 3));
        assert_int_equal(errno, ENOSPC);
        assert_true(files_hold(vfs, "name", "old"));
        assert_false(files_exist(vfs, "name" VFS_TEMPORARY));
    }
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_SYNC_DIR, .times = 1});
    assert_false(vfs_replace_file(vfs, "/", "name", "new", 3));
    assert_true(files_hold(vfs, "name", "new"));
    assert_true(vfs_replace_file(vfs, "/", "name", "newer", 5));
    assert_true(files_hold(vfs, "name", "newer"));
}

/* The power goes before each of its calls: the old or the new is there, whole; both are seen. */
static void test_replace_cut(void **state)
{
    (void)state;
    unsigned olds = 0, news = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct vfs_sim *sim = vfs_sim_create(seed);
        struct files_cutter cutter = {sim, 1 + (unsigned)(seed % 6), seed};
        assert_true(vfs_replace_file(vfs_sim_vfs(sim), "/", "name", "old", 3));
        vfs_sim_hook(sim, files_cut, &cutter);
        assert_false(vfs_replace_file(vfs_sim_vfs(sim), "/", "name", "longer", 6));
        vfs_sim_hook(sim, NULL, NULL);
        bool old = files_hold(vfs_sim_vfs(sim), "name", "old");
        olds += old;
        news += !old;
        assert_true(old || files_hold(vfs_sim_vfs(sim), "name", "longer"));
        vfs_sim_destroy(sim);
    }
    assert_true(olds > 0 && news > 0);
}

static void test_extend(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    int fd = files_open(vfs, "file", O_RDWR | O_CREAT);
    assert_true(vfs_write_all(vfs, fd, "abc", 3, 0));
    assert_true(vfs_extend(vfs, fd, 300000));
    assert_int_equal(vfs->functions->size(vfs, fd), 300000);
    assert_int_equal(vfs_sim_bytes(sim, VFS_SIM_PWRITE, "file"), 300000);
    char text[5];
    assert_int_equal(vfs_read_all(vfs, fd, text, 5, 0), 5);
    assert_memory_equal(text, "abc\0\0", 5);
    assert_true(vfs_extend(vfs, fd, 10));
    assert_int_equal(vfs->functions->size(vfs, fd), 300000);
    vfs_sim_set_capacity(sim, 500000);
    assert_false(vfs_extend(vfs, fd, 600000));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(vfs->functions->size(vfs, fd), 300000);
    files_close(vfs, fd);
}

static void test_path(void **state)
{
    (void)state;
    char path[VFS_PATH_MAX], longest[VFS_PATH_MAX];
    assert_true(vfs_path(path, "/a/b", "c"));
    assert_string_equal(path, "/a/b/c");
    memset(longest, 'x', sizeof(longest));
    longest[VFS_PATH_MAX - 3] = '\0';
    assert_true(vfs_path(path, "d", longest));
    assert_int_equal(strlen(path), VFS_PATH_MAX - 1);
    longest[VFS_PATH_MAX - 3] = 'x';
    longest[VFS_PATH_MAX - 2] = '\0';
    assert_false(vfs_path(path, "d", longest));
    assert_int_equal(errno, ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_real_files, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_real_allocate, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_real_held, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_real_names, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_real_lock, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_real_direct, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_real_interrupted, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(test_all, sim_setup, sim_teardown),
        cmocka_unit_test_setup_teardown(test_in_directory, sim_setup, sim_teardown),
        cmocka_unit_test_setup_teardown(test_read_file, sim_setup, sim_teardown),
        cmocka_unit_test_setup_teardown(test_replace_file, sim_setup, sim_teardown),
        cmocka_unit_test_setup_teardown(test_replace_fails, sim_setup, sim_teardown),
        cmocka_unit_test(test_replace_cut),
        cmocka_unit_test_setup_teardown(test_extend, sim_setup, sim_teardown),
        cmocka_unit_test(test_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
