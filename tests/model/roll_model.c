/* roll_model.c: the plain map beside a space. */
#include "tests/model/roll_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/num.h"
#include "row/row_private.h"

#define ROOM_FIRST 4096u
/* Pairs that never were and are found nevertheless, at a rate of one in a million. */
#define WRONG_ALWAYS 3u
#define NEAR_PART    8u
#define NEAR_IDS     64u
#define WRONG_ONE_IN 100000u

/* What the map answers. */
struct expected {
    enum engine_status status;
    enum engine_error error;
    enum engine_miss miss;
    bool there; /* afterwards */
    uint64_t value;
};

/* ---- items ---- */

static void *resize(void *memory, size_t bytes)
{
    void *resized = realloc(memory, bytes);
    CHECK(resized);
    return resized;
}

static uint32_t *find(const struct roll_model *m, uint64_t id, uint32_t member)
{
    size_t mask = 2 * m->room - 1;
    size_t at = hash_u64(hash_u64(id) + member) & mask;
    while (m->index[at]) {
        const struct roll_item *item = &m->items[m->index[at] - 1];
        if (item->id == id && item->member == member) {
            break;
        }
        at = (at + 1) & mask;
    }
    return &m->index[at];
}

static void grow(struct roll_model *m)
{
    m->room = m->room ? 2 * m->room : ROOM_FIRST;
    m->items = resize(m->items, m->room * sizeof(*m->items));
    m->index = resize(m->index, 2 * m->room * sizeof(*m->index));
    memset(m->index, 0, 2 * m->room * sizeof(*m->index));
    for (size_t i = 0; i < m->count; i++) {
        *find(m, m->items[i].id, m->items[i].member) = (uint32_t)i + 1;
    }
}

size_t roll_model_item(struct roll_model *m, uint64_t id, uint32_t member)
{
    if (m->count == m->room) {
        grow(m);
    }
    uint32_t *at = find(m, id, member);
    if (!*at) {
        m->items[m->count++] = (struct roll_item){.id = id, .member = member};
        *at = (uint32_t)m->count;
    }
    return *at - 1;
}

/* ---- the space ---- */

static void start(struct roll_model *m, const char *name)
{
    m->name = name;
    grow(m);
    roll_worker_init(&m->worker, &m->roll);
}

void roll_model_init_counter(struct roll_model *m, const char *name,
                             const struct counter_config *config)
{
    memset(m, 0, sizeof(*m));
    roll_init_counter(&m->roll, config, false);
    start(m, name);
}

void roll_model_init_phantom(struct roll_model *m, const char *name,
                             const struct phantom_config *config)
{
    memset(m, 0, sizeof(*m));
    roll_init_phantom(&m->roll, config, false);
    start(m, name);
}

void roll_model_fini(struct roll_model *m)
{
    roll_settle(&m->roll);
    if (m->done != m->compared_at || m->roll.maintained != m->compared_round) {
        roll_model_compare(m);
    }
    assert_true(m->wrong_denials <= WRONG_ALWAYS + m->denials / WRONG_ONE_IN);
    roll_worker_fini(&m->worker);
    roll_fini(&m->roll);
    free(m->items);
    free(m->index);
}

/* ---- operations ---- */

static struct expected refuse(const struct roll_item *item, enum engine_status status,
                              enum engine_error error)
{
    return (struct expected){status, error, ENGINE_MISS_ABSENT, item->there, item->value};
}

static struct expected expect_below(const struct roll_item *item, enum engine_verb verb)
{
    switch (verb) {
    case ENGINE_READ:
    case ENGINE_TOUCH:
        return (struct expected){ENGINE_ABSENT, ENGINE_E_NONE, ENGINE_MISS_BELOW, item->there,
                                 item->value};
    case ENGINE_REPLACE:
    case ENGINE_DELETE:
        return refuse(item, ENGINE_ABSENT, ENGINE_E_NONE);
    default:
        return refuse(item, ENGINE_ERROR, ENGINE_E_ID_BELOW);
    }
}

