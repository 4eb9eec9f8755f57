/*
 * cold_lists.h: lists and maps whose links lie in what they hold, for the parts of cold: nothing is
 * allocated or freed when something goes in or out.
 *
 * A list is a ring through its head. A map is an array of chains; the holder compares keys. Neither
 * knows a lock. Included by cold*.c only.
 */
#ifndef ROLLCALL_STORE_COLD_LISTS_H
#define ROLLCALL_STORE_COLD_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

/* The struct of `type` whose `member` is at `link`. */
#define COLD_OWNER(type, member, link) ((type *)(void *)((char *)(link)-offsetof(type, member)))

struct cold_link {
    struct cold_link *next, *before; /* NULL: in no list */
};

static inline void cold_list_init(struct cold_link *list)
{
    list->next = list;
    list->before = list;
}

static inline bool cold_list_empty(const struct cold_link *list)
{
    return list->next == list;
}

/* Adds a link in front of `place`; in front of the list's head means at its end. */
static inline void cold_list_add(struct cold_link *place, struct cold_link *link)
{
    CHECK(link->next == NULL);
    link->next = place;
    link->before = place->before;
    place->before->next = link;
    place->before = link;
}

static inline void cold_list_remove(struct cold_link *link)
{
    CHECK(link->next != NULL);
    link->before->next = link->next;
    link->next->before = link->before;
    link->next = NULL;
    link->before = NULL;
}

struct cold_node {
    struct cold_node *next;
    uint64_t hash;
};

struct cold_map {
    struct cold_node **chains;
    uint64_t mask;
};

/* Returns the bytes of the chains of a map for this many. */
static inline uint64_t cold_map_bytes(uint64_t count)
{
    uint64_t chains = 1;
    while (chains < count) {
        chains *= 2;
    }
    return chains * sizeof(struct cold_node *);
}

static inline void cold_map_init(struct cold_map *map, uint64_t count)
{
    map->chains = memory_zalloc(cold_map_bytes(count));
    map->mask = cold_map_bytes(count) / sizeof(*map->chains) - 1;
}

static inline void cold_map_fini(struct cold_map *map)
{
    free(map->chains);
}

/* The first of the chain that a hash would be in; go on with ->next. */
static inline struct cold_node *cold_map_chain(const struct cold_map *map, uint64_t hash)
{
    return map->chains[hash & map->mask];
}

static inline void cold_map_add(struct cold_map *map, struct cold_node *node, uint64_t hash)
{
    node->hash = hash;
    node->next = map->chains[hash & map->mask];
    map->chains[hash & map->mask] = node;
}

static inline void cold_map_remove(struct cold_map *map, const struct cold_node *node)
{
    struct cold_node **at = &map->chains[node->hash & map->mask];
    while (*at != node) {
        CHECK(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
}

#endif
