/*
 * load_parse.c: a line as a row. CSV as RFC 4180 has it, but for newlines in quotes; TSV without
 * quotes; NDJSON: a flat object a line.
 */
#include <string.h>

#include "base/fail.h"
#include "base/num.h"
#include "tools/rollcall/load_private.h"

static bool parse_fail(char why[LOAD_WHY_MAX], const char *what, const char *name)
{
    return fail_with(why, LOAD_WHY_MAX, "%.60s%.60s", what, name);
}

/* ---- columns ---- */

static int column_of(const struct load_space *space, const char *name)
{
    if (strcmp(name, "id") == 0) {
        return LOAD_ID;
    }
    if (space->members && strcmp(name, "member") == 0) {
        return LOAD_MEMBER;
    }
    for (size_t i = 0; i < space->slot_count; i++) {
        if (strcmp(name, space->slots[i]) == 0) {
            return (int)i;
        }
    }
    return strcmp(name, "-") == 0 ? LOAD_IGNORED : LOAD_COLUMNS_MAX;
}

static bool add_column(struct load_columns *columns, const struct load_space *space,
                       const char *text, size_t length, char why[LOAD_WHY_MAX])
{
    char name[LOAD_NAME_MAX] = "";

    if (columns->count == LOAD_COLUMNS_MAX || length >= sizeof(name)) {
        return parse_fail(why, "too many columns, or too long a name", "");
    }
    memcpy(name, text, length);
    int what = column_of(space, name);

    for (size_t i = 0; i < columns->count && what != LOAD_IGNORED; i++) {
        if (columns->what[i] == what) {
            return parse_fail(why, "a column is there twice: ", name);
        }
    }
    if (what == LOAD_COLUMNS_MAX) {
        return parse_fail(why, "the space has no slot of the name (- skips a column): ", name);
    }
    strcpy(columns->names[columns->count], name);
    columns->what[columns->count++] = what;
    if (what >= 0) {
        columns->named |= 1u << what;
    }
    return true;
}

static bool columns_are_straight(const struct load_columns *columns, const struct load_space *space)
{
    bool straight = !space->members && columns->count == space->slot_count + 1;

    for (size_t i = 0; straight && i < columns->count; i++) {
        straight = columns->what[i] == (i == 0 ? LOAD_ID : (int)i - 1);
    }
    return straight;
}

static bool columns_are_enough(const struct load_columns *columns, const struct load_space *space,
                               char why[LOAD_WHY_MAX])
{
    bool id = false;
    bool member = false;

    for (size_t i = 0; i < columns->count; i++) {
        id = id || columns->what[i] == LOAD_ID;
        member = member || columns->what[i] == LOAD_MEMBER;
    }
    if (!id) {
        return parse_fail(why, "no column is named id", "");
    }
    if (space->members ? !member : columns->named == 0) {
        return parse_fail(why, space->members ? "no column is named member" : "no column is a slot",
                          "");
    }
    return true;
}

bool load_columns_read(struct load_columns *columns, const struct load_space *space,
                       const char *text, size_t length, char separator, char why[LOAD_WHY_MAX])
{
    const char *end = text + length;

    *columns = (struct load_columns){.others_ignored = true};
    for (const char *at = text; at <= end;) {
        const char *stop = at < end ? memchr(at, separator, (size_t)(end - at)) : NULL;

        stop = stop != NULL ? stop : end;
        if (!add_column(columns, space, at, (size_t)(stop - at), why)) {
            return false;
        }
        at = stop + 1;
    }
    columns->straight = columns_are_straight(columns, space);
    return columns_are_enough(columns, space, why);
}

void load_columns_all(struct load_columns *columns, const struct load_space *space)
{
    char why[LOAD_WHY_MAX];

    *columns = (struct load_columns){0};
    (void)add_column(columns, space, "id", 2, why);
    if (space->members) {
        (void)add_column(columns, space, "member", 6, why);
    }
    for (size_t i = 0; i < space->slot_count; i++) {
        (void)add_column(columns, space, space->slots[i], strlen(space->slots[i]), why);
    }
}

/* ---- fields ---- */

#define PLAIN_DIGITS_MAX 18 /* any number of so many digits fits */

/* Takes a plain number. NULL: it is something else. */
static const char *plain_number(const char *at, const char *end, uint64_t *number)
{
    const char *most = end - at > PLAIN_DIGITS_MAX ? at + PLAIN_DIGITS_MAX : end;
    uint64_t sum = 0;

    for (; at < most && (unsigned char)(*at - '0') < 10; at++) {
        sum = sum * 10 + (uint64_t)(*at - '0');
    }
    *number = sum;
    return at == end || (unsigned char)(*at - '0') >= 10 ? at : NULL;
}

