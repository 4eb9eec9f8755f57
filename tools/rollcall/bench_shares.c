#include "tools/rollcall/bench_shares.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_random.h"

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

static void add_up(struct bench_shares *shares)
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
    add_up(&shares);
    return shares;
}

/* One "name=weight". */
static bool take_share(const char *text, size_t length, struct bench_shares *shares)
{
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals != NULL ? (size_t)(equals - text) : length;
    uint64_t share = 0;

    if (equals == NULL || !num_parse(equals + 1, length - name_length - 1, &share) ||
        share > BENCH_SHARE_MAX) {
        return false;
    }
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        if (strlen(kinds[i].name) == name_length && memcmp(kinds[i].name, text, name_length) == 0) {
            shares->of[i] = share;
            return true;
        }
    }
    return false;
}

static bool say_known(const char *text, size_t length, char error[BENCH_SHARES_ERROR_MAX])
{
    size_t at = (size_t)snprintf(error, BENCH_SHARES_ERROR_MAX, "\"%.*s\" is not KIND=0 to %u of",
                                 length < 40 ? (int)length : 40, text, BENCH_SHARE_MAX);

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
    add_up(shares);
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
