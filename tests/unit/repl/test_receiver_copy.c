/* A copy of the other's directory: whole, broken off and gone on with, damaged, and not wanted. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/log.h"
#include "data/copy_dir.h"
#include "receiver_rig.h"
#include "store/table_file.h"

#define TABLES 3
#define PAGES  200u
#define TEXT   (1u << 20)
#define HALF   524288u /* pieces of a file that are written when 600000 bytes of it have come */

/* What the leader has. */
static struct shop {
    char directory[128];
    struct manifest *manifest;
    struct buf text;
    char names[TABLES][MANIFEST_FILE_NAME_MAX + 1];
    uint64_t bytes[TABLES];
} shop;

static void write_table(const char *directory, const char *name, uint64_t serial, unsigned salt,
                        uint64_t *bytes)
{
    static _Alignas(4096) unsigned char pages[PAGES * TABLE_FILE_PAGE_BYTES];
    const struct table_file_info info = {.kind = "counter",
                                         .space = "feed",
                                         .serial = serial,
                                         .generation = serial,
                                         .start_lsn = 64,
                                         .description = "?",
                                         .description_bytes = 1};
    char error[TABLE_FILE_ERROR_MAX];
    struct table_file_writer *writer = table_file_create(vfs_real(), directory, name, &info, error);

    assert_non_null(writer);
    memset(pages, (int)(serial + salt), sizeof(pages));
    assert_true(table_file_append_pages(writer, pages, PAGES));
    assert_true(table_file_commit(writer, 128, bytes, error));
}

static void shop_open(uint64_t stream)
{
    char path[VFS_PATH_MAX];

    snprintf(shop.directory, sizeof(shop.directory), "%s/leader", rig.directory);
    assert_int_equal(mkdir(shop.directory, 0700), 0);
    shop.manifest = manifest_create();
    shop.manifest->stream[0] = stream;
    shop.manifest->stream[1] = 11;
    shop.manifest->journal_lsn = 64;
    assert_true(manifest_add_reign(shop.manifest, 3, 0));
    struct manifest_space *space = manifest_add_space(shop.manifest, "feed", 0, "counter");

    for (uint64_t i = 0; i < TABLES; i++) {
        struct manifest_file file = {.serial = i + 1,
                                     .generation = i + 1,
                                     .start_lsn = 64,
                                     .end_lsn = 128,
                                     .first_id = i,
                                     .last_id = i};

        manifest_table_name(shop.names[i], "feed", i + 1, 0, i + 1);
        snprintf(file.name, sizeof(file.name), "%s", shop.names[i]);
        write_table(shop.directory, file.name, i + 1, 0, &shop.bytes[i]);
        file.bytes = shop.bytes[i];
        assert_true(manifest_add_file(shop.manifest, space, &file));
        assert_true(vfs_path(path, shop.directory, file.name));
    }
    buf_init(&shop.text, TEXT, NULL);
    assert_true(manifest_compose(shop.manifest, &shop.text));
}

static int shop_begin(void **state)
{
    assert_int_equal(rig_begin(state), 0);
    memset(&shop, 0, sizeof(shop));
    shop_open(7);
    return 0;
}

static int shop_end(void **state)
{
    manifest_destroy(shop.manifest);
    buf_fini(&shop.text);
    return rig_end(state);
}

/* ---- the leader's part ---- */

/* It asks for a copy, and gets the manifest. */
static void give_manifest(void)
{
    rig_expect("copy 1 rollcall two");
    rig_say("MANIFEST %zu", shop.text.length);
    rig_say_bytes(shop.text.data, shop.text.length);
}

static void ask_for_copy(void)
{
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("COPY the journal before LSN 4096 is gone");
    give_manifest();
}

static void expect_asked(size_t i, uint64_t offset)
{
    char line[256];

    snprintf(line, sizeof(line), "file %s %llu", shop.names[i], (unsigned long long)offset);
    rig_expect(line);
}