static struct expected expect(const struct roll_item *item, enum engine_verb verb, uint64_t value)
{
    uint64_t old = item->there ? item->value : 0;
    struct expected done = {ENGINE_DONE, ENGINE_E_NONE, ENGINE_MISS_ABSENT, true, value};
    bool needs = verb != ENGINE_SET && verb != ENGINE_ADD && verb != ENGINE_INCR &&
                 verb != ENGINE_DECR; /* something there */
    if (needs && !item->there) {
        return refuse(item, ENGINE_ABSENT, ENGINE_E_NONE);
    }
    switch (verb) {
    case ENGINE_READ:
    case ENGINE_TOUCH:
        done.value = old;
        break;
    case ENGINE_ADD:
        return item->there ? refuse(item, ENGINE_EXISTS, ENGINE_E_NONE) : done;
    case ENGINE_INCR:
        done.value = old + value;
        break;
    case ENGINE_DECR:
        done.value = old < value ? 0 : old - value;
        break;
    case ENGINE_DELETE:
        done.there = false;
        break;
    default:
        break;
    }
    return done;
}

static void fill(struct roll_model *m, struct engine_op **op, enum engine_verb verb,
                 const struct roll_item *item, uint64_t value)
{
    m->text[num_print(m->text, m->roll.phantom ? 1 : value)] = '\0';
    if (m->roll.phantom) {
        m->member[0] = 'u';
        m->member[1 + num_print(m->member + 1, item->member)] = '\0';
        phantoms_call_init(&m->call.phantom, verb, item->id, m->member, m->text);
        *op = &m->call.phantom.op;
    } else {
        int slot = verb == ENGINE_DELETE ? ENGINE_SLOT_RECORD : 0;
        counters_call_init(&m->call.counter, verb, slot, item->id, m->text);
        *op = &m->call.counter.op;
    }
}

static const struct roll_range *range_of(const struct roll_range *ranges, size_t n, uint64_t id)
{
    while (n > 0 && ranges[n - 1].base > id) {
        n--;
    }
    return n > 0 ? &ranges[n - 1] : NULL;
}

static bool has_serial(const struct roll_range *ranges, size_t n, uint64_t serial)
{
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].serial == serial) {
            return true;
        }
    }
    return false;
}

