/* fake_set.c: open addressing; removed ones leave a mark. */
#include "tests/support/fake_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"

#define PLACES_LEAST 64

static size_t place_of(const struct fake_set *set, uint64_t id)
{
    size_t at = hash_u64(id) & (set->places - 1);
    while (set->ids[at] != FAKE_NEVER && set->ids[at] != id) {
        at = (at + 1) & (set->places - 1);
    }
    return at;
}

bool fake_set_has(const struct fake_set *set, uint64_t id)
{
    return set->places > 0 && set->ids[place_of(set, id)] == id;
}

static void set_grow(struct fake_set *set)
{
    struct fake_set old = *set;
    set->places = PLACES_LEAST;
    while (set->places < old.count * 4) {
        set->places *= 2;
    }
    set->used = set->count = 0;
    set->ids = memory_zalloc(set->places * sizeof(*set->ids));
    memset(set->ids, 0xff, set->places * sizeof(*set->ids));
    for (size_t i = 0; i < old.places; i++) {
        if (old.ids[i] < FAKE_REMOVED) {
            fake_set_add(set, old.ids[i]);
        }
    }
    free(old.ids);
}

void fake_set_add(struct fake_set *set, uint64_t id)
{
    if (set->used * 2 >= set->places) {
        set_grow(set);
    }
    size_t at = place_of(set, id);
    CHECK(set->ids[at] == FAKE_NEVER);
    set->ids[at] = id;
    set->used++;
    set->count++;
}

bool fake_set_remove(struct fake_set *set, uint64_t id)
{
    if (!fake_set_has(set, id)) {
        return false;
    }
    set->ids[place_of(set, id)] = FAKE_REMOVED;
    set->count--;
    return true;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Its ids, sorted; the caller frees. */
uint64_t *fake_set_sorted(const struct fake_set *set)
{
    uint64_t *ids = memory_zalloc((set->count + 1) * sizeof(*ids));
    size_t n = 0;
    for (size_t i = 0; i < set->places; i++) {
        if (set->ids[i] < FAKE_REMOVED) {
            ids[n++] = set->ids[i];
        }
    }
    CHECK(n == set->count);
    qsort(ids, n, sizeof(*ids), compare);
    return ids;
}

void fake_set_fini(struct fake_set *set)
{
    free(set->ids);
    *set = (struct fake_set){0};
}
