/* workers.c: what clients ask for in a simulation, and what they are told afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "row/row_data.h"
#include "tests/sim/sim.h"
#include "tests/support/counters.h"
#include "tests/support/phantoms.h"

#define FIRST_ID        5000u
#define ID_STEP         4u
#define ANY_INDICES     9000u
#define RECENT          300u
#define MEMBERS         40u /* of an id, as a rule */
#define PENDING_MAX     20u
#define COMMIT_ONE_IN   4u
#define DUMP_ONE_IN     8u
#define COMPARE_ONE_IN  8u /* where there are many; all of them now and then */
#define CLEAR_ONE_IN    20000u
#define STOP_ONE_IN     4000u
#define STRAY_ONE_IN    300u
#define LARGE           (1ull << 61)
#define FILL_OPERATIONS 16u

#define SURGE_OPERATIONS 50u /* so many at once may be of new ids alone */

const char *workers_member(uint32_t member, char text[SIM_MEMBERS_MAX])
{
    snprintf(text, SIM_MEMBERS_MAX, "m%u", member);
    return text;
}

/* ---- keys ---- */

static uint64_t any_index(struct sim *sim, unsigned space)
{
    uint64_t *newest = &sim->newest[space];
    uint64_t back = test_random_once_in(&sim->random, 6) ? *newest + 1 : RECENT;

    if (sim->surge) {
        return ++*newest;
    }
    if (test_random_once_in(&sim->random, sim->fill || sim->dumps ? 1 : 2)) {
        (*newest)++;
    }
    return *newest - test_random_below(&sim->random, back < *newest ? back : *newest + 1);
}

static uint64_t any_id(struct sim *sim, unsigned space)
{
    if (sim->settings.spaces[space].ids == SPACE_IDS_ANY) {
        return hash_u64(test_random_below(&sim->random, ANY_INDICES)) >> 45;
    }
    uint64_t id = FIRST_ID + any_index(sim, space) * ID_STEP;

    if (test_random_once_in(&sim->random, 3)) {
        id += test_random_below(&sim->random, ID_STEP); /* late, as a rule */
    }

    if (test_random_once_in(&sim->random, STRAY_ONE_IN)) {
        return test_random_once_in(&sim->random, 2)
                   ? id * 1000 + test_random_below(&sim->random, 100000)
                   : test_random_below(&sim->random, FIRST_ID);
    }
    return id;
}

/* ---- one operation ---- */

static void run(struct sim *sim, unsigned space, struct engine_op *op, unsigned worker)
{
    struct change_sink *sink = &sim->sinks[worker].sink;

    sim_run(sim, space, op, sink);
    for (unsigned i = 0; i < PENDING_MAX && op->status == ENGINE_PENDING; i++) {
        sim->figures.pending++;
        if (!sim_maintain(sim, space) || sim_wants_dump(sim)) {
            break; /* that comes between two operations */
        }
        sim_run(sim, space, op, sink);
    }
    sim->figures.operations++;
    sim->figures.refused += op->status == ENGINE_ERROR || op->status == ENGINE_PENDING;
}

static void print_value(struct sim *sim, char *text, size_t fields)
{
    for (size_t i = 0; i < fields; i++) {
        uint64_t value = test_random_below(&sim->random, 40);

        value += test_random_once_in(&sim->random, 12) ? LARGE : 0;
        text += sprintf(text, i > 0 ? ",%llu" : "%llu", (unsigned long long)value);
    }
}

static void do_counter(struct sim *sim, unsigned space, unsigned worker)
{
    static const enum engine_verb verbs[] = {ENGINE_SET,  ENGINE_SET,    ENGINE_ADD,    ENGINE_INCR,
                                             ENGINE_INCR, ENGINE_DELETE, ENGINE_REPLACE};
    size_t slots = sim->settings.spaces[space].slot_count;
    enum engine_verb verb = verbs[test_random_below(&sim->random, sizeof(verbs) / sizeof(*verbs))];
    bool whole = verb == ENGINE_DELETE || test_random_once_in(&sim->random, 2);
    int slot = whole ? ENGINE_SLOT_RECORD : (int)test_random_below(&sim->random, slots);
    char text[ENGINE_VALUE_MAX];
    struct counters_call call;

    if (verb == ENGINE_DELETE && !test_random_once_in(&sim->random, 3)) {
        slot = (int)test_random_below(&sim->random, slots);
    }
    print_value(sim, text, slot == ENGINE_SLOT_RECORD ? slots : 1);
    counters_call_init(&call, verb, slot, any_id(sim, space), verb == ENGINE_DELETE ? NULL : text);
    sim->member_now = HISTORY_NO_MEMBER;
    run(sim, space, &call.op, worker);
}

