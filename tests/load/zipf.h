/*
 * zipf.h: ranks by Zipf's law: rank k of n, from 0, comes as often as 1 / (k + 1)^theta says.
 *
 * By rejection-inversion (Hoermann, Derflinger: "Rejection-inversion to generate variates from
 * monotone discrete distributions", 1996): the area under x^-theta from 1/2 to n + 1/2 is inverted,
 * and the few draws that fall beside the steps of the law are drawn again. No tables, whatever n; a
 * theta of 1 is no exception. About 60 ns a draw. Plain data; drawing changes only the caller's
 * random state.
 */
#ifndef ROLLCALL_TESTS_LOAD_ZIPF_H
#define ROLLCALL_TESTS_LOAD_ZIPF_H

#include <stdint.h>

struct load_zipf {
    uint64_t n;
    double theta;
    double from, to; /* areas: up to the end of rank 0's step; up to the end of the last */
    double surely;   /* so far left of a rank it needs no look at its step */
    uint64_t mask;   /* of the least power of two that is not below n */
    unsigned shift;  /* half its bits */
};

/* theta in hundredths, above 0; n at least 1. */
void load_zipf_init(struct load_zipf *zipf, uint64_t hundredths, uint64_t n);

/* Draws a rank, 0 to n - 1; 0 comes most often. */
uint64_t load_zipf_rank(const struct load_zipf *zipf, uint64_t *random);

/* Where a rank is in the population: a bijection of 0 to n - 1, so that frequent ones are apart. */
uint64_t load_zipf_place(const struct load_zipf *zipf, uint64_t rank);

#endif
