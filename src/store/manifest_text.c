/* manifest_text.c: a manifest as text, both ways. The lines stand at the top of manifest.h. */
#include "store/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/num.h"

#define CHECKSUM_KEY   "checksum "
#define CHECKSUM_BYTES (sizeof(CHECKSUM_KEY) - 1 + 16 + 1) /* the line, with its newline */
#define CHECKSUM_SEED  0x54534546494e414dull               /* "MANIFEST" */
#define WORDS_MAX      24
#define LINE_MAX       1024 /* bytes of a line composed, without the hex */
#define NO_BYTES       "-"

static const char hex_digits[] = "0123456789abcdef";
static const char *const role_names[] = {[MANIFEST_IMAGE] = "image", [MANIFEST_DUMP] = "dump"};

#define ROLES (sizeof(role_names) / sizeof(*role_names))

/* The numbers of a file's line, in their order. */
static const struct {
    const char *key;
    size_t offset;
} file_numbers[] = {
    {"serial", offsetof(struct manifest_file, serial)},
    {"layer", offsetof(struct manifest_file, layer)},
    {"generation", offsetof(struct manifest_file, generation)},
    {"start", offsetof(struct manifest_file, start_lsn)},
    {"end", offsetof(struct manifest_file, end_lsn)},
    {"first", offsetof(struct manifest_file, first_id)},
    {"last", offsetof(struct manifest_file, last_id)},
    {"bytes", offsetof(struct manifest_file, bytes)},
};

#define FILE_NUMBERS (sizeof(file_numbers) / sizeof(*file_numbers))

/* ---- composing ---- */

static bool put_data(struct buf *text, const struct manifest_data *data)
{
    if (data->length == 0) {
        return buf_print(text, "data %s " NO_BYTES "\n", data->label);
    }
    char *to =
        buf_print(text, "data %s ", data->label) ? buf_room(text, 2 * data->length + 1) : NULL;
    if (!to) {
        return false;
    }
    for (size_t i = 0; i < data->length; i++) {
        to[2 * i] = hex_digits[data->bytes[i] >> 4];
        to[2 * i + 1] = hex_digits[data->bytes[i] & 15];
    }
    to[2 * data->length] = '\n';
    buf_commit(text, 2 * data->length + 1);
    return true;
}

static char *manifest_text_put_word(char *to, const char *word)
{
    size_t length = strlen(word);
    memcpy(to, word, length);
    return to + length;
}

/* There may be tens of thousands, and all are composed for each table that is dumped. */
static bool put_file(struct buf *text, const struct manifest_file *file)
{
    char *line = buf_room(text, LINE_MAX);
    if (!line) {
        return false;
    }
    char *to = manifest_text_put_word(line, "file ");
    to = manifest_text_put_word(manifest_text_put_word(to, file->name), " role ");
    to = manifest_text_put_word(to, role_names[file->role]);
    for (size_t i = 0; i < FILE_NUMBERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)file + file_numbers[i].offset, sizeof(value));
        *to++ = ' ';
        to = manifest_text_put_word(to, file_numbers[i].key);
        *to++ = ' ';
        to += num_print(to, value);
    }
    *to++ = '\n';
    CHECK(to < line + LINE_MAX);
    buf_commit(text, (size_t)(to - line));
    return true;
}

static bool put_space(struct buf *text, const struct manifest_space *space)
{
    bool done = buf_print(text, "space %s number %" PRIu64 " kind %s\n", space->name, space->number,
                          space->kind);
    for (size_t i = 0; done && i < space->data_count; i++) {
        done = put_data(text, &space->data[i]);
    }
    for (size_t i = 0; done && i < space->files_count; i++) {
        done = put_file(text, &space->files[i]);
    }
    return done;
}

/* Lines of the journal's stream: what it is, who reigned. */
static bool put_stream(struct buf *text, const struct manifest *manifest)
{
    CHECK(manifest->stream[0] != 0 || manifest->stream[1] != 0);
    bool done = buf_print(text, "stream %016" PRIx64 "%016" PRIx64 "\n", manifest->stream[0],
                          manifest->stream[1]);
    for (size_t i = 0; done && i < manifest->history_count; i++) {
        done = buf_print(text, "history %" PRIu64 " %" PRIu64 "\n", manifest->history[i].epoch,
                         manifest->history[i].lsn);
    }
    return done;
}

