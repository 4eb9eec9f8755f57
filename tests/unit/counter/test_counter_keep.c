/*
 * test_counter_keep.c: a space that is kept and restored: its state both ways and damaged, images
 * both ways and damaged, what replay makes of changes on what an image holds.
 */
#include "counter/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "row/row_data.h"
#include "store/table_file.h"
#include "tests/support/checkpoints.h"
#include "tests/support/counters.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"

#define REC       ENGINE_SLOT_RECORD
#define DIRECTORY "data"
#define SLOTS     "a:20 b:4 c:20"
#define LARGE     "1099511627776"
#define IDS       3000u
#define FLIPS     400u

/* A space under a recorder, with a disk for its images. */
struct kept {
    struct counter_config config;
    struct engine *engine;
    struct recorder recorder;
    struct recorder_sink sink;
    struct vfs_sim *sim;
    struct checkpoints checkpoints;
};

static void attach(struct kept *k, struct engine *engine)
{
    k->engine = engine;
    row_set_log(engine->row, &k->recorder.log);
    recorder_sink_init(&k->sink, &k->recorder);
}

static void open_kept(struct kept *k, const char *slots, bool any_ids)
{
    memset(k, 0, sizeof(*k));
    counters_config(&k->config, slots);
    k->config.row.any_ids = any_ids;
    k->config.row.tables = any_ids ? 1 : 4;
    k->config.aux_bytes = 64u << 10;
    recorder_init(&k->recorder);
    k->sim = vfs_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(k->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    checkpoints_init(&k->checkpoints, vfs, DIRECTORY);
    attach(k, counters_create(&k->config));
    row_log_begin(k->engine->row);
}

static void close_kept(struct kept *k)
{
    counter_check(k->engine);
    k->engine->functions->destroy(k->engine);
    recorder_fini(&k->recorder);
    vfs_sim_destroy(k->sim);
}

static enum engine_status run(struct kept *k, enum engine_verb verb, int slot, uint64_t id,
                              const char *text)
{
    struct counters_call call;
    counters_call_init(&call, verb, slot, id, text);
    counters_run(k->engine, &call, &k->sink.sink);
    row_maintain(k->engine->row, NULL);
    return call.op.status;
}

static void set(struct kept *k, uint64_t id, const char *text)
{
    assert_int_equal(run(k, ENGINE_SET, REC, id, text), ENGINE_DONE);
}

static void expect_in(struct engine *engine, uint64_t id, const char *text)
{
    struct counters_call call;
    counters_do(engine, &call, ENGINE_READ, REC, id, NULL);
    assert_int_equal(call.op.status, text ? ENGINE_DONE : ENGINE_ABSENT);
    assert_string_equal(call.value, text ? text : "");
}

static void checkpoint(struct kept *k)
{
    const _Atomic bool stop = false;
    checkpoints_begin(&k->checkpoints, k->engine, k->recorder.head);
    while (checkpoints_next(&k->checkpoints, k->engine, k->recorder.head)) {
        enum engine_image result = checkpoints_write(&k->checkpoints, k->engine, NULL, &stop);
        assert_int_equal(result, ENGINE_IMAGE_DONE);
        checkpoints_wrote(&k->checkpoints, k->engine, result);
    }
}

/* A second engine of what was kept. */
static struct engine *restored(struct kept *k)
{
    bool fresh;
    struct engine *engine = counters_create(&k->config);
    if (!checkpoints_restore(&k->checkpoints, engine, &k->recorder, 7, &fresh)) {
        fail_msg("%s", k->checkpoints.error);
    }
    assert_false(fresh);
    counter_check(engine);
    return engine;
}

/* One that is not at its end yet. */
static struct engine *restoring(struct kept *k)
{
    char error[ENGINE_ERROR_MAX];
    struct engine *engine = counters_create(&k->config);
    assert_true(row_restore_begin(engine->row, NULL, 0, error));
    assert_true(recorder_replay(&k->recorder, engine, 0, 0, 7));
    return engine;
}

/* It takes the place of the first. */
static void restart(struct kept *k)
{
    struct engine *engine = restored(k);
    k->engine->functions->destroy(k->engine);
    attach(k, engine);
}

static const char *text_of(uint64_t i, char text[64])
{
    snprintf(text, 64, "%" PRIu64 ",%s,%" PRIu64, i, i % 9 == 0 ? LARGE : "", i % 7);
    return text;
}

/* Dense ones, and some far ahead that lie apart. */
static void put_many(struct kept *k)
{
    char text[64];
    for (uint64_t i = 0; i < IDS; i++) {
        set(k, 1000 + i, text_of(i, text));
    }
    for (uint64_t i = 0; i < 5; i++) {
        set(k, 1ull << (50 + i), text_of(i, text));
    }
}

static void expect_many(struct engine *engine)
{
    char text[64];
    for (uint64_t i = 0; i < IDS; i++) {
        expect_in(engine, 1000 + i, text_of(i, text));
    }
    for (uint64_t i = 0; i < 5; i++) {
        expect_in(engine, 1ull << (50 + i), text_of(i, text));
    }
}

/* ---- states ---- */

static void expect_refused(struct kept *k, const struct counter_config *config, const char *says)
{
    unsigned char state[ENGINE_STATE_MAX];
    char error[ENGINE_ERROR_MAX];
    size_t length = row_state_write(k->engine->row, state);
    struct engine *other = counters_create(config);
    assert_false(row_restore_begin(other->row, state, length, error));
    if (!strstr(error, says)) {
        fail_msg("'%s' does not say '%s'", error, says);
    }
    other->functions->destroy(other);
}

static void test_state_of_another_space(void **unused)
{
    (void)unused;
    struct kept k;
    open_kept(&k, SLOTS, true);
    struct counter_config config = k.config;
    config.max_id = 1000;
    expect_refused(&k, &config, "max-id 1099511627776, the configuration says max-id 1000");
    config = k.config;
    config.row.any_ids = false;
    expect_refused(&k, &config, "ids: any, the configuration says ids: growing");
    close_kept(&k);
}

static void test_damaged_state(void **unused)
{
    (void)unused;
    struct kept k;
    struct test_random random = {test_seed()};
    unsigned char state[ENGINE_STATE_MAX];
    char error[ENGINE_ERROR_MAX];
    open_kept(&k, SLOTS, false);
    size_t length = row_state_write(k.engine->row, state);
    struct engine *other = counters_create(&k.config);
    for (size_t cut = 1; cut < length; cut++) {
        assert_false(row_restore_begin(other->row, state, cut, error));
    }
    for (uint64_t i = test_scaled(20000); i > 0; i--) {
        size_t at = test_random_below(&random, length);
        unsigned char was = state[at];
        state[at] = (unsigned char)test_random_next(&random);
        row_restore_begin(other->row, state, length, error);
        row_replay_event(other->row, CHANGE_EVENT_SPACE, 1, false, state, length - ROW_SPACE_BYTES,
                         error);
        state[at] = was;
    }
    assert_false(row_restore_end(other->row)); /* nothing was there: as new */
    counter_check(other);
    other->functions->destroy(other);
    close_kept(&k);
}

/* ---- images ---- */

static void test_image(void **unused)
{
    (void)unused;
    struct kept k;
    open_kept(&k, SLOTS, false);
    put_many(&k);
    checkpoint(&k);
    recorder_cut(&k.recorder, k.checkpoints.last.m); /* files alone, as after a clean stop */
    for (unsigned i = 0; i < 5; i++) {
        restart(&k);
        expect_many(k.engine);
        counters_reconfigure(k.engine, &k.config);
        uint64_t images = k.checkpoints.images;
        checkpoint(&k);
        assert_int_equal(k.checkpoints.images, images); /* nothing was changed */
        char text[64];
        assert_int_equal(run(&k, ENGINE_SET, REC, 1000 + i, "1"), ENGINE_ERROR);
        set(&k, 1000 + i, text_of(i, text));
        checkpoint(&k);
        assert_int_equal(k.checkpoints.images, images + 1);
    }
    close_kept(&k);
}

/* What an image has of a group's word: neither lock nor version. */
static void test_pages_are_still(void **unused)
{
    (void)unused;
    struct counter_config config;
    struct counters_table opened;
    struct counter_locus locus;
    struct change change = {.type = CHANGE_SLOTS, .named = 1, .set = 1, .id = 70};
    bool created;
    counters_config(&config, SLOTS);
    counters_table_open(&opened, &config, 70);
    size_t group_bytes = counter_table_shape(opened.table)->group_bytes;
    counter_table_locate(opened.table, 70, true, &locus);
    for (unsigned i = 0; i < 3; i++) { /* the version rises */
        change.place = i == 0 ? CHANGE_INSIDE : CHANGE_THERE;
        counter_table_replay(opened.table, &locus, &change, &created);
    }
    uint64_t page[TABLE_PAGE_BYTES / sizeof(uint64_t)];
    uint64_t page_groups = TABLE_PAGE_BYTES / group_bytes;
    counter_table_copy_pages(opened.table, locus.group / page_groups, 1, page);
    size_t last = (locus.group % page_groups + 1) * group_bytes / sizeof(uint64_t) - 1;
    assert_int_equal(page[last] >> 32, 1u << 10); /* one record, and nothing else */
    counters_table_close(&opened);
}

/* Opens and loads the file of the only image. Returns whether that went well. */
/* Which file is of a table: another one is of ids apart. */
static size_t of_table(const struct checkpoints_set *set)
{
    size_t i = 0;
    while (i + 1 < set->count && set->files[i].serial >= ROW_APART_SERIALS) {
        i++;
    }
    return i;
}

static bool load_file(struct kept *k)
{
    char path[VFS_PATH_MAX];
    char error[ENGINE_ERROR_MAX] = "";
    struct row_table *table;
    _Atomic uint64_t done = 0;
    const _Atomic bool stop = false;
    struct table_file *file;
    struct engine *engine = counters_create(&k->config);
    const struct checkpoints_set *last = &k->checkpoints.last;
    assert_true(vfs_path(path, DIRECTORY, last->files[of_table(last)].name));
    assert_true(row_restore_begin(engine->row, last->state, last->state_bytes, error));
    bool loaded = false;
    if (table_file_open(k->checkpoints.vfs, path, false, &file, error) == TABLE_FILE_DONE) {
        loaded = (table = row_restore_file(engine->row, file, error)) != NULL &&
                 row_restore_load(engine->row, table, file, &done, &stop, error);
        table_file_close(file);
    }
    assert_true(loaded == (error[0] == '\0'));
    /* The error names the file. */
    assert_true(loaded || strstr(error, last->files[of_table(last)].name));
    engine->functions->destroy(engine);
    return loaded;
}

static void test_damaged_file(void **unused)
{
    (void)unused;
    struct kept k;
    struct test_random random = {test_seed()};
    char path[VFS_PATH_MAX];
    open_kept(&k, SLOTS, false);
    put_many(&k);
    checkpoint(&k);
    assert_int_equal(k.checkpoints.last.count, 2); /* of the table, and of ids apart */
    const struct checkpoints_set *last = &k.checkpoints.last;
    assert_true(vfs_path(path, DIRECTORY, last->files[of_table(last)].name));
    assert_true(load_file(&k));
    uint64_t bytes = vfs_sim_used(k.sim);
    uint64_t refused = 0;
    uint64_t flipped = 0; /* the other file may be shorter */
    for (uint64_t i = test_scaled(FLIPS); i > 0; i--) {
        uint64_t at = test_random_below(&random, bytes);
        unsigned bit = (unsigned)test_random_below(&random, 8);
        if (vfs_sim_flip(k.sim, path, at, bit)) {
            flipped++;
            refused += !load_file(&k);
            assert_true(vfs_sim_flip(k.sim, path, at, bit));
        }
    }
    assert_true(refused > 0 && refused * 10 > flipped * 9);
    assert_true(load_file(&k));
    close_kept(&k);
}

/* A sound file whose contents are not a table's. */
static bool load_foreign(struct kept *k, const unsigned char *pages, size_t count, uint64_t id,
                         uint8_t sub)
{
    struct row_image image;
    struct table_file_info info;
    char error[ENGINE_ERROR_MAX];
    const uint64_t value[8] = {1};
    assert_true(row_image_next(k->engine->row, 0, k->recorder.head, &image));
    row_image_failed(k->engine->row, &image);
    info = (struct table_file_info){.kind = "counter",
                                    .space = "test",
                                    .sections = image.sections,
                                    .description = image.table,
                                    .description_bytes = image.table_bytes};
    for (unsigned i = 0; i < image.sections; i++) {
        info.section[i].value_bytes = image.section_value_bytes[i];
    }
    struct table_file_writer *writer =
        table_file_create(k->checkpoints.vfs, DIRECTORY, "foreign", &info, error);
    assert_non_null(writer);
    assert_true(table_file_append_pages(writer, pages, count));
    assert_true(table_file_append_entry(writer, COUNTER_TABLE_EXTEND, id, sub, value));
    assert_true(table_file_commit(writer, 0, NULL, error));
    k->checkpoints.last.count = 1;
    snprintf(k->checkpoints.last.files[0].name, CHECKPOINTS_NAME_MAX, "foreign");
    k->checkpoints.last.state_bytes = row_state_write(k->engine->row, k->checkpoints.last.state);
    bool loaded = load_file(k);
    assert_int_equal(
        k->checkpoints.vfs->functions->unlink(k->checkpoints.vfs, DIRECTORY "/foreign"), 0);
    return loaded;
}

static void test_foreign_contents(void **unused)
{
    (void)unused;
    struct kept k;
    open_kept(&k, SLOTS, false);
    set(&k, 5, "1,2,3");
    size_t pages = k.config.row.table_bytes / TABLE_PAGE_BYTES;
    unsigned char *bytes = memory_zalloc(k.config.row.table_bytes);
    uint32_t *word = (uint32_t *)(void *)(bytes + 3 * TABLE_PAGE_BYTES + TABLE_WIDE_BYTES - 4);
    assert_true(load_foreign(&k, bytes, pages, 5, 0));
    assert_false(load_foreign(&k, bytes, pages, 5, 1));          /* no sub-key of a record */
    assert_false(load_foreign(&k, bytes, pages, 1ull << 63, 0)); /* no id */
    assert_false(load_foreign(&k, bytes, pages - 1, 5, 0));
    *word = 1; /* locked */
    assert_false(load_foreign(&k, bytes, pages, 5, 0));
    *word = 0xfc00; /* 63 records in a group */
    assert_false(load_foreign(&k, bytes, pages, 5, 0));
    free(bytes);
    close_kept(&k);
}

static void test_load_stops(void **unused)
{
    (void)unused;
    struct kept k;
    char error[ENGINE_ERROR_MAX] = "?";
    struct row_table *table;
    struct table_file *file;
    _Atomic uint64_t done = 0;
    const _Atomic bool stop = true;
    open_kept(&k, SLOTS, false);
    put_many(&k);
    checkpoint(&k);
    const struct checkpoints_set *last = &k.checkpoints.last;
    char path[VFS_PATH_MAX];
    struct engine *engine = counters_create(&k.config);
    assert_true(vfs_path(path, DIRECTORY, last->files[0].name));
    assert_true(row_restore_begin(engine->row, last->state, last->state_bytes, error));
    assert_int_equal(table_file_open(k.checkpoints.vfs, path, false, &file, error),
                     TABLE_FILE_DONE);
    assert_true((table = row_restore_file(engine->row, file, error)) != NULL);
    assert_false(row_restore_load(engine->row, table, file, &done, &stop, error));
    assert_string_equal(error, "");
    table_file_close(file);
    engine->functions->destroy(engine);
    close_kept(&k);
}

/* ---- replay ---- */

static bool replay(struct engine *engine, const struct change *change)
{
    char error[ENGINE_ERROR_MAX];
    struct engine_replay replay = {UINT64_MAX, *change};
    return row_replay(engine->row, &replay, 1, error);
}

/* What changes do to a record that an image has as of another time. */
static void test_replay_rules(void **unused)
{
    (void)unused;
    struct kept k;
    open_kept(&k, SLOTS, true);
    set(&k, 5, "1," LARGE ",3");
    struct engine *other = restoring(&k);
    struct change change = {.type = CHANGE_SLOTS, .id = 6, .named = 1, .set = 1, .values = {7}};
    assert_true(replay(other, &change)); /* it will be deleted, or made anew */
    expect_in(other, 6, NULL);
    change.place = CHANGE_INSIDE;
    assert_true(replay(other, &change));
    expect_in(other, 6, "7,,");
    change.id = 5;
    assert_true(replay(other, &change)); /* exactly this, and counted once */
    expect_in(other, 5, "7,,");
    counter_check(other);
    change.place = CHANGE_THERE;
    change.set = 0; /* nothing is set any more, and yet it is not gone: more may come */
    assert_true(replay(other, &change));
    change.named = change.set = 2;
    change.values[1] = 4;
    assert_true(replay(other, &change));
    expect_in(other, 5, ",4,");
    struct change delete = {.type = CHANGE_DELETE, .id = 5};
    assert_true(replay(other, &delete));
    assert_true(replay(other, &delete)); /* not there: nothing */
    expect_in(other, 5, NULL);
    counter_check(other);
    change.named = 8; /* there are three slots */
    assert_false(replay(other, &change));
    change = (struct change){.type = CHANGE_MEMBER_ADD, .id = 5};
    assert_false(replay(other, &change));
    other->functions->destroy(other);
    close_kept(&k);
}

/* Far more at once than a table ever holds: as an image may, before it is exact. */
static void test_replay_overfull(void **unused)
{
    (void)unused;
    struct kept k;
    open_kept(&k, SLOTS, true);
    struct engine *other = restoring(&k);
    const uint64_t ids = 20000;
    for (uint64_t id = 0; id < ids; id++) {
        struct change change = {.type = CHANGE_SLOTS,
                                .place = CHANGE_INSIDE,
                                .id = id,
                                .named = 3,
                                .set = 3,
                                .values = {id, 1ull << 50}};
        assert_true(replay(other, &change));
    }
    counter_check(other);
    for (uint64_t id = 0; id < ids; id++) {
        struct change change = {.type = CHANGE_DELETE, .id = id};
        assert_true(id % 20 == 0 || replay(other, &change));
    }
    uint64_t held = 0;
    struct engine_figures figures = {0};
    other->functions->figures(other, &figures);
    held = figures.memory[ENGINE_MEMORY_EXTEND].held_bytes +
           figures.memory[ENGINE_MEMORY_AUX].held_bytes;
    assert_true(row_restore_end(other->row));
    memset(&figures, 0, sizeof(figures));
    other->functions->figures(other, &figures);
    assert_true(figures.memory[ENGINE_MEMORY_EXTEND].held_bytes +
                    figures.memory[ENGINE_MEMORY_AUX].held_bytes <
                held); /* what grew is given back */
    counter_check(other);
    for (uint64_t id = 0; id < ids; id++) {
        char text[64];
        snprintf(text, sizeof(text), "%" PRIu64 ",1125899906842624,", id);
        expect_in(other, id, id % 20 == 0 ? text : NULL);
    }
    other->functions->destroy(other);
    close_kept(&k);
}

/* ---- slots ---- */

/* Names that a table has learned keep their numbers, those hidden too. */
static void test_slots_restored(void **unused)
{
    (void)unused;
    struct kept k;
    struct change_log *log;
    open_kept(&k, SLOTS, true);
    log = &k.recorder.log;
    set(&k, 5, "1," LARGE ",3");
    struct counter_config more = k.config;
    counters_config_slots(&more, "c:20 x:30 a:20 y:2");
    strcpy(more.forget[0], "b");
    more.forget_count = 1;
    assert_true(log->reserve(log));
    counters_reconfigure(k.engine, &more);
    set(&k, 5, "3,70,1,9");
    checkpoint(&k);
    restart(&k); /* the configuration is older: what was kept counts until it is taken */
    expect_in(k.engine, 5, "3,70,1,9");
    assert_true(log->reserve(log));
    counters_reconfigure(k.engine, &k.config);
    expect_in(k.engine, 5, "1,,3");
    set(&k, 6, "," LARGE ",");
    restart(&k); /* it stays another slot than the one before of its name */
    expect_in(k.engine, 5, "1,,3");
    expect_in(k.engine, 6, "," LARGE ",");
    uint64_t records = k.recorder.count;
    counters_reconfigure(k.engine, &k.config);
    assert_int_equal(k.recorder.count, records); /* nothing new, no event */
    assert_int_equal(run(&k, ENGINE_DELETE, REC, 5, NULL), ENGINE_DONE);
    set(&k, 5, "8,,");
    restart(&k);
    assert_true(log->reserve(log));
    counters_reconfigure(k.engine, &more);
    expect_in(k.engine, 5, ",,8,");
    close_kept(&k);
}

static void test_places_told(void **unused)
{
    (void)unused;
    struct counters_sink sink;
    struct counter_config config;
    struct counters_call call;
    counters_config(&config, SLOTS);
    struct engine *engine = counters_create(&config);
    counters_sink_init(&sink);
    for (uint64_t id = 1000; id < 3000; id++) {
        counters_call_init(&call, ENGINE_SET, 0, id, "1");
        assert_int_equal(counters_run(engine, &call, &sink.sink), ENGINE_DONE);
        /* The sample of the first table lies apart. */
        assert_true(id > 1000 || sink.last.place == CHANGE_APART);
        row_maintain(engine->row, NULL);
    }
    assert_int_equal(sink.last.place, CHANGE_INSIDE);
    counters_call_init(&call, ENGINE_INCR, 0, 1000, "1");
    counters_run(engine, &call, &sink.sink);
    assert_int_equal(sink.last.place, CHANGE_THERE);
    counters_call_init(&call, ENGINE_SET, 0, 1ull << 50, "1");
    counters_run(engine, &call, &sink.sink);
    assert_int_equal(sink.last.place, CHANGE_APART);
    counters_call_init(&call, ENGINE_DELETE, REC, 1ull << 50, NULL);
    counters_run(engine, &call, &sink.sink);
    assert_true(sink.last.type == CHANGE_DELETE && sink.last.place == CHANGE_APART);
    engine->functions->destroy(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state_of_another_space),
        cmocka_unit_test(test_damaged_state),
        cmocka_unit_test(test_image),
        cmocka_unit_test(test_pages_are_still),
        cmocka_unit_test(test_damaged_file),
        cmocka_unit_test(test_foreign_contents),
        cmocka_unit_test(test_load_stops),
        cmocka_unit_test(test_replay_rules),
        cmocka_unit_test(test_replay_overfull),
        cmocka_unit_test(test_slots_restored),
        cmocka_unit_test(test_places_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
