#include "tools/rollcall/bench_feed.h"

#include "base/check.h"
#include "base/hash.h"
#include "tools/rollcall/bench_random.h"

void bench_feed_init(struct bench_feed *feed, uint64_t start, uint64_t end, uint64_t window)
{
    CHECK(window >= 2 && end > start);
    *feed = (struct bench_feed){
        .start = start,
        .end = end,
        .clock = start,
        .window = window,
        .late_by = window / 2,
    };
}

bool bench_feed_late(const struct bench_feed *feed, uint64_t index)
{
    uint64_t random = hash_u64(index * BENCH_WEYL + feed->seed);
    return bench_scale(random, 100) < feed->late;
}

/* The id that has now been passed by late_by, if that is one that is created only now. */
static bool take_late(struct bench_feed *feed, uint64_t *index)
{
    bool looks = feed->looks_back;

    feed->looks_back = false;
    if (!looks || feed->clock - feed->start <= feed->late_by) {
        return false;
    }
    *index = feed->clock - 1 - feed->late_by;
    return bench_feed_late(feed, *index);
}

uint64_t bench_feed_next(struct bench_feed *feed)
{
    CHECK(feed->late <= BENCH_FEED_LATE_MAX);
    for (uint64_t index; feed->clock < feed->end;) {
        if (take_late(feed, &index)) {
            return index;
        }
        index = feed->clock++;
        feed->looks_back = true;
        if (!bench_feed_late(feed, index)) {
            return index;
        }
    }
    return feed->end - 1;
}

uint64_t bench_feed_draw(const struct bench_feed *feed, uint64_t random)
{
    uint64_t recent = feed->clock < feed->window ? feed->clock : feed->window;
    uint64_t age = bench_scale(bench_scale(random, random), random); /* u^3, in 64 bits */

    if (feed->clock == 0) {
        return 0;
    }
    if (bench_scale(hash_u64(random), 100) < feed->old) {
        return bench_scale(random, feed->clock);
    }
    return feed->clock - 1 - bench_scale(age, recent);
}