bool manifest_compose(const struct manifest *manifest, struct buf *text)
{
    size_t begin = text->length;
    bool done = buf_print(text,
                          "rollcall-manifest %u\nepoch %" PRIu64 "\nstop %s\ntable-event %" PRIu64
                          "\njournal %" PRIu64 "\n",
                          MANIFEST_VERSION, manifest->epoch, manifest->clean_stop ? "clean" : "no",
                          manifest->table_event_lsn, manifest->journal_lsn) &&
                put_stream(text, manifest);
    for (size_t i = 0; done && i < manifest->spaces_count; i++) {
        done = put_space(text, &manifest->spaces[i]);
    }
    if (!done) {
        return false;
    }
    uint64_t sum = hash_bytes(text->data + begin, text->length - begin, CHECKSUM_SEED);
    return buf_print(text, CHECKSUM_KEY "%016" PRIx64 "\n", sum) &&
           text->length - begin <= MANIFEST_BYTES_MAX;
}

/* ---- parsing ---- */

struct word {
    const char *text; /* no NUL after it */
    size_t length;
};

struct parser {
    const char *at, *end;
    const char *name; /* for errors */
    size_t line;
    struct word words[WORDS_MAX];
    size_t count;
    struct manifest *manifest;
    struct manifest_space *space; /* the last one; NULL: none yet */
    uint64_t version;
    char *error;
};

static bool wrong(struct parser *parser, const char *what)
{
    return fail_with(parser->error, MANIFEST_ERROR_MAX, "%s:%zu: %s; restore the file from a copy",
                     parser->name, parser->line, what);
}

