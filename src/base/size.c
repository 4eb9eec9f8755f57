/* size.c: sizes as text. */
#include "base/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#define KIB       1024u
#define TENTHS_TO 10 /* units below which a size has a digit after the point */
#define UNITS     (sizeof(units) / sizeof(units[0]))

static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};

/* In tenths of the unit, rounded. */
static uint64_t tenths_of(uint64_t bytes, uint64_t factor)
{
    return bytes / factor * 10 + (bytes % factor * 10 + factor / 2) / factor;
}

const char *size_text(char text[SIZE_TEXT_MAX], uint64_t bytes)
{
    uint64_t factor = 1;
    size_t unit = 0;

    while (unit + 1 < UNITS && bytes / factor >= KIB) {
        factor *= KIB;
        unit++;
    }
    uint64_t tenths = tenths_of(bytes, factor);
    if (tenths >= TENTHS_TO * 10 || tenths % 10 == 0) {
        snprintf(text, SIZE_TEXT_MAX, "%" PRIu64 " %s", (tenths + 5) / 10, units[unit]);
    } else {
        snprintf(text, SIZE_TEXT_MAX, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
                 units[unit]);
    }
    return text;
}

const char *size_exact(char text[SIZE_TEXT_MAX], uint64_t bytes)
{
    size_t unit = 0;

    while (unit + 1 < UNITS && bytes != 0 && bytes % KIB == 0) {
        bytes /= KIB;
        unit++;
    }
    snprintf(text, SIZE_TEXT_MAX, "%" PRIu64 "%s", bytes, unit > 0 ? units[unit] : "");
    return text;
}

uint64_t size_factor(const char *unit)
{
    uint64_t factor = 1;

    if (*unit == '\0' || strcasecmp(unit, "B") == 0) {
        return factor;
    }
    for (size_t i = 1; i < UNITS; i++) {
        factor *= KIB;
        if (tolower((unsigned char)*unit) == tolower((unsigned char)units[i][0]) &&
            (unit[1] == '\0' || strcasecmp(unit + 1, "B") == 0 ||
             strcasecmp(unit + 1, "iB") == 0)) {
            return factor;
        }
    }
    return 0;
}
