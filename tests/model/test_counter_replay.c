/*
 * test_counter_replay.c: a counter space that is recorded, checkpointed, ended at any moment and
 * restored, again and again: everything must be as it was.
 *
 * Random operations of all verbs on ids that roll, with strays, late ones, deleted and made again;
 * slots that overflow, are unset, and whose configuration changes; clearing. The recorder stands
 * for the journal, images go to a simulated disk. While an image is written operations go on
 * between its pieces (tests/support/fake_barrier.h), the row changes too, and the space may end
 * there. An end is either at the last record: then all is compared with the engine that goes; or at
 * an earlier moment of which a copy was kept; or between any two records, where the invariants must
 * hold. The restored engine goes on.
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

#include "base/check.h"
#include "base/memory.h"
#include "counter/counter_private.h"
#include "row/row_data.h"
#include "tests/support/checkpoints.h"
#include "tests/support/counters.h"
#include "tests/support/fake_barrier.h"
#include "tests/support/random.h"
#include "tests/support/row_equal.h"
#include "tests/support/table_figures.h"
#include "tests/support/vfs_sim.h"

#define OPS_ALL         1500000u
#define DIRECTORY       "data"
#define COPIES          6u
#define COPY_ONCE_IN    1500u
#define IMAGES_ONCE_IN  3000u
#define END_ONCE_IN     4000u
#define RESHAPE_ONCE_IN 8000u /* a new table opens */
#define CLEAR_ONCE_IN   60000u
#define SPAWN_ONCE_IN   2000u /* a burst of strays: they may open a table */
#define SPAWN_MAX       24u
#define BURST_MAX       120u /* operations between two pieces of an image */
#define EVENT_ONCE_IN   30u  /* pieces, with something rarer */
#define LAZY_MAX        60u
#define NEWEST          400u
#define OLDEST          12000u
#define LATE_ONE_IN     2u
#define LARGE_ONE_IN    8u /* values: often too large for their slot */
#define BATCH_MAX       100u
#define NAMES           20u
#define ABSENT          1u /* hashes of what is not a record */
#define BELOW           2u
#define NO_COPY         UINT64_MAX
#define GROWTH_BYTES    (16u << 20)

struct profile {
    const char *name;
    const char *slots;
    uint64_t (*id)(uint64_t index);
    uint64_t spacing;
    uint64_t indices;
    uint64_t table_bytes;
    unsigned tables; /* 0: ids: any */
    bool recycle;
    uint64_t part_bytes; /* of ids: any: it grows in such parts. 0: it does not grow */
};

/* What a space held when the next record was to be at lsn. */
struct copy {
    uint64_t lsn;
    uint64_t *texts; /* hash of the record of each index */
};

struct run {
    const struct profile *profile;
    struct test_random random;
    struct counter_config config;
    struct engine *engine;
    struct recorder recorder;
    struct recorder_sink sink;
    struct vfs_sim *sim;
    struct checkpoints checkpoints;
    struct barrier_member member;
    bool aborted_now; /* images were made that no checkpoint names: this engine must end */
    _Atomic bool stop;
    struct copy copies[COPIES];
    uint64_t *texts;
    uint64_t done, ops_all, asked, lazy;
    uint64_t offset; /* of the ids: raised when the space is cleared */
    struct engine_growth growth;
    uint64_t ends, exact_ends, cut_ends, aborted, restored_tables, layers, refused;
};

/* ---- ids ---- */

static uint64_t dense_id(uint64_t index)
{
    return 5000 + index;
}

static uint64_t seconds_id(uint64_t index)
{
    return (1700000000ull + index / 500) << 22 | index % 500;
}

static uint64_t milliseconds_id(uint64_t index)
{
    return (1700000000000ull + index / 6) << 22 | index % 3 << 12 | index % 2;
}

static uint64_t random_id(uint64_t index)
{
    return hash_u64(index) >> 24;
}

