/* readable.c: numbers with their units. */
#include "base/readable.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Prints three digits, as many of them after the point as there is room for. */
static char *text_scaled(char text[READABLE_MAX], double value, const char *unit)
{
    int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

    snprintf(text, READABLE_MAX, "%.*f%s", digits, value, unit);
    return text;
}

char *readable_count(char text[READABLE_MAX], double count)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P"};
    size_t unit = 0;

    if (count < 1000) {
        snprintf(text, READABLE_MAX, count == (double)(uint64_t)count ? "%.0f" : "%.1f", count);
        return text;
    }
    while (count >= 999.5 && unit + 1 < LENGTH(units)) {
        count /= 1000;
        unit++;
    }
    return text_scaled(text, count, units[unit]);
}

char *readable_bytes(char text[READABLE_MAX], double bytes)
{
    static const char *const units[] = {" bytes", " KiB", " MiB", " GiB", " TiB"};
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(text, READABLE_MAX, "%.0f bytes", bytes);
        return text;
    }
    while (bytes >= 1023.5 && unit + 1 < LENGTH(units)) {
        bytes /= 1024;
        unit++;
    }
    return text_scaled(text, bytes, units[unit]);
}

char *readable_span(char text[READABLE_MAX], double seconds)
{
    static const struct {
        double seconds, until; /* of one, and up to how many of them it is used */
        const char *word;
    } units[] = {{1, 100, "second"}, {60, 100, "minute"}, {3600, 48, "hour"}, {86400, 1e9, "day"}};
    size_t unit = 0;

    while (unit + 1 < LENGTH(units) && seconds / units[unit].seconds >= units[unit].until) {
        unit++;
    }
    double count = seconds / units[unit].seconds;

    int digits = unit > 0 && count < 9.95 ? 1 : 0;
    int length = snprintf(text, READABLE_MAX, "%.*f", digits, count);
    bool one = strcmp(text, "1") == 0;

    snprintf(text + length, READABLE_MAX - (size_t)length, " %s%s", units[unit].word,
             one ? "" : "s");
    return text;
}

char *readable_time(char text[READABLE_MAX], double seconds)
{
    static const char *const units[] = {" µs", " ms", " s"};
    double value = seconds * 1e6;
    size_t unit = 0;

    while (value >= 999.5 && unit + 1 < LENGTH(units)) {
        value /= 1000;
        unit++;
    }
    snprintf(text, READABLE_MAX, "%.*f%s", unit > 0 && value < 9.95 ? 1 : 0, value, units[unit]);
    return text;
}

char *readable_share(char text[READABLE_MAX], double share)
{
    double percent = 100 * share;
    int digits = percent >= 9.95 ? 0 : percent >= 0.995 ? 1 : percent >= 0.0995 ? 2 : 4;

    snprintf(text, READABLE_MAX, "%.*f %%", share == 0 ? 0 : digits, percent);
    return text;
}

char *readable_many(char text[READABLE_MAX], uint64_t count, const char *noun)
{
    snprintf(text, READABLE_MAX, "%llu %s%s", (unsigned long long)count, noun,
             count == 1 ? "" : "s");
    return text;
}
