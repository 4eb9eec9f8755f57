/*
 * test_counter_collect.c: the records of a counter space in the order of their ids: of tables in
 * memory and dumped ones, with layers, overlays and ids apart, while all of that changes.
 */
#include "tests/support/image_file.h"
#include "tests/unit/counter/dumped_space.h"

#include <stdio.h>
#include <string.h>

#include "engine/collect.h"
#include "row/row.h"

#define MOST    150u /* ids of a batch */
#define IDS_MAX 65536u

struct list {
    struct dumped_space *fixture;
    struct engine_collect collect;
    _Atomic bool stop;
    unsigned entered, gone_at; /* 0: never */
    /* Called before each step, outside the barrier. */
    void (*between)(struct list *list);
    uint64_t ids[IDS_MAX];
    size_t count;
    unsigned texts; /* of these had one */
    uint64_t newest;
    struct test_random random;
};

static bool enter(void *context)
{
    struct list *list = context;
    list->entered++;
    if (list->between) {
        list->between(list);
    }
    return list->gone_at == 0 || list->entered < list->gone_at;
}

static void leave(void *context)
{
    (void)context;
}

static struct list *list_open(struct dumped_space *f)
{
    static struct list list;
    memset(&list, 0, sizeof(list));
    list.fixture = f;
    list.random.state = 11;
    engine_collect_init(&list.collect, MOST);
    list.collect.enter = enter;
    list.collect.leave = leave;
    list.collect.context = &list;
    list.collect.stop = &list.stop;
    return &list;
}

static enum engine_collect_end collect_next(struct list *list)
{
    struct engine *engine = list->fixture->dumps.engine;
    return counter_collect(engine, &list->collect);
}

/* What an item says is what is there; where it says nothing, something may be there or not. */
static void expect_item(struct list *list, const struct engine_collected *item)
{
    if (item->text_length > 0) {
        char text[ENGINE_VALUE_MAX + 1] = "";
        memcpy(text, list->collect.texts + item->text_at, item->text_length);
        space_expect(list->fixture, item->id, text);
        list->texts++;
    }
}

static void take_batch(struct list *list, bool judged)
{
    const struct engine_collect *c = &list->collect;
    assert_in_range(c->count, c->ended ? 0 : 1, MOST);
    for (size_t i = 0; i < c->count; i++) {
        const struct engine_collected *item = &c->items[i];
        assert_true(item->id >= c->from && (c->ended || item->id < c->next));
        assert_true(list->count == 0 || list->ids[list->count - 1] < item->id);
        if (judged) {
            expect_item(list, item);
        }
        assert_true(list->count < IDS_MAX);
        list->ids[list->count++] = item->id;
    }
}

/* All batches from an id on. */
static void list_from(struct list *list, uint64_t from, bool judged)
{
    list->collect.from = from;
    do {
        assert_int_equal(collect_next(list), ENGINE_COLLECT_DONE);
        take_batch(list, judged);
        list->collect.from = list->collect.next;
    } while (!list->collect.ended);
}

/* Of the listed ids those that are there; in the list once each, if at all. */
static size_t count_there(struct list *list)
{
    size_t there = 0;
    for (size_t i = 0; i < list->count; i++) {
        there += space_run(list->fixture, ENGINE_READ, ENGINE_SLOT_RECORD, list->ids[i], NULL) ==
                 ENGINE_DONE;
    }
    return there;
}

static bool is_listed(const struct list *list, uint64_t id)
{
    size_t low = 0;
    size_t high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < list->count && list->ids[low] == id;
}

static void list_close(struct list *list)
{
    engine_collect_fini(&list->collect);
}

