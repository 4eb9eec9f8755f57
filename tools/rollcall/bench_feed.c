#include "tools/rollcall/bench_feed.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/num.h"
#include "tools/rollcall/bench_random.h"

#define SHOWN_MAX 40 /* bytes of what is no share, in an error */

static const struct {
    const char *name;
    uint64_t share;
} kinds[BENCH_KINDS] = {
    [BENCH_KIND_PAGE] = {"page", 40},      [BENCH_KIND_RECORD] = {"record", 8},
    [BENCH_KIND_SLOT] = {"slot", 8},       [BENCH_KIND_INCR] = {"incr", 10},
    [BENCH_KIND_SEVERAL] = {"several", 3}, [BENCH_KIND_CREATE] = {"create", 4},
    [BENCH_KIND_DELETE] = {"delete", 1},   [BENCH_KIND_EXIST] = {"exist", 20},
    [BENCH_KIND_LIKE] = {"like", 5},       [BENCH_KIND_UNLIKE] = {"unlike", 1},
};

const char *bench_kind_name(enum bench_kind kind)
{
    return kinds[kind].name;
}

static void bench_feed_add_up(struct bench_shares *shares)
{
    shares->total = 0;
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        shares->total += shares->of[i];
    }
}

struct bench_shares bench_shares_default(void)
{
    struct bench_shares shares;

    for (size_t i = 0; i < BENCH_KINDS; i++) {
        shares.of[i] = kinds[i].share;
    }
    bench_feed_add_up(&shares);
    return shares;
}

/* One "name=weight". */
static bool take_share(const char *text, size_t length, struct bench_shares *shares)
{
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        size_t name = strlen(kinds[i].name);
        if (length > name && memcmp(text, kinds[i].name, name) == 0 && text[name] == '=') {
            return num_parse(text + name + 1, length - name - 1, &shares->of[i]) &&
                   shares->of[i] <= BENCH_SHARE_MAX;
        }
    }
    return false;
}

static bool say_known(const char *text, size_t length, char error[BENCH_SHARES_ERROR_MAX])
{
    int shown = length < SHOWN_MAX ? (int)length : SHOWN_MAX;
    size_t at = (size_t)snprintf(error, BENCH_SHARES_ERROR_MAX, "\"%.*s\" is not KIND=0 to %u of",
                                 shown, text, BENCH_SHARE_MAX);

    for (size_t i = 0; i < BENCH_KINDS && at < BENCH_SHARES_ERROR_MAX; i++) {
        at += (size_t)snprintf(error + at, BENCH_SHARES_ERROR_MAX - at, " %s", kinds[i].name);
    }
    return false;
}

bool bench_shares_parse(const char *text, struct bench_shares *shares,
                        char error[BENCH_SHARES_ERROR_MAX])
{
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (!take_share(at, length, shares)) {
            return say_known(at, length, error);
        }
        at += length;
        if (*at == '\0') {
            break;
        }
    }
    bench_feed_add_up(shares);
    snprintf(error, BENCH_SHARES_ERROR_MAX, "no kind of request is left");
    return shares->total != 0;
}

enum bench_kind bench_shares_draw(const struct bench_shares *shares, uint64_t random)
{
    uint64_t left = bench_scale(random, shares->total);
    size_t kind = 0;

    CHECK(shares->total > 0);
    while (left >= shares->of[kind]) {
        left -= shares->of[kind++];
    }
    return (enum bench_kind)kind;
}

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
