#include "base/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/size.h"

#define PERCENT 100.0

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit duration_units[] = {
    {"ms", 1},
    {"s", 1000},
    {"min", 60 * 1000},
    {"h", 3600 * 1000},
};
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

const char *options_quote(const char *text, char quoted[OPTIONS_QUOTE_MAX])
{
    size_t room = OPTIONS_QUOTE_MAX - sizeof("'...'");
    size_t length = strlen(text);
    bool cut = length > room;
    char *at = quoted;

    *at++ = '\'';
    for (size_t i = 0; i < (cut ? room : length); i++) {
        *at++ = iscntrl((unsigned char)text[i]) ? '?' : text[i];
    }
    strcpy(at, cut ? "...'" : "'");
    return quoted;
}

/* "name must be <what>, not 'text'" */
static bool options_refuse(const struct option_row *row, const char *what, const char *text,
                           char error[OPTIONS_ERROR_MAX])
{
    char quoted[OPTIONS_QUOTE_MAX];

    if (*text == '\0') {
        snprintf(error, OPTIONS_ERROR_MAX, "%s has no value: it must be %.160s", row->name, what);
    } else {
        snprintf(error, OPTIONS_ERROR_MAX, "%s must be %.120s, not %s", row->name, what,
                 options_quote(text, quoted));
    }
    return false;
}

static bool refuse_limits(const struct option_row *row, const char *text,
                          char error[OPTIONS_ERROR_MAX])
{
    char limits[OPTIONS_TEXT_MAX];

    options_format_limits(row, limits);
    return options_refuse(row, limits, text, error);
}

static bool in_limits(const struct option_row *row, uint64_t number, const char *text,
                      char error[OPTIONS_ERROR_MAX])
{
    if (number < row->min || number > row->max) {
        return refuse_limits(row, text, error);
    }
    if ((row->flags & OPTION_POWER_OF_TWO) != 0 && (number & (number - 1)) != 0) {
        return options_refuse(row, "a power of two", text, error);
    }
    return true;
}

static bool parse_bool(const struct option_row *row, const char *text, struct option_value *value,
                       char error[OPTIONS_ERROR_MAX])
{
    static const char *const spellings[] = {"no", "yes", "false", "true"};

    for (size_t i = 0; i < LENGTH(spellings); i++) {
        if (strcmp(text, spellings[i]) != 0) {
            continue;
        }
        value->number = i & 1;
        return true;
    }
    return options_refuse(row, "yes or no (or true, false)", text, error);
}

static bool parse_number(const struct option_row *row, const char *text, struct option_value *value,
                         char error[OPTIONS_ERROR_MAX])
{
    uint64_t number;

    if (!num_parse(text, strlen(text), &number)) {
        bool digits = *text != '\0' && text[strspn(text, "0123456789")] == '\0';
        return digits ? refuse_limits(row, text, error)
                      : options_refuse(row, "a number", text, error);
    }
    if (!in_limits(row, number, text, error)) {
        return false;
    }
    value->number = number;
    return true;
}

static bool parse_octal(const struct option_row *row, const char *text, struct option_value *value,
                        char error[OPTIONS_ERROR_MAX])
{
    uint64_t number = 0;
    size_t length = strlen(text);

    /* 21 octal digits are 63 bits: no overflow below. */
    if (length == 0 || length > 21 || strspn(text, "01234567") != length) {
        return options_refuse(row, "an octal number such as 0700", text, error);
    }
    for (size_t i = 0; i < length; i++) {
        number = number << 3 | (uint64_t)(text[i] - '0');
    }
    if (!in_limits(row, number, text, error)) {
        return false;
    }
    value->number = number;
    return true;
}

/*
 * Splits "12.5 KiB" into the number, as thousandths, and where the unit begins. Fractions have at
 * most three digits. False: no number, or more than 2^64 / 1000.
 */
static bool split_unit(const char *text, uint64_t *thousandths, const char **unit)
{
    size_t whole = strspn(text, "0123456789");
    size_t digits = 0;
    uint64_t number;
    uint64_t scale = 1000;

    if (!num_parse(text, whole, &number) || __builtin_mul_overflow(number, scale, &number)) {
        return false;
    }
    text += whole;
    if (*text == '.') {
        digits = strspn(text + 1, "0123456789");
        if (digits == 0 || digits > 3) {
            return false;
        }
        for (size_t i = 1; i <= digits; i++) {
            number += (uint64_t)(text[i] - '0') * (scale /= 10);
        }
        text += digits + 1;
    }
    *thousandths = number;
    *unit = text + strspn(text, " ");
    return true;
}

