/*
 * A copy of another node takes the place of what a directory had, with a kill or a power cut before
 * every call: the start after it has the one or the other, whole.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "data/adopt.h"
#include "data/copy_dir.h"
#include "tests/support/vfs_sim.h"

#define DIR   "data"
#define COPY  DIR "/" COPY_DIR_NAME
#define CUTS  8 /* seeds of power cuts at one place */
#define STEPS 200

/* The old directory and the copy share the name of one table. */
static const char *const old_tables[] = {"feed-1-0-1.table", "feed-2-0-2.table"};
static const char *const new_tables[] = {"feed-2-0-2.table", "feed-3-0-4.table",
                                         "feed-4-0-5.table"};
static const char *const others[] = {DIR "/notes.txt", DIR "/lock", DIR "/journal-ballast"};

static struct world {
    struct vfs_sim *sim;
    struct vfs *vfs;
    struct buf old_manifest, new_manifest;
    unsigned step, end; /* operations until the process ends; 0: it does not */
    uint64_t cut;       /* the seed of a power cut; 0: a kill */
    bool ended;
} world;

static void put_file(const char *path, const char *text, size_t length)
{
    const struct vfs_functions *file = world.vfs->functions;
    int fd = file->open(world.vfs, path, O_RDWR | O_CREAT | O_TRUNC);

    assert_true(fd >= 0);
    assert_true(vfs_write_all(world.vfs, fd, text, length, 0));
    assert_int_equal(file->fdatasync(world.vfs, fd), 0);
    assert_int_equal(file->close(world.vfs, fd), 0);
}

/* The text of a file; NULL: it is not there. */
static char *get_file(const char *path, size_t *length)
{
    return vfs_read_file(world.vfs, path, 1u << 20, length);
}

static bool holds(const char *path, const char *text, size_t length)
{
    size_t has = 0;
    char *is = get_file(path, &has);
    bool same = is != NULL && has == length && memcmp(is, text, length) == 0;

    free(is);
    return same;
}

static bool exists(const char *path)
{
    size_t length;
    char *is = get_file(path, &length);

    free(is);
    return is != NULL;
}

static const char *in(const char *directory, const char *name, char path[VFS_PATH_MAX])
{
    snprintf(path, VFS_PATH_MAX, "%s/%s", directory, name);
    return path;
}

/* What a table holds says whose it is. */
static size_t table_text(const char *whose, const char *name, char text[128])
{
    return (size_t)snprintf(text, 128, "%s %s", whose, name);
}

static void compose(struct buf *text, const char *whose, const char *const *names, size_t count)
{
    struct manifest *manifest = manifest_create();
    char table[128];

    manifest->stream[0] = 7;
    manifest->epoch = 1;
    struct manifest_space *space = manifest_add_space(manifest, "feed", 0, "counter");

    assert_non_null(space);
    for (size_t i = 0; i < count; i++) {
        struct manifest_file file = {.last_id = 9, .bytes = table_text(whose, names[i], table)};

        snprintf(file.name, sizeof(file.name), "%s", names[i]);
        assert_true(manifest_add_file(manifest, space, &file));
    }
    buf_init(text, 1u << 20, NULL);
    assert_true(manifest_compose(manifest, text));
    manifest_destroy(manifest);
}

static void put_tables(const char *directory, const char *whose, const char *const *names,
                       size_t count)
{
    char path[VFS_PATH_MAX], text[128];

    for (size_t i = 0; i < count; i++) {
        size_t length = table_text(whose, names[i], text);

        put_file(in(directory, names[i], path), text, length);
    }
}

