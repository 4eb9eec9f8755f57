/* wire.c: the lines of replication as one table, read and composed field by field. */
#include "repl/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/num.h"

#define FIELDS_MAX 6
#define SUM_DIGITS 16u
#define NO_STREAM  "-"

enum field {
    FIELD_NONE,
    FIELD_VERSION,
    FIELD_GROUP,
    FIELD_NAME,
    FIELD_STREAM,     /* or none */
    FIELD_STREAM_SET, /* there is one */
    FIELD_EPOCH,
    FIELD_LSN,
    FIELD_FROM,
    FIELD_SUM,
    FIELD_WRITTEN,
    FIELD_DURABLE,
    FIELD_APPLIED,
    FIELD_UNIX_US,
    FIELD_DATA_BYTES,
    FIELD_TEXT_BYTES,
    FIELD_BYTES,
    FIELD_OFFSET,
    FIELD_SECONDS,
    FIELD_FILE,
    FIELD_TEXT /* the rest of the line */
};

static const struct {
    const char *word;
    enum repl_side side;
    enum field fields[FIELDS_MAX];
} lines[REPL_KINDS] = {
    [REPL_FOLLOW] = {"follow",
                     REPL_OF_FOLLOWER,
                     {FIELD_VERSION, FIELD_GROUP, FIELD_NAME, FIELD_STREAM, FIELD_EPOCH,
                      FIELD_LSN}},
    [REPL_COPY_REQUEST] = {"copy", REPL_OF_FOLLOWER, {FIELD_VERSION, FIELD_GROUP, FIELD_NAME}},
    [REPL_FILE_REQUEST] = {"file", REPL_OF_FOLLOWER, {FIELD_FILE, FIELD_OFFSET}},
    [REPL_ACK] = {"A", REPL_OF_FOLLOWER, {FIELD_WRITTEN, FIELD_DURABLE, FIELD_APPLIED}},
    [REPL_STREAM] = {"STREAM", REPL_OF_LEADER, {FIELD_STREAM_SET, FIELD_EPOCH, FIELD_LSN}},
    [REPL_REWIND] = {"REWIND", REPL_OF_LEADER, {FIELD_EPOCH, FIELD_LSN}},
    [REPL_COPY] = {"COPY", REPL_OF_LEADER, {FIELD_TEXT}},
    [REPL_BUSY] = {"BUSY", REPL_OF_LEADER, {FIELD_SECONDS}},
    [REPL_ERROR] = {"SERVER_ERROR", REPL_OF_LEADER, {FIELD_TEXT}},
    [REPL_DATA] = {"D", REPL_OF_LEADER, {FIELD_LSN, FIELD_DATA_BYTES}},
    [REPL_TIME] = {"T", REPL_OF_LEADER, {FIELD_WRITTEN, FIELD_DURABLE, FIELD_EPOCH, FIELD_UNIX_US}},
    [REPL_SUM] = {"V", REPL_OF_LEADER, {FIELD_FROM, FIELD_LSN, FIELD_SUM}},
    [REPL_MANIFEST] = {"MANIFEST", REPL_OF_LEADER, {FIELD_TEXT_BYTES}},
    [REPL_FILE] = {"FILE", REPL_OF_LEADER, {FIELD_FILE, FIELD_OFFSET, FIELD_BYTES}},
};

