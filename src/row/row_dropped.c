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
static void take_out(struct row_dropped_list *list, uint64_t at, uint64_t n)
{
    memmove(&list->at[at], &list->at[at + n], (list->count - at - n) * sizeof(list->at[0]));
    list->count -= n;
}

static void insert(struct row_dropped_list *list, const struct row_range *range)
{
    uint64_t at = 0;
    CHECK(list->count < ROW_DROPPED_LIST_MAX);
    while (at < list->count && list->at[at].first < range->first) {
        at++;
    }
    memmove(&list->at[at + 1], &list->at[at], (list->count - at) * sizeof(list->at[0]));
    list->at[at] = *range;
    list->count++;
}

void row_dropped_list_add(struct row_dropped_list *list, uint64_t first, uint64_t last)
{
    CHECK(first <= last && last < UINT64_MAX);
    struct row_range range = {first, last};
    for (uint64_t i = list->count; i > 0; i--) {
        const struct row_range *other = &list->at[i - 1];
        if (other->first <= range.last + 1 && range.first <= other->last + 1) {
            range.first = other->first < range.first ? other->first : range.first;
            range.last = other->last > range.last ? other->last : range.last;
            take_out(list, i - 1, 1);
        }
    }
    insert(list, &range);
}

void row_dropped_list_add_all(struct row_dropped_list *list, const struct row_dropped *dropped)
{
    for (uint64_t i = 0; i < dropped->count; i++) {
        row_dropped_list_add(list, dropped->at[i].first, dropped->at[i].last);
    }
}

/* Takes the range of fewest ids away, and returns how many these are. */
static uint64_t leave_out(struct row_dropped_list *list)
{
    uint64_t least = 0;
    for (uint64_t i = 1; i < list->count; i++) {
        least = ids_of(&list->at[i]) < ids_of(&list->at[least]) ? i : least;
    }
    uint64_t ids = ids_of(&list->at[least]);
    take_out(list, least, 1);
    return ids;
}

uint64_t row_dropped_add(struct row_dropped *dropped, uint64_t first, uint64_t last)
{
    struct row_dropped_list list = {0};
    row_dropped_list_add_all(&list, dropped);
    row_dropped_list_add(&list, first, last);
    uint64_t left_out = list.count > ROW_DROPPED_MAX ? leave_out(&list) : 0;
    dropped->count = list.count;
    memcpy(dropped->at, list.at, list.count * sizeof(list.at[0]));
    return left_out;
}

static bool has_range(const struct row_dropped *dropped, const struct row_range *range)
{
    bool has = false;
    for (uint64_t i = 0; i < dropped->count && !has; i++) {
        has = dropped->at[i].first == range->first && dropped->at[i].last == range->last;
    }
    return has;
}

uint64_t row_dropped_new(const struct row_dropped_list *list, const struct row_dropped *known,
                         struct row_dropped *added)
{
    uint64_t left_out = 0;
    added->count = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        if (!has_range(known, &list->at[i])) {
            left_out += row_dropped_add(added, list->at[i].first, list->at[i].last);
        }
    }
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
