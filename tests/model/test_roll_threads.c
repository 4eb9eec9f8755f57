/*
 * test_roll_threads.c: ten tables' worth of ids roll through a row of four while 2 to 4 threads
 * read and write and a keeper opens and recycles.
 *
 * Each thread owns every so many-th index and makes it when the others are near. Of its own it
 * knows what must be there: kept ones only grow (counters: one slot alone, two in one step, over
 * the edge into the aux dict; pairs: stay), the others are set, changed, deleted and made again. It
 * publishes how far a kept one has come, and no reader may find less. An id may be gone only once
 * its table was recycled, and is then gone for good; at the end everything at or above the oldest
 * table's base is exact, everything below is absent and counted as recycled. Some ids are strays
 * far ahead. How long requests waited is printed.
 */
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
#include "tests/model/roll.h"
#include "tests/support/give_way.h"
#include "tests/support/random.h"

#define TABLES       5u /* one of them the spare */
#define TABLES_WORTH 10u
#define THREADS_MIN  2u
#define THREADS_MAX  4u
#define MEMBERS      4u /* of an id, for phantoms */
#define KEPT_ONE_IN  2u
#define SLOT_EDGE    ((1u << 20) - 3)
#define CLOSE_TO     20u /* changes below the slot's edge where some pairs of slots begin */
#define EDGE_ONE_IN  16u
#define LARGE        (1ull << 40)
#define LARGE_ONE_IN 16u
#define AHEAD_MAX    300u /* how many things a thread may be ahead of the last one */
#define STRAYS       12u
#define WAIT_MAX_US  20000u
#define SAFE_PART    2u /* this part of a table's worth before the newest is never recycled */
#define TEXT_MAX     96u

/* One id, or pair. Its owner's, but `published`. */
struct thing {
    uint64_t alone;             /* kept: increments of the first slot; else the value */
    uint64_t paired;            /* kept: value of the slots that change together */
    _Atomic uint32_t published; /* kept: 1 + what is surely in the first slot; 0: not made */
    bool there;
    bool made; /* once */
    bool gone; /* found to be recycled */
};

struct shared {
    struct roll roll;
    const struct roll_shape *shape;
    uint64_t count; /* things */
    struct thing *things;
    unsigned threads;
    _Atomic uint64_t next[THREADS_MAX]; /* the index each makes next */
    _Atomic bool failed;
};

struct worker {
    struct roll_worker roll;
    pthread_t thread;
    struct shared *shared;
    unsigned number;
    struct test_random random;
    uint64_t next;
    const char *wrong; /* NULL: nothing */
    char detail[ENGINE_VALUE_MAX + 128];
    /* The request. */
    size_t n;
    uint64_t indices[ROLL_OPS_MAX];
    uint32_t least[ROLL_OPS_MAX]; /* `published` when it began */
    struct engine_op *ops[ROLL_OPS_MAX];
    struct counters_call counters[ROLL_OPS_MAX];
    struct phantoms_call phantoms[ROLL_OPS_MAX];
    char texts[ROLL_OPS_MAX][TEXT_MAX];
    char members[ROLL_OPS_MAX][ROLL_MEMBER_MAX];
};

static void wrong(struct worker *w, const char *what, size_t i)
{
    const struct engine_op *op = w->ops[i];
    if (!w->wrong) {
        w->wrong = what;
        snprintf(w->detail, sizeof(w->detail),
                 "index %" PRIu64 " id %" PRIu64 " verb %d status %d error %d miss %d '%.*s'",
                 w->indices[i], op->id, (int)op->verb, (int)op->status, (int)op->error,
                 (int)op->miss, (int)op->value_length, op->value);
        atomic_store(&w->shared->failed, true);
    }
}

/* ---- things ---- */

static bool is_stray(const struct shared *s, uint64_t index)
{
    uint64_t every = s->count / (STRAYS + 1);
    return index > 0 && index % every == 0 && index / every <= STRAYS;
}

/* Strays are scattered: each lies about twice as far ahead as the one before, the last 2^60. */
static uint64_t thing_id(const struct shared *s, uint64_t index)
{
    unsigned members = s->roll.phantom ? MEMBERS : 1;
    uint64_t id = s->shape->id(index / members);
    if (!is_stray(s, index)) {
        return id;
    }
    uint64_t number = index / (s->count / (STRAYS + 1));
    return (1ull << (60 - STRAYS + number)) + id;
}