static int by_id(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* What is apart did not go with its table. Of a pair that is known of its id alone. */
static bool stays_apart(const struct roll_model *m, struct roll_item *item, const uint64_t *apart,
                        size_t count)
{
    bool stays = count > 0 && bsearch(&item->id, apart, count, sizeof(*apart), by_id) != NULL;
    item->unsure = item->unsure || (stays && m->roll.phantom);
    return stays;
}

/* What a table that is no more had of `old`; later ones opened in the same round. */
static void forget_range(struct roll_model *m, const struct roll_range *old, uint64_t later)
{
    size_t count;
    uint64_t *apart = roll_apart(&m->roll, &count);
    m->drops[m->drop_count++ % ROLL_DROPS_MAX] = *old;
    for (size_t i = 0; i < m->count; i++) {
        struct roll_item *item = &m->items[i];
        if (item->id < old->base || item->id > old->last || item->id < m->ranges[0].base) {
            continue;
        }
        if (item == m->asked && item->there) {
            item->unsure = true; /* it came or went apart before the table went, or after that */
            continue;
        }
        if (!item->there || stays_apart(m, item, apart, count)) {
            continue;
        }
        bool doubtful = item->unsure; /* it may have gone with a table before this one */
        item->unsure = range_of(m->ranges, m->range_count, item->id)->serial >= later;
        item->there = item->unsure;
        item->dropped = !item->unsure && !doubtful;
        item->after = later;
        m->gone += !item->unsure;
    }
    free(apart);
}

/*
 * May the k-th table have opened over ids that were dropped? The stream below has to have come near
 * its base: nearer than what is held below it spans, or than so many ids of that, or than one step
 * or a part of what a full table spans.
 */
static bool came_near(const struct roll_model *m, size_t k)
{
    uint64_t first = UINT64_MAX;
    uint64_t last = 0;
    uint64_t count = 0;
    for (size_t i = 0; i < m->count && k > 0; i++) {
        const struct roll_item *item = &m->items[i];
        if (item->there && item->id >= m->ranges[k - 1].base && item->id < m->ranges[k].base) {
            first = item->id < first ? item->id : first;
            last = item->id > last ? item->id : last;
            count++;
        }
    }
    if (k == 0 || count == 0) {
        return k == 0;
    }
    const struct row_table *below = m->roll.engine->row->tables[k - 1];
    uint64_t near = row_larger(last - first, (last - first) / count * NEAR_IDS);
    near = row_larger(near, below->range / NEAR_PART);
    return m->ranges[k].base - last <= row_larger(near, below->jumped ? 1 : below->step);
}

/*
 * A later table stands over it: does that know of it still? Else it may be created again. One that
 * stood there before has it from one that opened meanwhile, and went.
 */
static bool is_known_dropped(const struct roll_model *m, const struct roll_range *range,
                             const struct roll_item *item, bool opened)
{
    size_t k = (size_t)(range - m->ranges);
    bool known = row_dropped_has(&m->roll.engine->row->tables[k]->dropped, item->id);
    bool missed = roll_recycled(&m->roll) > m->drop_count;
    if (!known && opened && !missed && !came_near(m, k)) {
        roll_print(&m->roll);
        fail_msg("%s, after %" PRIu64 ": table %" PRIu64 " stands over dropped id %" PRIu64,
                 m->name, m->done, range->serial, item->id);
    }
    return known;
}

/* What is dropped is below until a later table opens there, for good: where that goes it leaves
 * those alone that came to it. A table that knows as many ranges as it can has left some out. */
static void forget_dropped(struct roll_model *m, const struct roll_range *old, size_t n)
{
    uint64_t dropped = 0;
    for (size_t i = 0; i < m->range_count; i++) {
        dropped += m->ranges[i].dropped;
    }
    for (size_t i = 0; i < m->count; i++) {
        struct roll_item *item = &m->items[i];
        if (item->dropped && item->id >= m->ranges[0].base) {
            const struct roll_range *range = range_of(m->ranges, m->range_count, item->id);
            item->dropped = dropped < ROW_DROPPED_MAX &&
                            (range->serial < item->after ||
                             is_known_dropped(m, range, item, !has_serial(old, n, range->serial)));
        }
    }
}

static void look_up_ranges(struct roll_model *m)
{
    static struct roll_range old[ROW_TABLES_MAX];
    if (m->maintained == m->roll.maintained && m->range_count > 0) {
        return;
    }
    size_t n = m->range_count;
    uint64_t later = 0;
    memcpy(old, m->ranges, sizeof(old));
    m->maintained = m->roll.maintained;
    m->range_count = roll_ranges(&m->roll, m->ranges);
    m->oldest = m->ranges[0].base;
    for (size_t i = 0; i < n; i++) {
        later = old[i].serial >= later ? old[i].serial + 1 : later;
    }
    for (size_t i = 0; i < n; i++) {
        if (!has_serial(m->ranges, m->range_count, old[i].serial)) {
            forget_range(m, &old[i], later);
        }
    }
    forget_dropped(m, old, n);
    m->drops_missed = roll_recycled(&m->roll) > m->drop_count;
}

static void complain(struct roll_model *m, const struct engine_op *op, const struct roll_item *item,
                     const struct expected *expected)
{
    roll_print(&m->roll);
    fail_msg("%s, after %" PRIu64 ": verb %d id %" PRIu64 " member %" PRIu32 " text '%s': status %d"
             " error %d miss %d '%.*s', expected %d %d %d %" PRIu64 "; %s, oldest %" PRIu64,
             m->name, m->done, (int)op->verb, op->id, item->member, m->text, (int)op->status,
             (int)op->error, (int)op->miss, (int)op->value_length, op->value, (int)expected->status,
             (int)expected->error, (int)expected->miss, expected->value,
             item->there     ? "there"
             : item->deleted ? "deleted"
                             : "never was",
             m->oldest);
}

/* A pair that never was, taken for there. */
static bool is_wrong_denial(struct roll_model *m, const struct engine_op *op,
                            const struct roll_item *item)
{
    if (!m->roll.phantom || item->there || item->deleted || op->verb == ENGINE_SET) {
        return false;
    }
    m->denials++;
    bool found = op->status == (op->verb == ENGINE_ADD ? ENGINE_EXISTS : ENGINE_DONE);
    m->wrong_denials += found;
    return found;
}

static bool is_right(const struct roll_model *m, const struct engine_op *op,
                     const struct expected *expected)
{
    bool miss = op->verb == ENGINE_READ && expected->status == ENGINE_ABSENT;
    bool text = !m->roll.phantom && expected->status == ENGINE_DONE &&
                (op->verb == ENGINE_READ || op->verb == ENGINE_INCR || op->verb == ENGINE_DECR);
    char number[NUM_DIGITS_MAX];
    size_t length = text ? num_print(number, expected->value) : 0;
    return op->status == expected->status &&
           (op->status != ENGINE_ERROR || op->error == expected->error) &&
           (!miss || op->miss == expected->miss) &&
           (!text || (op->value_length == length && memcmp(op->value, number, length) == 0));
}

static void note_vain(struct roll_model *m, const struct engine_op *op,
                      const struct roll_item *item, bool refused)
{
    bool created = op->status != ENGINE_ERROR && !item->there && op->verb != ENGINE_READ &&
                   op->verb != ENGINE_DELETE;
    bool in_vain = refused && row_regions_free(m->roll.engine->row) > 0;
    m->vain = created ? 0 : m->vain + in_vain;
    m->vain_most = m->vain > m->vain_most ? m->vain : m->vain_most;
}

/* Refused for want of room: then nothing may have changed, as later reads tell. */
static bool was_refused(struct roll_model *m, const struct engine_op *op, struct roll_item *item)
{
    bool anew =
        !item->there && (op->error == ENGINE_E_NO_TABLE_FREE || op->error == ENGINE_E_ID_TOO_FAR);
    bool refused = (m->may_refuse || item->refused) && op->status == ENGINE_ERROR &&
                   (anew || op->error == ENGINE_E_OUT_OF_MEMORY);
    bool unlucky = !refused && op->status == ENGINE_ERROR && op->error == ENGINE_E_OUT_OF_MEMORY &&
                   m->unlucky < m->unlucky_max;
    m->unlucky += unlucky;
    item->unlucky = item->unlucky || unlucky;
    refused = refused || unlucky;
    m->refused += refused;
    note_vain(m, op, item, refused);
    item->refused = item->refused || refused; /* what had no room may have none later */
    return refused;
}

/* A refusal of what is new tells as well: it is gone. */
static void make_sure(struct roll_model *m, const struct engine_op *op, struct roll_item *item,
                      uint64_t value)
{
    if (!item->unsure) {
        return;
    }
    struct expected there = expect(item, op->verb, value);
    item->unsure = false;
    item->there = is_right(m, op, &there);
    m->gone += !item->there;
}

/* Was there a table of its range that is no more? */
static bool was_dropped(const struct roll_model *m, uint64_t id)
{
    size_t n = m->drop_count < ROLL_DROPS_MAX ? m->drop_count : ROLL_DROPS_MAX;
    bool was = m->drop_count > ROLL_DROPS_MAX || m->drops_missed;
    for (size_t i = 0; i < n && !was; i++) {
        was = m->drops[i].base <= id && id <= m->drops[i].last;
    }
    return was;
}

/* Where a table was dropped: is it below, as it must be until another opens there? */
static bool is_below(struct roll_model *m, const struct engine_op *op, struct roll_item *item,
                     enum engine_verb verb)
{
    struct expected below = expect_below(item, verb);
    bool may = (!item->there || item->unsure) && was_dropped(m, item->id);
    if (may && is_right(m, op, &below)) {
        m->below++;
        m->gone += item->unsure;
        if (item->unsure && (verb == ENGINE_READ || op->status == ENGINE_ERROR)) {
            item->dropped = true; /* any other answer is that of what is absent, too */
            item->after = roll_opened(&m->roll);
        }
        item->there = item->unsure = false;
        return true;
    }
    if (item->dropped && op->status != ENGINE_ERROR) {
        complain(m, op, item, &below);
    }
    return false;
}

void roll_model_do(struct roll_model *m, enum engine_verb verb, size_t number, uint64_t value)
{
    struct roll_item *item = &m->items[number];
    struct engine_op *op;
    m->asked = item;
    fill(m, &op, verb, item, value);
    roll_run(&m->worker, &op, 1);
    look_up_ranges(m);
    m->done++;
    bool below = item->id < m->oldest;
    if (!below && is_below(m, op, item, verb)) {
        return;
    }
    if (!below) {
        make_sure(m, op, item, value);
    }
    if (!below && was_refused(m, op, item)) {
        return;
    }
    struct expected expected = below ? expect_below(item, verb) : expect(item, verb, value);
    if (!below && is_wrong_denial(m, op, item)) {
        item->there = verb == ENGINE_ADD;
        item->deleted = verb == ENGINE_DELETE;
        return;
    }
    if (!is_right(m, op, &expected)) {
        complain(m, op, item, &expected);
    }
    item->deleted = (item->deleted || item->there) && !expected.there;
    item->there = expected.there;
    item->dropped = item->dropped && !item->there;
    item->value = expected.value;
}

void roll_model_compare(struct roll_model *m)
{
    roll_check(&m->roll);
    for (size_t i = 0; i < m->count; i++) {
        roll_model_do(m, ENGINE_READ, i, 0);
    }
    m->compared_at = m->done;
    m->compared_round = m->roll.maintained;
}