/* What a plain number is called in messages, where it goes, and what it may be. */
static const struct number {
    const char *name;
    size_t offset;
    uint64_t least, most;
} numbers[] = {
#define NUMBER(member) #member, offsetof(struct repl_line, member)
    [FIELD_EPOCH] = {NUMBER(epoch), 0, UINT64_MAX},
    [FIELD_LSN] = {NUMBER(lsn), 0, UINT64_MAX},
    [FIELD_FROM] = {NUMBER(from), 0, UINT64_MAX},
    [FIELD_WRITTEN] = {NUMBER(written), 0, UINT64_MAX},
    [FIELD_DURABLE] = {NUMBER(durable), 0, UINT64_MAX},
    [FIELD_APPLIED] = {NUMBER(applied), 0, UINT64_MAX},
    [FIELD_UNIX_US] = {NUMBER(unix_us), 0, UINT64_MAX},
    [FIELD_DATA_BYTES] = {NUMBER(bytes), 8, REPL_DATA_MAX},
    [FIELD_TEXT_BYTES] = {NUMBER(bytes), 1, MANIFEST_BYTES_MAX},
    [FIELD_BYTES] = {NUMBER(bytes), 0, UINT64_MAX},
    [FIELD_OFFSET] = {NUMBER(offset), 0, UINT64_MAX},
    [FIELD_SECONDS] = {NUMBER(seconds), 0, REPL_BUSY_MAX},
#undef NUMBER
};

/* What is left of a line that is being read. */
struct rest {
    const char *at, *end;
    char *error;
};

/* ---- words ---- */

static bool is_name_character(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (!first && (c == '_' || c == '-' || c == '.'));
}

bool repl_name_good(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!is_name_character(name[i], i == 0)) {
            return false;
        }
    }
    return length >= 1 && length <= REPL_NAME_MAX;
}

static bool is_file_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool capital = name[i] >= 'A' && name[i] <= 'Z';
        bool sign = name[i] == '_' || name[i] == '-';
        if (!capital && !sign && !is_name_character(name[i], i == 0)) {
            return false;
        }
    }
    return length >= 1 && length <= MANIFEST_FILE_NAME_MAX;
}

/* The next word, up to a space or the end. False: there is none. A space that ends the line stays,
 * so that it is seen. */
static bool line_next_word(struct rest *rest, const char **word, size_t *length)
{
    const char *space = memchr(rest->at, ' ', (size_t)(rest->end - rest->at));
    const char *end = space == NULL ? rest->end : space;

    *word = rest->at;
    *length = (size_t)(end - rest->at);
    rest->at = space == NULL || space + 1 == rest->end ? end : space + 1;
    return *length > 0;
}

/* Hex digits, lower-case, 16 a number. */
static bool line_parse_hex(const char *word, size_t length, uint64_t *values, size_t count)
{
    static const char digits[] = "0123456789abcdef";

    if (length != count * SUM_DIGITS) {
        return false;
    }
    memset(values, 0, count * sizeof(*values));
    for (size_t i = 0; i < length; i++) {
        const char *found = word[i] != '\0' ? strchr(digits, word[i]) : NULL;
        if (found == NULL) {
            return false;
        }
        values[i / SUM_DIGITS] = values[i / SUM_DIGITS] << 4 | (uint64_t)(found - digits);
    }
    return true;
}

/* ---- reading ---- */

__attribute__((format(printf, 2, 3))) static bool line_refuse(struct rest *rest, const char *format,
                                                              ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(rest->error, REPL_TEXT_MAX + 1, format, arguments);
    va_end(arguments);
    return false;
}

static bool line_take_version(struct rest *rest, const char *word, size_t length)
{
    uint64_t version;

    if (!num_parse(word, length, &version)) {
        return line_refuse(rest, "replication: the version must be a number");
    }
    return version == REPL_VERSION || line_refuse(rest,
                                                  "replication: version %" PRIu64
                                                  " was asked for, this node speaks %u: upgrade "
                                                  "followers first, then the node they follow",
                                                  version, REPL_VERSION);
}

static bool line_take_name(struct rest *rest, const char *word, size_t length, const char *what,
                           char name[REPL_NAME_MAX + 1])
{
    if (!repl_name_good(word, length)) {
        return line_refuse(
            rest,
            "replication: a %s is 1 to %u of a-z 0-9 _ - . and begins with a letter or "
            "digit",
            what, REPL_NAME_MAX);
    }
    memcpy(name, word, length);
    name[length] = '\0';
    return true;
}