static bool is_kept(uint64_t index)
{
    return hash_u64(index) % KEPT_ONE_IN == 0;
}

static uint64_t pair_start(uint64_t index)
{
    return hash_u64(index) / KEPT_ONE_IN % EDGE_ONE_IN == 0 ? SLOT_EDGE - CLOSE_TO : 1;
}

/* ---- a request ---- */

static void add_counter_op(struct worker *w, enum engine_verb verb, uint64_t index)
{
    size_t i = w->n;
    struct counters_call *call = &w->counters[i];
    counters_call_init(call, verb, ENGINE_SLOT_RECORD, thing_id(w->shared, index), w->texts[i]);
    call->op.create_never = verb == ENGINE_INCR && !is_kept(index);
    w->ops[i] = &call->op;
}

static void add_phantom_op(struct worker *w, enum engine_verb verb, uint64_t index)
{
    size_t i = w->n;
    struct phantoms_call *call = &w->phantoms[i];
    snprintf(w->members[i], sizeof(w->members[i]), "u%" PRIu64, index);
    phantoms_call_init(call, verb, thing_id(w->shared, index), w->members[i], "1");
    w->ops[i] = &call->op;
}

/* Adds an operation; its text, if it needs one, stands in texts[n]. */
static void add_op(struct worker *w, enum engine_verb verb, uint64_t index)
{
    w->indices[w->n] = index;
    w->least[w->n] = atomic_load(&w->shared->things[index].published);
    if (w->shared->roll.phantom) {
        add_phantom_op(w, verb, index);
    } else {
        add_counter_op(w, verb, index);
    }
    w->n++;
}

static void add_record(struct worker *w, enum engine_verb verb, uint64_t index)
{
    uint64_t v = test_random_below(&w->random, 1000);
    v += test_random_once_in(&w->random, LARGE_ONE_IN) ? LARGE : 0;
    snprintf(w->texts[w->n], TEXT_MAX, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, v, v + 1,
             v + 2, v + 3);
    add_op(w, verb, index);
}

/* Makes a thing for the first time. */
static void add_make(struct worker *w, uint64_t index)
{
    if (w->shared->roll.phantom) {
        add_op(w, ENGINE_ADD, index);
    } else if (is_kept(index)) {
        uint64_t pair = pair_start(index);
        snprintf(w->texts[w->n], TEXT_MAX, "0,%" PRIu64 ",7,%" PRIu64, pair, pair);
        add_op(w, index % 3 ? ENGINE_INCR : ENGINE_ADD, index);
    } else {
        add_record(w, index % 3 ? ENGINE_SET : ENGINE_ADD, index);
    }
}

static void add_change(struct worker *w, uint64_t index)
{
    uint64_t choice = test_random_below(&w->random, 5);
    if (w->shared->roll.phantom) {
        bool deletes = !is_kept(index) && choice < 2;
        add_op(w, deletes ? ENGINE_DELETE : choice == 2 ? ENGINE_SET : ENGINE_ADD, index);
    } else if (is_kept(index)) {
        strcpy(w->texts[w->n], choice < 2 ? ",1,,1" : "1,,,");
        add_op(w, ENGINE_INCR, index);
    } else if (choice == 0) {
        add_op(w, ENGINE_DELETE, index);
    } else if (choice == 1) {
        strcpy(w->texts[w->n], "1,1,1,1");
        add_op(w, ENGINE_INCR, index);
    } else {
        static const enum engine_verb verbs[] = {ENGINE_SET, ENGINE_ADD, ENGINE_REPLACE};
        add_record(w, verbs[choice - 2], index);
    }
}

/* ---- answers ---- */

/* Reads the four fields of a record's text; false if one is empty. */
static bool fields_of(const struct engine_op *op, uint64_t *fields)
{
    char text[ENGINE_VALUE_MAX + 1];
    memcpy(text, op->value, op->value_length);
    text[op->value_length] = '\0';
    const char *at = text;
    for (unsigned i = 0; i < 4; i++) {
        char *end;
        if (*at < '0' || *at > '9') {
            return false;
        }
        fields[i] = strtoull(at, &end, 10);
        at = end + (*end == ',');
    }
    return *at == '\0';
}

static bool is_below(const struct engine_op *op)
{
    return (op->status == ENGINE_ABSENT && op->verb == ENGINE_READ &&
            op->miss == ENGINE_MISS_BELOW) ||
           (op->status == ENGINE_ERROR && op->error == ENGINE_E_ID_BELOW);
}

