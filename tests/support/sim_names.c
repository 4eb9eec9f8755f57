/* sim_names.c: the names of a simulated directory, and which of them are durable. */
#include "tests/support/sim_disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define GROW_BY 16

static char *copy_text(const char *text)
{
    if (!text) {
        return NULL;
    }
    size_t bytes = strlen(text) + 1;
    return memcpy(sim_grow(NULL, 0, bytes), text, bytes);
}

static struct sim_name *map_find(const struct sim_map *map, const char *text)
{
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->names[i].text, text) == 0) {
            return &map->names[i];
        }
    }
    return NULL;
}

static void map_remove(struct sim_map *map, struct sim_name *name)
{
    free(name->text);
    *name = map->names[--map->count];
}

static void map_add(struct sim_map *map, const char *text, struct sim_node *node)
{
    if (map->count == map->capacity) {
        size_t capacity = map->capacity + GROW_BY;
        map->names = sim_grow(map->names, map->capacity * sizeof(*map->names),
                              capacity * sizeof(*map->names));
        map->capacity = capacity;
    }
    map->names[map->count++] = (struct sim_name){copy_text(text), node};
}

static void map_fini(struct sim_map *map)
{
    while (map->count > 0) {
        map_remove(map, &map->names[0]);
    }
    free(map->names);
}

/* The node has one name after it: one it still has, because an earlier change did not survive,
 * goes. */
static void map_apply(struct sim_map *map, const struct sim_change *change)
{
    struct sim_name *name;
    if (change->from && (name = map_find(map, change->from))) {
        map_remove(map, name);
    }
    if (!change->to) {
        return;
    }
    for (size_t i = map->count; i-- > 0;) {
        if (map->names[i].node == change->node || strcmp(map->names[i].text, change->to) == 0) {
            map_remove(map, &map->names[i]);
        }
    }
    map_add(map, change->to, change->node);
}

static void forget_changes(struct sim_names *names)
{
    for (size_t i = 0; i < names->changes_count; i++) {
        free(names->changes[i].from);
        free(names->changes[i].to);
    }
    names->changes_count = 0;
}

void sim_names_fini(struct sim_names *names)
{
    forget_changes(names);
    free(names->changes);
    map_fini(&names->current);
    map_fini(&names->durable);
    *names = (struct sim_names){0};
}

struct sim_node *sim_names_find(const struct sim_names *names, const char *text)
{
    const struct sim_name *name = map_find(&names->current, text);
    return name ? name->node : NULL;
}

void sim_names_change(struct sim_names *names, const char *from, const char *to,
                      struct sim_node *node)
{
    CHECK(from || to);
    if (names->changes_count == names->changes_capacity) {
        size_t capacity = names->changes_capacity + GROW_BY;
        names->changes = sim_grow(names->changes, names->changes_capacity * sizeof(*names->changes),
                                  capacity * sizeof(*names->changes));
        names->changes_capacity = capacity;
    }
    struct sim_change *change = &names->changes[names->changes_count++];
    *change = (struct sim_change){copy_text(from), copy_text(to), node};
    map_apply(&names->current, change);
}

static void map_copy(struct sim_map *to, const struct sim_map *from)
{
    while (to->count > 0) {
        map_remove(to, &to->names[0]);
    }
    for (size_t i = 0; i < from->count; i++) {
        map_add(to, from->names[i].text, from->names[i].node);
    }
}

void sim_names_sync(struct sim_names *names)
{
    map_copy(&names->durable, &names->current);
    forget_changes(names);
}

void sim_names_cut(struct sim_names *names, struct test_random *random)
{
    struct sim_fate fate = sim_fate_draw(random, names->changes_count);
    for (size_t i = 0; i < names->changes_count; i++) {
        if (sim_fate_survives(&fate, random, i)) {
            map_apply(&names->durable, &names->changes[i]);
        }
    }
    forget_changes(names);
    map_copy(&names->current, &names->durable);
}
