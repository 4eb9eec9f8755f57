/*
 * test_counter_parts_cold.c: a space of any ids with more ids than memory for them: its parts go to
 * files and come back, under random operations, rounds that fail, and restarts. What it holds is
 * looked at against a plain map.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "counter/counter_private.h"
#include "row/row.h"
#include "row/row_cold.h"
#include "row/row_parts.h"
#include "tests/support/counters.h"
#include "tests/support/dumps.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"

#define MAX_ID    ((1ull << 40) - 1)
#define KIB       1024u
#define PART      (64u * KIB)
#define MOST      (256u * KIB) /* of parts, beyond what is set aside */
#define OVERLAYS  (512u * KIB)
#define LARGE     (1ull << 50) /* a value that lies beside */
#define NOTHING   UINT64_MAX
#define TRIES     100u /* of a change that would stop its own test */
#define CHANGES   8u
#define TIGHT     (128u * KIB) /* of a part, where memory is little */
#define TIGHT_IDS 30000u
#define ROUND_IDS 2000u
#define TRIES_MAX 20000000u /* of an operation: threads that read for it may have to wait long */

struct world {
    struct counter_config config;
    struct engine_growth growth;
    struct dumps dumps;
    struct recorder_sink sink;
    struct test_random random;
    struct counters_call call;
    uint64_t serial, ids, came, back, between, rounds;
    bool fails;       /* now and then a round does */
    bool refuses;     /* now and then the log has no room for the keeper, or soon no more */
    bool maintaining; /* the keeper is at work: reads of its files have changes in between */
    pthread_t thread;
    struct woken meanwhile; /* for a change in between, whose wakes are no other operation's */
    uint64_t *held;         /* by index: what slot a holds; NOTHING: there is no record */
};

/* No two indices have one id: the factor is odd. */
static uint64_t id_of(uint64_t index)
{
    return (index * 0x9e3779b97f4a7c15u) & MAX_ID;
}

static struct row *row_of(struct world *w)
{
    return &counter_of(w->dumps.engine)->row;
}

static void attach(struct world *w)
{
    row_parts_share(row_of(w), &w->growth);
    recorder_sink_init(&w->sink, &w->dumps.recorder);
    row_ask(row_of(w));
}

static void between_reads(void *context, enum vfs_sim_op op, const char *path);

/* most: of what parts may have beyond what is set aside. */
static void world_open_with(struct world *w, const char *slots, uint64_t ids, uint64_t table_bytes,
                            uint64_t part_bytes, uint64_t most)
{
    uint64_t seed = test_seed();
    memset(w, 0, sizeof(*w));
    counters_config(&w->config, slots);
    w->config.row.any_ids = true;
    w->config.row.dump = true;
    w->config.max_id = MAX_ID;
    w->config.row.table_bytes = table_bytes;
    w->config.row.part_bytes = part_bytes;
    atomic_store(&w->growth.most, most);
    w->random.state = seed;
    w->ids = ids;
    w->held = memory_zalloc(ids * sizeof(*w->held));
    for (uint64_t i = 0; i < ids; i++) {
        w->held[i] = NOTHING;
    }
    dumps_init(&w->dumps, OVERLAYS, 64u * KIB, seed);
    w->dumps.waits = true;
    woken_init(&w->meanwhile);
    w->thread = pthread_self();
    vfs_sim_hook(w->dumps.sim, between_reads, w);
    dumps_create(&w->dumps, &w->config);
    attach(w);
}

static void world_open(struct world *w, const char *slots, uint64_t ids)
{
    world_open_with(w, slots, ids, PART, PART, MOST);
    w->fails = true;
}

static void world_close(struct world *w)
{
    dumps_fini(&w->dumps);
    woken_fini(&w->meanwhile);
    free(w->held);
    assert_int_equal(atomic_load(&w->growth.used), 0);
}

