/* table_count.c: how many records a table in memory has, and how many of them have a slot. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "counter/table_private.h"

#define WALK_PIECE 4096u

uint64_t table_count_records(const struct counter_table *t)
{
    uint64_t records = dict_count(t->extend);
    for (uint64_t group = 0; group < t->shape.groups; group++) {
        records += group_count(t, verlock_read(group_lock(t, group_words(t, group))));
    }
    return records;
}

struct counting {
    unsigned bits, offset; /* physical: where it lies */
    int sub;
    uint64_t found;
};

static uint64_t count_groups(const struct counter_table *t, const struct counting *counting)
{
    uint64_t words[TABLE_PAGE_BYTES / sizeof(uint64_t)];
    uint64_t pages = counter_table_pages(t);
    size_t group_words = t->shape.group_bytes / sizeof(*words);
    uint64_t found = 0;
    for (uint64_t page = 0; page < pages; page++) {
        counter_table_copy_pages(t, page, 1, words);
        for (unsigned i = 0; i < t->page_groups; i++) {
            const uint64_t *group = words + i * group_words;
            uint32_t count = group_count(t, (uint32_t)(group[group_words - 1] >> 32));
            for (uint32_t place = 0; place < count; place++) {
                unsigned at = place * t->shape.payload_bytes * 8 + counting->offset;
                found += bits_get(group, at, counting->bits) != 0;
            }
        }
    }
    return found;
}

static void count_record(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counting *counting = context;
    (void)id;
    (void)sub;
    counting->found += bits_get(value, counting->offset, counting->bits) != 0;
}

static void count_value(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct counting *counting = context;
    (void)id;
    (void)value;
    counting->found += sub == counting->sub;
}

static void walk(const struct dict *dict, dict_visit *visit, struct counting *counting)
{
    uint64_t at = 0;
    while (dict_walk(dict, &at, WALK_PIECE, visit, counting)) {
    }
}

uint64_t counter_table_count_slot(const struct counter_table *t, const struct counter_slot *slot)
{
    CHECK(t->magic == TABLE_MAGIC && t->extend);
    struct counting counting = {.sub = counter_schema_sub(&t->schema, slot)};
    if (counting.sub < 0) {
        return 0;
    }
    if (counting.sub >= ENGINE_SLOTS_MAX) {
        walk(t->aux, count_value, &counting);
        return counting.found;
    }
    counting.bits = t->schema.slots[counting.sub].bits;
    counting.offset = t->schema.offset[counting.sub];
    walk(t->extend, count_record, &counting);
    return counting.found + count_groups(t, &counting);
}
