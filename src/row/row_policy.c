#include "row/row_policy.h"

#include "base/check.h"
#include "row/row.h"

#include <stdlib.h>
#include <string.h>

#define SPREADS_AROUND 4
#define SPANS_EARLY    4 /* reached by a table whose range is not known yet */
#define LATE_MARGIN    1.25
#define LATE_EXTRA     (1.0 / 64)

uint64_t row_policy_add(uint64_t a, uint64_t b)
{
    return b > ROW_ID_MAX - a ? ROW_ID_MAX : a + b;
}

static int compare_ids(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

void row_policy_sort(uint64_t *ids, size_t n)
{
    qsort(ids, n, sizeof(*ids), compare_ids);
}

/* Returns where the shortest distance over `steps` of them begins. */
static size_t shortest_at(const uint64_t *sorted, size_t n, size_t steps)
{
    CHECK(steps < n);
    size_t found = 0;
    for (size_t i = 1; i + steps < n; i++) {
        if (sorted[i + steps] - sorted[i] < sorted[found + steps] - sorted[found]) {
            found = i;
        }
    }
    return found;
}

uint64_t row_policy_shortest(const uint64_t *sorted, size_t n, size_t steps)
{
    size_t at = shortest_at(sorted, n, steps);
    return sorted[at + steps] - sorted[at];
}

/* Widens *low .. *high to the shortest span of more than half of n ids, unless that is longer than
 * `most`. Sorts them. */
static void widen(uint64_t *ids, size_t n, uint64_t most, uint64_t *low, uint64_t *high)
{
    row_policy_sort(ids, n);
    size_t steps = n / 2;
    size_t at = shortest_at(ids, n, steps);
    if (ids[at + steps] - ids[at] <= most) {
        *low = ids[at] < *low ? ids[at] : *low;
        *high = ids[at + steps] > *high ? ids[at + steps] : *high;
    }
}

struct row_span row_policy_span(const uint64_t *ids, size_t n)
{
    CHECK(n > 0 && n <= ROW_SAMPLE_MAX);
    uint64_t sorted[ROW_SAMPLE_MAX];
    size_t half = (n + 1) / 2;
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    memcpy(sorted, ids, n * sizeof(ids[0]));
    widen(sorted, n, UINT64_MAX, &low, &high);
    uint64_t most_long = row_policy_range(high - low, 1, SPREADS_AROUND);
    memcpy(sorted, ids, n * sizeof(ids[0]));
    widen(sorted, half, most_long, &low, &high);
    memcpy(sorted, ids, n * sizeof(ids[0]));
    widen(sorted + n - half, half, most_long, &low, &high);
    uint64_t spread = high - low;
    uint64_t around = spread > ROW_ID_MAX / SPREADS_AROUND ? ROW_ID_MAX : spread * SPREADS_AROUND;
    uint64_t least = low > around ? low - around : 0;
    uint64_t most = row_policy_add(high, around);
    struct row_span span = {.low = low, .high = high, .spread = spread, .most = high};
    for (size_t i = 0; i < n; i++) {
        span.low = ids[i] >= least && ids[i] < span.low ? ids[i] : span.low;
        span.high = ids[i] <= most && ids[i] > span.high ? ids[i] : span.high;
    }
    return span;
}

uint64_t row_policy_range(uint64_t spanned, uint64_t count, uint64_t capacity)
{
    CHECK(count > 0);
    unsigned __int128 range = (unsigned __int128)spanned * capacity / count;
    return range > ROW_ID_MAX ? ROW_ID_MAX : (uint64_t)range;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t row_policy_reach(uint64_t range, uint64_t reach_min, uint64_t spanned, uint64_t count,
                          uint64_t capacity)
{
    if (range != 0) {
        return at_least(range, reach_min);
    }
    uint64_t early = spanned > ROW_ID_MAX / SPANS_EARLY ? ROW_ID_MAX : spanned * SPANS_EARLY;
    uint64_t full = count > 0 ? row_policy_range(spanned, count, capacity) : ROW_ID_MAX;
    uint64_t end = row_policy_add(full, full / 4);
    uint64_t left = end > spanned ? end - spanned : 0;
    return at_least(early < left ? early : left, reach_min);
}

bool row_policy_cluster(const uint64_t *sorted, size_t n, size_t wanted, uint64_t reach,
                        uint64_t with, size_t *first)
{
    for (size_t i = 0; i + wanted <= n; i++) {
        uint64_t low = sorted[i];
        uint64_t high = sorted[i + wanted - 1];
        if (high - low <= reach && (with == UINT64_MAX || (low <= with && with <= high))) {
            *first = i;
            return true;
        }
    }
    return false;
}

double row_policy_late_room(double present, uint64_t late, uint64_t count)
{
    double share = count == 0 ? 0.0 : (double)late / (double)count;
    double target = share * LATE_MARGIN + LATE_EXTRA;
    if (target < ROW_LATE_ROOM_MIN) {
        target = ROW_LATE_ROOM_MIN;
    } else if (target > ROW_LATE_ROOM_MAX) {
        target = ROW_LATE_ROOM_MAX;
    }
    return target > present ? target : (present + target) / 2;
}