static int world_begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.sim = vfs_sim_create(1);
    world.vfs = vfs_sim_vfs(world.sim);
    compose(&world.old_manifest, "old", old_tables, 2);
    compose(&world.new_manifest, "new", new_tables, 3);
    assert_int_equal(world.vfs->functions->mkdir(world.vfs, DIR), 0);
    assert_int_equal(world.vfs->functions->mkdir(world.vfs, COPY), 0);
    for (size_t i = 0; i < 3; i++) {
        put_file(others[i], "else", 4);
    }
    put_file(DIR "/MANIFEST", world.old_manifest.data, world.old_manifest.length);
    put_file(DIR "/journal-0000000000001000", "journal", 7);
    put_file(DIR "/journal-0000000000002000", "journal", 7);
    put_tables(DIR, "old", old_tables, 2);
    put_tables(COPY, "new", new_tables, 3);
    put_file(COPY "/stream", "00000000000000070000000000000000", 32);
    put_file(COPY "/MANIFEST", world.new_manifest.data, world.new_manifest.length);
    assert_int_equal(world.vfs->functions->sync_dir(world.vfs, "/"), 0);
    assert_int_equal(world.vfs->functions->sync_dir(world.vfs, DIR), 0);
    assert_int_equal(world.vfs->functions->sync_dir(world.vfs, COPY), 0);
    return 0;
}

static int world_end(void **state)
{
    (void)state;
    buf_fini(&world.old_manifest);
    buf_fini(&world.new_manifest);
    vfs_sim_destroy(world.sim);
    return 0;
}

static void end_process(void *context, enum vfs_sim_op op, const char *path)
{
    (void)context;
    (void)op;
    (void)path;
    if (world.end == 0 || ++world.step != world.end) {
        return;
    }
    world.ended = true;
    if (world.cut > 0) {
        vfs_sim_power_cut(world.sim, world.cut);
    } else {
        vfs_sim_kill(world.sim);
    }
}

/* A start that ends before its end-th call (0: it does not). True: it got through. */
static bool start(unsigned end, uint64_t cut, bool follows)
{
    char error[DATA_ERROR_MAX] = "";

    world.step = 0;
    world.end = end;
    world.cut = cut;
    world.ended = false;
    vfs_sim_hook(world.sim, end_process, NULL);
    bool adopted = data_adopt(world.vfs, DIR, follows, error);

    vfs_sim_hook(world.sim, NULL, NULL);
    if (world.ended) {
        world.vfs = vfs_sim_vfs(world.sim);
        return false;
    }
    if (!adopted) {
        print_error("%s\n", error);
    }
    assert_true(adopted);
    return true;
}

/* Of one of the two, and of nothing of the other. */
static bool has_all(const char *whose, const struct buf *manifest, const char *const *names,
                    size_t count)
{
    char path[VFS_PATH_MAX], text[128];
    bool all = holds(DIR "/MANIFEST", manifest->data, manifest->length);

    for (size_t i = 0; i < count; i++) {
        size_t length = table_text(whose, names[i], text);

        all = all && holds(in(DIR, names[i], path), text, length);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(holds(others[i], "else", 4));
    }
    return all;
}

static bool is_old(void)
{
    return has_all("old", &world.old_manifest, old_tables, 2) &&
           exists(DIR "/journal-0000000000001000") && exists(DIR "/journal-0000000000002000");
}

static bool is_new(void)
{
    return has_all("new", &world.new_manifest, new_tables, 3) && !exists(DIR "/feed-1-0-1.table") &&
           !exists(DIR "/journal-0000000000001000") && !exists(DIR "/journal-0000000000002000") &&
           !exists(COPY "/MANIFEST");
}

static void expect_no_rest(void)
{
    char path[VFS_PATH_MAX];

    assert_false(exists(COPY "/stream"));
    for (size_t i = 0; i < 3; i++) {
        assert_false(exists(in(COPY, new_tables[i], path)));
    }
}

static void test_whole(void **state)
{
    (void)state;
    assert_true(is_old());
    assert_true(start(0, 0, true));
    assert_true(is_new());
    expect_no_rest();
    assert_true(start(0, 0, true)); /* nothing is left to do */
    assert_true(is_new());
}

/* The process ends before each call of the first start; the second one gets through. What it is
 * given then stays, whatever ends it. */
