#include "engine/row_policy.h"

#include "base/check.h"
#include "engine/row.h"

#include <stdlib.h>

#define STRAYS_TENTH   10 /* so many of a sample may be strays, at either end */
#define SPREADS_AROUND 4
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
    qsort(ids, n, sizeof *ids, compare_ids);
}

bool row_policy_holds(const uint64_t *sorted, size_t n, uint64_t id)
{
    return n > 0 && bsearch(&id, sorted, n, sizeof *sorted, compare_ids) != NULL;
}

struct row_span row_policy_span(const uint64_t *sorted, size_t n)
{
    CHECK(n > 0);
    size_t tenth = n / STRAYS_TENTH;
    uint64_t p10 = sorted[tenth];
    uint64_t p90 = sorted[n - 1 - tenth];
    uint64_t spread = p90 - p10;
    uint64_t around = spread > ROW_ID_MAX / SPREADS_AROUND ? ROW_ID_MAX : spread * SPREADS_AROUND;
    uint64_t least = p10 > around ? p10 - around : 0;
    uint64_t most = row_policy_add(p90, around);
    size_t low = tenth;
    while (low > 0 && sorted[low - 1] >= least) {
        low--;
    }
    size_t high = n - 1 - tenth;
    while (high < n - 1 && sorted[high + 1] <= most) {
        high++;
    }
    return (struct row_span){
        .low = sorted[low], .high = sorted[high], .spread = spread, .most = p90};
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
    uint64_t factor = 1;
    if (count <= capacity / 4) {
        factor = 4;
    } else if (count <= capacity / 2) {
        factor = 2;
    }
    uint64_t reach = spanned > ROW_ID_MAX / factor ? ROW_ID_MAX : spanned * factor;
    return at_least(reach, reach_min);
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
