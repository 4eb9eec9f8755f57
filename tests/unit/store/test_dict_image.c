/* test_dict_image.c: dicts to a table file and back, also while they change. */
#include "store/dict_image.h"

#include "tests/unit/store/table_run.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#include "tests/support/random.h"

#define POOL         (1u << 20)
#define ENTRIES      9000u /* several pieces */
#define VALUE_BYTES  11u
#define OTHER_BYTES  4u
#define SECTION      1u /* one before it, so that the number counts */
#define PATH_OF_FILE TABLE_DIRECTORY "/dict.table"

static uint64_t id_of(uint64_t i)
{
    return hash_u64(i); /* in no order */
}

static uint8_t sub_of(uint64_t i)
{
    return (uint8_t)(i % 5);
}

static void value_of(uint64_t i, uint64_t value[DICT_VALUE_WORDS])
{
    value[0] = hash_u64(~i);
    value[1] = hash_u64(i + 1) & 0xffffff;
}

static struct dict *make_dict(uint64_t first, uint64_t last)
{
    struct dict *dict = dict_create(VALUE_BYTES, POOL, first);
    assert_non_null(dict);
    for (uint64_t i = first; i < last; i++) {
        uint64_t value[DICT_VALUE_WORDS] = {0};
        value_of(i, value);
        assert_true(dict_put(dict, id_of(i), sub_of(i), value));
    }
    return dict;
}

/* Entries first .. last - 1 are there as they were made, and `absent` others are not. */
static void expect_entries(const struct dict *dict, uint64_t first, uint64_t last, uint64_t absent)
{
    for (uint64_t i = first; i < last + absent; i++) {
        uint64_t value[DICT_VALUE_WORDS] = {0}, right[DICT_VALUE_WORDS] = {0};
        assert_true(dict_get(dict, id_of(i), sub_of(i), value) == (i < last));
        if (i < last) {
            value_of(i, right);
            assert_memory_equal(value, right, sizeof(right));
        }
    }
}

static struct table_file_writer *begin_file(struct vfs *vfs)
{
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct table_file_info info = {
        .kind = "counter",
        .space = "feed",
        .serial = 1,
        .start_lsn = TABLE_START_LSN,
        .sections = 2,
        .section = {{.value_bytes = OTHER_BYTES}, {.value_bytes = VALUE_BYTES}},
        .description = "dict",
        .description_bytes = 4,
    };
    struct table_file_writer *writer =
        table_file_create(vfs, TABLE_DIRECTORY, "dict.table", &info, error);
    assert_string_equal(error, "");
    assert_non_null(writer);
    return writer;
}

static struct table_file *finish_file(struct vfs *vfs, struct table_file_writer *writer)
{
    char error[TABLE_FILE_ERROR_MAX] = "";
    assert_true(table_file_commit(writer, TABLE_END_LSN, NULL, error));
    return table_open_sound(vfs, PATH_OF_FILE, false);
}

static struct table_file *write_dict(struct vfs *vfs, const struct dict *dict)
{
    struct dict_image image;
    dict_image_init(&image, VALUE_BYTES);
    struct table_file_writer *writer = begin_file(vfs);
    unsigned pieces = 1;
    while (dict_image_collect(&image, dict, NULL)) {
        pieces++;
    }
    assert_true(pieces > dict_count(dict) / DICT_IMAGE_PIECE);
    assert_true(dict_image_write(&image, writer, SECTION));
    dict_image_fini(&image);
    return finish_file(vfs, writer);
}

static void test_there_and_back(void **unused)
{
    (void)unused;
    struct vfs_sim *sim = table_sim_create(1);
    struct dict *dict = make_dict(0, ENTRIES);
    struct table_file *file = write_dict(vfs_sim_vfs(sim), dict);
    assert_int_equal(table_file_info(file)->section[SECTION].entries, ENTRIES);
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct dict *back = dict_create(VALUE_BYTES, 2 * POOL, 99); /* by another hash */
    assert_int_equal(dict_image_load(file, SECTION, back, NULL, NULL, error), TABLE_FILE_DONE);
    assert_int_equal(dict_count(back), ENTRIES);
    expect_entries(back, 0, ENTRIES, 100);
    dict_check(back);
    dict_destroy(back);
    dict_destroy(dict);
    table_file_close(file);
    vfs_sim_destroy(sim);
}

