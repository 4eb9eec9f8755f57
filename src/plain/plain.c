/* plain.c: the engine: shards, and what each verb does to the item of a key. */
#include "plain/plain.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/num.h"
#include "plain/ring.h"

#define SHARDS_MAX       64
#define SHARD_ITEMS      8 /* a shard has room for so many items of the largest size, if it can */
#define NUMBER_VALUE_MAX (512u << 10) /* bytes of a value that may be a number with padding */
#define NUMBER_FRONT_MAX 1024u        /* white space and zeros before it */
#define SHARD_SHIFT      32           /* the ring's table takes the low half of the hash */

struct shard {
    pthread_mutex_t lock;
    struct ring *ring;
    uint64_t flushed_s; /* the delayed flush that was carried out last */
} __attribute__((aligned(64)));

struct plain {
    struct engine engine;
    unsigned shard_count; /* a power of two */
    uint64_t item_bytes_max;
    uint64_t seed;
    _Atomic uint64_t cas;     /* the last token given */
    _Atomic uint64_t flush_s; /* when all that was stored before it goes; 0: never */
    struct shard shards[];
};

/* A key in its shard, the lock held. */
struct place {
    struct plain *plain;
    struct shard *shard;
    struct ring_key key;
    uint64_t now_s;
    struct ring_item *item; /* NULL: it is not there */
};

/* ---- places ---- */

/* Forgets what a flush whose time has come is to forget. */
static void flush_if_due(const struct plain *plain, struct shard *shard, uint64_t now_s)
{
    uint64_t at_s = atomic_load_explicit(&plain->flush_s, memory_order_relaxed);

    if (at_s != 0 && at_s <= now_s && shard->flushed_s != at_s) {
        ring_clear(shard->ring);
        shard->flushed_s = at_s;
    }
}

static void open_place(struct engine *engine, const struct engine_op *op, struct place *place)
{
    struct plain *plain = (struct plain *)engine;
    uint64_t hash = op->scratch[0];

    place->plain = plain;
    place->shard = &plain->shards[hash >> SHARD_SHIFT & (plain->shard_count - 1)];
    place->key = (struct ring_key){op->member, op->member_length, hash};
    place->now_s = clock_monotonic_s();
    pthread_mutex_lock(&place->shard->lock);
    flush_if_due(plain, place->shard, place->now_s);
    place->item = ring_find(place->shard->ring, &place->key);
    if (place->item != NULL && place->item->expires_s != 0 &&
        place->item->expires_s <= place->now_s) {
        ring_remove(place->shard->ring, place->item);
        place->item = NULL;
    }
}

static void close_place(struct place *place)
{
    pthread_mutex_unlock(&place->shard->lock);
}

static void plain_refuse(struct engine_op *op, enum engine_error error)
{
    op->status = ENGINE_ERROR;
    op->error = error;
}

static uint32_t second_of(uint64_t second)
{
    return second < UINT32_MAX ? (uint32_t)second : UINT32_MAX;
}

static uint32_t expiry_of(const struct engine_op *op)
{
    return second_of(op->expires_s);
}

static bool fits(const struct place *place, size_t value_length)
{
    return sizeof(struct ring_item) + place->key.length + value_length <=
           place->plain->item_bytes_max;
}

static int32_t ttl_of(const struct ring_item *item, uint64_t now_s)
{
    uint64_t left = item->expires_s > now_s ? item->expires_s - now_s : 0;

    if (item->expires_s == 0) {
        return -1;
    }
    return left < INT32_MAX ? (int32_t)left : INT32_MAX;
}

/* A new value; what is to go into it is put by the caller. NULL: too large, and what a set was to
 * replace is gone, as it would be out of date. */
static struct ring_item *plain_store(struct place *place, size_t value_length, uint32_t flags,
                                     uint32_t expires_s, struct engine_op *op)
{
    struct plain *plain = place->plain;
    struct ring_item *item = NULL;

    if (fits(place, value_length)) {
        item = ring_store(place->shard->ring, &place->key, value_length, place->now_s);
    }
    if (item == NULL) {
        if (op->verb == ENGINE_SET && place->item != NULL) {
            ring_remove(place->shard->ring, place->item);
        }
        plain_refuse(op, ENGINE_E_TOO_LARGE);
        return NULL;
    }
    item->flags = flags;
    item->expires_s = expires_s;
    item->cas = atomic_fetch_add_explicit(&plain->cas, 1, memory_order_relaxed) + 1;
    op->cas_now = item->cas;
    op->ttl_s = ttl_of(item, place->now_s);
    op->status = ENGINE_DONE;
    place->item = item;
    return item;
}

