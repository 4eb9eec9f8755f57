/* bench_line.h: the options of `rollcall bench` from a command line in one text. */
#ifndef ROLLCALL_TESTS_UNIT_TOOLS_BENCH_LINE_H
#define ROLLCALL_TESTS_UNIT_TOOLS_BENCH_LINE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/rollcall/bench_options.h"

#define BENCH_LINE_WORDS_MAX 32
#define BENCH_LINE_BYTES_MAX 512

/* Words are split at spaces. The options point into memory that the next call overwrites. */
static inline bool bench_line_parse(const char *line, struct bench_options *options)
{
    static char words[BENCH_LINE_BYTES_MAX];
    char *arguments[BENCH_LINE_WORDS_MAX] = {(char[]){"bench"}};
    int count = 1;

    snprintf(words, sizeof(words), "%s", line);
    for (char *word = strtok(words, " "); word != NULL && count + 1 < BENCH_LINE_WORDS_MAX;
         word = strtok(NULL, " "))
        arguments[count++] = word;
    return bench_options_parse(count, arguments, options);
}

#endif