/* Is an index so new, or a stray, that it cannot have been recycled? */
static bool is_safe(const struct worker *w, uint64_t index)
{
    return is_stray(w->shared, index) ||
           index + AHEAD_MAX + w->shared->roll.capacity / SAFE_PART > w->next;
}

static void check_gone(struct worker *w, size_t i)
{
    if (is_safe(w, w->indices[i])) {
        wrong(w, "recycled although it is new", i);
    }
    if (w->indices[i] % w->shared->threads == w->number) {
        w->shared->things[w->indices[i]].gone = true;
    }
}

/* Something its owner has published, or a thread's own, read or incremented as a whole. */
static void check_record(struct worker *w, size_t i, const uint64_t *fields)
{
    if (is_kept(w->indices[i])) {
        if (fields[1] != fields[3] || fields[2] != 7) {
            wrong(w, "two slots came apart", i);
        }
        if (fields[0] + 1 < w->least[i]) {
            wrong(w, "a counter went back", i);
        }
    } else if (fields[1] != fields[0] + 1 || fields[2] != fields[0] + 2 ||
               fields[3] != fields[0] + 3) {
        wrong(w, "a record is torn", i);
    }
}

static void check_read(struct worker *w, size_t i)
{
    const struct engine_op *op = w->ops[i];
    uint64_t fields[4];
    if (op->status == ENGINE_ABSENT) {
        if (is_kept(w->indices[i]) && w->least[i]) {
            wrong(w, "a kept one is not there", i);
        }
    } else if (op->status != ENGINE_DONE) {
        wrong(w, "a read failed", i);
    } else if (!w->shared->roll.phantom && !fields_of(op, fields)) {
        wrong(w, "a record lacks slots", i);
    } else if (!w->shared->roll.phantom) {
        check_record(w, i, fields);
    }
}

/* What a write to an own thing must answer, given what was there. */
static enum engine_status status_of(const struct engine_op *op, bool there)
{
    switch (op->verb) {
    case ENGINE_ADD:
        return there ? ENGINE_EXISTS : ENGINE_DONE;
    case ENGINE_SET:
        return ENGINE_DONE;
    case ENGINE_INCR:
        return op->create_never && !there ? ENGINE_ABSENT : ENGINE_DONE;
    default:
        return there ? ENGINE_DONE : ENGINE_ABSENT;
    }
}

static void take_counter(struct worker *w, size_t i, struct thing *thing)
{
    const struct engine_op *op = w->ops[i];
    uint64_t fields[4];
    if (op->verb == ENGINE_DELETE) {
        return;
    }
    if (op->verb == ENGINE_INCR) {
        if (!fields_of(op, fields)) {
            wrong(w, "a record lacks slots", i);
            return;
        }
        bool pair = is_kept(w->indices[i]) && op->text[0] == ',';
        bool made = is_kept(w->indices[i]) && op->text[0] == '0';
        thing->alone += !pair && !made;
        thing->paired = made ? pair_start(w->indices[i]) : thing->paired + pair;
        check_record(w, i, fields);
        if (fields[0] != thing->alone || (is_kept(w->indices[i]) && fields[1] != thing->paired)) {
            wrong(w, "an increment gave another number", i);
        }
    } else {
        thing->alone = strtoull(op->text, NULL, 10);
        thing->paired = pair_start(w->indices[i]);
    }
}

static void check_own_read(struct worker *w, size_t i, const struct thing *thing)
{
    uint64_t fields[4] = {0};
    check_read(w, i);
    if (w->shared->roll.phantom || !thing->there) {
        return;
    }
    if (!fields_of(w->ops[i], fields) || fields[0] != thing->alone ||
        (is_kept(w->indices[i]) && fields[1] != thing->paired)) {
        wrong(w, "an own one has another number", i);
    }
}

/* Pairs that were taken for there before they were are there from then on. */
static bool is_false_positive(const struct worker *w, const struct engine_op *op,
                              const struct thing *thing)
{
    return w->shared->roll.phantom && !thing->made && op->verb == ENGINE_ADD &&
           op->status == ENGINE_EXISTS;
}

