#include "tools/rollcall/histogram.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

#define BUCKET_BITS    7 /* 128 buckets a power of two */
#define LINEAR_BELOW   (2u << BUCKET_BITS)
#define SCALE_MAX      (64 - BUCKET_BITS - 1)
#define BUCKETS        ((SCALE_MAX + 2u) << BUCKET_BITS)
#define HISTOGRAM_MARK 0x48697374u

struct histogram {
    uint32_t mark;
    uint64_t count;
    uint64_t max;
    uint64_t buckets[BUCKETS];
};

struct histogram *histogram_create(void)
{
    struct histogram *histogram = memory_zalloc(sizeof(*histogram));
    histogram->mark = HISTOGRAM_MARK;
    return histogram;
}

void histogram_destroy(struct histogram *histogram)
{
    if (histogram == NULL) {
        return;
    }
    CHECK(histogram->mark == HISTOGRAM_MARK);
    free(histogram);
}

/* The power of two by which a value is coarsened. */
static unsigned scale_of(uint64_t value)
{
    if (value < LINEAR_BELOW) {
        return 0;
    }
    return 63u - (unsigned)__builtin_clzll(value) - BUCKET_BITS;
}

void histogram_record(struct histogram *histogram, uint64_t value)
{
    unsigned scale = scale_of(value);
    /* value >> scale lies in 128 .. 255 (0 .. 255 at scale 0), so scales follow without a gap. */
    uint64_t bucket = ((uint64_t)scale << BUCKET_BITS) + (value >> scale);

    CHECK(histogram->mark == HISTOGRAM_MARK && bucket < BUCKETS);
    histogram->buckets[bucket]++;
    histogram->count++;
    if (value > histogram->max) {
        histogram->max = value;
    }
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    CHECK(into->mark == HISTOGRAM_MARK && from->mark == HISTOGRAM_MARK && into != from);
    for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
        into->buckets[bucket] += from->buckets[bucket];
    }
    into->count += from->count;
    if (from->max > into->max) {
        into->max = from->max;
    }
}

uint64_t histogram_count(const struct histogram *histogram)
{
    return histogram->count;
}

uint64_t histogram_max(const struct histogram *histogram)
{
    return histogram->max;
}

static uint64_t bucket_middle(uint64_t bucket)
{
    if (bucket < LINEAR_BELOW) {
        return bucket;
    }
    uint64_t scale = (bucket >> BUCKET_BITS) - 1;
    uint64_t low = (bucket - (scale << BUCKET_BITS)) << scale;
    return low + ((1ull << scale) >> 1);
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
    CHECK(percent > 0 && percent <= 100);
    double wanted = percent / 100 * (double)histogram->count;
    uint64_t max = histogram_max(histogram);
    uint64_t seen = 0;

    for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
        uint64_t here = histogram->buckets[bucket];
        seen += here;
        if (here == 0 || (double)seen < wanted) {
            continue;
        }
        uint64_t value = bucket_middle(bucket);
        return value < max ? value : max;
    }
    return max;
}