static bool line_take_stream(struct rest *rest, const char *word, size_t length, bool set,
                             struct repl_line *line)
{
    if (!set && length == strlen(NO_STREAM) && *word == *NO_STREAM) {
        memset(line->stream, 0, sizeof(line->stream));
        return true;
    }
    return (line_parse_hex(word, length, line->stream, MANIFEST_STREAM_WORDS) &&
            (line->stream[0] | line->stream[1]) != 0) ||
           line_refuse(rest, "replication: a stream is %u hex digits%s", REPL_STREAM_DIGITS,
                       set ? "" : ", or - for none");
}

static bool line_take_file(struct rest *rest, const char *word, size_t length,
                           struct repl_line *line)
{
    if (!is_file_name(word, length)) {
        return line_refuse(rest, "replication: that is no name of a table file");
    }
    memcpy(line->file, word, length);
    line->file[length] = '\0';
    return true;
}

static bool line_take_number(struct rest *rest, const char *word, size_t length, enum field field,
                             struct repl_line *line)
{
    const struct number *number = &numbers[field];
    uint64_t value;

    if (!num_parse(word, length, &value)) {
        return line_refuse(rest, "replication: %s must be a number", number->name);
    }
    if (value < number->least || value > number->most) {
        return line_refuse(rest, "replication: %s is %" PRIu64 ", must be %" PRIu64 " to %" PRIu64,
                           number->name, value, number->least, number->most);
    }
    memcpy((char *)line + number->offset, &value, sizeof(value));
    return true;
}

static bool line_take_field(struct rest *rest, enum field field, struct repl_line *line)
{
    const char *word;
    size_t length;

    if (field == FIELD_TEXT) {
        length = (size_t)(rest->end - rest->at);
        length = length < REPL_TEXT_MAX ? length : REPL_TEXT_MAX;
        memcpy(line->text, rest->at, length);
        line->text[length] = '\0';
        rest->at = rest->end;
        return true;
    }
    if (!line_next_word(rest, &word, &length)) {
        return line_refuse(rest, "replication: a word is missing, or there are two spaces");
    }
    switch (field) {
    case FIELD_VERSION:
        return line_take_version(rest, word, length);
    case FIELD_GROUP:
        return line_take_name(rest, word, length, "group", line->group);
    case FIELD_NAME:
        return line_take_name(rest, word, length, "name", line->name);
    case FIELD_STREAM:
    case FIELD_STREAM_SET:
        return line_take_stream(rest, word, length, field == FIELD_STREAM_SET, line);
    case FIELD_FILE:
        return line_take_file(rest, word, length, line);
    case FIELD_SUM:
        return line_parse_hex(word, length, &line->sum, 1) ||
               line_refuse(rest, "replication: a sum is %u hex digits", SUM_DIGITS);
    default:
        return line_take_number(rest, word, length, field, line);
    }
}

/* What no field says alone. */
static bool line_fits(struct rest *rest, const struct repl_line *line)
{
    bool none = (line->stream[0] | line->stream[1]) == 0;

    switch (line->kind) {
    case REPL_REWIND:
        return line->lsn % 8 == 0 || line_refuse(rest, "replication: lsn must be a multiple of 8");
    case REPL_FOLLOW:
        if (line->lsn % 8 != 0) {
            return line_refuse(rest, "replication: lsn must be a multiple of 8");
        }
        return !none || (line->epoch == 0 && line->lsn == 0) ||
               line_refuse(rest, "replication: without a stream epoch and lsn must be 0");
    case REPL_ACK:
        return (line->durable <= line->written && line->applied <= line->written) ||
               line_refuse(rest, "replication: durable and applied cannot be above written");
    case REPL_DATA:
        return (line->lsn % 8 == 0 && line->bytes % 8 == 0) ||
               line_refuse(rest, "replication: lsn and bytes must be multiples of 8");
    case REPL_SUM:
        return line->from <= line->lsn || line_refuse(rest, "replication: from is above lsn");
    default:
        return true;
    }
}

