/*
 * filter.c: planning, setting and judging a filter.
 */
#include "phantom/filter.h"

#include "base/check.h"

#define SEARCH_STEPS     40     /* halvings of the load */
#define WEIGHT_FIRST     1e-200 /* Poisson weights are summed unscaled: e^512 more still fits */
#define WEIGHT_FORGOTTEN 1e-12  /* of the sum: later terms change nothing */

static double power(double base, unsigned exponent)
{
    double result = 1;
    for (; exponent; exponent >>= 1, base *= base) {
        result = exponent & 1 ? result * base : result;
    }
    return result;
}

/*
 * The share of wrong answers in a line where draws of bits have left a given bit unset with
 * probability `one`, and a given pair of bits with `two`. The k bits of a foreign member are all
 * set with probability E[(set / 512)^k]; taken to the variance of `set`, exact to a few 10^-3.
 */
static double line_rate(unsigned bits, double one, double two)
{
    double mean = 1 - one;
    double variance = one / PHANTOM_LINE_BITS + two * (1 - 1.0 / PHANTOM_LINE_BITS) - one * one;
    if (bits < 2) {
        return mean;
    }
    double below = power(mean, bits - 2);
    return below * mean * mean + bits * (bits - 1) / 2.0 * below * variance;
}

double phantom_filter_rate_at(unsigned bits, double load)
{
    CHECK(bits >= 1 && bits <= PHANTOM_BITS_MAX && load >= 0 && load <= PHANTOM_LINE_BITS);
    double one_step = power(1 - 1.0 / PHANTOM_LINE_BITS, bits);
    double two_step = power(1 - 2.0 / PHANTOM_LINE_BITS, bits);
    double one = 1, two = 1;
    double weight = WEIGHT_FIRST, weights = 0, rates = 0;
    for (unsigned members = 0; members <= load || weight > weights * WEIGHT_FORGOTTEN; members++) {
        weights += weight;
        rates += weight * line_rate(bits, one, two);
        weight *= load / (members + 1);
        one *= one_step;
        two *= two_step;
    }
    return rates / weights;
}

/* Returns the largest load at which members of this many bits stay within the rate. */
static double load_for(unsigned bits, double rate)
{
    double low = 0;
    double high = PHANTOM_LINE_BITS;
    for (unsigned i = 0; i < SEARCH_STEPS; i++) {
        double middle = (low + high) / 2;
        if (phantom_filter_rate_at(bits, middle) <= rate) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

void phantom_filter_plan(double rate, struct phantom_plan *plan)
{
    CHECK(rate > 0 && rate < 1);
    *plan = (struct phantom_plan){0};
    for (unsigned bits = 1; bits <= PHANTOM_BITS_MAX; bits++) {
        double load = load_for(bits, rate);
        if (load < plan->load) {
            return; /* from here on it only falls */
        }
        *plan = (struct phantom_plan){bits, load, phantom_filter_rate_at(bits, load)};
    }
}

void phantom_line_set(shared_word *line, unsigned bits, uint64_t hash)
{
    uint32_t x = (uint32_t)hash;
    for (unsigned i = 0; i < bits; i++) {
        size_t at = (size_t)(x >> 29) * 8;
        words_store(line, at, 8, words_load(line, at, 8) | 1ull << (x >> 23 & 63));
        x *= PHANTOM_BIT_STEP;
    }
}

void phantom_filter_set(struct phantom_filter *filter, uint64_t hash)
{
    phantom_line_set(phantom_filter_words(filter, hash), filter->bits, hash);
}

static unsigned line_count(const struct phantom_filter *filter, uint64_t line)
{
    const shared_word *words = filter->words + line * PHANTOM_LINE_WORDS;
    unsigned set = 0;
    for (size_t at = 0; at < PHANTOM_LINE_BYTES; at += 8) {
        set += (unsigned)__builtin_popcountll(words_load(words, at, 8));
    }
    return set;
}

double phantom_filter_rate(const struct phantom_filter *filter)
{
    uint64_t lines = filter->lines < PHANTOM_SAMPLE_LINES ? filter->lines : PHANTOM_SAMPLE_LINES;
    double sum = 0;
    /* Members are spread by their hash, so the first lines are a fair sample. */
    for (uint64_t i = 0; i < lines; i++) {
        double share = (double)line_count(filter, i) / PHANTOM_LINE_BITS;
        sum += power(share, filter->bits);
    }
    return sum / (double)lines;
}

uint64_t phantom_filter_count(const struct phantom_filter *filter)
{
    uint64_t set = 0;
    for (uint64_t line = 0; line < filter->lines; line++) {
        set += line_count(filter, line);
    }
    return set;
}
