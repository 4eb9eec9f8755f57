/* stats items and stats slabs: kinds of memory in the shape of memcached's slab classes. */
#include <stdio.h>
#include <string.h>

#include "request/stats_private.h"

#define PAGE_BYTES (1u << 20) /* what memcached calls a slab page */

/* Names that tools look for and that mean nothing here: always 0. */
static const char *const items_zeros[] = {
    "number_hot",
    "number_warm",
    "number_cold",
    "age_hot",
    "age_warm",
    "age",
    "evicted",
    "evicted_nonzero",
    "evicted_time",
    "outofmemory",
    "tailrepairs",
    "reclaimed",
    "expired_unfetched",
    "evicted_unfetched",
    "evicted_active",
    "crawler_reclaimed",
    "crawler_items_checked",
    "lrutail_reflocked",
    "moves_to_cold",
    "moves_to_warm",
    "moves_within_lru",
    "direct_reclaims",
    "hits_to_hot",
    "hits_to_warm",
    "hits_to_cold",
    "hits_to_temp",
};
static const char *const slabs_zeros[] = {
    "free_chunks_end", "get_hits", "cmd_set",    "delete_hits", "incr_hits",
    "decr_hits",       "cas_hits", "cas_badval", "touch_hits",
};

void stats_engines(const struct spaces *spaces, struct engine_figures *sum)
{
    struct engine_memory *kinds = sum->memory;

    memset(sum, 0, sizeof(*sum));
    for (size_t i = 0; i < spaces->count; i++) {
        const struct engine *engine = spaces->at[i]->engine;
        struct engine_figures figures = {0};
        const struct engine_memory *own = figures.memory;

        engine->functions->figures(engine, &figures);
        sum->recycled += figures.recycled;
        for (size_t kind = 1; kind < ENGINE_MEMORY_KINDS; kind++) {
            kinds[kind].items += own[kind].items;
            kinds[kind].used_bytes += own[kind].used_bytes;
            kinds[kind].held_bytes += own[kind].held_bytes;
            if (own[kind].item_bytes > kinds[kind].item_bytes) {
                kinds[kind].item_bytes = own[kind].item_bytes; /* spaces differ: the widest */
            }
        }
    }
}

static void emit_zeros(struct stats_out *out, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        stats_number(out, names[i], 0);
    }
}

void stats_items(struct stats_out *out)
{
    struct engine_figures sum;
    const struct engine_memory *kinds = sum.memory;
    char prefix[16];

    stats_engines(out->worker->spaces, &sum);
    for (int kind = 1; kind < ENGINE_MEMORY_KINDS; kind++) {
        if (kinds[kind].held_bytes == 0) {
            continue;
        }
        snprintf(prefix, sizeof(prefix), "items:%d", kind);
        out->prefix = prefix;
        stats_number(out, "number", kinds[kind].items);
        emit_zeros(out, items_zeros, sizeof(items_zeros) / sizeof(items_zeros[0]));
        stats_number(out, "mem_requested", kinds[kind].used_bytes);
    }
    out->prefix = NULL;
}

static void emit_class(struct stats_out *out, const struct engine_memory *memory)
{
    uint64_t chunk = memory->item_bytes > 0 ? memory->item_bytes : 1;
    uint64_t total = memory->held_bytes / chunk;
    uint64_t used = memory->items;

    total = total > used ? total : used;
    stats_number(out, "chunk_size", chunk);
    stats_number(out, "chunks_per_page", chunk < PAGE_BYTES ? PAGE_BYTES / chunk : 1);
    stats_number(out, "total_pages", (memory->held_bytes + PAGE_BYTES - 1) / PAGE_BYTES);
    stats_number(out, "total_chunks", total);
    stats_number(out, "used_chunks", used);
    stats_number(out, "free_chunks", total - used);
    stats_number(out, "mem_requested", memory->used_bytes);
    emit_zeros(out, slabs_zeros, sizeof(slabs_zeros) / sizeof(slabs_zeros[0]));
}

void stats_slabs(struct stats_out *out)
{
    struct engine_figures sum;
    const struct engine_memory *kinds = sum.memory;
    char prefix[16];
    uint64_t classes = 0;
    uint64_t held = 0;

    stats_engines(out->worker->spaces, &sum);
    for (int kind = 1; kind < ENGINE_MEMORY_KINDS; kind++) {
        if (kinds[kind].held_bytes == 0) {
            continue;
        }
        snprintf(prefix, sizeof(prefix), "%d", kind);
        out->prefix = prefix;
        emit_class(out, &kinds[kind]);
        classes++;
        held += kinds[kind].held_bytes;
    }
    out->prefix = NULL;
    stats_number(out, "active_slabs", classes);
    stats_number(out, "total_malloced", held);
}