/* What nearly every line is: numbers of a few digits, nothing in quotes. False: it may be wrong, or
 * something else, and *row is of no use. */
static bool parse_plain(const struct load_columns *columns, char separator, const char *line,
                        size_t length, struct load_row *row)
{
    const char *end = line + length;
    const char *at = line;

    for (size_t i = 0; i < columns->count; i++) {
        int what = columns->what[i];
        uint64_t number;
        const char *stop = what >= LOAD_ID ? plain_number(at, end, &number) : NULL;
        bool last = i + 1 == columns->count;

        if (stop == NULL || (last ? stop != end : stop == end || *stop != separator)) {
            return false;
        }
        if (what == LOAD_ID && stop > at) {
            row->id = number;
            row->text = columns->straight ? stop + 1 : NULL;
        } else if (what == LOAD_ID) {
            return false;
        } else if (stop > at) {
            row->values[what] = number;
            row->set |= 1u << what;
        }
        at = stop + 1;
    }
    row->text_length = row->text != NULL ? (size_t)(end - row->text) : 0;
    return true;
}

static void load_row_clear(struct load_row *row)
{
    row->id = 0;
    row->set = 0;
    row->text = NULL;
    row->member = NULL;
    row->member_length = 0;
}

/* A field of the column; an empty one leaves a slot unset. */
static bool take_field(const struct load_columns *columns, size_t column, const char *text,
                       size_t length, struct load_row *row, char why[LOAD_WHY_MAX])
{
    int what = columns->what[column];
    uint64_t number;

    if (what == LOAD_IGNORED) {
        return true;
    }
    if (what == LOAD_MEMBER) {
        row->member = text;
        row->member_length = length;
        return true;
    }
    if (length == 0 && what >= 0) {
        return true;
    }
    if (!num_parse(text, length, &number)) {
        return parse_fail(why, "not a number: ", columns->names[column]);
    }
    if (what == LOAD_ID) {
        row->id = number;
        return true;
    }
    row->values[what] = number;
    row->set |= 1u << what;
    return true;
}

static bool parse_tsv(const struct load_columns *columns, char *line, size_t length,
                      struct load_row *row, char why[LOAD_WHY_MAX])
{
    const char *end = line + length;
    const char *at = line;

    for (size_t i = 0; i < columns->count; i++) {
        if (at > end) {
            return parse_fail(why, "the line has fewer columns than there are names", "");
        }
        const char *tab = at < end ? memchr(at, '\t', (size_t)(end - at)) : NULL;
        const char *stop = tab != NULL ? tab : end;

        if (!take_field(columns, i, at, (size_t)(stop - at), row, why)) {
            return false;
        }
        at = stop + 1;
    }
    return at > end || parse_fail(why, "the line has more columns than there are names", "");
}

/* Takes the quotes off a field in place. *end: the place after it. False: the field does not end.
 */
static bool unquote(char *field, size_t *length, char **end)
{
    char *to = field;
    char *at = field + 1;

    while (*at != '\0' && !(at[0] == '"' && at[1] != '"')) {
        at += at[0] == '"';
        *to++ = *at++;
    }
    *length = (size_t)(to - field);
    *end = at + (*at == '"');
    return *at == '"' && (**end == ',' || **end == '\0');
}

static bool parse_csv(const struct load_columns *columns, char *line, size_t length,
                      struct load_row *row, char why[LOAD_WHY_MAX])
{
    char *end = line + length;
    char *at = line;

    for (size_t i = 0; i < columns->count; i++) {
        char *stop;
        size_t bytes;

        if (at > end) {
            return parse_fail(why, "the line has fewer columns than there are names", "");
        }
        if (*at != '"') {
            stop = strchrnul(at, ',');
            bytes = (size_t)(stop - at);
        } else if (!unquote(at, &bytes, &stop)) {
            return parse_fail(why, "a quote does not end, or something follows it", "");
        }
        if (!take_field(columns, i, at, bytes, row, why)) {
            return false;
        }
        at = stop + 1;
    }
    return at > end || parse_fail(why, "the line has more columns than there are names", "");
}

/* ---- ndjson ---- */

static char *skip_blank(char *at)
{
    while (*at == ' ' || *at == '\t') {
        at++;
    }
    return at;
}

