/* test_phantom_damage.c: what is damaged of a phantom space that was kept is refused: descriptions,
 * files, records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "phantom/phantom_private.h"
#include "row/row_data.h"
#include "store/table_file.h"
#include "tests/support/random.h"
#include "tests/unit/phantom/kept_space.h"

#define DAMAGES 1000u
#define FAR     (1ull << 40)

static void test_damaged_description(void **unused)
{
    (void)unused;
    static const struct {
        size_t offset;
        uint64_t value;
    } bad[] = {
        {0, 2 | 9ull << 32},
        {0, 1},
        {0, 1 | 33ull << 32},
        {8, 0},
        {8, 65535},
        {8, 3 << 15},
        {8, 1ull << 41},
        {16, 1023},
        {16, 2048},
        {24, 0},
        {24, 1},
        {24, UINT64_MAX},
        {32, 1},
        {32, 4095},
        {32, 1ull << 41},
        {40, 1},
        {40, 1ull << 41},
        {48, 0},
        {48, 0x7ff8000000000000},
        {48, UINT64_MAX},
        {48, 0x4090000000000000},
        {56, 0},
        {56, 0x7ff8000000000000},
        {56, 0x3ff0000000000000},
    };
    unsigned char bytes[PHANTOM_DESCRIPTION_BYTES];
    struct phantom_shape back;
    struct phantom_shape shape;
    struct phantom_config config = phantoms_config(true);
    phantom_shape_init(&shape, &config);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        phantom_shape_describe(&shape, bytes);
        memcpy(bytes + bad[i].offset, &bad[i].value, sizeof(bad[i].value));
        assert_false(phantom_shape_read(&back, bytes, sizeof(bytes)));
    }
    /* Whatever is read is what would be described again. */
    for (unsigned bit = 0; bit < 8 * sizeof(bytes); bit++) {
        unsigned char again[PHANTOM_DESCRIPTION_BYTES];
        phantom_shape_describe(&shape, bytes);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (phantom_shape_read(&back, bytes, sizeof(bytes))) {
            phantom_shape_describe(&back, again);
            assert_memory_equal(again, bytes, sizeof(bytes));
        }
    }
}

/* ---- damage ---- */

struct wrong_file {
    const char *kind;
    unsigned sections;
    uint32_t apart_bytes;
    uint64_t serial, pages;
    uint8_t sub;      /* of an entry apart */
    uint64_t id;      /* and its id */
    const char *says; /* NULL: it is right */
};

static struct table_file *write_wrong(struct kept_space *space, const struct row_image *image,
                                      const struct wrong_file *wrong)
{
    char error[TABLE_FILE_ERROR_MAX];
    static const unsigned char page[TABLE_FILE_PAGE_BYTES];
    struct vfs *vfs = vfs_sim_vfs(space->sim);
    struct table_file *file = NULL;
    uint64_t value[3] = {wrong->id, 0x1234};
    bool ours = strcmp(wrong->kind, "phantom") == 0; /* others describe their tables otherwise */
    struct table_file_info info = {
        .space = "space",
        .serial = wrong->serial,
        .sections = wrong->sections,
        .section = {{.value_bytes = 8}, {.value_bytes = wrong->apart_bytes}},
        .description = image->table,
        .description_bytes = ours ? image->table_bytes : image->table_bytes / 2,
    };
    snprintf(info.kind, sizeof(info.kind), "%s", wrong->kind);
    (void)vfs->functions->unlink(vfs, KEPT_DIRECTORY "/wrong");
    struct table_file_writer *writer =
        table_file_create(vfs, KEPT_DIRECTORY, "wrong", &info, error);
    assert_non_null(writer);
    for (uint64_t i = 0; i < wrong->pages; i++) {
        assert_true(table_file_append_pages(writer, page, 1));
    }
    if (wrong->sections > 1) {
        assert_true(table_file_append_entry(writer, 1, 99, wrong->sub, value));
    }
    assert_true(table_file_commit(writer, 1000, NULL, error));
    assert_int_equal(table_file_open(vfs, KEPT_DIRECTORY "/wrong", false, &file, error),
                     TABLE_FILE_DONE);
    return file;
}

#define APART ROW_APART_SERIALS

static void test_wrong_files(void **unused)
{
    (void)unused;
    static const struct wrong_file wrongs[] = {
        {"phantom", 2, 16, APART, 0, 0x34, 5, NULL},
        {"counter", 2, 16, APART, 0, 0x34, 5, "another kind of space"},
        {"phantom", 2, 16, 1, 0, 0x34, 5, "another table than it describes"},
        {"phantom", 2, 16, APART, 1, 0x34, 5, "not the pages"},
        {"phantom", 0, 16, APART, 0, 0x34, 5, "not the sections"},
        {"phantom", 2, 17, APART, 0, 0x34, 5, "section 1"},
        {"phantom", 2, 16, APART, 0, 0x35, 5, "not its table's"},
        {"phantom", 2, 16, APART, 0, 0x34, UINT64_MAX, "not its table's"},
    };
    static struct kept_space space;
    static const _Atomic bool never = false;
    struct row_image image;
    struct phantom_config config = phantoms_config(true);
    kept_begin(&space, &config);
    assert_true(row_image_next(space.engine->row, 0, 0, &image));
    assert_true(row_image_next(space.engine->row, 0, 0, &image)); /* of what is apart */
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
        char error[ENGINE_ERROR_MAX] = "";
        _Atomic uint64_t done = 0;
        struct row_table *table;
        struct engine *engine = phantoms_create(&config);
        struct table_file *file = write_wrong(&space, &image, &wrongs[i]);
        assert_true(row_restore_begin(engine->row, NULL, 0, error));
        bool loaded = (table = row_restore_file(engine->row, file, error)) != NULL &&
                      row_restore_load(engine->row, table, file, &done, &never, error);
        assert_true(loaded == !wrongs[i].says);
        assert_true(loaded || strstr(error, wrongs[i].says));
        engine->functions->destroy(engine);
        table_file_close(file);
    }
    kept_end(&space);
}