static const struct profile profiles[] = {
    {"dense", "s0:20 s1:12 s2:40", dense_id, 0, 30000, 64u << 10, 4, true, 0},
    {"dense, spacing given", "s0:4 s1:7 s2:2", dense_id, 1, 30000, 64u << 10, 5, true, 0},
    {"seconds", "s0:20 s1:20 s2:20 s3:20", seconds_id, 8388, 20000, 64u << 10, 6, true, 0},
    {"milliseconds", "s0:5 s1:64", milliseconds_id, 0, 12000, 64u << 10, 6, false, 0},
    {"any", "s0:10 s1:64 s2:3", random_id, 0, 4000, 64u << 10, 0, false, 0},
    {"any, many pages", "s0:16 s1:3", random_id, 0, 60000, 1u << 20, 0, false, 0},
    {"any, grows", "s0:20 s1:64 s2:3", random_id, 0, 40000, 64u << 10, 0, false, 32u << 10},
    {"wide", "s0:64 s1:64 s2:64 s3:64 s4:2 s5:3 s6:30 s7:31 s8:32 s9:33", dense_id, 1, 4000,
     64u << 10, 5, true, 0},
};

#define PROFILES (sizeof(profiles) / sizeof(*profiles))

static uint64_t below(struct run *r, uint64_t bound)
{
    return test_random_below(&r->random, bound);
}

static bool once_in(struct run *r, uint64_t times)
{
    return test_random_once_in(&r->random, times);
}

static uint64_t top_of(const struct run *r)
{
    uint64_t done = r->done < r->ops_all ? r->done : r->ops_all;
    return 1 + (r->profile->indices - 1) * done / r->ops_all;
}

/* Mostly new ones, of which some are left out: they come late, when any of the old ones is meant.
 */
static uint64_t any_index(struct run *r)
{
    uint64_t top = r->profile->tables ? top_of(r) : r->profile->indices;
    uint64_t newest = top < NEWEST ? top : NEWEST;
    uint64_t index = top - 1 - below(r, newest);
    bool late = hash_u64(index) % LATE_ONE_IN == 0;
    return late || once_in(r, 3) ? top - 1 - below(r, top < OLDEST ? top : OLDEST) : index;
}

/* ---- operations ---- */

static uint64_t any_value(struct run *r)
{
    switch (below(r, 2 * LARGE_ONE_IN)) {
    case 0:
        return test_random_next(&r->random) >> below(r, 64);
    case 1:
        return (1ull << below(r, 64)) - below(r, 4);
    default:
        return below(r, 6);
    }
}

/* A record's fields, some empty. */
static void put_fields(struct run *r, char *text)
{
    uint64_t empty_one_in = 1 + below(r, 4);
    for (size_t i = 0; i < r->config.slot_count; i++) {
        if (i > 0) {
            *text++ = ',';
        }
        if (!once_in(r, empty_one_in)) {
            text += sprintf(text, "%" PRIu64, any_value(r));
        }
    }
    *text = '\0';
}

static void operate(struct run *r, uint64_t id)
{
    static const enum engine_verb verbs[] = {
        ENGINE_SET,  ENGINE_SET,  ENGINE_SET,  ENGINE_ADD,    ENGINE_REPLACE, ENGINE_INCR,
        ENGINE_INCR, ENGINE_INCR, ENGINE_DECR, ENGINE_DELETE, ENGINE_DELETE,
    };
    struct counters_call call;
    char text[ENGINE_VALUE_MAX + 1];
    enum engine_verb verb = verbs[below(r, sizeof(verbs) / sizeof(*verbs))];
    int slot = once_in(r, 2) ? ENGINE_SLOT_RECORD : (int)below(r, r->config.slot_count);
    bool two =
        r->config.slot_count > 1 && (verb == ENGINE_INCR || verb == ENGINE_DECR) && once_in(r, 4);
    if (slot == ENGINE_SLOT_RECORD && !two) {
        put_fields(r, text);
    } else {
        sprintf(text, "%" PRIu64, any_value(r));
    }
    counters_call_init(&call, verb, two ? ENGINE_SLOT_SOME : slot, id,
                       verb == ENGINE_DELETE ? NULL : text);
    call.op.some = 3; /* two slots by one number: the second, the first */
    call.op.order = 1;
    counters_run(r->engine, &call, &r->sink.sink);
    r->refused += call.op.status == ENGINE_ERROR;
    r->done++;
}

/* So far ahead, as likely near as far, and as many near each other. */
static void stray(struct run *r)
{
    uint64_t distance = 1ull << below(r, 62);
    uint64_t count = once_in(r, 4) ? below(r, SPAWN_MAX) : 1;
    uint64_t id = r->profile->id(top_of(r)) + distance;
    for (uint64_t i = 0; i < count && id < ROW_ID_MAX; i++, id += 1 + below(r, 40)) {
        operate(r, id);
    }
}