/* ---- verbs ---- */

typedef void verb_fn(struct place *place, struct engine_op *op);

static void do_set(struct place *place, struct engine_op *op)
{
    struct ring_item *item = plain_store(place, op->text_length, op->flags, expiry_of(op), op);

    if (item != NULL) {
        memcpy(ring_value(item), op->text, op->text_length);
    }
}

static void do_add(struct place *place, struct engine_op *op)
{
    if (place->item != NULL) {
        place->item->referenced = 1;
        op->status = ENGINE_EXISTS;
        return;
    }
    do_set(place, op);
}

static void do_replace(struct place *place, struct engine_op *op)
{
    op->status = ENGINE_ABSENT;
    if (place->item != NULL) {
        do_set(place, op);
    }
}

/* There, and its token the one asked for, if one is. False: op has its status. */
static bool matches(const struct place *place, struct engine_op *op, bool compare)
{
    if (place->item == NULL) {
        op->status = ENGINE_ABSENT;
        return false;
    }
    op->status = ENGINE_EXISTS;
    return !compare || place->item->cas == op->cas;
}

static void do_cas(struct place *place, struct engine_op *op)
{
    if (matches(place, op, true)) {
        do_set(place, op);
    }
}

static void do_delete(struct place *place, struct engine_op *op)
{
    if (matches(place, op, op->compare)) {
        ring_remove(place->shard->ring, place->item);
        op->cas_now = 0;
        op->status = ENGINE_DONE;
    }
}

static void do_touch(struct place *place, struct engine_op *op)
{
    if (matches(place, op, false)) {
        place->item->expires_s = expiry_of(op);
        place->item->referenced = 1;
        op->cas_now = place->item->cas;
        op->flags = place->item->flags;
        op->status = ENGINE_DONE;
    }
}

/* The old value is copied aside: making room for the new one may write over it. */
static void do_join(struct place *place, struct engine_op *op)
{
    bool behind = op->verb == ENGINE_APPEND;

    if (!matches(place, op, op->compare)) {
        return;
    }
    size_t length = place->item->value_length;

    if (!fits(place, length + op->text_length)) {
        op->status = ENGINE_ABSENT; /* not stored, as memcached says it */
        return;
    }
    char *old = malloc(length + 1);

    CHECK(old != NULL);
    op->copied_bytes = (uint32_t)(length + op->text_length);
    memcpy(old, ring_value(place->item), length);
    struct ring_item *item = plain_store(place, length + op->text_length, place->item->flags,
                                         place->item->expires_s, op);

    if (item != NULL) {
        char *value = ring_value(item);

        memcpy(value + (behind ? 0 : op->text_length), old, length);
        memcpy(value + (behind ? length : 0), op->text, op->text_length);
    }
    free(old);
}

static void store_number(struct place *place, struct engine_op *op, uint64_t number, size_t pad_to,
                         uint32_t flags, uint32_t expires_s)
{
    op->value_length = (uint32_t)num_print(op->value, number);
    size_t length = op->value_length < pad_to ? pad_to : op->value_length;
    struct ring_item *item = plain_store(place, length, flags, expires_s, op);

    if (item != NULL) {
        op->copied_bytes = (uint32_t)length;
        memset(ring_value(item), ' ', length);
        memcpy(ring_value(item), op->value, op->value_length);
    }
}

/* The number a value begins with, as memcached finds it: behind white space, a plus and any zeros,
 * up to white space or a zero byte. A long value is none: padding it would cost as much as it is
 * long. */
static bool number_of(struct ring_item *item, uint64_t *number)
{
    static const char ends[] = " \t\n\v\f\r"; /* and its zero byte */
    const char *value = ring_value(item);
    size_t front = item->value_length < NUMBER_FRONT_MAX ? item->value_length : NUMBER_FRONT_MAX;
    size_t at = 0;
    size_t length = 0;

    if (item->value_length > NUMBER_VALUE_MAX) {
        return false;
    }
    while (at < front && value[at] != '\0' && memchr(ends, value[at], sizeof(ends)) != NULL) {
        at++;
    }
    at += at < front && value[at] == '+';
    while (at + 1 < front && value[at] == '0' && isdigit((unsigned char)value[at + 1])) {
        at++;
    }
    while (at + length < item->value_length && length <= NUM_DIGITS_MAX &&
           memchr(ends, value[at + length], sizeof(ends)) == NULL) {
        length++;
    }
    return num_parse(value + at, length, number);
}