bool repl_parse(enum repl_side side, const char *text, size_t length, struct repl_line *line,
                char error[REPL_TEXT_MAX + 1])
{
    struct rest rest = {.at = text, .end = text + length, .error = error};
    const char *word;
    size_t word_length;
    size_t kind = 0;

    memset(line, 0, sizeof(*line));
    if (length + 2 > REPL_LINE_MAX) {
        return line_refuse(&rest, "replication: a line is longer than %u bytes", REPL_LINE_MAX);
    }
    line_next_word(&rest, &word, &word_length);
    while (kind < REPL_KINDS &&
           (lines[kind].side != side || strlen(lines[kind].word) != word_length ||
            memcmp(lines[kind].word, word, word_length) != 0)) {
        kind++;
    }
    if (kind == REPL_KINDS) {
        return line_refuse(&rest, "replication: a line that is none of a %s",
                           side == REPL_OF_FOLLOWER ? "follower" : "leader");
    }
    line->kind = (enum repl_kind)kind;
    for (size_t i = 0; i < FIELDS_MAX && lines[kind].fields[i] != FIELD_NONE; i++) {
        if (!line_take_field(&rest, lines[kind].fields[i], line)) {
            return false;
        }
    }
    if (rest.at != rest.end) {
        return line_refuse(&rest, "replication: too many words after %s", lines[kind].word);
    }
    return line_fits(&rest, line);
}

/* ---- composing ---- */

static size_t line_put_text(char *to, size_t room, const char *text)
{
    size_t length = 0;

    for (; text[length] != '\0' && length < REPL_TEXT_MAX && length < room; length++) {
        to[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    }
    return length;
}

static size_t line_put_stream(char *to, size_t room, const uint64_t *stream)
{
    if ((stream[0] | stream[1]) == 0) {
        return (size_t)snprintf(to, room, NO_STREAM);
    }
    return (size_t)snprintf(to, room, "%016" PRIx64 "%016" PRIx64, stream[0], stream[1]);
}

static size_t line_put_number(char *to, size_t room, enum field field, const struct repl_line *line)
{
    uint64_t value;

    memcpy(&value, (const char *)line + numbers[field].offset, sizeof(value));
    CHECK(value >= numbers[field].least && value <= numbers[field].most);
    return (size_t)snprintf(to, room, "%" PRIu64, value);
}

static size_t line_put_field(char *to, size_t room, enum field field, const struct repl_line *line)
{
    switch (field) {
    case FIELD_VERSION:
        return (size_t)snprintf(to, room, "%u", REPL_VERSION);
    case FIELD_GROUP:
        return (size_t)snprintf(to, room, "%s", line->group);
    case FIELD_NAME:
        return (size_t)snprintf(to, room, "%s", line->name);
    case FIELD_STREAM:
    case FIELD_STREAM_SET:
        return line_put_stream(to, room, line->stream);
    case FIELD_FILE:
        return (size_t)snprintf(to, room, "%s", line->file);
    case FIELD_SUM:
        return (size_t)snprintf(to, room, "%016" PRIx64, line->sum);
    case FIELD_TEXT:
        return line_put_text(to, room, line->text);
    default:
        return line_put_number(to, room, field, line);
    }
}

size_t repl_compose(const struct repl_line *line, char text[REPL_LINE_MAX])
{
    CHECK(line->kind < REPL_KINDS);
    const enum field *fields = lines[line->kind].fields;
    size_t at = (size_t)snprintf(text, REPL_LINE_MAX, "%s", lines[line->kind].word);

    for (size_t i = 0; i < FIELDS_MAX && fields[i] != FIELD_NONE; i++) {
        text[at++] = ' ';
        at += line_put_field(text + at, REPL_LINE_MAX - at, fields[i], line);
        CHECK(at + 2 <= REPL_LINE_MAX);
    }
    text[at++] = '\r';
    text[at++] = '\n';
    return at;
}