/* As after a while. */
static void try_again(struct world *w)
{
    struct row *row = row_of(w);
    for (size_t i = 0; i < row->count; i++) {
        row->tables[i]->merge_us = 0;
    }
    if (atomic_load(&row->again_us) != 0) {
        atomic_store(&row->again_us, 1);
        row_ask(row);
    }
    if (atomic_load(&row->denied)) {
        atomic_store(&row->denied_us, 1);
    }
    if (atomic_load(&row->waited_us) != 0) {
        atomic_store(&row->waited_us, 1);
    }
}

/* False: it would wait for the row. */
static bool add_meanwhile(struct world *w, uint64_t index)
{
    struct counters_call call;
    counters_call_init(&call, ENGINE_INCR, 0, id_of(index), "1");
    call.op.ticket = (struct ticket){woken_wake, &w->meanwhile, ++w->serial};
    call.op.status = ENGINE_PENDING;
    for (unsigned tries = 0; tries < TRIES && call.op.status == ENGINE_PENDING; tries++) {
        dumps_run(&w->dumps, &call.op, &w->sink.sink);
        woken_await(&w->meanwhile, &call.op);
    }
    cold_release(w->dumps.cold.cold, &call.op.ticket);
    bool done = call.op.status == ENGINE_DONE;
    w->held[index] += done; /* it was there */
    return done;
}

/* The keeper reads a part that comes back: what changes meanwhile is to be in it. */
static void between_reads(void *context, enum vfs_sim_op op, const char *path)
{
    struct world *w = context;
    (void)path;
    if (op != VFS_SIM_PREAD || !pthread_equal(pthread_self(), w->thread) || !w->maintaining) {
        return;
    }
    w->maintaining = false;
    if (test_random_below(&w->random, 4) == 0) {
        dumps_round(&w->dumps, NULL, NULL, w->fails && test_random_below(&w->random, 8) == 0);
        w->rounds++;
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        uint64_t index = test_random_below(&w->random, w->came + 1);
        w->between += index < w->came && w->held[index] != NOTHING && add_meanwhile(w, index);
    }
    w->maintaining = true;
}

/* As keeper and checkpoint do it beside the workers. */
static void go_on(struct world *w)
{
    size_t cold = dumps_cold(&w->dumps);
    w->maintaining = true;
    atomic_store(&w->dumps.recorder.refuse, w->refuses && test_random_below(&w->random, 2) == 0);
    w->dumps.recorder.narrow = w->refuses;
    row_maintain(row_of(w), NULL);
    atomic_store(&w->dumps.recorder.refuse, false);
    w->dumps.recorder.narrow = false;
    for (size_t i = 0; w->refuses && i < row_of(w)->count; i++) {
        assert_false(row_of(w)->tables[i]->refused);
    }
    w->maintaining = false;
    w->back += cold > dumps_cold(&w->dumps) ? cold - dumps_cold(&w->dumps) : 0;
    if (row_images_wanted(w->dumps.engine->row)) {
        dumps_round(&w->dumps, NULL, NULL, w->fails && test_random_below(&w->random, 8) == 0);
    }
}

/* As while dumps and merges fail. */
static bool is_refused(const struct engine_op *op)
{
    return op->status == ENGINE_ERROR &&
           (op->error == ENGINE_E_BUSY || op->error == ENGINE_E_OUT_OF_MEMORY);
}

static enum engine_status run(struct world *w, enum engine_verb verb, int slot, uint64_t index,
                              const char *text)
{
    counters_call_init(&w->call, verb, slot, id_of(index), text);
    w->call.op.ticket = (struct ticket){woken_wake, &w->dumps.woken, ++w->serial};
    for (unsigned tries = 0;; tries++) {
        assert_true(tries < TRIES_MAX);
        dumps_run(&w->dumps, &w->call.op, &w->sink.sink);
        if (w->call.op.status != ENGINE_PENDING && !is_refused(&w->call.op)) {
            break;
        }
        assert_true(w->fails || w->call.op.error != ENGINE_E_OUT_OF_MEMORY);
        try_again(w);
        go_on(w);
        woken_await(&w->dumps.woken, &w->call.op);
    }
    w->call.value[w->call.op.value_length] = '\0';
    if (row_asked(row_of(w))) {
        go_on(w);
    }
    return w->call.op.status;
}