static void test_load_stops(void **unused)
{
    (void)unused;
    static struct kept_space space;
    static const _Atomic bool always = true;
    char error[ENGINE_ERROR_MAX] = "";
    _Atomic uint64_t done = 0;
    struct row_image image;
    struct row_table *table;
    struct phantom_config config = phantoms_config(true);
    kept_begin(&space, &config);
    assert_true(row_image_next(space.engine->row, 0, 0, &image));
    struct wrong_file right = {"phantom", 2, 16, 0, 16, 0x34, 5, NULL};
    struct table_file *file = write_wrong(&space, &image, &right);
    struct engine *engine = phantoms_create(&config);
    assert_true(row_restore_begin(engine->row, NULL, 0, error));
    assert_true((table = row_restore_file(engine->row, file, error)) != NULL);
    assert_false(row_restore_load(engine->row, table, file, &done, &always, error));
    assert_string_equal(error, "");
    engine->functions->destroy(engine);
    table_file_close(file);
    kept_end(&space);
}

/* Records and states that were changed anywhere: an error, or something that can be; no crash. */
static void test_damaged_records(void **unused)
{
    (void)unused;
    static struct kept_space space;
    struct test_random random = {test_seed()};
    struct phantom_config config = phantoms_config(true);
    config.row.tables = 3;
    config.row.recycle = true;
    config.false_positives = 0.00001;
    kept_begin(&space, &config);
    kept_roll(&space, 0, 100);
    kept_checkpoint(&space);
    for (uint64_t i = 0; i < 16; i++) {
        assert_int_equal(kept_run(&space, ENGINE_SET, FAR * (i % 3 + 1), i), ENGINE_DONE);
        assert_int_equal(kept_run(&space, ENGINE_DELETE, i, 1), ENGINE_DONE);
    }
    kept_roll(&space, 100, 1200);
    uint64_t damages = test_scaled(DAMAGES);
    unsigned refused = 0;
    for (uint64_t i = 0; i < damages; i++) {
        bool state = i % 4 == 0;
        struct recorder_record *record =
            &space.recorder.records[test_random_below(&random, space.recorder.count)];
        while (i % 4 == 1 && record->type != CHANGE_RECORD_EVENT) {
            record = &space.recorder.records[test_random_below(&random, space.recorder.count)];
        }
        unsigned char *byte =
            state ? &space.checkpoints.last
                         .state[test_random_below(&random, space.checkpoints.last.state_bytes)]
                  : (unsigned char *)record->words + test_random_below(&random, record->bytes);
        unsigned char was = *byte;
        uint8_t places = record->b;
        *byte ^= (unsigned char)(1u << test_random_below(&random, 8));
        record->b ^= (uint8_t)(i % 16 == 7);
        struct engine *again = kept_restore(&space);
        refused += !again;
        if (again) {
            again->functions->destroy(again);
        }
        record->b = places;
        *byte = was;
    }
    printf("%u of %llu refused\n", refused, (unsigned long long)(damages));
    assert_true(refused > 0);
    struct engine *again = kept_restore(&space);
    assert_non_null(again);
    phantoms_destroy(again);
    kept_end(&space);
}

/* Changes that are none of a table of members, one by one. */
static void test_impossible_changes(void **unused)
{
    (void)unused;
    static const struct engine_replay changes[] = {
        {1ull << 60, {.type = CHANGE_SLOTS, .id = 1}},
        {1ull << 60, {.type = CHANGE_DELETE, .id = 1}},
        {1ull << 60, {.type = CHANGE_MEMBER_ADD, .place = CHANGE_BOTH, .id = 1}},
        {1ull << 60, {.type = CHANGE_MEMBER_DELETE, .place = CHANGE_THERE, .id = 1}},
        {1ull << 60, {.type = CHANGE_MEMBER_ADD, .place = CHANGE_INSIDE, .id = UINT64_MAX}},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char error[ENGINE_ERROR_MAX] = "";
        struct phantom_config config = phantoms_config(true);
        struct engine *engine = phantoms_create(&config);
        assert_false(row_replay(engine->row, &changes[i], 1, error));
        assert_true(error[0] != '\0');
        engine->functions->destroy(engine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damaged_description), cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_load_stops),          cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_impossible_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