static void keep_now_and_then(struct run *r)
{
    if (++r->asked >= r->lazy) {
        r->asked = 0;
        r->lazy = 1 + below(r, LAZY_MAX);
        row_maintain(r->engine->row, NULL);
    }
}

static void operate_any(struct run *r)
{
    if (r->profile->tables && once_in(r, SPAWN_ONCE_IN)) {
        stray(r);
    } else {
        operate(r, r->profile->id(any_index(r)));
    }
    keep_now_and_then(r);
}

static void make_slots(struct run *r, struct counter_config *next)
{
    uint64_t taken = 0;
    size_t wanted = 1 + below(r, 6);
    memset(next->slots, 0, sizeof(next->slots));
    for (next->slot_count = 0; next->slot_count < wanted;) {
        uint64_t name = below(r, once_in(r, 4) ? NAMES : 4 + wanted);
        if (taken >> name & 1) {
            continue;
        }
        taken |= 1ull << name;
        struct counter_slot *slot = &next->slots[next->slot_count++];
        snprintf(slot->name, sizeof(slot->name), "s%" PRIu64, name);
        slot->bits = 2 + (unsigned)below(r, 40);
    }
}

static void reserve(struct run *r)
{
    struct change_log *log = &r->recorder.log;
    CHECK(log->reserve(log));
}

/* Other slots, or those of the beginning: most operations are to meet those. */
static void reshape(struct run *r)
{
    struct counter_config next = r->config;
    if (once_in(r, 2)) {
        make_slots(r, &next);
    } else {
        counters_config_slots(&next, r->profile->slots);
    }
    reserve(r);
    counters_reconfigure(r->engine, &next);
    r->config = next;
}

static void clear(struct run *r)
{
    reserve(r);
    row_flush(r->engine->row);
}

/* ---- what is there ---- */

static uint64_t text_of(struct engine *engine, uint64_t id)
{
    struct counters_call call;
    counters_do(engine, &call, ENGINE_READ, ENGINE_SLOT_RECORD, id, NULL);
    if (call.op.status == ENGINE_ABSENT) {
        return call.op.miss == ENGINE_MISS_BELOW ? BELOW : ABSENT;
    }
    assert_int_equal(call.op.status, ENGINE_DONE);
    return hash_bytes(call.value, call.op.value_length, 0);
}

static void read_all(const struct run *r, uint64_t *texts)
{
    for (uint64_t i = 0; i < r->profile->indices; i++) {
        texts[i] = text_of(r->engine, r->profile->id(i));
    }
}

static void expect_all(struct run *r, struct engine *restored, const uint64_t *texts,
                       const char *what)
{
    for (uint64_t i = 0; i < r->profile->indices; i++) {
        uint64_t id = r->profile->id(i);
        uint64_t text = text_of(restored, id);
        if (text != texts[i]) {
            fail_msg("%s, %s, after %" PRIu64 ": id %" PRIu64 " is %" PRIx64 ", was %" PRIx64,
                     r->profile->name, what, r->done, id, text, texts[i]);
        }
    }
}

static void copy_now(struct run *r)
{
    struct copy oldest = r->copies[0];
    memmove(r->copies, r->copies + 1, (COPIES - 1) * sizeof(oldest));
    oldest.lsn = r->recorder.head;
    read_all(r, oldest.texts);
    r->copies[COPIES - 1] = oldest;
}

/* Figures that must be those of before, as one text. */
struct figures {
    char text[1u << 16];
    size_t length;
};

static void note_figure(void *context, const char *name, const char *text)
{
    static const char *const compared[] = {":base",     ":range_last",  ":records", ":frontier",
                                           ":layers",   ":state",       ":fill",    ":window_bits",
                                           ":capacity", ":window_first"};
    struct figures *figures = context;
    const char *figure = strchr(name, ':');
    bool wanted = false;
    for (size_t i = 0; figure && i < sizeof(compared) / sizeof(*compared); i++) {
        wanted = wanted || strcmp(figure, compared[i]) == 0;
    }
    if (wanted) {
        figures->length +=
            (size_t)snprintf(figures->text + figures->length,
                             sizeof(figures->text) - figures->length, "%s %s\n", name, text);
        assert_true(figures->length < sizeof(figures->text));
    }
}

static void expect_figures(struct run *r, struct engine *restored)
{
    static struct figures was, is;
    was.length = is.length = 0;
    stats_of_tables(r->engine, note_figure, &was);
    stats_of_tables(restored, note_figure, &is);
    if (strcmp(was.text, is.text) != 0) {
        fail_msg("%s, after %" PRIu64 ": tables are\n%s, were\n%s", r->profile->name, r->done,
                 is.text, was.text);
    }
}