/* At most `most` bytes of the file. */
static void give_file(size_t i, uint64_t offset, uint64_t most, uint64_t flip)
{
    char path[VFS_PATH_MAX];
    size_t length;

    assert_true(vfs_path(path, shop.directory, shop.names[i]));
    char *bytes = vfs_read_file(vfs_real(), path, 1u << 20, &length);

    assert_non_null(bytes);
    assert_int_equal(length, shop.bytes[i]);
    bytes[flip] ^= flip > 0;
    rig_say("FILE %s %llu %llu", shop.names[i], (unsigned long long)offset,
            (unsigned long long)(shop.bytes[i] - offset));
    uint64_t left = shop.bytes[i] - offset;

    rig_say_bytes(bytes + offset, most < left ? most : left);
    free(bytes);
}

static char *copy_path(const char *name, const char *more, char path[VFS_PATH_MAX])
{
    snprintf(path, VFS_PATH_MAX, "%s/copy/%s%s", rig.directory, name, more);
    return path;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Whole, and as the leader has it. */
static void expect_whole(void)
{
    char path[VFS_PATH_MAX], from[VFS_PATH_MAX];
    size_t length, wanted_length;

    RIG_AWAIT(atomic_load(&fake.again));
    assert_true(fake.copied);
    assert_int_equal(rig_figures().copies, 1);
    char *text = vfs_read_file(vfs_real(), copy_path("MANIFEST", "", path), TEXT, &length);

    assert_non_null(text);
    assert_int_equal(length, shop.text.length);
    assert_memory_equal(text, shop.text.data, length);
    free(text);
    for (size_t i = 0; i < TABLES; i++) {
        struct stat status;

        text = vfs_read_file(vfs_real(), copy_path(shop.names[i], "", path), TEXT, &length);
        assert_true(vfs_path(from, shop.directory, shop.names[i]));
        char *wanted = vfs_read_file(vfs_real(), from, TEXT, &wanted_length);

        assert_true(text != NULL && wanted != NULL && length == wanted_length);
        assert_memory_equal(text, wanted, length);
        free(text);
        free(wanted);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        assert_false(exists(copy_path(shop.names[i], ".part", path)));
    }
}

/* ---- the tests ---- */

static void test_copy(void **state)
{
    struct stat status;
    char path[VFS_PATH_MAX];

    (void)state;
    rig_go();
    ask_for_copy();
    for (size_t i = 0; i < TABLES; i++) {
        expect_asked(i, 0); /* all at once */
    }
    assert_int_equal(rig_figures().state, REPL_RECEIVER_COPYING);
    assert_int_equal(atomic_load(&fake.copies), 1);
    for (size_t i = 0; i < TABLES; i++) {
        assert_false(exists(copy_path("MANIFEST", "", path)));
        give_file(i, 0, UINT64_MAX, 0);
    }
    expect_whole();
    assert_int_equal(stat(copy_path("", "", path), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(rig_figures().copied_bytes, rig_figures().copy_bytes);
    assert_int_equal(rig_figures().copy_bytes, 3 * shop.bytes[0]);
}

/* Whole files are not fetched again, a part goes on. */
static void test_goes_on(void **state)
{
    char path[VFS_PATH_MAX];

    (void)state;
    rig_go();
    ask_for_copy();
    give_file(0, 0, UINT64_MAX, 0);
    give_file(1, 0, 600000, 0);
    RIG_AWAIT(rig_figures().copied_bytes >= shop.bytes[0] + HALF);
    rig_hang_up();
    ask_for_copy();
    assert_true(exists(copy_path(shop.names[0], "", path)));
    expect_asked(1, HALF);
    expect_asked(2, 0);
    give_file(1, HALF, UINT64_MAX, 0);
    give_file(2, 0, UINT64_MAX, 0);
    expect_whole();
}

/* It is no whole copy, which any later start would take, before this node can begin anew with it.
 */
static void test_full_disk(void **state)
{
    char path[VFS_PATH_MAX];

    (void)state;
    rig_go();
    ask_for_copy();
    atomic_store(&fake.full, true);
    for (size_t i = 0; i < TABLES; i++) {
        give_file(i, 0, UINT64_MAX, 0);
    }
    rig_await_trouble("it cannot begin anew yet: the disk is full");
    assert_false(exists(copy_path("MANIFEST", "", path)));
    assert_false(atomic_load(&fake.again));
    atomic_store(&fake.full, false);
    ask_for_copy();
    expect_whole();
}

/* A part of which some bytes are wrong: found, and fetched from its beginning. */
static void test_damaged_part(void **state)
{
    char path[VFS_PATH_MAX], bytes[8192];

    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    copy_path("", "", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(vfs_replace_file(vfs_real(), path, COPY_DIR_STREAM, RIG_STREAM, 32));
    int fd = open(copy_path(shop.names[2], ".part", path), O_CREAT | O_WRONLY, 0600);

    assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    close(fd);
    rig_go();
    ask_for_copy();
    expect_asked(0, 0);
    expect_asked(1, 0);
    expect_asked(2, sizeof(bytes));
    give_file(0, 0, UINT64_MAX, 0);
    give_file(1, 0, UINT64_MAX, 0);
    give_file(2, sizeof(bytes), UINT64_MAX, 0);
    rig_await_trouble("its copy cannot be stored: ");
    ask_for_copy();
    expect_asked(2, 0);
    give_file(2, 0, UINT64_MAX, 0);
    expect_whole();
}

/* So with a page of a file that came in two parts, which its ends do not tell. */
static void test_damaged_page(void **state)
{
    (void)state;
    rig_go();
    ask_for_copy();
    give_file(0, 0, UINT64_MAX, 0);
    give_file(1, 0, UINT64_MAX, 0);
    give_file(2, 0, 600000, 9000);
    RIG_AWAIT(rig_figures().copied_bytes >= 2 * shop.bytes[0] + HALF);
    rig_hang_up();
    ask_for_copy();
    expect_asked(2, HALF);
    give_file(2, HALF, UINT64_MAX, 0);
    rig_await_trouble("its copy cannot be stored: ");
    ask_for_copy();
    expect_asked(2, 0);
    give_file(2, 0, UINT64_MAX, 0);
    expect_whole();
}

/* What DIR has of the same stream, named in the same words, is not fetched; other files are. */
static void test_links(void **state)
{
    char path[VFS_PATH_MAX], from[VFS_PATH_MAX], error[MANIFEST_ERROR_MAX];
    struct stat here, there;
    uint64_t bytes;

    (void)state;
    write_table(rig.directory, shop.names[0], 1, 0, &bytes);
    write_table(rig.directory, shop.names[1], 1, 1, &bytes); /* another under that name */
    assert_true(manifest_store(vfs_real(), rig.directory, shop.manifest, error));
    rig_go();
    ask_for_copy();
    expect_asked(1, 0);
    expect_asked(2, 0);
    assert_true(vfs_path(from, rig.directory, shop.names[0]));
    assert_int_equal(stat(from, &here), 0);
    assert_int_equal(stat(copy_path(shop.names[0], "", path), &there), 0);
    assert_int_equal(here.st_ino, there.st_ino);
}

/* What an older attempt left, and is not wanted any more; of another stream nothing is. */
static void test_surplus(void **state)
{
    static const char *const names[] = {"feed-9-0-9.table", "feed-9-0-9.table.part", "MANIFEST",
                                        "notes.txt"};
    char path[VFS_PATH_MAX];

    (void)state;
    copy_path("", "", path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_true(vfs_replace_file(vfs_real(), copy_path("", "", path), names[i], "x", 1));
    }
    uint64_t bytes;

    copy_path("", "", path);
    write_table(path, shop.names[0], 1, 0, &bytes);
    assert_true(vfs_replace_file(vfs_real(), path, COPY_DIR_STREAM,
                                 "0000000000000009000000000000000b", 32));
    rig_go();
    ask_for_copy();
    expect_asked(0, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_false(exists(copy_path(names[i], "", path)));
    }
    assert_true(exists(copy_path("notes.txt", "", path)));
}

/* Somebody's data is not thrown away for a mistyped address. */
static void test_other_stream(void **state)
{
    char path[VFS_PATH_MAX];

    (void)state;
    fake.position.stream[0] = 8;
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two 0000000000000008000000000000000b 3 4096");
    rig_say("COPY this is another stream");
    give_manifest();
    rig_await_trouble("the data directory here holds another one");
    assert_false(exists(copy_path("", "", path)));
    assert_false(atomic_load(&fake.again));
}

/* Nothing is fetched that has no room here. */
static void test_little_memory(void **state)
{
    char path[VFS_PATH_MAX];

    (void)state;
    atomic_store(&fake.little_memory, true);
    rig_go();
    ask_for_copy();
    rig_await_trouble("too little memory");
    assert_int_equal(atomic_load(&fake.copies), 0);
    assert_false(exists(copy_path("", "", path)));
}

/* Nor is that of a leader that came later, for one that came back. */
static void test_older_epoch(void **state)
{
    char path[VFS_PATH_MAX];

    (void)state;
    fake.position.epoch = 4;
    rig_go();
    rig_pick_up();
    rig_expect("follow 1 rollcall two 0000000000000007000000000000000b 4 4096");
    rig_say("COPY epoch 4 is not in the history here");
    give_manifest();
    rig_await_trouble("this node has records of epoch 4");
    assert_false(exists(copy_path("", "", path)));
    assert_false(atomic_load(&fake.again));
}

/* Nor what this node wrote under an epoch in which that one led, too. */
static void test_two_led(void **state)
{
    struct manifest *own = manifest_create();
    char path[VFS_PATH_MAX], error[MANIFEST_ERROR_MAX];

    (void)state;
    memcpy(own->stream, shop.manifest->stream, sizeof(own->stream));
    assert_true(manifest_add_reign(own, 2, 0));
    assert_true(manifest_add_reign(own, 3, 8));
    assert_true(manifest_store(vfs_real(), rig.directory, own, error));
    manifest_destroy(own);
    rig_go();
    ask_for_copy();
    rig_await_trouble("epoch 3 begins at LSN 0 there and at LSN 8 here: two have led");
    rig_expect_hung_up();
    RIG_AWAIT(rig_figures().state == REPL_RECEIVER_DIVERGED);
    assert_false(exists(copy_path("", "", path)));
    assert_false(atomic_load(&fake.again));
}

static void test_bad_manifest(void **state)
{
    (void)state;
    shop.text.data[100] ^= 1;
    rig_go();
    ask_for_copy();
    rig_await_trouble("its MANIFEST");
    assert_false(atomic_load(&fake.again));
}

static void test_wrong_file(void **state)
{
    (void)state;
    rig_go();
    ask_for_copy();
    expect_asked(0, 0);
    rig_say("FILE %s 0 5", shop.names[1]);
    rig_await_trouble("it sent a line that does not belong there");
    rig_pick_up();
    rig_expect("follow 1 rollcall two " RIG_STREAM " 3 4096");
    rig_say("COPY again");
    rig_expect("copy 1 rollcall two");
    rig_say("BUSY 0");
    rig_await_trouble("it is busy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_copy, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_goes_on, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_full_disk, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_damaged_part, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_damaged_page, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_links, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_surplus, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_other_stream, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_older_epoch, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_two_led, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_little_memory, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_bad_manifest, shop_begin, shop_end),
        cmocka_unit_test_setup_teardown(test_wrong_file, shop_begin, shop_end),
    };

    log_setup("test_receiver_copy", LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