static void check_own(struct worker *w, size_t i)
{
    struct thing *thing = &w->shared->things[w->indices[i]];
    const struct engine_op *op = w->ops[i];
    enum engine_status expected = status_of(op, thing->there);
    bool vanished = op->status == ENGINE_ABSENT && expected == ENGINE_DONE;
    bool doubtful = op->verb != ENGINE_READ && op->status == ENGINE_ABSENT;
    if (is_below(op) || (vanished && op->verb != ENGINE_READ)) {
        check_gone(w, i);
        return;
    }
    if (thing->gone && !doubtful) {
        wrong(w, "a recycled one came back", i);
    } else if (op->status != expected && !is_false_positive(w, op, thing)) {
        wrong(w, "an own one is not as it was left", i);
    } else if (op->verb == ENGINE_READ) {
        check_own_read(w, i, thing);
    } else if (op->status != ENGINE_ABSENT) {
        if (op->status == ENGINE_DONE && !w->shared->roll.phantom) {
            take_counter(w, i, thing);
        }
        thing->made = true;
        thing->there = op->verb != ENGINE_DELETE;
        atomic_store(&thing->published, is_kept(w->indices[i]) ? (uint32_t)thing->alone + 1 : 0);
    }
}

/* ---- threads ---- */

static uint64_t any_own(struct worker *w)
{
    uint64_t made = (w->next - w->number) / w->shared->threads;
    uint64_t recent = 2 * w->shared->roll.capacity / w->shared->threads;
    bool all = made < recent || test_random_once_in(&w->random, 4);
    uint64_t back = 1 + test_random_below(&w->random, all ? made : recent);
    return w->number + w->shared->threads * (made - back);
}

/* Of whatever thread; about what has been made. */
static uint64_t any_thing(struct worker *w)
{
    uint64_t recent = 2 * w->shared->roll.capacity;
    bool all = w->next < recent || test_random_once_in(&w->random, 8);
    return w->next - 1 - test_random_below(&w->random, all ? w->next : recent);
}

static bool may_make(const struct worker *w)
{
    const struct shared *s = w->shared;
    for (unsigned i = 0; i < s->threads; i++) {
        if (w->next > atomic_load(&s->next[i]) + AHEAD_MAX) {
            return false;
        }
    }
    return w->next < s->count;
}

static void add_some_op(struct worker *w)
{
    uint64_t choice = test_random_below(&w->random, 8);
    bool first = w->next < w->shared->threads;
    if (first || (choice == 0 && may_make(w))) {
        add_make(w, w->next);
        w->next += w->shared->threads;
    } else if (choice < 4) {
        add_change(w, any_own(w));
    } else if (choice == 4) {
        add_op(w, ENGINE_READ, any_own(w));
    } else {
        add_op(w, ENGINE_READ, any_thing(w));
    }
}

static void check_answers(struct worker *w)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->indices[i] % w->shared->threads == w->number) {
            check_own(w, i);
        } else if (is_below(w->ops[i])) {
            check_gone(w, i);
        } else {
            check_read(w, i);
        }
    }
}

static void *work(void *context)
{
    struct worker *w = context;
    struct shared *s = w->shared;
    while (w->next < s->count && !atomic_load(&s->failed)) {
        uint64_t n = 1 + test_random_below(&w->random, ROLL_OPS_MAX);
        for (w->n = 0; w->n < n && w->next < s->count;) {
            add_some_op(w);
        }
        roll_run(&w->roll, w->ops, w->n);
        check_answers(w);
        atomic_store(&s->next[w->number], w->next);
        if (!may_make(w)) {
            give_way(); /* the others are behind */
        }
    }
    return NULL;
}

/* ---- at the end ---- */

static void check_end(struct worker *w, uint64_t index, uint64_t oldest, uint64_t *recycled)
{
    struct thing *thing = &w->shared->things[index];
    bool below = thing_id(w->shared, index) < oldest;
    w->number = (unsigned)(index % w->shared->threads);
    w->n = 0;
    add_op(w, ENGINE_READ, index);
    roll_run(&w->roll, w->ops, 1);
    check_own(w, 0);
    if (is_below(w->ops[0]) != below || (thing->gone && !below)) {
        wrong(w, "recycled, but its table is there, or the other way round", 0);
    }
    *recycled += below && thing->there;
}