/* ---- the end, and the beginning after it ---- */

static void count_tables(void *context, uint64_t serial, unsigned layer)
{
    struct run *r = context;
    (void)serial;
    r->restored_tables++;
    r->layers += layer;
}

static struct engine *create(struct run *r)
{
    struct engine *engine = counters_create(&r->config);
    engine->growth = &r->growth;
    return engine;
}

static struct engine *restore(struct run *r)
{
    bool fresh = false;
    struct engine *engine = create(r);
    size_t batch = 1 + below(r, BATCH_MAX);
    if (!checkpoints_restore(&r->checkpoints, engine, &r->recorder, batch, &fresh)) {
        fail_msg("%s, after %" PRIu64 ": %s", r->profile->name, r->done, r->checkpoints.error);
    }
    assert_false(fresh);
    counter_check(engine);
    return engine;
}

/* The restored one goes on, with the configuration there was at the end. */
static void go_on(struct run *r, struct engine *restored)
{
    r->engine->functions->destroy(r->engine);
    r->engine = restored;
    r->aborted_now = false;
    row_each_serial(restored->row, count_tables, r);
    row_set_log(restored->row, &r->recorder.log);
    reserve(r);
    counters_reconfigure(restored, &r->config);
    recorder_sink_init(&r->sink, &r->recorder);
    r->ends++;
}

/* All copies of later times are of no use. */
static void cut(struct run *r, uint64_t lsn)
{
    recorder_cut(&r->recorder, lsn);
    for (unsigned i = 0; i < COPIES; i++) {
        if (r->copies[i].lsn > lsn) {
            r->copies[i].lsn = NO_COPY;
        }
    }
}

static const struct row *row_of(const struct engine *engine)
{
    return &((const struct counter *)engine)->row;
}

static void end_exactly(struct run *r)
{
    struct engine *restored = restore(r);
    read_all(r, r->texts);
    expect_all(r, restored, r->texts, "at the end");
    expect_figures(r, restored);
    row_equal(row_of(r->engine), row_of(restored), false);
    r->exact_ends++;
    if (!r->aborted_now && once_in(r, 4)) {
        restored->functions->destroy(restored); /* as if it had never been */
        return;
    }
    go_on(r, restored);
}

static void end_at_copy(struct run *r, const struct copy *copy)
{
    cut(r, copy->lsn);
    struct engine *restored = restore(r);
    expect_all(r, restored, copy->texts, "at a copy");
    r->exact_ends++;
    go_on(r, restored);
}

/* Between any two records that the checkpoint does not need. */
static void end_anywhere(struct run *r)
{
    const struct recorder *recorder = &r->recorder;
    uint64_t lsn = recorder->records[recorder->count - 1 - below(r, recorder->count)].lsn;
    uint64_t least = r->checkpoints.last.any ? r->checkpoints.last.m : recorder->records[2].lsn;
    cut(r, lsn > least ? lsn : least);
    go_on(r, restore(r));
    r->cut_ends++;
}

static void end(struct run *r)
{
    const struct copy *copy = &r->copies[below(r, COPIES)];
    if (once_in(r, 3)) {
        end_anywhere(r);
    } else if (copy->lsn != NO_COPY && copy->lsn >= r->checkpoints.last.m) {
        end_at_copy(r, copy);
    } else {
        end_exactly(r);
    }
    counter_check(r->engine);
}

/* ---- checkpoints ---- */

static void operate_between(void *context)
{
    struct run *r = context;
    for (uint64_t n = below(r, BURST_MAX); n > 0; n--) {
        operate_any(r);
    }
    if (once_in(r, EVENT_ONCE_IN)) {
        reshape(r);
    }
    if (once_in(r, 8 * EVENT_ONCE_IN)) {
        clear(r);
    }
    r->stop = once_in(r, 2 * EVENT_ONCE_IN);
}

/* False: the space is to end in its midst. */
static bool take_images(struct run *r)
{
    struct checkpoints *cp = &r->checkpoints;
    checkpoints_begin(cp, r->engine, r->recorder.head);
    while (checkpoints_next(cp, r->engine, r->recorder.head)) {
        r->stop = false;
        enum engine_image result = checkpoints_write(cp, r->engine, &r->member, &r->stop);
        assert_true(result != ENGINE_IMAGE_FAILED);
        checkpoints_wrote(cp, r->engine, result);
        if (result == ENGINE_IMAGE_STOPPED) {
            r->aborted++;
            r->aborted_now = true;
            return false;
        }
        operate_between(r); /* before the next begins */
    }
    return true;
}