/* One table is dumped, changed since, another is in memory, and some ids are far ahead. */
static void all_are_listed_in_order(void **state)
{
    struct dumped_space *f = *state;
    size_t there = IDS;
    for (uint64_t i = 0; i < 40; i++) {
        assert_int_equal(space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, FIRST + 7 * i, NULL),
                         ENGINE_DONE);
        assert_int_equal(space_run(f, ENGINE_INCR, 1, FIRST + 7 * i + 1, "3"), ENGINE_DONE);
        there--;
    }
    space_set(f, FAR, "5,6");
    space_set(f, 2 * FAR, "5,");
    struct list *list = list_open(f);
    list_from(list, 0, true);
    assert_int_equal(count_there(list), there + 2);
    assert_true(list->texts > 2000); /* all of the file but what lies in front of it */
    assert_true(is_listed(list, FIRST + 1) && is_listed(list, 2 * FAR));
    for (uint64_t i = 0; i < SEEN; i++) {
        if (i % 7 != 0) {
            assert_true(is_listed(list, FIRST + i));
        }
    }
    list->count = 0;
    list_from(list, FIRST + IDS - 10, true); /* taken up again */
    assert_int_equal(list->count, 12);
    assert_int_equal(list->ids[0], FIRST + IDS - 10);
    list_close(list);
}

static void fill_twice(struct dumped_space *f)
{
    for (uint64_t late = 0; late < 2; late++) {
        for (uint64_t i = 0; i < IDS; i++) {
            space_set(f, FIRST + 2 * i + late, late && i % 20 == 0 ? LARGE ",2" : "1,2");
        }
    }
    row_maintain(f->dumps.engine->row, NULL);
}

static void layers_are_listed_with_their_tables(void **state)
{
    struct dumped_space *f = *state;
    space_begin_anew(f);
    fill_twice(f);
    struct list *list = list_open(f);
    list_from(list, 0, true);
    assert_int_equal(list->count, 2 * IDS);
    assert_int_equal(list->texts, 0);
    assert_true(dumps_leave(&f->dumps, 0));
    space_round(f);
    assert_int_equal(dumps_layers(&f->dumps), 1);
    list->count = 0;
    list_from(list, 0, true);
    assert_int_equal(list->count, 2 * IDS);
    assert_true(list->texts > 0);
    list_close(list);
}

/* A slot that came after the file was written is in it by its name. */
static void texts_have_the_slots_of_now(void **state)
{
    struct dumped_space *f = *state;
    counters_config_slots(&f->config, "b:20 c:20 a:20");
    counters_reconfigure(f->dumps.engine, &f->config);
    struct list *list = list_open(f);
    list_from(list, 0, true);
    assert_int_equal(list->count, IDS);
    assert_true(list->texts > 2000);
    list_close(list);
}

/*
 * Ids of every third place stay all the while; of the others some come, go and change. Tables leave
 * memory, are merged, and further ones open.
 */
static void churn(struct list *list)
{
    struct dumped_space *f = list->fixture;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t id = FIRST + test_random_below(&list->random, 2 * IDS);
        if ((id - FIRST) % 3 == 0) {
            (void)space_run(f, ENGINE_INCR, 0, id < FIRST + IDS ? id : FIRST, "1");
        } else if (test_random_below(&list->random, 2) == 0) {
            (void)space_run(f, ENGINE_DELETE, ENGINE_SLOT_RECORD, id, NULL);
        } else {
            (void)space_run(f, ENGINE_SET, 0, id, "5");
        }
    }
    for (unsigned i = 0; i < 30 && list->newest < 4 * IDS; i++) {
        (void)space_run(f, ENGINE_SET, 0, FIRST + IDS + list->newest++, "5");
    }
    if (list->entered % 40 == 0) {
        (void)dumps_leave(&f->dumps, test_random_below(&list->random, dumps_tables(&f->dumps)));
    }
    if (list->entered % 16 == 0) {
        space_round(f);
    }
}