/* number / 1000 * factor, exactly; false if it overflows or leaves a rest. */
static bool scale_exactly(uint64_t thousandths, uint64_t factor, uint64_t divisor, uint64_t *result)
{
    unsigned __int128 product = (unsigned __int128)thousandths * factor;
    unsigned __int128 parts = (unsigned __int128)1000 * divisor;

    if (product % parts != 0 || product / parts > UINT64_MAX) {
        return false;
    }
    *result = (uint64_t)(product / parts);
    return true;
}

static bool parse_size(const struct option_row *row, const char *text, struct option_value *value,
                       char error[OPTIONS_ERROR_MAX])
{
    static const char wanted[] = "a size such as 64KiB, 16MiB or 4GiB";
    const char *unit;
    uint64_t thousandths, factor, number;

    if (!split_unit(text, &thousandths, &unit) || (factor = size_factor(unit)) == 0) {
        return options_refuse(row, wanted, text, error);
    }
    if (!scale_exactly(thousandths, factor, 1, &number)) {
        bool rest = (unsigned __int128)thousandths * factor / 1000 <= UINT64_MAX;
        return rest ? options_refuse(row, wanted, text, error) : refuse_limits(row, text, error);
    }
    if (!in_limits(row, number, text, error)) {
        return false;
    }
    value->number = number;
    return true;
}

static uint64_t duration_factor(const struct option_row *row, const char *unit)
{
    if (*unit == '\0') {
        return row->bare_ms != 0 ? row->bare_ms : row->unit_ms;
    }
    for (size_t i = 0; i < LENGTH(duration_units); i++) {
        if (strcmp(unit, duration_units[i].name) == 0) {
            return duration_units[i].factor;
        }
    }
    return 0;
}

static bool parse_duration(const struct option_row *row, const char *text,
                           struct option_value *value, char error[OPTIONS_ERROR_MAX])
{
    const char *unit;
    uint64_t thousandths, factor, number;

    if (!split_unit(text, &thousandths, &unit) || (factor = duration_factor(row, unit)) == 0) {
        return options_refuse(row, "a time such as 500ms, 30s, 10min or 1h", text, error);
    }
    if (!scale_exactly(thousandths, factor, row->unit_ms, &number)) {
        return options_refuse(row, row->unit_ms == 1 ? "whole milliseconds" : "whole seconds", text,
                              error);
    }
    if (!in_limits(row, number, text, error)) {
        return false;
    }
    value->number = number;
    return true;
}

static bool parse_real(const struct option_row *row, const char *text, struct option_value *value,
                       char error[OPTIONS_ERROR_MAX])
{
    char *end;
    double real;

    /* strtod() would take signs, spaces, hexadecimal, inf and nan too. */
    if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.eE+-% ")] != '\0') {
        return options_refuse(row, "a fraction such as 0.1 or 10%", text, error);
    }
    real = strtod(text, &end);
    end += strspn(end, " ");
    if (*end == '%') {
        real /= PERCENT;
        end++;
    }
    if (*end != '\0') {
        return options_refuse(row, "a fraction such as 0.1 or 10%", text, error);
    }
    if (!(real >= row->real_min && real <= row->real_max)) {
        return refuse_limits(row, text, error);
    }
    value->real = real;
    return true;
}

static bool parse_string(const struct option_row *row, const char *text, struct option_value *value,
                         char error[OPTIONS_ERROR_MAX])
{
    size_t length = strlen(text);
    char what[64];

    if (length < row->min || length > row->max) {
        snprintf(what, sizeof(what), "text of %llu to %llu bytes", (unsigned long long)row->min,
                 (unsigned long long)row->max);
        return options_refuse(row, what, text, error);
    }
    for (size_t i = 0; i < length; i++) {
        if (iscntrl((unsigned char)text[i])) {
            return options_refuse(row, "text without control characters", text, error);
        }
    }
    value->text = text;
    return true;
}

static bool parse_word(const struct option_row *row, const char *text, struct option_value *value,
                       char error[OPTIONS_ERROR_MAX])
{
    for (size_t i = 0; row->words[i] != NULL; i++) {
        if (strcmp(text, row->words[i]) != 0) {
            continue;
        }
        value->number = i;
        return true;
    }
    return refuse_limits(row, text, error);
}

typedef bool parse_fn(const struct option_row *row, const char *text, struct option_value *value,
                      char error[OPTIONS_ERROR_MAX]);

