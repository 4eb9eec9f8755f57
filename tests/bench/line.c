#include "tests/bench/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/memory.h"

#define SIZE_NUMBER_MAX 1024
#define LINE_WORDS      (MEMORY_LINE_BYTES / sizeof(uint64_t))

double line_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

uint64_t line_scale_down(uint64_t random, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)random * bound >> 64);
}

static double measure_round(const uint64_t *words, uint64_t lines, uint64_t *state)
{
    double began = line_now_ns();
    for (uint64_t i = 0; i < LINE_OPS_A_ROUND; i++) {
        uint64_t line = line_scale_down(hash_u64(*state), lines);
        *state += LINE_WEYL + words[line * LINE_WORDS];
    }
    __asm__ volatile("" : : "r"(*state)); /* somebody wants the result: the loads must be made */
    return (line_now_ns() - began) / LINE_OPS_A_ROUND;
}

double line_measure(uint64_t bytes)
{
    uint64_t lines = bytes / MEMORY_LINE_BYTES, state = 1;
    uint64_t *words = memory_region_create(bytes);
    double best = 1e9;

    if (words == NULL) {
        perror("bench: region");
        exit(1);
    }
    for (uint64_t line = 0; line < lines; line++) {
        words[line * LINE_WORDS] = hash_u64(line);
    }
    for (int round = 0; round < LINE_ROUNDS; round++) {
        double ns = measure_round(words, lines, &state);
        best = ns < best ? ns : best;
    }
    memory_region_destroy(words, bytes);
    return best;
}

uint64_t line_parse_size(const char *text, const char *usage)
{
    char *end = NULL;
    uint64_t number = strtoull(text, &end, 10);
    const char *unit = strchr("KMG", *end);

    if (end == text || *end == '\0' || unit == NULL || end[1] != '\0' || number == 0 ||
        number > SIZE_NUMBER_MAX) {
        fprintf(stderr, "usage: %s\n", usage);
        exit(2);
    }
    return *end == 'K' ? number << 10 : *end == 'M' ? number << 20 : number << 30;
}