static void check_all(struct shared *s)
{
    static struct worker worker; /* large for a stack */
    struct worker *w = &worker;
    uint64_t expected = 0;
    memset(w, 0, sizeof(*w));
    w->shared = s;
    w->next = s->count;
    roll_worker_init(&w->roll, &s->roll);
    uint64_t oldest = roll_oldest(&s->roll);
    for (uint64_t i = 0; i < s->count && !w->wrong; i++) {
        check_end(w, i, oldest, &expected);
    }
    roll_worker_fini(&w->roll);
    if (w->wrong) {
        roll_print(&s->roll);
        fail_msg("at the end: %s: %s", w->wrong, w->detail);
    }
    uint64_t recycled = engine_recycled(s->roll.engine);
    uint64_t opened = roll_opened(&s->roll);
    printf("  %" PRIu64 " tables opened, %" PRIu64 " of %" PRIu64 " recycled\n", opened, recycled,
           s->count);
    uint64_t tolerance = s->roll.phantom ? 1 + s->count / 10000 : 0; /* false positives */
    assert_in_range(recycled, expected > tolerance ? expected - tolerance : 0,
                    expected + tolerance);
    assert_true(opened <= TABLES || recycled > 0);
}

static void set_up(struct shared *s, bool phantom)
{
    if (phantom) {
        struct phantom_config config = phantoms_config(true);
        config.false_positives = PHANTOM_FALSE_POSITIVES_MIN;
        config.exceptions_bytes = 4 * config.row.table_bytes;
        config.row.tables = TABLES;
        config.row.recycle = true;
        config.row.late_room = ROW_LATE_AUTO;
        roll_init_phantom(&s->roll, &config, true);
    } else {
        struct counter_config config;
        counters_config(&config, "a:20 b:20 c:20 d:20");
        config.aux_bytes = 4 * config.row.table_bytes;
        config.row.tables = TABLES;
        config.row.recycle = true;
        config.row.late_room = ROW_LATE_AUTO;
        roll_init_counter(&s->roll, &config, true);
    }
}

static void start_workers(struct shared *s, struct worker *workers, uint64_t seed)
{
    for (unsigned i = 0; i < s->threads; i++) {
        struct worker *w = &workers[i];
        w->shared = s;
        w->number = i;
        w->next = i;
        w->random.state = seed + i;
        roll_worker_init(&w->roll, &s->roll);
    }
    for (unsigned i = 0; i < s->threads; i++) {
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
}

static void join_workers(struct shared *s, struct worker *workers, struct roll_waits *waits)
{
    for (unsigned i = 0; i < s->threads; i++) {
        pthread_join(workers[i].thread, NULL);
        roll_waits_add(waits, &workers[i].roll.waits);
        roll_worker_fini(&workers[i].roll);
    }
    for (unsigned i = 0; i < s->threads; i++) {
        if (workers[i].wrong) {
            roll_settle(&s->roll);
            roll_print(&s->roll);
            fail_msg("thread %u of %u, %s: %s: %s", i, s->threads, s->shape->name, workers[i].wrong,
                     workers[i].detail);
        }
    }
}

static void run_threads(bool phantom, const struct roll_shape *shape, unsigned threads,
                        uint64_t seed)
{
    static struct shared shared;
    struct shared *s = &shared;
    struct roll_waits waits = {0};
    char name[80];
    memset(s, 0, sizeof(*s));
    set_up(s, phantom);
    s->shape = shape;
    s->threads = threads;
    s->count = test_scaled(TABLES_WORTH * s->roll.capacity) + STRAYS + 1;
    s->things = memory_zalloc(s->count * sizeof(*s->things));
    struct worker *workers = memory_zalloc(threads * sizeof(*workers));
    start_workers(s, workers, seed);
    join_workers(s, workers, &waits);
    roll_settle(&s->roll);
    roll_check(&s->roll);
    snprintf(name, sizeof(name), "%s, %s ids, %u threads", phantom ? "phantom" : "counter",
             shape->name, threads);
    roll_waits_print(&waits, name);
    check_all(s);
    free(workers);
    free(s->things);
    roll_fini(&s->roll);
    assert_true(!roll_waits_matter() || waits.longest_us <= WAIT_MAX_US);
}

static void test_roll(void **state)
{
    bool phantom = *state != NULL;
    uint64_t seed = test_seed();
    for (unsigned i = 0; i < ROLL_SHAPES; i++) {
        unsigned threads = THREADS_MIN + (i + phantom) % (THREADS_MAX - THREADS_MIN + 1);
        run_threads(phantom, &roll_shapes[i], threads, seed + 1000 * i);
    }
}

int main(void)
{
    static bool phantoms = true;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roll),
        cmocka_unit_test_prestate(test_roll, &phantoms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