static void end_everywhere(uint64_t cut)
{
    bool through = false;

    for (unsigned end = 1; !through; end++) {
        assert_true(end < STEPS);
        world_end(NULL);
        world_begin(NULL);
        through = start(end, cut, true);
        if (cut > 0 && world.ended && exists(DIR "/MANIFEST") && exists(COPY "/MANIFEST")) {
            assert_true(is_old() ||
                        holds(DIR "/MANIFEST", world.new_manifest.data, world.new_manifest.length));
        }
        assert_true(start(0, 0, true));
        assert_true(is_new());
        put_file(DIR "/journal-0000000000003000", "taken", 5);
        assert_int_equal(world.vfs->functions->sync_dir(world.vfs, DIR), 0);
        vfs_sim_power_cut(world.sim, end);
        world.vfs = vfs_sim_vfs(world.sim);
        assert_true(start(0, 0, true));
        assert_true(is_new());
        assert_true(holds(DIR "/journal-0000000000003000", "taken", 5));
        expect_no_rest();
    }
}

static void test_kills(void **state)
{
    (void)state;
    end_everywhere(0);
}

static void test_power_cuts(void **state)
{
    (void)state;
    for (uint64_t cut = 1; cut <= CUTS; cut++) {
        end_everywhere(cut);
    }
}

/* And the second start ends somewhere, too. */
static void test_two_cuts(void **state)
{
    (void)state;
    for (unsigned first = 1; first < STEPS; first += 3) {
        for (unsigned second = 1; second < STEPS; second += 5) {
            world_end(NULL);
            world_begin(NULL);
            (void)start(first, first + 1, true);
            (void)start(second, second + 2, true);
            assert_true(start(0, 0, true));
            assert_true(is_new());
        }
    }
}

/* Of a node that follows no more: what has not begun is let be, what has is ended. */
static void test_not_following(void **state)
{
    (void)state;
    assert_true(start(0, 0, false));
    assert_true(is_old());
    assert_true(exists(COPY "/MANIFEST"));
    assert_int_equal(world.vfs->functions->unlink(world.vfs, DIR "/MANIFEST"), 0);
    assert_true(start(0, 0, false));
    assert_true(is_new());
}

static void test_not_whole(void **state)
{
    (void)state;
    assert_int_equal(world.vfs->functions->unlink(world.vfs, COPY "/feed-3-0-4.table"), 0);
    assert_true(start(0, 0, true));
    assert_true(is_old());
    assert_false(exists(COPY "/MANIFEST"));
    assert_true(exists(COPY "/feed-4-0-5.table")); /* the next copy goes on with them */
    world_end(NULL);
    world_begin(NULL);
    assert_true(vfs_sim_flip(world.sim, COPY "/MANIFEST", 30, 1));
    assert_true(start(0, 0, true));
    assert_true(is_old());
}

/* Begun, and then somebody took a file away. */
static void test_lost(void **state)
{
    char error[DATA_ERROR_MAX];

    (void)state;
    assert_int_equal(world.vfs->functions->unlink(world.vfs, DIR "/MANIFEST"), 0);
    assert_int_equal(world.vfs->functions->unlink(world.vfs, COPY "/feed-3-0-4.table"), 0);
    assert_false(data_adopt(world.vfs, DIR, true, error));
    assert_string_equal(error, "data directory data: its copy cannot be put in place: "
                               "feed-3-0-4.table: No such file or directory");
}

/* A file system that has no links: files are moved. */
static void test_no_links(void **state)
{
    const struct vfs_sim_fault fault = {.op = VFS_SIM_LINK, .error = 1};
    char error[DATA_ERROR_MAX];

    (void)state;
    vfs_sim_fault(world.sim, &fault);
    assert_false(data_adopt(world.vfs, DIR, true, error)); /* nor can the simulated one move them */
    vfs_sim_faults_end(world.sim);
    assert_true(start(0, 0, true));
    assert_true(is_new());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_kills, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_power_cuts, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_two_cuts, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_not_following, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_not_whole, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_lost, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_no_links, world_begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
