/* row_dropped.c: a short list of ranges of ids. */
#include "row/row_dropped.h"

#include <string.h>

#include "base/check.h"

bool row_dropped_has(const struct row_dropped *dropped, uint64_t id)
{
    for (uint64_t i = 0; i < dropped->count; i++) {
        if (dropped->at[i].first <= id && id <= dropped->at[i].last) {
            return true;
        }
    }
    return false;
}

static uint64_t ids_of(const struct row_range *range)
{
    return range->last - range->first + 1;
}

/* Takes away n of them from place `at` on. */
static void take_out(struct row_dropped *dropped, uint64_t at, uint64_t n)
{
    memmove(&dropped->at[at], &dropped->at[at + n],
            (dropped->count - at - n) * sizeof(dropped->at[0]));
    dropped->count -= n;
}

/* Of those that are there and `other`. */
static struct row_range *fewest(struct row_dropped *dropped, struct row_range *other)
{
    struct row_range *found = other;
    for (uint64_t i = 0; i < dropped->count; i++) {
        found = ids_of(&dropped->at[i]) < ids_of(found) ? &dropped->at[i] : found;
    }
    return found;
}

static void insert(struct row_dropped *dropped, const struct row_range *range)
{
    uint64_t at = 0;
    while (at < dropped->count && dropped->at[at].first < range->first) {
        at++;
    }
    memmove(&dropped->at[at + 1], &dropped->at[at], (dropped->count - at) * sizeof(dropped->at[0]));
    dropped->at[at] = *range;
    dropped->count++;
}

uint64_t row_dropped_add(struct row_dropped *dropped, uint64_t first, uint64_t last)
{
    CHECK(first <= last && last < UINT64_MAX);
    struct row_range range = {first, last};
    for (uint64_t i = dropped->count; i > 0; i--) {
        const struct row_range *other = &dropped->at[i - 1];
        if (other->first <= range.last + 1 && range.first <= other->last + 1) {
            range.first = other->first < range.first ? other->first : range.first;
            range.last = other->last > range.last ? other->last : range.last;
            take_out(dropped, i - 1, 1);
        }
    }
    uint64_t left_out = 0;
    if (dropped->count == ROW_DROPPED_MAX) {
        struct row_range *least = fewest(dropped, &range);
        left_out = ids_of(least);
        if (least == &range) {
            return left_out;
        }
        take_out(dropped, (uint64_t)(least - dropped->at), 1);
    }
    insert(dropped, &range);
    return left_out;
}

uint64_t row_dropped_above(const struct row_dropped *from, uint64_t base, struct row_dropped *above)
{
    uint64_t again = 0;
    above->count = 0;
    for (uint64_t i = 0; i < from->count; i++) {
        const struct row_range *range = &from->at[i];
        if (range->first > base) {
            above->at[above->count++] = *range;
        } else if (range->last >= base) {
            again = range->last - base + 1;
        }
    }
    return again;
}

void row_dropped_cut(struct row_dropped *dropped, uint64_t base)
{
    while (dropped->count > 0 && dropped->at[dropped->count - 1].first >= base) {
        dropped->count--;
    }
    if (dropped->count > 0 && dropped->at[dropped->count - 1].last >= base) {
        dropped->at[dropped->count - 1].last = base - 1;
    }
}

uint64_t row_dropped_next(const struct row_dropped *dropped, uint64_t frontier)
{
    for (uint64_t i = 0; i < dropped->count; i++) {
        if (dropped->at[i].first > frontier && ids_of(&dropped->at[i]) > 1) {
            return dropped->at[i].first;
        }
    }
    return UINT64_MAX;
}

uint64_t row_dropped_floor(const struct row_dropped *dropped, uint64_t low)
{
    uint64_t floor = 0;
    for (uint64_t i = 0; i < dropped->count && dropped->at[i].last < low; i++) {
        floor = dropped->at[i].last + 1;
    }
    return floor;
}

bool row_dropped_sound(const struct row_dropped *dropped, uint64_t first, uint64_t last)
{
    if (dropped->count > ROW_DROPPED_MAX) {
        return false;
    }
    for (uint64_t i = 0; i < dropped->count; i++) {
        const struct row_range *range = &dropped->at[i];
        bool apart = i == 0 || dropped->at[i - 1].last + 1 < range->first;
        if (range->first < first || range->last < range->first || range->last > last || !apart) {
            return false;
        }
    }
    return true;
}
