/* What a copy asks of the disk while a file comes. */
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

#include "data/copy_dir.h"
#include "store/table_file.h"
#include "tests/support/vfs_sim.h"

#define DIR         "data"
#define NAME        "feed-1-0-1.table"
#define PART        DIR "/" COPY_DIR_NAME "/" NAME COPY_DIR_PART
#define PIECE_BYTES (256u << 10)
#define PIECES      10u /* of a MiB four are written */

static struct world {
    struct vfs_sim *sim;
    struct manifest *manifest;
    struct copy_dir dir;
    struct copy_file file;
} world;

static void look(void)
{
    assert_false(copy_dir_look(&world.dir, world.manifest, NULL, &world.file));
    assert_true(copy_dir_open(&world.dir, &world.file));
}

static int world_begin(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.sim = vfs_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(world.sim);

    assert_int_equal(vfs->functions->mkdir(vfs, DIR), 0);
    world.manifest = manifest_create();
    world.manifest->stream[0] = 7;
    struct manifest_space *space = manifest_add_space(world.manifest, "feed", 0, "counter");
    struct manifest_file named = {.bytes = PIECES * PIECE_BYTES, .name = NAME};
    struct manifest_at at = {0};

    assert_true(manifest_add_file(world.manifest, space, &named));
    assert_true(copy_dir_begin(&world.dir, vfs, DIR, world.manifest));
    world.file =
        (struct copy_file){.space = space, .named = manifest_next_file(world.manifest, &at)};
    look();
    return 0;
}

static int world_end(void **state)
{
    (void)state;
    copy_dir_leave(&world.dir, &world.file);
    manifest_destroy(world.manifest);
    vfs_sim_destroy(world.sim);
    return 0;
}

static void write_all(void)
{
    static const char piece[PIECE_BYTES] = {1};

    for (unsigned i = 0; i < PIECES; i++) {
        assert_true(copy_dir_write(&world.dir, &world.file, piece, PIECE_BYTES));
    }
}

/* Each MiB is given to the disk at once, and nobody waits for it. */
static void test_written_back(void **state)
{
    (void)state;
    write_all();
    assert_int_equal((int)vfs_sim_calls(world.sim, VFS_SIM_WRITEBACK, PART), 2);
    assert_int_equal((int)vfs_sim_calls(world.sim, VFS_SIM_FDATASYNC, PART), 0);
}

/* What could not be synced may be in memory and never on the disk: no part goes on with it. */
static void test_sync_fails(void **state)
{
    const struct vfs_sim_fault fault = {
        .op = VFS_SIM_FDATASYNC, .path = PART, .times = 1, .kind = VFS_SIM_SYNC_LOST};

    (void)state;
    write_all();
    vfs_sim_fault(world.sim, &fault);
    assert_false(copy_dir_finish(&world.dir, &world.file));
    look();
    assert_int_equal(world.file.have, 0);
}

/* A table file, and the bytes of it that come. */
static char *table_begin(size_t *length)
{
    static _Alignas(4096) unsigned char page[TABLE_FILE_PAGE_BYTES] = {1};
    const struct table_file_info info = {.kind = "counter",
                                         .space = "feed",
                                         .serial = 1,
                                         .generation = 1,
                                         .start_lsn = 64,
                                         .description = "?",
                                         .description_bytes = 1};
    char error[TABLE_FILE_ERROR_MAX];
    struct vfs *vfs = vfs_sim_vfs(world.sim);
    struct table_file_writer *writer = table_file_create(vfs, DIR, NAME, &info, error);

    assert_non_null(writer);
    assert_true(table_file_append_pages(writer, page, 1));
    assert_true(table_file_commit(writer, 128, NULL, error));
    char *bytes = vfs_read_file(vfs, DIR "/" NAME, PIECE_BYTES, length);

    assert_non_null(bytes);
    return bytes;
}

/* Nor if nobody could delete it, or was left to: the disk is asked for what it has. */
static void test_part_is_not_on_disk(void **state)
{
    const struct vfs_sim_fault lost = {
        .op = VFS_SIM_FDATASYNC, .path = PART, .times = 1, .kind = VFS_SIM_SYNC_LOST};
    const struct vfs_sim_fault stays = {.op = VFS_SIM_UNLINK, .path = PART, .times = 1};
    size_t length;
    char *bytes = table_begin(&length);
    struct manifest_file named = {.bytes = length,
                                  .serial = 1,
                                  .generation = 1,
                                  .start_lsn = 64,
                                  .end_lsn = 128,
                                  .name = NAME};

    (void)state;
    world.file.named = &named;
    assert_true(copy_dir_write(&world.dir, &world.file, bytes, length));
    vfs_sim_fault(world.sim, &lost);
    vfs_sim_fault(world.sim, &stays);
    assert_false(copy_dir_finish(&world.dir, &world.file));
    look();
    assert_int_equal(world.file.have, length);
    assert_false(copy_dir_finish(&world.dir, &world.file));
    look();
    assert_int_equal(world.file.have, 0);
    assert_true(copy_dir_write(&world.dir, &world.file, bytes, length));
    assert_true(copy_dir_finish(&world.dir, &world.file));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_written_back, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_sync_fails, world_begin, world_end),
        cmocka_unit_test_setup_teardown(test_part_is_not_on_disk, world_begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