static bool is(struct word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

/* To a text of `room` bytes. */
static bool copy(struct word word, char *to, size_t room)
{
    if (word.length >= room || memchr(word.text, 0, word.length)) {
        return false;
    }
    memcpy(to, word.text, word.length);
    to[word.length] = '\0';
    return true;
}

static bool number(struct parser *parser, size_t word, uint64_t *value)
{
    return num_parse(parser->words[word].text, parser->words[word].length, value) ||
           wrong(parser, "a number from 0 to 2^64-1 should be there");
}

static int hex_value(char digit)
{
    const char *found = digit ? strchr(hex_digits, digit) : NULL;
    return found ? (int)(found - hex_digits) : -1;
}

/* A line into its words; false: too many, two spaces side by side, or one at an end. */
static bool manifest_text_split(struct parser *parser, const char *line, const char *end)
{
    parser->count = 0;
    for (;;) {
        const char *space = memchr(line, ' ', (size_t)(end - line));
        const char *stop = space ? space : end;
        if (parser->count == WORDS_MAX || stop == line) {
            return wrong(parser, "words with one space between them should be there");
        }
        parser->words[parser->count++] = (struct word){line, (size_t)(stop - line)};
        if (!space) {
            return true;
        }
        line = space + 1;
    }
}

/* The next line into words. */
static bool next_line(struct parser *parser)
{
    parser->line++;
    const char *newline = memchr(parser->at, '\n', (size_t)(parser->end - parser->at));
    if (!newline) {
        return wrong(parser, "it ends before the line does");
    }
    const char *line = parser->at;
    parser->at = newline + 1;
    return manifest_text_split(parser, line, newline);
}

typedef bool line_fn(struct parser *parser);

static bool parse_version(struct parser *parser)
{
    return number(parser, 1, &parser->version) &&
           (parser->version == MANIFEST_VERSION || wrong(parser, "an unknown version"));
}

static bool parse_epoch(struct parser *parser)
{
    return number(parser, 1, &parser->manifest->epoch);
}

static bool parse_stop(struct parser *parser)
{
    parser->manifest->clean_stop = is(parser->words[1], "clean");
    return parser->manifest->clean_stop || is(parser->words[1], "no") ||
           wrong(parser, "`stop` is `clean` or `no`");
}

static bool parse_table_event(struct parser *parser)
{
    return number(parser, 1, &parser->manifest->table_event_lsn);
}

static bool parse_journal(struct parser *parser)
{
    return number(parser, 1, &parser->manifest->journal_lsn);
}

static bool parse_stream(struct parser *parser)
{
    const size_t digits = 2 * sizeof(uint64_t);
    struct word hex = parser->words[1];
    uint64_t *stream = parser->manifest->stream;
    bool good = hex.length == MANIFEST_STREAM_WORDS * digits;
    for (size_t i = 0; good && i < hex.length; i++) {
        int value = hex_value(hex.text[i]);
        good = value >= 0;
        stream[i / digits] = stream[i / digits] << 4 | (uint64_t)value;
    }
    good = good && (stream[0] != 0 || stream[1] != 0);
    return good || wrong(parser, "32 digits 0-9a-f, not all 0, should be there");
}

static bool parse_history(struct parser *parser)
{
    struct manifest *manifest = parser->manifest;
    uint64_t epoch;
    uint64_t lsn;
    if (!number(parser, 1, &epoch) || !number(parser, 2, &lsn)) {
        return false;
    }
    if (parser->space || manifest->history_count == MANIFEST_HISTORY_MAX) {
        return wrong(parser, "a `history` after a space, or one too many");
    }
    return (epoch <= manifest->epoch && manifest_add_reign(manifest, epoch, lsn)) ||
           wrong(parser, "epochs and LSNs of `history` should rise, up to the epoch of line 2");
}

static bool parse_space(struct parser *parser)
{
    char name[MANIFEST_SPACE_NAME_MAX + 1];
    char kind[MANIFEST_WORD_MAX + 1];
    uint64_t value;
    if (!is(parser->words[2], "number") || !is(parser->words[4], "kind") ||
        !copy(parser->words[1], name, sizeof(name)) ||
        !copy(parser->words[5], kind, sizeof(kind))) {
        return wrong(parser, "`space NAME number N kind KIND` should be there");
    }
    if (!number(parser, 3, &value)) {
        return false;
    }
    parser->space = manifest_add_space(parser->manifest, name, value, kind);
    return parser->space ||
           wrong(parser, "a space that is not allowed, there already, or one too many");
}

/* Hex in place of bytes: `bytes` has room for half of the word. */
static bool decode(struct word word, unsigned char *bytes)
{
    for (size_t i = 0; i < word.length; i += 2) {
        int high = hex_value(word.text[i]);
        int low = hex_value(word.text[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i / 2] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool parse_data(struct parser *parser)
{
    char label[MANIFEST_WORD_MAX + 1];
    unsigned char bytes[MANIFEST_DATA_BYTES_MAX];
    struct word hex = parser->words[2];
    if (is(hex, NO_BYTES)) {
        hex.length = 0;
    }
    if (!parser->space || !copy(parser->words[1], label, sizeof(label))) {
        return wrong(parser, "`data LABEL HEX` of a space should be there");
    }
    if (manifest_find_data(parser->space, label)) {
        return wrong(parser, "the space has that label already");
    }
    if (hex.length % 2 != 0 || hex.length / 2 > sizeof(bytes) || !decode(hex, bytes)) {
        return wrong(parser, "pairs of digits 0-9a-f should be there");
    }
    return manifest_set_data(parser->space, label, bytes, hex.length / 2) ||
           wrong(parser, "a label that is not allowed, or one too many");
}

static bool parse_role(struct word word, enum manifest_role *role)
{
    for (size_t i = 0; i < ROLES; i++) {
        if (is(word, role_names[i])) {
            *role = (enum manifest_role)i;
            return true;
        }
    }
    return false;
}

static bool parse_file(struct parser *parser)
{
    struct manifest_file file = {.role = MANIFEST_IMAGE};
    const size_t numbers_begin = 4;
    if (!parser->space || !copy(parser->words[1], file.name, sizeof(file.name)) ||
        !is(parser->words[2], "role") || !parse_role(parser->words[3], &file.role)) {
        return wrong(parser, "`file NAME role image|dump ...` of a space should be there");
    }
    for (size_t i = 0; i < FILE_NUMBERS; i++) {
        uint64_t value;
        size_t word = numbers_begin + 2 * i;
        if (!is(parser->words[word], file_numbers[i].key)) {
            return wrong(parser, "a name of the file's numbers is not the right one");
        }
        if (!number(parser, word + 1, &value)) {
            return false;
        }
        memcpy((char *)&file + file_numbers[i].offset, &value, sizeof(value));
    }
    return manifest_add_file(parser->manifest, parser->space, &file) ||
           wrong(parser, "a file that is not allowed, there already, or one too many");
}

struct line_kind {
    const char *keyword;
    size_t words;
    line_fn *parse;
};

/* Each once, in this order. */
static const struct line_kind head_lines[] = {
    {"rollcall-manifest", 2, parse_version},
    {"epoch", 2, parse_epoch},
    {"stop", 2, parse_stop},
    {"table-event", 2, parse_table_event},
    {"journal", 2, parse_journal},
    {"stream", 2, parse_stream},
};

static const struct line_kind body_lines[] = {
    {"history", 3, parse_history},
    {"space", 6, parse_space},
    {"data", 3, parse_data},
    {"file", 4 + 2 * FILE_NUMBERS, parse_file},
};

#define HEAD_LINES (sizeof(head_lines) / sizeof(*head_lines))
#define BODY_LINES (sizeof(body_lines) / sizeof(*body_lines))

_Static_assert(4 + 2 * FILE_NUMBERS <= WORDS_MAX, "the longest line has room");

/* The kind of the line that was split; NULL: none of `count`. */
static const struct line_kind *manifest_text_kind_of(const struct parser *parser,
                                                     const struct line_kind *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is(parser->words[0], kinds[i].keyword) && parser->count == kinds[i].words) {
            return &kinds[i];
        }
    }
    return NULL;
}

static bool parse_lines(struct parser *parser)
{
    while (parser->line < HEAD_LINES || parser->at < parser->end) {
        bool in_head = parser->line < HEAD_LINES;
        const struct line_kind *expected = in_head ? &head_lines[parser->line] : body_lines;
        if (!next_line(parser)) {
            return false;
        }
        const struct line_kind *kind =
            manifest_text_kind_of(parser, expected, in_head ? 1 : BODY_LINES);
        if (!kind) {
            return wrong(parser, "not the line that should be there");
        }
        if (!kind->parse(parser)) {
            return false;
        }
    }
    return true;
}

/* The last line: false if it is not one. */
static bool read_checksum(const char *text, size_t length, uint64_t *sum)
{
    const size_t key = sizeof(CHECKSUM_KEY) - 1;
    if (length < CHECKSUM_BYTES || text[length - 1] != '\n') {
        return false;
    }
    const char *line = text + length - CHECKSUM_BYTES;
    *sum = 0;
    for (size_t i = key; i < CHECKSUM_BYTES - 1; i++) {
        int value = hex_value(line[i]);
        if (value < 0) {
            return false;
        }
        *sum = *sum << 4 | (uint64_t)value;
    }
    return memcmp(line, CHECKSUM_KEY, key) == 0;
}

bool manifest_checksum_fits(const char *text, size_t length)
{
    uint64_t sum = 0;
    return read_checksum(text, length, &sum) &&
           hash_bytes(text, length - CHECKSUM_BYTES, CHECKSUM_SEED) == sum;
}

static enum manifest_state newer(const struct parser *parser)
{
    snprintf(parser->error, MANIFEST_ERROR_MAX,
             "%s: format version %" PRIu64 ", this program knows %u; use the one that wrote it",
             parser->name, parser->version, MANIFEST_VERSION);
    return MANIFEST_NEWER;
}

enum manifest_state manifest_parse(const char *text, size_t length, const char *name,
                                   struct manifest **manifest, char error[MANIFEST_ERROR_MAX])
{
    uint64_t sum = 0;
    struct parser parser = {.at = text, .end = text + length, .name = name, .error = error};
    if (!read_checksum(text, length, &sum)) {
        snprintf(error, MANIFEST_ERROR_MAX,
                 "%s: does not end with the line of its checksum: it was cut short or changed; "
                 "restore the file from a copy",
                 name);
        return MANIFEST_DAMAGED;
    }
    parser.end -= CHECKSUM_BYTES;
    bool same = hash_bytes(text, length - CHECKSUM_BYTES, CHECKSUM_SEED) == sum;
    parser.manifest = manifest_create();
    bool parsed = parse_lines(&parser); /* also if the sum is wrong: it may name the line */
    if (parsed && same) {
        *manifest = parser.manifest;
        return MANIFEST_SOUND;
    }
    manifest_destroy(parser.manifest);
    if (same && parser.version > 0 && parser.version != MANIFEST_VERSION) {
        return newer(&parser);
    }
    if (parsed) {
        snprintf(error, MANIFEST_ERROR_MAX,
                 "%s: does not match the checksum in its last line: it was changed or damaged; "
                 "restore the file from a copy",
                 name);
    }
    return MANIFEST_DAMAGED;
}