bool options_parse(const struct option_row *row, const char *text, struct option_value *value,
                   char error[OPTIONS_ERROR_MAX])
{
    static parse_fn *const parsers[] = {
        [OPTION_BOOL] = parse_bool,         [OPTION_NUMBER] = parse_number,
        [OPTION_OCTAL] = parse_octal,       [OPTION_SIZE] = parse_size,
        [OPTION_DURATION] = parse_duration, [OPTION_REAL] = parse_real,
        [OPTION_STRING] = parse_string,     [OPTION_WORD] = parse_word,
    };

    CHECK(row->type < OPTION_CUSTOM);
    if (row->automatic != NULL && strcmp(text, row->automatic) == 0) {
        value->number = 0;
        value->real = -1.0;
        return true;
    }
    return parsers[row->type](row, text, value, error);
}

/* The shortest digits that read back as the same number. */
static void format_real(double real, char text[OPTIONS_TEXT_MAX])
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, OPTIONS_TEXT_MAX, "%.*g", digits, real);
        if (strtod(text, NULL) == real) {
            return;
        }
    }
}

static bool is_automatic(const struct option_row *row, const struct option_value *value)
{
    if (row->automatic == NULL) {
        return false;
    }
    return row->type == OPTION_REAL ? value->real < 0 : value->number == 0;
}

/* With a unit where a number without one would count otherwise. */
static void format_duration(const struct option_row *row, uint64_t number,
                            char text[OPTIONS_TEXT_MAX])
{
    const struct unit *unit = &duration_units[LENGTH(duration_units) - 1];
    uint64_t ms = number * row->unit_ms;

    if (row->bare_ms == 0) {
        snprintf(text, OPTIONS_TEXT_MAX, "%llu", (unsigned long long)number);
        return;
    }
    while (ms % unit->factor != 0) { /* the first is 1 */
        unit--;
    }
    snprintf(text, OPTIONS_TEXT_MAX, "%llu%s", (unsigned long long)(ms / unit->factor), unit->name);
}

void options_format(const struct option_row *row, const struct option_value *value,
                    char text[OPTIONS_TEXT_MAX])
{
    if (is_automatic(row, value)) {
        snprintf(text, OPTIONS_TEXT_MAX, "%s", row->automatic);
        return;
    }
    switch (row->type) {
    case OPTION_BOOL:
        strcpy(text, value->number ? "yes" : "no");
        break;
    case OPTION_OCTAL:
        snprintf(text, OPTIONS_TEXT_MAX, "%#llo", (unsigned long long)value->number);
        break;
    case OPTION_SIZE:
        size_exact(text, value->number);
        break;
    case OPTION_REAL:
        format_real(value->real, text);
        break;
    case OPTION_STRING:
        snprintf(text, OPTIONS_TEXT_MAX, "%s", value->text ? value->text : "");
        break;
    case OPTION_WORD:
        snprintf(text, OPTIONS_TEXT_MAX, "%s", row->words[value->number]);
        break;
    case OPTION_NUMBER:
        snprintf(text, OPTIONS_TEXT_MAX, "%llu", (unsigned long long)value->number);
        break;
    case OPTION_DURATION:
        format_duration(row, value->number, text);
        break;
    case OPTION_CUSTOM:
        CHECK(row->type != OPTION_CUSTOM);
    }
}

/* "a, b or c" */
static void format_words(const struct option_row *row, char text[OPTIONS_TEXT_MAX])
{
    size_t count = 0, length = 0;

    while (row->words[count] != NULL) {
        count++;
    }
    text[0] = '\0';
    for (size_t i = 0; i < count && length < OPTIONS_TEXT_MAX; i++) {
        const char *join = i == 0 ? "" : i == count - 1 ? " or " : ", ";
        length +=
            (size_t)snprintf(text + length, OPTIONS_TEXT_MAX - length, "%s%s", join, row->words[i]);
    }
}

static void format_range(const struct option_row *row, char text[OPTIONS_TEXT_MAX])
{
    char least[OPTIONS_TEXT_MAX], most[OPTIONS_TEXT_MAX];
    struct option_row plain = *row;

    plain.automatic = NULL;
    options_format(&plain, &(struct option_value){.number = row->min, .real = row->real_min},
                   least);
    options_format(&plain, &(struct option_value){.number = row->max, .real = row->real_max}, most);
    snprintf(text, OPTIONS_TEXT_MAX, "%s%s%.64s to %.64s%s%s", row->automatic ? row->automatic : "",
             row->automatic ? " or " : "", least, most,
             row->type != OPTION_DURATION || row->bare_ms != 0 ? ""
             : row->unit_ms == 1                               ? " milliseconds"
                                                               : " seconds",
             (row->flags & OPTION_POWER_OF_TWO) != 0 ? ", a power of two" : "");
}

