#include "tools/rollcall/progress.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"

#define TERMINAL_EVERY_US 200000u
#define LINE_EVERY_US     10000000u
#define EVENT_EVERY_US    1000000u
#define CLEAR_LINE        "\r\033[K"
#define PART_MAX          64

void progress_init(struct progress *progress, FILE *to, const char *unit, uint64_t from)
{
    *progress = (struct progress){.to = to, .unit = unit, .from = from};
    progress->terminal = to != NULL && isatty(fileno(to));
    progress->bytes = strcmp(unit, "bytes") == 0;
    progress->began_us = clock_monotonic_us();
    progress->next_us =
        progress->began_us + (progress->terminal ? TERMINAL_EVERY_US : LINE_EVERY_US);
}

void progress_as_json(struct progress *progress)
{
    progress->json = true;
    progress->terminal = false;
    progress->next_us = progress->began_us;
}

double progress_rate(const struct progress *progress, uint64_t done)
{
    uint64_t us = clock_monotonic_us() - progress->began_us;

    return us == 0 ? 0 : (double)(done - progress->from) * 1e6 / (double)us;
}

static void print_amount(const struct progress *progress, uint64_t amount, char text[PART_MAX])
{
    char size[SIZE_TEXT_MAX];

    if (progress->bytes) {
        snprintf(text, PART_MAX, "%s", size_text(size, amount));
    } else {
        snprintf(text, PART_MAX, "%" PRIu64 " %s", amount, progress->unit);
    }
}

static void print_left(char text[PART_MAX], double seconds)
{
    uint64_t s = (uint64_t)(seconds + 0.5);

    snprintf(text, PART_MAX, ", %" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " left", s / 3600,
             s / 60 % 60, s % 60);
}

static void tell_event(struct progress *progress, uint64_t done, uint64_t whole, const char *more)
{
    fprintf(progress->to, "{\"event\":\"progress\",\"%s\":%" PRIu64 ",\"each_s\":%.0f",
            progress->unit, done, progress_rate(progress, done));
    if (whole > 0) {
        fprintf(progress->to, ",\"whole\":%" PRIu64, whole);
    }
    if (more != NULL) {
        fprintf(progress->to, ",\"waits\":\"%s\"", more);
    }
    fputs("}\n", progress->to);
    fflush(progress->to);
    progress->next_us = clock_monotonic_us() + EVENT_EVERY_US;
}

void progress_tell(struct progress *progress, uint64_t done, uint64_t whole, const char *more)
{
    char amount[PART_MAX];
    char rate_text[PART_MAX];
    char left[PART_MAX] = "";
    char share[PART_MAX] = "";

    if (progress->to == NULL || clock_monotonic_us() < progress->next_us) {
        return;
    }
    if (progress->json) {
        tell_event(progress, done, whole, more);
        return;
    }
    double rate = progress_rate(progress, done);

    print_amount(progress, done, amount);
    print_amount(progress, (uint64_t)rate, rate_text);
    if (whole > 0) {
        snprintf(share, sizeof(share), " (%.1f %%)", 100.0 * (double)done / (double)whole);
        print_left(left, rate > 0 && whole > done ? (double)(whole - done) / rate : 0);
    }
    fprintf(progress->to, "%s%s%s, %s/s%s%s%s%s", progress->terminal ? CLEAR_LINE : "", amount,
            share, rate_text, left, more != NULL ? ", " : "", more != NULL ? more : "",
            progress->terminal ? "" : "\n");
    fflush(progress->to);
    progress->shown = progress->terminal;
    progress->next_us =
        clock_monotonic_us() + (progress->terminal ? TERMINAL_EVERY_US : LINE_EVERY_US);
}

void progress_clear(struct progress *progress)
{
    if (progress->shown) {
        fputs(CLEAR_LINE, progress->to);
        fflush(progress->to);
        progress->shown = false;
    }
}
