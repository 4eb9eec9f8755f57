/* test_row_image.c: the one writer of images, and dicts that change between two of its pieces. */
#include "row/row_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "row/row_data.h"
#include "row/table_kind.h"
#include "store/dict_image.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/row/kept_row.h"

#define DIRECTORY "/d"
#define PARTS     2u                       /* dicts of a section */
#define ENTRIES   (2u * DICT_IMAGE_PIECE)  /* of each: more than a piece */
#define POOL      (64u * DICT_IMAGE_PIECE) /* bytes */
#define VALUE(id) ((id)*3)

/* The dicts of the image's section; each grows before its second piece. */
static struct dict *parts[PARTS];
static unsigned pieces[PARTS];

static const struct dict *section(const struct row_table *table, unsigned number, unsigned part,
                                  const struct dict **front)
{
    (void)table, (void)number, (void)front;
    if (++pieces[part] == 2) {
        assert_true(dict_grow(&parts[part]));
    }
    return parts[part];
}

static uint64_t no_pages(const struct row_table *table, uint64_t first, uint64_t most, void *to)
{
    (void)table, (void)first, (void)most, (void)to;
    return 0;
}

static void fill_parts(void)
{
    for (uint64_t part = 0; part < PARTS; part++) {
        parts[part] = dict_create(sizeof(uint64_t), POOL, part);
        assert_non_null(parts[part]);
        for (uint64_t id = part * ENTRIES; id < (part + 1) * ENTRIES; id++) {
            const uint64_t value = VALUE(id);
            while (!dict_put(parts[part], id, 0, &value)) {
                assert_true(dict_grow(&parts[part]));
            }
        }
    }
}

static bool is_next(void *context, uint64_t id, uint8_t sub, const void *value)
{
    uint64_t *next = context;
    uint64_t is;
    memcpy(&is, value, sizeof(is));
    assert_int_equal(id, (*next)++);
    assert_int_equal(sub, 0);
    assert_int_equal(is, VALUE(id));
    return true;
}

static void expect_all(struct vfs *vfs)
{
    struct table_file *file;
    char error[TABLE_FILE_ERROR_MAX];
    uint64_t next = 0;
    assert_int_equal(table_file_open(vfs, DIRECTORY "/image", false, &file, error),
                     TABLE_FILE_DONE);
    assert_int_equal(table_file_each_entry(file, 0, is_next, &next, error), TABLE_FILE_DONE);
    assert_int_equal(next, PARTS * ENTRIES);
    table_file_close(file);
}

/* As on a node that follows, whose replay has the room its leader had: all are in another order. */
static void test_dict_grows(void **state)
{
    struct kept kept;
    struct fake_image image;
    char error[TABLE_FILE_ERROR_MAX];
    const _Atomic bool never = false;
    struct table_file_info info = {
        .kind = "toy", .space = "test", .sections = 1, .section = {{sizeof(uint64_t), 0}}};
    struct vfs_sim *sim = vfs_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(sim);

    (void)state;
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, KEPT_FIRST, 1);
    fill_parts();
    struct table_kind kind = *kept.rows.row.kind;
    kind.copy_pages = no_pages;
    kind.section = section;
    kept.rows.row.kind = &kind;
    assert_true(fake_image_begin(&kept.rows, 0, &image));
    image.image.sections = 1;
    image.image.section_value_bytes[0] = sizeof(uint64_t);
    struct table_file_writer *writer = table_file_create(vfs, DIRECTORY, "image", &info, error);
    assert_non_null(writer);
    assert_int_equal(row_image_write(&kept.rows.row, &image.image, NULL, writer, &never),
                     ENGINE_IMAGE_DONE);
    assert_true(table_file_commit(writer, 0, NULL, error));
    expect_all(vfs);
    for (unsigned i = 0; i < PARTS; i++) {
        assert_true(pieces[i] > 2);
        dict_destroy(parts[i]);
    }
    kept_row_end(&kept);
    vfs_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dict_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