/* Adds, and now and then deletes what was added shortly before. */
static void do_member(struct sim *sim, unsigned space, unsigned worker, uint64_t id)
{
    struct sim_pair *recent = &sim->recent[test_random_below(&sim->random, SIM_RECENT)];
    bool adds = test_random_below(&sim->random, 4) > 0;
    struct phantoms_call call;
    char text[SIM_MEMBERS_MAX];

    sim->member_now = (uint32_t)test_random_below(&sim->random, sim->fill ? 4000 : MEMBERS);
    if (recent->id > 0 && test_random_once_in(&sim->random, 3)) {
        id = recent->id;
        sim->member_now = recent->member;
    } else if (adds) {
        *recent = (struct sim_pair){id, sim->member_now};
    }
    phantoms_call_init(&call, adds ? ENGINE_ADD : ENGINE_DELETE, id,
                       workers_member(sim->member_now, text), adds ? "1" : "");
    run(sim, space, &call.op, worker);
}

static void do_phantom(struct sim *sim, unsigned space, unsigned worker)
{
    unsigned times = sim->fill ? FILL_OPERATIONS : 1;
    uint64_t id = any_id(sim, space);

    for (unsigned i = 0; i < times && !sim->ended; i++) {
        do_member(sim, space, worker, id);
    }
}

static void clear(struct sim *sim, unsigned space)
{
    struct engine *engine = sim_engine(sim, space);

    if (!sim_is_bracketed(sim) && sim->log.log.reserve(&sim->log.log)) {
        barrier_stop(sim->barrier);
        row_flush(engine->row);
        barrier_go(sim->barrier);
        row_clean_up(engine->row);
    }
}

static void do_one(struct sim *sim)
{
    unsigned space = (unsigned)test_random_below(&sim->random, SIM_SPACES);
    unsigned worker = (unsigned)test_random_below(&sim->random, SIM_WORKERS);

    if (sim->settings.spaces[space].kind == SPACE_COUNTER) {
        do_counter(sim, space, worker);
    } else {
        do_phantom(sim, space, worker);
    }
    if (sim->asked[space] && test_random_once_in(&sim->random, 3)) {
        (void)sim_maintain(sim, space);
    }
    if (test_random_once_in(&sim->random, CLEAR_ONE_IN)) {
        clear(sim, space);
    }
    if (test_random_once_in(&sim->random, STOP_ONE_IN)) {
        sim->stop = true;
    }
    if (test_random_once_in(&sim->random, COMMIT_ONE_IN)) {
        (void)sim_commit(sim, worker);
    }
}

/* Between two operations; others come in its midst. */
static void dump(struct sim *sim)
{
    bool surge = sim->surge;

    sim->occupied = false;
    sim_dump(sim);
    sim->occupied = true;
    sim->surge = surge;
}

void workers_do(struct sim *sim, unsigned operations)
{
    CHECK(!sim->occupied);
    sim->occupied = true;
    sim->surge = operations > SURGE_OPERATIONS && test_random_once_in(&sim->random, 2);
    for (unsigned i = 0; i < operations && !sim->ended; i++) {
        do_one(sim);
        if (!sim->hangs && sim_wants_dump(sim) && test_random_once_in(&sim->random, DUMP_ONE_IN)) {
            dump(sim);
        }
    }
    sim->occupied = false;
}

/* ---- what there is ---- */

static void differs(const struct sim *sim, const struct history_key *key, const char *what)
{
    fail_msg("seed %llu: space %s id %llu member %d: %s", (unsigned long long)sim->seed,
             sim->settings.spaces[key->space - 1].name, (unsigned long long)key->id,
             (int)key->member, what);
}

/* The slots of a record with a comma between, nothing where none is set. */
static size_t print_wanted(const struct history_key *key, size_t slots, char *text)
{
    size_t length = 0;

    for (size_t i = 0; i < slots; i++) {
        length += (size_t)sprintf(text + length, "%s", i > 0 ? "," : "");
        if (key->set & 1u << i) {
            length += (size_t)sprintf(text + length, "%llu", (unsigned long long)key->values[i]);
        }
    }
    return length;
}

