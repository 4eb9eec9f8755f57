/* plain.c: the engine: its shards, forgetting, figures, life. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/num.h"
#include "plain/plain_private.h"

#define SHARDS_MAX  64
#define SHARD_ITEMS 8 /* a shard has room for this many items of the largest size, if it can */

/* ---- forgetting ---- */

void plain_flush_if_due(const struct plain *plain, struct plain_shard *shard, uint64_t now_s)
{
    uint64_t at_s = atomic_load_explicit(&plain->flush_s, memory_order_relaxed);
    if (at_s != 0 && at_s <= now_s && shard->flushed_s != at_s) {
        ring_clear(shard->ring);
        shard->flushed_s = at_s;
    }
}

void plain_clear(struct engine *engine)
{
    struct plain *plain = (struct plain *)engine;

    for (unsigned i = 0; i < plain->shard_count; i++) {
        ring_clear(plain->shards[i].ring);
    }
    atomic_store_explicit(&plain->flush_s, 0, memory_order_relaxed); /* a later one is in vain */
}

/* A flush that is due is carried out before the next is noted, and one of the past at once. */
void plain_clear_later(struct engine *engine, uint64_t at_s)
{
    struct plain *plain = (struct plain *)engine;
    uint64_t now_s = clock_monotonic_s();

    for (unsigned i = 0; i < plain->shard_count; i++) {
        pthread_mutex_lock(&plain->shards[i].lock);
        plain_flush_if_due(plain, &plain->shards[i], now_s);
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
        struct plain_shard *shard =
            (struct plain_shard *)(uintptr_t)&plain->shards[i]; /* for its lock */
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

static void plain_figures(const struct engine *engine, struct engine_figures *figures)
{
    struct engine_memory *kind = &figures->memory[ENGINE_MEMORY_PLAIN];
    struct ring_stats sum;

    sum_stats((const struct plain *)engine, &sum);
    kind->items = sum.items;
    kind->used_bytes = sum.live_bytes;
    kind->held_bytes = sum.bytes;
    figures->recycled = sum.evicted;
}

/* ---- life ---- */

static void read_nothing(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    (void)engine; /* plain_visit() reads */
    (void)ops;
    CHECK(n == 0);
}

void plain_populate(struct engine *engine, const _Atomic bool *stop)
{
    struct plain *plain = (struct plain *)engine;

    for (unsigned i = 0; i < plain->shard_count; i++) {
        ring_populate(plain->shards[i].ring, stop);
    }
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
    .prepare = plain_prepare,
    .read = read_nothing,
    .change = plain_change,
    .stats_space = stats_space,
    .stats_table = stats_table,
    .figures = plain_figures,
    .destroy = plain_destroy,
};

/* Returns the number of shards: enough that workers seldom meet, and few enough that each has room
 * for large items; and no ring may be larger than RING_BYTES_MAX. */
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
    size_t bytes = sizeof(struct plain) + shards * sizeof(struct plain_shard);
    struct plain *plain = aligned_alloc(MEMORY_LINE_BYTES, bytes);

    CHECK(plain != NULL);
    memset(plain, 0, bytes);
    plain->engine.functions = &functions;
    plain->item_bytes_max = config->item_bytes_max;
    plain->seed = clock_random();
    for (; plain->shard_count < shards; plain->shard_count++) {
        struct plain_shard *shard = &plain->shards[plain->shard_count];

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