static void expect(struct world *w, uint64_t index)
{
    char text[24];
    enum engine_status status = run(w, ENGINE_READ, 0, index, NULL);
    assert_int_equal(status, w->held[index] == NOTHING ? ENGINE_ABSENT : ENGINE_DONE);
    if (status == ENGINE_DONE) {
        snprintf(text, sizeof(text), "%" PRIu64, w->held[index]);
        assert_string_equal(w->call.value, text);
    }
}

static void add(struct world *w, uint64_t index, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, n);
    enum engine_status status = run(w, ENGINE_INCR, 0, index, text);
    assert_int_equal(status, ENGINE_DONE);
    w->held[index] = (w->held[index] == NOTHING ? 0 : w->held[index]) + n;
}

static void erase(struct world *w, uint64_t index)
{
    enum engine_status status = run(w, ENGINE_DELETE, ENGINE_SLOT_RECORD, index, NULL);
    assert_int_equal(status, w->held[index] == NOTHING ? ENGINE_ABSENT : ENGINE_DONE);
    w->held[index] = NOTHING;
}

/* Of the ids that came so far, or the next one. */
static void step(struct world *w)
{
    uint64_t index = test_random_below(&w->random, w->came + 1);
    switch (test_random_below(&w->random, 8)) {
    case 0:
        erase(w, index);
        break;
    case 1:
        expect(w, index);
        break;
    case 2:
        add(w, index, test_random_below(&w->random, 16) == 0 ? LARGE : 1);
        break;
    default:
        index = w->came;
        add(w, index, 1 + index % 1000);
    }
    w->came += index == w->came && w->held[index] != NOTHING;
}

static void check_all(struct world *w)
{
    uint64_t records = 0;
    counter_check(w->dumps.engine);
    for (uint64_t i = 0; i < w->ids; i++) {
        expect(w, i);
        records += w->held[i] != NOTHING;
    }
    uint64_t counted = 0;
    for (size_t i = 0; i < row_of(w)->count; i++) {
        counted += atomic_load(&row_of(w)->tables[i]->count);
    }
    assert_int_equal(counted, records);
}

/* A restored space counts what it holds of the memory that all share. */
static void restart(struct world *w)
{
    uint64_t aside = row_part_aside_bytes(&w->config.row);
    dumps_restart(&w->dumps, &w->config);
    attach(w);
    uint64_t held = row_parts_bytes(row_of(w));
    assert_int_equal(atomic_load(&w->growth.used), held > aside ? held - aside : 0);
}

/* ---- tests ---- */

/* What the runs went through. How much of it one of them meets, the thread that reads files
 * decides: so all are counted together. */
struct met {
    uint64_t most; /* parts in files at a time, the sum of the runs */
    uint64_t back, between, rounds;
};

static void try_exact(const char *slots, uint64_t ids, struct met *met)
{
    static struct world w;
    size_t most = 0;
    world_open(&w, slots, ids);
    while (w.came < ids - 1) {
        step(&w);
        most = dumps_cold(&w.dumps) > most ? dumps_cold(&w.dumps) : most;
        if (test_random_below(&w.random, ids / 16) == 0) {
            dumps_round(&w.dumps, NULL, NULL, false);
        }
        if (test_random_below(&w.random, ids / 8) == 0) {
            restart(&w);
            check_all(&w);
        }
    }
    check_all(&w);
    restart(&w);
    check_all(&w);
    printf("%s: %zu of %zu parts in files, %" PRIu64 " came back, %" PRIu64 " changes and %" PRIu64
           " rounds meanwhile; merges %" PRIu64 "\n",
           slots, most, row_of(&w)->count, w.back, w.between, w.rounds,
           w.dumps.kinds[ROW_IMAGE_MERGE]);
    met->most += most;
    met->back += w.back;
    met->between += w.between;
    met->rounds += w.rounds;
    world_close(&w);
}

static void test_all_is_exact(void **unused)
{
    (void)unused;
    struct met met = {0};
    try_exact("a:20 b:20", test_scaled(40000), &met);
    try_exact("a:12 b:3", test_scaled(70000), &met);
    try_exact("a:64 b:64 c:64 d:64", test_scaled(12000), &met);
    bool enough = met.most > 9 && met.back > 10 && met.between > 100 && met.rounds > 3;
    assert_true(enough || test_scaled(100) < 100);
}

