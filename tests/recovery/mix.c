/* mix.c: a random mix of changes. */
#include "tests/recovery/mix.h"

#include <stdatomic.h>

#define RECENT_IDS 2000
#define TRIES_MAX  200 /* to find an id of this writer's */
#define LARGE_ONCE 400 /* numbers that no slot holds in place: one in so many */
#define LARGE      (1ull << 40)
#define SMALL      1000u
#define DELTA      3u

static int64_t number(struct mix *mix, uint64_t below)
{
    if (test_random_once_in(&mix->random, LARGE_ONCE)) {
        below = LARGE;
    }
    return (int64_t)test_random_below(&mix->random, below);
}

static int some_slot(struct mix *mix)
{
    return (int)test_random_below(&mix->random, SLOTS);
}

static struct op one_slot(struct mix *mix, uint64_t id, enum verb verb, int64_t value)
{
    struct op op = {.id = id, .verb = verb, .slot = some_slot(mix)};
    for (int i = 0; i < SLOTS; i++) {
        op.values[i] = i == op.slot ? value : UNSET_VALUE;
    }
    return op;
}

/* Each slot named or not, at least one. */
static struct op all_slots(struct mix *mix, uint64_t id, enum verb verb, uint64_t below)
{
    struct op op = one_slot(mix, id, verb, number(mix, below));
    op.slot = WHOLE;
    for (int i = 0; i < SLOTS; i++) {
        if (op.values[i] == UNSET_VALUE && test_random_once_in(&mix->random, 2)) {
            op.values[i] = number(mix, below);
        }
    }
    return op;
}

static size_t member_of(struct mix *mix, uint64_t id, enum verb verb, struct op *ops)
{
    int member = (int)test_random_below(&mix->random, MEMBERS);
    ops[0] = (struct op){.id = id, .verb = verb, .slot = member};
    return 1;
}

static size_t make_incr(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = one_slot(mix, id, VERB_INCR, 1 + number(mix, DELTA));
    return 1;
}

static size_t make_decr(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = one_slot(mix, id, VERB_DECR, 1 + number(mix, DELTA));
    return 1;
}

static size_t make_incr_record(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = all_slots(mix, id, VERB_INCR, DELTA);
    return 1;
}

static size_t make_decr_record(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = all_slots(mix, id, VERB_DECR, DELTA);
    return 1;
}

static size_t make_set(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = one_slot(mix, id, VERB_SET, number(mix, SMALL));
    return 1;
}

static size_t make_record(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = all_slots(mix, id, VERB_RECORD, SMALL);
    return 1;
}

static size_t make_unset(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = one_slot(mix, id, VERB_UNSET, 0);
    return 1;
}

/* Deleted, and half of the time made again at once. */
static size_t make_delete(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = one_slot(mix, id, VERB_DELETE, 0);
    ops[0].slot = WHOLE;
    if (test_random_once_in(&mix->random, 2)) {
        return 1;
    }
    return 1 + make_incr_record(mix, id, ops + 1);
}

static size_t make_get(struct mix *mix, uint64_t id, struct op *ops)
{
    ops[0] = one_slot(mix, id, VERB_GET, 0);
    ops[0].slot = WHOLE;
    return 1;
}

static size_t make_add_member(struct mix *mix, uint64_t id, struct op *ops)
{
    return member_of(mix, id, VERB_ADD_MEMBER, ops);
}

static size_t make_delete_member(struct mix *mix, uint64_t id, struct op *ops)
{
    return member_of(mix, id, VERB_DELETE_MEMBER, ops);
}

static const struct {
    unsigned per_cent;
    size_t (*make)(struct mix *mix, uint64_t id, struct op *ops);
} makers[] = {
    {32, make_incr}, {4, make_decr},        {14, make_incr_record},  {2, make_decr_record},
    {12, make_set},  {5, make_record},      {3, make_unset},         {3, make_delete},
    {3, make_get},   {14, make_add_member}, {8, make_delete_member},
};

/* An id of this writer's that is not gone; 0: none found. */
static uint64_t own_id(struct mix *mix)
{
    uint64_t next = atomic_load_explicit(&mix->model->next, memory_order_relaxed);
    uint64_t back = test_random_once_in(&mix->random, 2) ? mix->window : RECENT_IDS;
    if (back > next - 1) {
        back = next - 1;
    }
    for (int i = 0; i < TRIES_MAX && back > 0; i++) {
        uint64_t id = next - 1 - test_random_below(&mix->random, back);
        struct model_entry *entry = &mix->entries[id];
        if (atomic_load_explicit(&entry->owner, memory_order_relaxed) == mix->owner &&
            entry->gone == 0) {
            return id;
        }
    }
    return 0;
}

static uint64_t new_id(struct mix *mix)
{
    if (atomic_load_explicit(&mix->model->full, memory_order_relaxed)) {
        return 0;
    }
    uint64_t id = atomic_load_explicit(&mix->model->next, memory_order_relaxed);
    do {
        if (id >= mix->model->ids_max) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&mix->model->next, &id, id + 1));
    struct model_entry *entry = &mix->entries[id];
    for (int i = 0; i < SLOTS; i++) {
        entry->slots[i] = UNSET_VALUE;
    }
    atomic_store_explicit(&entry->owner, (uint8_t)mix->owner, memory_order_relaxed);
    return id;
}

/* A new id's first ops: its record, one way or another, and a member. */
static size_t make_new(struct mix *mix, uint64_t id, struct op *ops)
{
    size_t count =
        test_random_once_in(&mix->random, 3) ? make_record(mix, id, ops) : make_incr(mix, id, ops);
    return count + make_add_member(mix, id, ops + count);
}

size_t mix_next(struct mix *mix, struct op *ops)
{
    bool fresh = test_random_below(&mix->random, 1000) < mix->new_per_mille;
    uint64_t id = fresh ? 0 : own_id(mix);
    if (id == 0) {
        id = new_id(mix);
        if (id != 0) {
            return make_new(mix, id, ops);
        }
        id = own_id(mix);
    }
    if (id == 0) {
        return 0;
    }
    uint64_t at = test_random_below(&mix->random, 100);
    size_t i = 0;
    while (at >= makers[i].per_cent) {
        at -= makers[i].per_cent;
        i++;
    }
    return makers[i].make(mix, id, ops);
}
