/*
 * plain_ops.c: what each verb does to the item of a key.
 *
 * A stale item, and one that somebody was told to renew, carry marks (plain_private.h); storing it
 * anew drops them. The first reader of a stale item, or of one whose expiry is near when it asks
 * for that, is told to renew it, and others that somebody does.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"
#include "plain/plain_private.h"

#define NUMBER_VALUE_MAX (512u << 10) /* bytes of a value that may be a number with padding */
#define NUMBER_FRONT_MAX 1024u        /* white space and zeros before it */
#define SHARD_SHIFT      32           /* the ring's table takes the low half of the hash */

/* A key in its shard, the lock held. */
struct place {
    struct plain *plain;
    struct plain_shard *shard;
    struct ring_key key;
    uint64_t now_s;
    struct ring_item *item; /* NULL: it is not there … */
    bool expired;           /* … any more */
};

/* ---- places ---- */

static void open_place(struct engine *engine, const struct engine_op *op, struct place *place)
{
    struct plain *plain = (struct plain *)engine;
    uint64_t hash = op->scratch[0];

    place->plain = plain;
    place->shard = &plain->shards[hash >> SHARD_SHIFT & (plain->shard_count - 1)];
    place->key = (struct ring_key){op->member, op->member_length, hash};
    place->now_s = clock_monotonic_s();
    pthread_mutex_lock(&place->shard->lock);
    plain_flush_if_due(plain, place->shard, place->now_s);
    place->item = ring_find(place->shard->ring, &place->key);
    place->expired = false;
    if (place->item != NULL && place->item->expires_s != 0 &&
        place->item->expires_s <= place->now_s) {
        ring_remove(place->shard->ring, place->item);
        place->item = NULL;
        place->expired = true;
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

static int32_t ttl_of(uint32_t expires_s, uint64_t now_s)
{
    uint64_t left = expires_s > now_s ? expires_s - now_s : 0;
    if (expires_s == 0) {
        return -1;
    }
    return left < INT32_MAX ? (int32_t)left : INT32_MAX;
}

static uint64_t token_for(struct plain *plain, const struct engine_op *op)
{
    if (op->extended != NULL && op->extended->gives_token) {
        return op->extended->token;
    }
    return atomic_fetch_add_explicit(&plain->cas, 1, memory_order_relaxed) + 1;
}

/* Makes room for a new value, which the caller fills. NULL: it is too large, and what a set was to
 * replace is deleted, as it would be out of date. */
static struct ring_item *plain_store(struct place *place, size_t value_length, uint32_t flags,
                                     uint32_t expires_s, struct engine_op *op)
{
    struct ring_item *item = NULL;
    op->ttl_s = ttl_of(place->item != NULL ? place->item->expires_s : 0, place->now_s);
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
    item->accessed_s = second_of(place->now_s);
    item->cas = token_for(place->plain, op);
    op->cas_now = item->cas;
    op->stored_bytes = (uint32_t)value_length;
    op->status = ENGINE_DONE;
    place->item = item;
    return item;
}

/* ---- verbs ---- */

typedef void verb_fn(struct place *place, struct engine_op *op);

static void plain_store_text(struct place *place, struct engine_op *op, uint32_t expires_s)
{
    struct ring_item *item = plain_store(place, op->text_length, op->flags, expires_s, op);
    if (item != NULL) {
        memcpy(ring_value(item), op->text, op->text_length);
    }
}

static void do_set(struct place *place, struct engine_op *op)
{
    plain_store_text(place, op, expiry_of(op));
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

/* Returns whether the item is there, with the token that is asked for, if any. False: op has its
 * status. */
static bool matches(const struct place *place, struct engine_op *op, bool compare)
{
    if (place->item == NULL) {
        op->status = ENGINE_ABSENT;
        return false;
    }
    op->status = ENGINE_EXISTS;
    return !compare || place->item->cas == op->cas;
}

/* Stores, by an older token, a value that is stale from the start: somebody was later, and readers
 * can use this value meanwhile. It lives no longer than the one it replaces. */
static void store_stale(struct place *place, struct engine_op *op)
{
    uint8_t sent = place->item->marks & PLAIN_SENT;
    plain_store_text(place, op, place->item->expires_s);
    if (op->status == ENGINE_DONE) {
        place->item->marks = PLAIN_STALE | sent;
    }
}

static void do_cas(struct place *place, struct engine_op *op)
{
    if (matches(place, op, true)) {
        do_set(place, op);
    } else if (op->status == ENGINE_EXISTS && op->extended != NULL && op->extended->invalidate &&
               op->cas != 0 && op->cas < place->item->cas) {
        store_stale(place, op);
    }
}

/* A delete that leaves the key: without a value, or stale, or both. */
static void plain_leave(struct place *place, struct engine_op *op)
{
    const struct engine_extended *asked = op->extended;
    uint64_t token = place->item->cas;
    if (asked->empty) {
        struct ring_item *item =
            plain_store(place, 0, op->flags, asked->touch ? expiry_of(op) : 0, op);
        CHECK(item != NULL); /* a key alone fits wherever it did with a value */
        place->item->cas = asked->gives_token ? asked->token : token;
    }
    if (asked->invalidate) {
        place->item->expires_s = asked->touch ? expiry_of(op) : place->item->expires_s;
        place->item->marks = (uint8_t)((place->item->marks | PLAIN_STALE) & ~PLAIN_SENT);
        place->item->cas = token_for(place->plain, op);
    }
    op->cas_now = place->item->cas;
    op->status = ENGINE_DONE;
}

static void do_delete(struct place *place, struct engine_op *op)
{
    if (!matches(place, op, op->compare)) {
        return;
    }
    if (op->extended != NULL && (op->extended->empty || op->extended->invalidate)) {
        plain_leave(place, op);
        return;
    }
    ring_remove(place->shard->ring, place->item);
    op->cas_now = 0;
    op->status = ENGINE_DONE;
}

static void note_read(const struct place *place)
{
    place->item->referenced = 1;
    place->item->marks |= PLAIN_FETCHED;
    place->item->accessed_s = second_of(place->now_s);
}

static void do_touch(struct place *place, struct engine_op *op)
{
    if (matches(place, op, false)) {
        place->item->expires_s = expiry_of(op);
        note_read(place);
        op->cas_now = place->item->cas;
        op->flags = place->item->flags;
        op->status = ENGINE_DONE;
    }
}

/* The old value is copied aside: making room for the new one may write over it. */
static void do_join(struct place *place, struct engine_op *op)
{
    bool behind = op->verb == ENGINE_APPEND;
    if (place->item == NULL && op->extended != NULL && op->extended->vivify) {
        plain_store_text(place, op, second_of(op->extended->vivify_s));
        return;
    }
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
    uint8_t marks = op->value_length <= pad_to ? place->item->marks : 0; /* in place: as it was */
    struct ring_item *item = plain_store(place, length, flags, expires_s, op);
    if (item != NULL) {
        item->marks = marks;
        op->copied_bytes = (uint32_t)length;
        memset(ring_value(item), ' ', length);
        memcpy(ring_value(item), op->value, op->value_length);
    }
}

/* Returns whether a value of this length may be a number: a refusal comes before that of a wrong
 * token. */
static bool may_count(const struct ring_item *item)
{
    return item->value_length > 0 && item->value_length <= NUMBER_VALUE_MAX;
}

/* Reads the number a value begins with, as memcached does: after white space, a plus and any zeros,
 * up to white space or a zero byte. A long value is no number: padding it would cost as much as it
 * is long. */
static bool number_of(struct ring_item *item, uint64_t *number)
{
    static const char ends[] = " \t\n\v\f\r"; /* and its zero byte */
    const char *value = ring_value(item);
    size_t front = item->value_length < NUMBER_FRONT_MAX ? item->value_length : NUMBER_FRONT_MAX;
    size_t at = 0;
    size_t length = 0;

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
    op->ttl_touched_s = ttl_of(second_of(op->touch_s), place->now_s);
    op->ttl_made_s = ttl_of(expiry_of(op), place->now_s);
    if (place->item == NULL && op->create_initial) {
        bool touched = op->touch && op->extended != NULL && op->extended->vivify_first;
        op->created = true;
        store_number(place, op, op->initial, 0, op->flags,
                     touched ? second_of(op->touch_s) : expiry_of(op));
        return;
    }
    if (place->item != NULL && !may_count(place->item)) {
        plain_refuse(op, ENGINE_E_NON_NUMERIC);
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

void plain_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
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
    op->stored_bytes = 0;
    open_place(engine, op, &place);
    verbs[op->verb](&place, op);
    close_place(&place);
}

/* ---- looking ---- */

/* When it expires, if the look touches it or made it. */
static uint32_t expiry_after(const struct ring_item *item, const struct engine_op *op, bool touch,
                             bool vivified)
{
    if (touch && (!vivified || op->extended->vivify_first)) {
        return expiry_of(op);
    }
    return vivified ? second_of(op->extended->vivify_s) : item->expires_s;
}

/* Returns whether the reader asks to renew what expires this soon. */
static bool is_soon(const struct engine_op *op, uint32_t before_s, uint32_t after_s)
{
    const struct engine_extended *asked = op->extended;
    if (asked == NULL || !asked->recache) {
        return false;
    }
    uint32_t expires_s = asked->recache_first ? before_s : after_s;
    return expires_s != 0 && expires_s < asked->recache_s;
}

static void show(const struct place *place, struct engine_op *op, bool touch, bool vivified,
                 plain_hit_fn *hit, void *context)
{
    struct ring_item *item = place->item;
    uint32_t before_s = vivified ? 0 : item->expires_s;
    uint32_t after_s = expiry_after(item, op, touch, vivified);
    bool sent = (item->marks & PLAIN_SENT) != 0;
    bool stale = (item->marks & PLAIN_STALE) != 0;
    const struct plain_hit found = {
        .value = ring_value(item),
        .value_length = item->value_length,
        .cas = item->cas,
        .flags = item->flags,
        .ttl_s = ttl_of(before_s, place->now_s),
        .ttl_touched_s = touch ? ttl_of(expiry_of(op), place->now_s) : -1,
        .ttl_made_s = vivified ? ttl_of(second_of(op->extended->vivify_s), place->now_s) : -1,
        .item_bytes = ring_item_bytes(item),
        .idle_s = second_of(place->now_s) - item->accessed_s,
        .fetched = (item->marks & PLAIN_FETCHED) != 0,
        .vivified = vivified,
        .stale = stale,
        .sent = sent,
        .won = vivified || (!sent && (stale || is_soon(op, before_s, after_s))),
    };
    if (!hit(context, &found)) {
        op->status = ENGINE_EXISTS;
        return;
    }
    op->status = ENGINE_DONE;
    item->expires_s = after_s;
    item->marks |= found.won ? PLAIN_SENT : 0;
    if (op->extended == NULL || !op->extended->unnoticed) {
        note_read(place);
    }
}

void plain_visit(struct engine *engine, struct engine_op *op, bool touch, plain_hit_fn *hit,
                 void *context)
{
    struct place place;
    op->error = ENGINE_E_NONE;
    open_place(engine, op, &place);
    op->miss = place.expired ? ENGINE_MISS_EXPIRED : ENGINE_MISS_ABSENT;
    bool vivified = place.item == NULL && op->extended != NULL && op->extended->vivify &&
                    plain_store(&place, 0, 0, 0, op) != NULL;
    op->status = ENGINE_ABSENT;
    if (place.item != NULL) {
        show(&place, op, touch, vivified, hit, context);
    }
    if (vivified && op->status != ENGINE_DONE) { /* nobody was told: the next look makes it */
        ring_remove(place.shard->ring, place.item);
    }
    close_place(&place);
}

/* ---- walking ---- */

struct walk {
    plain_key_fn *visit;
    void *context;
    uint64_t now_s;
};

static void walk_item(void *context, const struct ring_item *item)
{
    const struct walk *walk = context;
    if (item->expires_s != 0 && item->expires_s <= walk->now_s) {
        return;
    }
    const struct plain_hit found = {
        .value_length = item->value_length,
        .cas = item->cas,
        .flags = item->flags,
        .ttl_s = ttl_of(item->expires_s, walk->now_s),
        .item_bytes = ring_item_bytes(item),
        .idle_s = second_of(walk->now_s) - item->accessed_s,
        .fetched = (item->marks & PLAIN_FETCHED) != 0,
    };
    walk->visit(walk->context, item->bytes, item->key_length, &found);
}

/* A step is a bucket of a shard's table: items move in the ring, but stay in their bucket. */
bool plain_walk(struct engine *engine, uint64_t *cursor, plain_key_fn *visit, void *context)
{
    struct plain *plain = (struct plain *)engine;
    uint32_t buckets = ring_buckets(plain->shards[0].ring); /* all are as large */
    uint64_t steps = (uint64_t)plain->shard_count * buckets;
    if (*cursor >= steps) { /* its end was told before, or it began in a larger space */
        return false;
    }
    struct plain_shard *shard = &plain->shards[*cursor / buckets];
    struct walk walk = {visit, context, clock_monotonic_s()};
    pthread_mutex_lock(&shard->lock);
    plain_flush_if_due(plain, shard, walk.now_s);
    ring_each(shard->ring, (uint32_t)(*cursor % buckets), walk_item, &walk);
    pthread_mutex_unlock(&shard->lock);
    return ++*cursor < steps;
}

void plain_prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    const struct plain *plain = (const struct plain *)engine;

    for (size_t i = 0; i < n; i++) {
        ops[i]->scratch[0] = hash_bytes(ops[i]->member, ops[i]->member_length, plain->seed);
    }
}
