#include "tools/rollcall/bench_tally.h"

#include <stdio.h>
#include <string.h>

static void bench_tally_copy(char kept[BENCH_TEXT_MAX], const char *what, const char *bytes,
                             size_t length)
{
    size_t at = (size_t)snprintf(kept, BENCH_TEXT_MAX, "%s", what);

    for (size_t i = 0; i < length && at + 1 < BENCH_TEXT_MAX; i++) {
        kept[at++] = bytes[i] >= ' ' && bytes[i] < 127 ? bytes[i] : '.';
    }
    kept[at] = '\0';
}

/* Counts error lines of one text; those for which there is no room share the last. */
static void add_line(struct bench_tally *tally, const char text[BENCH_TEXT_MAX], bool expected,
                     uint64_t count)
{
    size_t i = 0;

    while (i + 1 < BENCH_ERROR_LINES && tally->error_lines[i].count != 0 &&
           (tally->error_lines[i].expected != expected ||
            strcmp(tally->error_lines[i].text, text) != 0)) {
        i++;
    }
    struct bench_error *error = &tally->error_lines[i];
    if (i + 1 == BENCH_ERROR_LINES) {
        snprintf(error->text, sizeof(error->text), "others");
    } else if (error->count == 0) {
        memcpy(error->text, text, sizeof(error->text));
    }
    error->expected = expected;
    error->count += count;
}

void bench_tally_error(struct bench_tally *tally, const char *line, size_t length, bool expected)
{
    char text[BENCH_TEXT_MAX];

    if (expected) {
        tally->expected++;
    } else {
        tally->errors++;
    }
    bench_tally_copy(text, "", line, length);
    add_line(tally, text, expected, 1);
}

void bench_tally_mismatch(struct bench_tally *tally, const char *what, const char *line,
                          size_t length)
{
    if (tally->mismatches++ == 0) {
        bench_tally_copy(tally->first_mismatch, what, line, length);
    }
}

struct bench_kind_tally bench_tally_sums(const struct bench_tally *tally)
{
    return (struct bench_kind_tally){
        .requests = tally->requests,
        .operations = tally->operations,
        .hits = tally->hits,
        .misses = tally->misses,
        .errors = tally->errors + tally->expected,
    };
}

void bench_tally_add(struct bench_tally *into, const struct bench_tally *from)
{
    uint64_t *sums = (uint64_t *)into;
    const uint64_t *more = (const uint64_t *)from;

    for (size_t i = 0; i < offsetof(struct bench_tally, error_lines) / sizeof(*sums); i++) {
        sums[i] += more[i];
    }
    for (size_t i = 0; i < BENCH_ERROR_LINES && from->error_lines[i].count != 0; i++) {
        add_line(into, from->error_lines[i].text, from->error_lines[i].expected,
                 from->error_lines[i].count);
    }
    if (into->first_mismatch[0] == '\0') {
        memcpy(into->first_mismatch, from->first_mismatch, sizeof(into->first_mismatch));
    }
}