void options_format_limits(const struct option_row *row, char text[OPTIONS_TEXT_MAX])
{
    switch (row->type) {
    case OPTION_BOOL:
        strcpy(text, "yes or no");
        break;
    case OPTION_WORD:
        format_words(row, text);
        break;
    case OPTION_STRING:
        strcpy(text, "text");
        break;
    case OPTION_CUSTOM:
        text[0] = '\0';
        break;
    case OPTION_NUMBER:
    case OPTION_OCTAL:
    case OPTION_SIZE:
    case OPTION_DURATION:
    case OPTION_REAL:
        format_range(row, text);
        break;
    }
}

static void store_string(const struct option_row *row, char *field, const char *text)
{
    if ((row->flags & OPTION_INLINE) != 0) {
        CHECK(text == NULL || strlen(text) < row->bytes);
        strcpy(field, text == NULL ? "" : text);
        return;
    }
    char *copy = text == NULL ? NULL : memory_strdup(text);
    options_clear(row, field - row->offset);
    memcpy(field, &copy, sizeof(copy));
}

void options_store(const struct option_row *row, void *object, const struct option_value *value)
{
    char *field = (char *)object + row->offset;
    uint32_t half = (uint32_t)value->number;
    bool truth = value->number != 0;

    switch (row->type) {
    case OPTION_STRING:
        store_string(row, field, value->text);
        break;
    case OPTION_REAL:
        CHECK(row->bytes == sizeof(value->real));
        memcpy(field, &value->real, sizeof(value->real));
        break;
    case OPTION_BOOL:
        CHECK(row->bytes == sizeof(truth));
        memcpy(field, &truth, sizeof(truth));
        break;
    case OPTION_NUMBER:
    case OPTION_OCTAL:
    case OPTION_SIZE:
    case OPTION_DURATION:
    case OPTION_WORD:
        CHECK(row->bytes == sizeof(value->number) ||
              (row->bytes == sizeof(half) && half == value->number));
        memcpy(field, row->bytes == sizeof(half) ? (void *)&half : (const void *)&value->number,
               row->bytes);
        break;
    case OPTION_CUSTOM:
        CHECK(row->type != OPTION_CUSTOM);
    }
}

void options_load(const struct option_row *row, const void *object, struct option_value *value)
{
    const char *field = (const char *)object + row->offset;
    uint32_t half = 0;

    *value = (struct option_value){0};
    CHECK(row->type < OPTION_CUSTOM);
    if (row->type == OPTION_STRING) {
        value->text = field;
        if ((row->flags & OPTION_INLINE) == 0) {
            memcpy(&value->text, field, sizeof(value->text));
        }
    } else if (row->type == OPTION_REAL) {
        memcpy(&value->real, field, sizeof(value->real));
    } else if (row->type == OPTION_BOOL) {
        value->number = *(const bool *)field;
    } else if (row->bytes == sizeof(half)) {
        memcpy(&half, field, sizeof(half));
        value->number = half;
    } else {
        memcpy(&value->number, field, sizeof(value->number));
    }
}

void options_clear(const struct option_row *row, void *object)
{
    char *field = (char *)object + row->offset;
    char *text = NULL;

    if (row->type != OPTION_STRING || (row->flags & OPTION_INLINE) != 0) {
        return;
    }
    memcpy(&text, field, sizeof(text));
    free(text);
    text = NULL;
    memcpy(field, &text, sizeof(text));
}

static unsigned least(unsigned left, unsigned right)
{
    return left < right ? left : right;
}

unsigned options_distance(const char *left, const char *right)
{
    size_t rows = strnlen(left, OPTIONS_NAME_MAX), columns = strnlen(right, OPTIONS_NAME_MAX);
    unsigned cost[3][OPTIONS_NAME_MAX + 1]; /* this row and the two before it */
    unsigned *now = cost[0], *last = cost[1], *before = cost[2];

    for (unsigned column = 0; column <= columns; column++) {
        now[column] = column;
    }
    for (size_t i = 1; i <= rows; i++) {
        unsigned *oldest = before;
        before = last;
        last = now;
        now = oldest;
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= columns; j++) {
            unsigned changed = last[j - 1] + (left[i - 1] != right[j - 1]);
            now[j] = least(changed, least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1]) {
                now[j] = least(now[j], before[j - 2] + 1);
            }
        }
    }
    return now[columns];
}

const char *options_nearest(const char *wrong, const char *const *names, size_t n)
{
    unsigned limit =
        least(OPTIONS_DISTANCE_NO, (unsigned)(strnlen(wrong, OPTIONS_NAME_MAX) + 2) / 3);
    const char *nearest = NULL;

    for (size_t i = 0; i < n; i++) {
        unsigned distance = options_distance(wrong, names[i]);
        if (distance > limit || (nearest != NULL && distance == limit)) {
            continue;
        }
        nearest = names[i];
        limit = distance;
    }
    return nearest;
}