/* Reads a string without escapes but \" \\ \/ ; *end: the place after it. NULL: there is none. */
static char *json_string(char *at, size_t *length, char **end)
{
    char *start = at + 1;
    char *to = start;

    if (*at != '"') {
        return NULL;
    }
    for (at = start; *at != '"' && *at != '\0';) {
        if (*at == '\\') {
            at++;
            if (*at != '"' && *at != '\\' && *at != '/') {
                return NULL;
            }
        }
        *to++ = *at++;
    }
    *length = (size_t)(to - start);
    *end = at + 1;
    return *at == '"' ? start : NULL;
}

/* Reads a string, a number, or null (an empty text); *end: the place after it. NULL: it is anything
 * else. */
static char *json_value(char *at, size_t *length, char **end)
{
    if (*at == '"') {
        return json_string(at, length, end);
    }
    *length = strcspn(at, ",} \t");
    *end = at + *length;
    if (*length == 4 && memcmp(at, "null", 4) == 0) {
        *length = 0;
        return at;
    }
    return *length > 0 && strchr("{[", *at) == NULL ? at : NULL;
}

static size_t json_column(const struct load_columns *columns, const char *name, size_t length)
{
    size_t i = 0;

    while (i < columns->count &&
           (strncmp(columns->names[i], name, length) != 0 || columns->names[i][length] != '\0')) {
        i++;
    }
    return i;
}

/* Reads "name": value. Returns the place after it; NULL with `why`. */
static char *json_member(const struct load_columns *columns, char *at, struct load_row *row,
                         uint64_t *seen, char why[LOAD_WHY_MAX])
{
    size_t name_length;
    size_t length;
    char *end;
    const char *name = json_string(at, &name_length, &end);

    at = name != NULL ? skip_blank(end) : at;
    if (name == NULL || *at != ':') {
        (void)parse_fail(why, "not a flat JSON object", "");
        return NULL;
    }
    size_t column = json_column(columns, name, name_length);
    const char *value = json_value(skip_blank(at + 1), &length, &end);

    if (value == NULL) {
        (void)parse_fail(why, "not a number, text or null after a name", "");
        return NULL;
    }
    if (column == columns->count) {
        char text[LOAD_NAME_MAX] = "";

        memcpy(text, name, name_length < sizeof(text) - 1 ? name_length : sizeof(text) - 1);
        bool ignored = columns->others_ignored;
        return ignored || parse_fail(why, "the space has no slot of the name: ", text) ? end : NULL;
    }
    *seen |= 1ull << column;
    return take_field(columns, column, value, length, row, why) ? end : NULL;
}

static bool parse_ndjson(const struct load_columns *columns, char *line, struct load_row *row,
                         char why[LOAD_WHY_MAX])
{
    uint64_t seen = 0;
    char *at = skip_blank(line);

    if (*at != '{') {
        return parse_fail(why, "not a JSON object", "");
    }
    at = skip_blank(at + 1);
    while (*at != '}') {
        at = json_member(columns, at, row, &seen, why);
        if (at == NULL) {
            return false;
        }
        char *behind = skip_blank(at);

        at = *behind == ',' ? skip_blank(behind + 1) : behind;
        if (*behind != ',' && *behind != '}') {
            return parse_fail(why, "not a flat JSON object", "");
        }
    }
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->what[i] == LOAD_ID && !(seen >> i & 1)) {
            return parse_fail(why, "it has no id", "");
        }
    }
    return *skip_blank(at + 1) == '\0' || parse_fail(why, "something follows the object", "");
}

bool load_parse(enum load_format format, const struct load_columns *columns, char *line,
                size_t length, struct load_row *row, char why[LOAD_WHY_MAX])
{
    load_row_clear(row);
    if (format != LOAD_NDJSON &&
        parse_plain(columns, format == LOAD_TSV ? '\t' : ',', line, length, row)) {
        return true;
    }
    load_row_clear(row);
    if (strlen(line) != length) {
        return parse_fail(why, "a zero byte is in the line", "");
    }
    bool parsed = format == LOAD_NDJSON ? parse_ndjson(columns, line, row, why)
                  : format == LOAD_TSV  ? parse_tsv(columns, line, length, row, why)
                                        : parse_csv(columns, line, length, row, why);

    if (parsed && row->id > LOAD_ID_MAX) {
        return parse_fail(why, "the id is larger than 9223372036854775807", "");
    }
    return parsed;
}
