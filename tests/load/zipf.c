#include "tests/load/zipf.h"

#include <math.h>

#include "base/check.h"
#include "tools/rollcall/bench_random.h"

#define UNIT_BITS 53 /* of a double between 0 and 1 */
#define SMALL     1e-8
#define ODD_1     0x9e3779b97f4a7c15ull
#define ODD_2     0xd1342543de82ef95ull

/* (e^x - 1) / x and log(1 + x) / x, which are 1 at 0. */
static double expm1_ratio(double x)
{
    return fabs(x) > SMALL ? expm1(x) / x : 1 + x / 2;
}

static double log1p_ratio(double x)
{
    return fabs(x) > SMALL ? log1p(x) / x : 1 - x / 2;
}

/* The area under x^-theta from 1 to x: (x^(1-theta) - 1) / (1 - theta), log x where theta is 1. */
static double area(const struct load_zipf *zipf, double x)
{
    double logarithm = log(x);
    return expm1_ratio((1 - zipf->theta) * logarithm) * logarithm;
}

/* Where the area is that large. */
static double edge(const struct load_zipf *zipf, double wanted)
{
    double power = wanted * (1 - zipf->theta);
    return exp(log1p_ratio(power > -1 ? power : -1) * wanted);
}

static double height(const struct load_zipf *zipf, double x)
{
    return exp(-zipf->theta * log(x));
}

void load_zipf_init(struct load_zipf *zipf, uint64_t hundredths, uint64_t n)
{
    unsigned bits = n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;

    CHECK(n >= 1 && hundredths >= 1);
    *zipf = (struct load_zipf){.n = n, .theta = (double)hundredths / 100};
    zipf->from = area(zipf, 1.5) - 1;
    zipf->to = area(zipf, (double)n + 0.5);
    zipf->surely = 2 - edge(zipf, area(zipf, 2.5) - height(zipf, 2));
    zipf->mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    zipf->shift = bits / 2 + 1;
}

uint64_t load_zipf_rank(const struct load_zipf *zipf, uint64_t *random)
{
    double last = (double)zipf->n;

    for (;;) {
        double unit = (double)(bench_random_next(random) >> (64 - UNIT_BITS)) * 0x1p-53;
        double drawn = zipf->to + unit * (zipf->from - zipf->to);
        double x = edge(zipf, drawn);
        double k = floor(x + 0.5);
        k = k < 1 ? 1 : k > last ? last : k;
        if (k - x <= zipf->surely || drawn >= area(zipf, k + 0.5) - height(zipf, k)) {
            return (uint64_t)k - 1;
        }
    }
}

/* Each step can be undone among the numbers of the mask; what falls outside the n walks on. */
uint64_t load_zipf_place(const struct load_zipf *zipf, uint64_t rank)
{
    uint64_t x = rank;

    do {
        x = (x + ODD_2) * ODD_1 & zipf->mask;
        x ^= x >> zipf->shift;
        x = x * ODD_2 & zipf->mask;
        x ^= x >> zipf->shift;
    } while (x >= zipf->n);
    return x;
}