static void do_count(struct place *place, struct engine_op *op)
{
    uint64_t delta;
    uint64_t number;

    if (!num_parse(op->text, op->text_length, &delta)) {
        plain_refuse(op, ENGINE_E_BAD_DELTA);
        return;
    }
    if (place->item == NULL && op->create_initial) {
        op->created = true;
        store_number(place, op, op->initial, 0, op->flags, expiry_of(op));
        return;
    }
    if (!matches(place, op, op->compare)) {
        return;
    }
    if (!number_of(place->item, &number)) {
        plain_refuse(op, ENGINE_E_NON_NUMERIC);
        return;
    }
    if (op->verb == ENGINE_INCR) {
        number += delta;
    } else {
        number = number < delta ? 0 : number - delta;
    }
    store_number(place, op, number, place->item->value_length, place->item->flags,
                 op->touch ? second_of(op->touch_s) : place->item->expires_s);
}

static void plain_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    static verb_fn *const verbs[] = {
        [ENGINE_TOUCH] = do_touch,  [ENGINE_SET] = do_set,         [ENGINE_ADD] = do_add,
        [ENGINE_CAS] = do_cas,      [ENGINE_REPLACE] = do_replace, [ENGINE_INCR] = do_count,
        [ENGINE_DECR] = do_count,   [ENGINE_DELETE] = do_delete,   [ENGINE_APPEND] = do_join,
        [ENGINE_PREPEND] = do_join,
    };
    struct place place;

    (void)sink;
    CHECK(op->verb < sizeof(verbs) / sizeof(verbs[0]) && verbs[op->verb] != NULL);
    op->error = ENGINE_E_NONE;
    open_place(engine, op, &place);
    verbs[op->verb](&place, op);
    close_place(&place);
}

static void visit(struct engine *engine, struct engine_op *op, bool touch, engine_hit_fn *hit,
                  void *context)
{
    struct place place;

    op->error = ENGINE_E_NONE;
    op->miss = ENGINE_MISS_ABSENT;
    open_place(engine, op, &place);
    op->status = ENGINE_ABSENT;
    if (place.item != NULL) {
        struct ring_item *item = place.item;
        uint32_t before_s = item->expires_s;

        item->expires_s = touch ? expiry_of(op) : before_s;
        struct engine_hit found = {.value = ring_value(item),
                                   .value_length = item->value_length,
                                   .cas = item->cas,
                                   .flags = item->flags,
                                   .ttl_s = ttl_of(item, place.now_s)};
        bool told = hit(context, &found);

        item->referenced = 1;
        item->expires_s = told ? item->expires_s : before_s;
        op->status = told ? ENGINE_DONE : ENGINE_EXISTS;
    }
    close_place(&place);
}

static void prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct plain *plain = (const struct plain *)engine;

    for (size_t i = 0; i < n; i++) {
        ops[i]->scratch[0] = hash_bytes(ops[i]->member, ops[i]->member_length, plain->seed);
    }
}

/* ---- forgetting ---- */

static void plain_clear(struct engine *engine)
{
    struct plain *plain = (struct plain *)engine;

    for (unsigned i = 0; i < plain->shard_count; i++) {
        ring_clear(plain->shards[i].ring);
    }
    atomic_store_explicit(&plain->flush_s, 0, memory_order_relaxed); /* a later one is in vain */
}

/* One that is due comes before the next is noted, and one of the past comes at once. */
static void clear_later(struct engine *engine, uint64_t at_s)
{
    struct plain *plain = (struct plain *)engine;
    uint64_t now_s = clock_monotonic_s();

    for (unsigned i = 0; i < plain->shard_count; i++) {
        pthread_mutex_lock(&plain->shards[i].lock);
        flush_if_due(plain, &plain->shards[i], now_s);
        if (at_s <= now_s) {
            ring_clear(plain->shards[i].ring);
        }
        pthread_mutex_unlock(&plain->shards[i].lock);
    }
    atomic_store_explicit(&plain->flush_s, at_s > now_s ? at_s : 0, memory_order_relaxed);
}

/* ---- figures ---- */

static void sum_stats(const struct plain *plain, struct ring_stats *sum)
{
    *sum = (struct ring_stats){0};
    for (unsigned i = 0; i < plain->shard_count; i++) {
        struct shard *shard = (struct shard *)(uintptr_t)&plain->shards[i]; /* for its lock */
        struct ring_stats stats;

        pthread_mutex_lock(&shard->lock);
        ring_stats(shard->ring, &stats);
        pthread_mutex_unlock(&shard->lock);
        sum->items += stats.items;
        sum->live_bytes += stats.live_bytes;
        sum->bytes += stats.bytes;
        sum->evicted += stats.evicted;
        sum->moved += stats.moved;
    }
}