/* Parts leave and come back, and nobody is refused (run() sees that) for want of memory. */
static void try_tight(uint64_t table_bytes, uint64_t most)
{
    static struct world w;
    size_t cold = 0;
    world_open_with(&w, "a:20 b:20", TIGHT_IDS, table_bytes, TIGHT, most);
    for (; w.came < TIGHT_IDS; w.came++) {
        add(&w, w.came, 1);
        cold = dumps_cold(&w.dumps) > cold ? dumps_cold(&w.dumps) : cold;
    }
    assert_true(cold > 1 && w.back > 0);
    world_close(&w);
}

/* No more than is set aside, where that is more than table_bytes; and a little more. */
static void test_little_memory_suffices(void **unused)
{
    (void)unused;
    try_tight(TIGHT / 2, 0);
    try_tight(TIGHT / 2, TIGHT / 2);
    try_tight(2 * TIGHT, 0);
}

/* For what says that a part leaves: requests are told to try again. */
static void test_no_room_in_the_log_is_no_want_of_memory(void **unused)
{
    static struct world w;
    (void)unused;
    world_open_with(&w, "a:20 b:20", TIGHT_IDS, TIGHT / 2, TIGHT, 0);
    w.refuses = true;
    for (; w.came < TIGHT_IDS; w.came++) {
        add(&w, w.came, 1);
    }
    assert_true(dumps_cold(&w.dumps) > 0);
    world_close(&w);
}

/* restart() looks at it. */
static void test_a_restored_space_counts_its_memory(void **unused)
{
    static struct world w;
    (void)unused;
    world_open_with(&w, "a:20 b:20", TIGHT_IDS, TIGHT / 2, TIGHT, 1u << 30);
    for (; w.came < TIGHT_IDS; w.came++) {
        add(&w, w.came, 1);
    }
    assert_int_equal(dumps_cold(&w.dumps), 0);
    dumps_round(&w.dumps, NULL, NULL, false);
    restart(&w);
    assert_true(atomic_load(&w.growth.used) > 0);
    world_close(&w);
}

/* ---- a round meets a part that comes back ---- */

/* A space of one part, which is dumped and has changed since, a round ago and after it. */
static struct row_table *open_dumped(struct world *w)
{
    world_open(w, "a:20 b:20", ROUND_IDS);
    atomic_store(&w->growth.most, UINT64_MAX / 2);
    for (; w->came < ROUND_IDS / 2; w->came++) {
        add(w, w->came, 1);
    }
    go_on(w);
    struct row_table *part = row_of(w)->tables[0];
    assert_true(w->dumps.recorder.log.reserve(&w->dumps.recorder.log));
    row_cold_leave(row_of(w), part);
    dumps_round(&w->dumps, NULL, NULL, false);
    assert_true(part->cold);
    atomic_store(&w->growth.most, 0); /* it stays there */
    for (; w->came < ROUND_IDS / 2 + CHANGES; w->came++) {
        add(w, w->came, LARGE);
    }
    dumps_round(&w->dumps, NULL, NULL, false);
    for (; w->came < ROUND_IDS / 2 + 2 * CHANGES; w->came++) {
        add(w, w->came, LARGE);
        add(w, w->came - CHANGES, 1);
        erase(w, w->came - 2 * CHANGES);
    }
    return part;
}

/* While it comes back: of what both overlays have, of what one has, and of what is in the file. */
static void change_meanwhile(struct world *w)
{
    for (unsigned i = 0; i < CHANGES / 2; i++) {
        erase(w, w->came - 1 - 2 * i);
        add(w, w->came - CHANGES - 1 - i, LARGE);
        add(w, w->came - 2 * CHANGES - 1 - i, 1);
        add(w, i, 1);
    }
}

static void end_recall(struct world *w, struct row_recall *recall)
{
    row_recall_read(row_of(w), recall);
    assert_true(row_recall_end(row_of(w), recall));
}