static void what_stays_is_listed_once_whatever_comes_and_goes(void **state)
{
    struct dumped_space *f = *state;
    struct list *list = list_open(f);
    uint64_t merges = f->dumps.kinds[ROW_IMAGE_MERGE];
    uint64_t dumps = f->dumps.kinds[ROW_IMAGE_DUMP];
    list->between = churn;
    for (unsigned round = 0; round < 6; round++) {
        list->count = 0;
        list_from(list, 0, false);
        for (uint64_t i = 0; i < IDS; i += 3) {
            assert_true(is_listed(list, FIRST + i));
        }
    }
    assert_true(f->dumps.kinds[ROW_IMAGE_MERGE] > merges); /* all of that took place */
    assert_true(f->dumps.kinds[ROW_IMAGE_DUMP] > dumps);
    list_close(list);
}

static void a_list_ends_when_it_must(void **state)
{
    struct dumped_space *f = *state;
    struct list *list = list_open(f);
    list->gone_at = 3;
    assert_int_equal(collect_next(list), ENGINE_COLLECT_GONE);
    list->gone_at = 0;
    list->stop = true;
    assert_int_equal(collect_next(list), ENGINE_COLLECT_STOPPED);
    list->stop = false;
    char path[64];
    const struct dumps_set *set = &f->dumps.last;
    for (size_t i = 0; i < set->count; i++) {
        snprintf(path, sizeof(path), "/d/%s", set->files[i].name);
        if (set->files[i].dump) {
            assert_true(vfs_sim_flip(f->dumps.sim, path, 5 * 4096 + 100, 3));
        }
    }
    assert_int_equal(collect_next(list), ENGINE_COLLECT_FAILED);
    assert_non_null(strstr(list->collect.error, "/d/file-"));
    list_close(list);
}

static void all_ids_of_any_order_are_listed(void **state)
{
    struct dumped_space *f = *state;
    struct counter_config config;
    counters_config(&config, "a:20 b:20");
    config.row.any_ids = true;
    config.max_id = COUNTER_MAX_ID_DEFAULT;
    struct engine *before = f->dumps.engine;
    f->dumps.engine = counters_create(&config);
    struct counters_call call;
    struct list *list = list_open(f);
    size_t there = 0;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t id = test_random_below(&list->random, config.max_id);
        there += counters_do(f->dumps.engine, &call, ENGINE_ADD, 0, id, "1") == ENGINE_DONE;
    }
    list_from(list, 0, false);
    assert_int_equal(list->count, there);
    f->dumps.engine->functions->destroy(f->dumps.engine);
    f->dumps.engine = before;
    list_close(list);
}

/* More texts than there is room for make a batch smaller; of equal ids the first stays. */
static void a_batch_is_bounded(void **state)
{
    struct engine_collect c;
    char text[400];
    (void)state;
    memset(text, '7', sizeof(text));
    engine_collect_init(&c, 100);
    engine_collect_begin(&c, UINT64_MAX - 1);
    for (uint64_t i = 0; i < 1000; i++) {
        engine_collect_make_room(&c);
        engine_collect_add(&c, 1000 - i);
        engine_collect_add_text(&c, 1000 - i, text, sizeof(text));
    }
    engine_collect_settle(&c, true);
    assert_int_equal(c.count, 100);
    assert_int_equal(c.next, 101);
    assert_false(c.ended);
    assert_int_equal(c.items[0].id, 1);
    assert_int_equal(c.items[0].text_length, 0);
    engine_collect_begin(&c, UINT64_MAX - 1);
    for (uint64_t i = 0; i < 1000; i++) {
        engine_collect_add_text(&c, 1000 - i, text, sizeof(text));
    }
    engine_collect_settle(&c, true);
    assert_int_equal(c.count, 100 * ENGINE_COLLECT_TEXT / sizeof(text));
    assert_int_equal(c.next, c.count + 1);
    engine_collect_fini(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, space_create, space_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_are_listed_in_order),
        TEST(layers_are_listed_with_their_tables),
        TEST(texts_have_the_slots_of_now),
        TEST(what_stays_is_listed_once_whatever_comes_and_goes),
        TEST(a_list_ends_when_it_must),
        TEST(all_ids_of_any_order_are_listed),
        cmocka_unit_test(a_batch_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