/* ---- run ---- */

static void step(struct run *r)
{
    operate_any(r);
    if (once_in(r, COPY_ONCE_IN)) {
        copy_now(r);
    }
    if (once_in(r, RESHAPE_ONCE_IN)) {
        reshape(r);
    }
    if (once_in(r, CLEAR_ONCE_IN)) {
        clear(r);
    }
    bool midst = once_in(r, IMAGES_ONCE_IN) && !take_images(r);
    if (midst || once_in(r, END_ONCE_IN)) {
        end(r);
    }
}

static void start(struct run *r, const struct profile *profile, uint64_t seed)
{
    memset(r, 0, sizeof(*r));
    r->profile = profile;
    r->random.state = seed;
    r->lazy = 1;
    counters_config(&r->config, profile->slots);
    r->config.space = 7;
    r->config.id_spacing = profile->spacing;
    r->config.row.any_ids = profile->tables == 0;
    r->config.row.tables = profile->tables ? profile->tables : 1;
    r->config.row.recycle = profile->recycle;
    r->config.row.table_bytes = profile->table_bytes;
    r->config.row.part_bytes = profile->part_bytes;
    r->config.aux_bytes = once_in(r, 2) ? profile->table_bytes : 0; /* else it is often full */
    r->growth.most = profile->part_bytes ? GROWTH_BYTES : 0;
    r->engine = create(r);
    recorder_init(&r->recorder);
    recorder_sink_init(&r->sink, &r->recorder);
    r->sim = vfs_sim_create(seed);
    struct vfs *vfs = vfs_sim_vfs(r->sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    checkpoints_init(&r->checkpoints, vfs, DIRECTORY);
    r->member = (struct barrier_member){operate_between, r, false};
    r->texts = memory_zalloc(profile->indices * sizeof(*r->texts));
    for (unsigned i = 0; i < COPIES; i++) {
        r->copies[i] = (struct copy){NO_COPY, memory_zalloc(profile->indices * sizeof(*r->texts))};
    }
    row_set_log(r->engine->row, &r->recorder.log);
    reserve(r);
    row_log_begin(r->engine->row);
}

static void finish(struct run *r)
{
    end_exactly(r);
    printf("%-20s %7" PRIu64 " operations (%" PRIu64 " refused), %4" PRIu64 " ends (%" PRIu64
           " anywhere), %4" PRIu64 " images, %3" PRIu64 " gone, %3" PRIu64 " aborted, %5" PRIu64
           " tables restored, %4" PRIu64 " layers\n",
           r->profile->name, r->done, r->refused, r->ends, r->cut_ends, r->checkpoints.images,
           r->checkpoints.gone, r->aborted, r->restored_tables, r->layers);
    r->engine->functions->destroy(r->engine);
    recorder_fini(&r->recorder);
    vfs_sim_destroy(r->sim);
    for (unsigned i = 0; i < COPIES; i++) {
        free(r->copies[i].texts);
    }
    free(r->texts);
}

static void test_replay(void **unused)
{
    static struct run run; /* large for a stack */
    (void)unused;
    uint64_t seed = test_seed();
    for (size_t i = 0; i < PROFILES; i++) {
        start(&run, &profiles[i], seed + i);
        run.ops_all = test_scaled(OPS_ALL) / PROFILES;
        while (run.done < run.ops_all) {
            step(&run);
        }
        finish(&run);
    }
}

/* Histories that found a fault once. */
static void test_found(void **unused)
{
    static const struct {
        size_t profile;
        uint64_t seed, ops_all;
    } found[] = {
        {PROFILES - 1, 8,
         18750}, /* a record of hidden slots was dropped, and the journal not told */
        {PROFILES - 1, 8, 37500}, /* a table was closed by the keeper before it was filled */
    };
    static struct run run;
    (void)unused;
    for (size_t i = 0; i < sizeof(found) / sizeof(*found); i++) {
        start(&run, &profiles[found[i].profile], found[i].seed);
        run.ops_all = found[i].ops_all;
        while (run.done < run.ops_all) {
            step(&run);
        }
        finish(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