static void see_all_again(struct world *w)
{
    restart(w);
    check_all(w);
    world_close(w);
}

static void test_a_round_while_a_part_comes_back(void **unused)
{
    static struct world w;
    struct row_recall recall;
    (void)unused;
    for (unsigned ends = 0; ends < 2; ends++) {
        struct row_table *part = open_dumped(&w);
        assert_true(row_recall_begin(row_of(&w), part, &recall));
        change_meanwhile(&w);
        uint64_t overlays = w.dumps.kinds[ROW_IMAGE_OVERLAY];
        dumps_round(&w.dumps, NULL, NULL, false);
        assert_int_equal(w.dumps.kinds[ROW_IMAGE_OVERLAY], overlays + 1);
        if (ends) {
            end_recall(&w, &recall);
            assert_false(part->cold);
        } else {
            row_retire_one(row_of(&w), recall.loaded); /* killed */
        }
        see_all_again(&w);
    }
}

struct amid {
    struct world *world;
    struct row_recall recall;
};

/* The image of the overlay has begun. */
static void begin_recall(void *context, enum vfs_sim_op op, const char *path)
{
    struct amid *amid = context;
    (void)path;
    if (op == VFS_SIM_OPEN && amid->recall.loaded == NULL) {
        assert_true(
            row_recall_begin(row_of(amid->world), row_of(amid->world)->tables[0], &amid->recall));
        change_meanwhile(amid->world);
    }
}

static void test_a_part_comes_back_amid_a_round(void **unused)
{
    static struct world w;
    (void)unused;
    (void)open_dumped(&w);
    struct amid amid = {.world = &w};
    vfs_sim_hook(w.dumps.sim, begin_recall, &amid);
    dumps_round(&w.dumps, NULL, NULL, false);
    vfs_sim_hook(w.dumps.sim, NULL, NULL);
    assert_non_null(amid.recall.loaded);
    end_recall(&w, &amid.recall);
    see_all_again(&w);
}

/* What a dumped part counts was read from a file: the records are counted when they are there. */
static void test_a_part_that_comes_back_is_counted(void **unused)
{
    static struct world w;
    struct row_recall recall;
    (void)unused;
    struct row_table *part = open_dumped(&w);
    uint64_t count = row_count_of(part);
    atomic_store(&part->count, count + CHANGES);
    assert_true(row_recall_begin(row_of(&w), part, &recall));
    end_recall(&w, &recall);
    assert_int_equal(row_count_of(part), count);
    see_all_again(&w);
}

/* The next round, which is wanted at once, makes its overlays one. */
static void test_a_part_that_cannot_be_read_back(void **unused)
{
    static struct world w;
    struct row_recall recall;
    (void)unused;
    struct row_table *part = open_dumped(&w);
    assert_true(row_recall_begin(row_of(&w), part, &recall));
    change_meanwhile(&w);
    assert_false(row_recall_end(row_of(&w), &recall)); /* nothing was read */
    assert_true(part->cold && part->merging);
    assert_int_equal(row_of(&w)->folds, 1);
    assert_true(row_images_wanted(row_of(&w)));
    check_all(&w);
    dumps_round(&w.dumps, NULL, NULL, false);
    assert_false(part->merging);
    assert_int_equal(row_of(&w)->merges, 0);
    assert_int_equal(row_of(&w)->folds, 0);
    check_all(&w);
    assert_true(row_recall_begin(row_of(&w), part, &recall)); /* once more */
    end_recall(&w, &recall);
    see_all_again(&w);
}

int main(void)
{
    give_way_on_one_processor();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_round_while_a_part_comes_back),
        cmocka_unit_test(test_a_part_comes_back_amid_a_round),
        cmocka_unit_test(test_a_part_that_comes_back_is_counted),
        cmocka_unit_test(test_a_part_that_cannot_be_read_back),
        cmocka_unit_test(test_little_memory_suffices),
        cmocka_unit_test(test_no_room_in_the_log_is_no_want_of_memory),
        cmocka_unit_test(test_a_restored_space_counts_its_memory),
        cmocka_unit_test(test_all_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
