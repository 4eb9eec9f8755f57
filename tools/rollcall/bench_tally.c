#include "tools/rollcall/bench_tally.h"

#include <stdio.h>
#include <string.h>

static void keep(char kept[BENCH_TEXT_MAX], const char *what, const char *bytes, size_t length)
{
    size_t at = (size_t)snprintf(kept, BENCH_TEXT_MAX, "%s", what);

    for (size_t i = 0; i < length && at + 1 < BENCH_TEXT_MAX; i++)
        kept[at++] = bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : '.';
    kept[at] = '\0';
}

void bench_tally_error(struct bench_tally *tally, const char *line, size_t length, bool expected)
{
    char text[BENCH_TEXT_MAX];
    size_t i = 0;

    if (expected)
        tally->expected++;
    else
        tally->errors++;
    keep(text, "", line, length);
    while (i + 1 < BENCH_ERROR_LINES && tally->error_lines[i].count != 0 &&
           (tally->error_lines[i].expected != expected ||
            strcmp(tally->error_lines[i].text, text) != 0))
        i++;
    struct bench_error *error = &tally->error_lines[i];
    if (i + 1 == BENCH_ERROR_LINES)
        snprintf(error->text, sizeof(error->text), "others");
    else if (error->count == 0)
        memcpy(error->text, text, sizeof(text));
    error->expected = expected;
    error->count++;
}

void bench_tally_mismatch(struct bench_tally *tally, const char *what, const char *line,
                          size_t length)
{
    if (tally->mismatches++ == 0)
        keep(tally->first_mismatch, what, line, length);
}