static void compare_record(struct sim *sim, const struct history_key *key)
{
    struct counters_call call;
    char wanted[ENGINE_VALUE_MAX] = "";
    char what[2 * ENGINE_VALUE_MAX + 64];
    size_t length = 0;
    bool there = key->state == HISTORY_THERE;
    bool set = there && key->set != 0;

    counters_call_init(&call, ENGINE_READ, ENGINE_SLOT_RECORD, key->id, NULL);
    sim_run(sim, key->space - 1u, &call.op, NULL);
    const struct engine_op *op = &call.op;

    if (sim->ended) {
        return;
    }
    if (set) {
        length = print_wanted(key, sim->settings.spaces[key->space - 1u].slot_count, wanted);
    }
    bool same = set ? op->status == ENGINE_DONE && op->value_length == length &&
                          memcmp(op->value, wanted, length) == 0
                    : op->status == ENGINE_ABSENT && (op->miss == ENGINE_MISS_UNSET) == there;

    if (!same) {
        snprintf(what, sizeof(what), "is '%.*s' (status %d), not '%s'", (int)op->value_length,
                 op->value, (int)op->status,
                 set     ? wanted
                 : there ? "unset"
                         : "absent");
        differs(sim, key, what);
    }
}

static void compare_member(struct sim *sim, const struct history_key *key)
{
    struct phantoms_call call;
    char text[SIM_MEMBERS_MAX];

    phantoms_call_init(&call, ENGINE_READ, key->id, workers_member(key->member, text), "");
    sim_run(sim, key->space - 1u, &call.op, NULL);
    const struct engine_op *op = &call.op;

    if (sim->ended) {
        return;
    }
    if (key->state == HISTORY_THERE && op->status != ENGINE_DONE) {
        differs(sim, key, "was added and is absent");
    }
    if (key->state == HISTORY_ABSENT && op->status != ENGINE_ABSENT) {
        differs(sim, key, "was deleted and is there");
    }
}

static void compare_key(struct sim *sim, const struct history_key *key)
{
    if (key->member != HISTORY_NO_MEMBER) {
        compare_member(sim, key);
    } else {
        compare_record(sim, key);
    }
}

/* ---- none twice ---- */

struct counted {
    const char *name; /* of the figure */
    uint64_t count;
};

static void keep_count(void *context, const char *name, const char *text)
{
    struct counted *counted = context;

    if (strcmp(name, counted->name) == 0) {
        counted->count = strtoull(text, NULL, 10);
    }
}

/*
 * As many records as keys: none lies in two places. As many members as were put and not deleted.
 */
static void compare_count(struct sim *sim, unsigned space, uint64_t there)
{
    struct engine *engine = sim_engine(sim, space);
    bool phantom = sim->settings.spaces[space].kind == SPACE_PHANTOM;
    struct counted counted = {.name = phantom ? "members" : "records"};

    if (engine->row->count == 0) {
        assert_int_equal(there, 0); /* of one that follows: it has not begun */
        return;
    }
    if (phantom) {
        phantom_check(engine);
    } else {
        counter_check(engine);
    }
    engine->functions->stats_space(engine, keep_count, &counted);
    if (counted.count != there) {
        fail_msg("seed %llu: space %s holds %llu %s, not %llu", (unsigned long long)sim->seed,
                 sim->settings.spaces[space].name, (unsigned long long)counted.count, counted.name,
                 (unsigned long long)there);
    }
}

static uint64_t counts_as(const struct history_key *key)
{
    return key->member != HISTORY_NO_MEMBER ? (uint64_t)(int64_t)key->members
                                            : key->state == HISTORY_THERE;
}

void sim_compare(struct sim *sim)
{
    uint64_t there[HISTORY_SPACES_MAX] = {0};
    bool all = !sim->fill || test_random_once_in(&sim->random, 4);
    uint64_t one = test_random_below(&sim->random, COMPARE_ONE_IN);

    for (size_t i = 0; i < sim->history.key_room && !sim->ended; i++) {
        const struct history_key *key = &sim->history.key[i];

        if (key->state != HISTORY_UNUSED) {
            there[key->space] += counts_as(key);
            if (all || i % COMPARE_ONE_IN == one) {
                sim->figures.keys++;
                compare_key(sim, key);
            }
        }
    }
    for (unsigned i = 0; i < SIM_SPACES && !sim->ended; i++) {
        compare_count(sim, i, there[i + 1]);
    }
}