static void test_an_empty_one(void **unused)
{
    (void)unused;
    struct vfs_sim *sim = table_sim_create(1);
    struct dict *dict = make_dict(0, 0);
    struct table_file *file = write_dict(vfs_sim_vfs(sim), dict);
    char error[TABLE_FILE_ERROR_MAX] = "";
    assert_int_equal(dict_image_load(file, SECTION, dict, NULL, NULL, error), TABLE_FILE_DONE);
    assert_int_equal(dict_count(dict), 0);
    dict_destroy(dict);
    table_file_close(file);
    vfs_sim_destroy(sim);
}

static bool even_sub(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    (void)id;
    (void)value;
    ++*(uint64_t *)context;
    return sub % 2 == 0;
}

static void test_only_what_is_wanted(void **unused)
{
    (void)unused;
    struct vfs_sim *sim = table_sim_create(1);
    struct dict *dict = make_dict(0, ENTRIES);
    struct table_file *file = write_dict(vfs_sim_vfs(sim), dict);
    char error[TABLE_FILE_ERROR_MAX] = "";
    uint64_t asked = 0;
    dict_destroy(dict);
    dict = make_dict(0, 0);
    assert_int_equal(dict_image_load(file, SECTION, dict, even_sub, &asked, error),
                     TABLE_FILE_DONE);
    assert_int_equal(asked, ENTRIES);
    for (uint64_t i = 0; i < ENTRIES; i++) {
        assert_true(dict_get(dict, id_of(i), sub_of(i), NULL) == (sub_of(i) % 2 == 0));
    }
    dict_destroy(dict);
    table_file_close(file);
    vfs_sim_destroy(sim);
}

static void test_what_does_not_fit(void **unused)
{
    (void)unused;
    struct vfs_sim *sim = table_sim_create(1);
    struct dict *dict = make_dict(0, ENTRIES);
    struct table_file *file = write_dict(vfs_sim_vfs(sim), dict);
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct dict *small = dict_create(VALUE_BYTES, DICT_POOL_MIN, 1);
    assert_int_equal(dict_image_load(file, SECTION, small, NULL, NULL, error), TABLE_FILE_DAMAGED);
    assert_non_null(strstr(error, PATH_OF_FILE));
    assert_non_null(strstr(error, "do not fit"));
    /* A section of other values, and one that is not there. */
    assert_int_equal(dict_image_load(file, 0, small, NULL, NULL, error), TABLE_FILE_DAMAGED);
    assert_non_null(strstr(error, "section 0"));
    assert_int_equal(dict_image_load(file, 2, small, NULL, NULL, error), TABLE_FILE_DAMAGED);
    assert_non_null(strstr(error, "section 2"));
    dict_destroy(small);
    dict_destroy(dict);
    table_file_close(file);
    vfs_sim_destroy(sim);
}

/* Between two pieces keys go and come again, maybe elsewhere: none may be written twice. */
static void test_changes_between_pieces(void **unused)
{
    (void)unused;
    struct vfs_sim *sim = table_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct test_random random = {test_seed()};
    struct dict *dict = make_dict(0, ENTRIES);
    struct dict_image image;
    dict_image_init(&image, VALUE_BYTES);
    while (dict_image_collect(&image, dict, NULL)) {
        for (uint64_t n = 0; n < ENTRIES; n++) {
            uint64_t i = ENTRIES / 2 + test_random_below(&random, ENTRIES);
            uint64_t value[DICT_VALUE_WORDS] = {0};
            value_of(i, value);
            (void)dict_delete(dict, id_of(i), sub_of(i));
            assert_true(i >= ENTRIES || dict_put(dict, id_of(i), sub_of(i), value));
        }
        /* More than was counted at the beginning. */
        for (uint64_t i = 2 * ENTRIES; i < 4 * ENTRIES; i++) {
            uint64_t value[DICT_VALUE_WORDS] = {0};
            value_of(i, value);
            (void)dict_put(dict, id_of(i), sub_of(i), value);
        }
    }
    struct table_file_writer *writer = begin_file(vfs);
    assert_true(dict_image_write(&image, writer, SECTION)); /* CHECKs that keys rise */
    dict_image_fini(&image);
    struct table_file *file = finish_file(vfs, writer);
    char error[TABLE_FILE_ERROR_MAX] = "";
    struct dict *back = dict_create(VALUE_BYTES, 4 * POOL, 7);
    assert_int_equal(dict_image_load(file, SECTION, back, NULL, NULL, error), TABLE_FILE_DONE);
    expect_entries(back, 0, ENTRIES / 2, 0);
    dict_destroy(back);
    dict_destroy(dict);
    table_file_close(file);
    vfs_sim_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),         cmocka_unit_test(test_an_empty_one),
        cmocka_unit_test(test_only_what_is_wanted),    cmocka_unit_test(test_what_does_not_fit),
        cmocka_unit_test(test_changes_between_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