static void stats_space(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    const struct plain *plain = (const struct plain *)engine;
    struct ring_stats sum;
    char text[NUM_DIGITS_MAX + 1];

    sum_stats(plain, &sum);
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {{"items", sum.items},
                   {"item_bytes", sum.live_bytes},
                   {"bytes", sum.bytes},
                   {"evicted", sum.evicted},
                   {"moved", sum.moved},
                   {"shards", plain->shard_count},
                   {"item_max", plain->item_bytes_max}};

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        text[num_print(text, figures[i].value)] = '\0';
        emit(context, figures[i].name, text);
    }
}

static uint64_t stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                            void *context)
{
    (void)engine; /* it has none */
    (void)from;
    (void)emit;
    (void)context;
    return 0;
}

static void memory(const struct engine *engine, struct engine_memory kinds[ENGINE_MEMORY_KINDS])
{
    struct engine_memory *kind = &kinds[ENGINE_MEMORY_PLAIN];
    struct ring_stats sum;

    sum_stats((const struct plain *)engine, &sum);
    kind->items += sum.items;
    kind->used_bytes += sum.live_bytes;
    kind->held_bytes += sum.bytes;
}

static uint64_t recycled(const struct engine *engine)
{
    struct ring_stats sum;

    sum_stats((const struct plain *)engine, &sum);
    return sum.evicted;
}

/* ---- life ---- */

static bool slot(const struct engine *engine, const char *tail, size_t length, int *number)
{
    (void)engine; /* its keys have none */
    (void)tail;
    (void)length;
    (void)number;
    return false;
}

static void read_nothing(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    (void)engine; /* visit() reads */
    (void)ops;
    CHECK(n == 0);
}

static void populate(struct engine *engine, const _Atomic bool *stop)
{
    struct plain *plain = (struct plain *)engine;

    for (unsigned i = 0; i < plain->shard_count; i++) {
        ring_populate(plain->shards[i].ring, stop);
    }
}

static void maintain(struct engine *engine, struct barrier *barrier)
{
    (void)engine; /* nothing is ever left to do */
    (void)barrier;
}

static void plain_destroy(struct engine *engine)
{
    struct plain *plain = (struct plain *)engine;

    for (unsigned i = 0; i < plain->shard_count; i++) {
        ring_destroy(plain->shards[i].ring);
        pthread_mutex_destroy(&plain->shards[i].lock);
    }
    free(plain);
}

static const struct engine_functions functions = {
    .kind = "plain",
    .slot = slot,
    .prepare = prepare,
    .read = read_nothing,
    .visit = visit,
    .change = plain_change,
    .clear = plain_clear,
    .clear_later = clear_later,
    .stats_space = stats_space,
    .stats_table = stats_table,
    .memory = memory,
    .populate = populate,
    .maintain = maintain,
    .recycled = recycled,
    .destroy = plain_destroy,
};

/* So many that workers seldom meet, so few that each has room for large items; and no ring may be
 * larger than it can. */
static unsigned shards_for(const struct plain_config *config)
{
    unsigned shards = 1;

    while (shards < SHARDS_MAX &&
           config->memory_bytes / (shards * 2) >= SHARD_ITEMS * config->item_bytes_max) {
        shards *= 2;
    }
    while (config->memory_bytes / shards > RING_BYTES_MAX) {
        shards *= 2;
    }
    return shards;
}

struct engine *plain_create(const struct plain_config *config)
{
    unsigned shards = shards_for(config);
    size_t bytes = sizeof(struct plain) + shards * sizeof(struct shard);
    struct plain *plain = aligned_alloc(MEMORY_LINE_BYTES, bytes);

    CHECK(plain != NULL);
    memset(plain, 0, bytes);
    plain->engine.functions = &functions;
    plain->item_bytes_max = config->item_bytes_max;
    plain->seed = clock_random();
    for (; plain->shard_count < shards; plain->shard_count++) {
        struct shard *shard = &plain->shards[plain->shard_count];

        shard->ring = ring_create(config->memory_bytes / shards);
        if (shard->ring == NULL) {
            plain_destroy(&plain->engine);
            return NULL;
        }
        pthread_mutex_init(&shard->lock, NULL);
    }
    return &plain->engine;
}

void plain_reconfigure(struct engine *engine, const struct plain_config *config)
{
    ((struct plain *)engine)->item_bytes_max = config->item_bytes_max;
}

void plain_check(const struct engine *engine)
{
    const struct plain *plain = (const struct plain *)engine;

    for (unsigned i = 0; i < plain->shard_count; i++) {
        ring_check(plain->shards[i].ring);
    }
}
