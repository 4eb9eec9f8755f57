#include "tools/rollcall/bench_item.h"

#include <string.h>

#include "base/num.h"

#define LINE_MAX_BYTES 2048u
#define SHOWN_MAX      200u /* of a line that does not end */

static enum bench_item_kind broken(struct bench_item *item, const char *fault)
{
    item->fault = fault;
    return BENCH_ITEM_BROKEN;
}

/* Reads the lengths off "VALUE <key> <flags> <bytes>[ <cas>]". */
static bool value_line(struct bench_item *item)
{
    const char *at = item->line + strlen("VALUE ");
    const char *end = item->line + item->line_length;
    const char *space = memchr(at, ' ', (size_t)(end - at));
    uint64_t flags = 0, data_length = 0;

    if (space == NULL) {
        return false;
    }
    item->key_end = (size_t)(space - item->line);
    const char *flags_end = memchr(space + 1, ' ', (size_t)(end - space - 1));
    if (flags_end == NULL || !num_parse(space + 1, (size_t)(flags_end - space - 1), &flags)) {
        return false;
    }
    const char *length_end = memchr(flags_end + 1, ' ', (size_t)(end - flags_end - 1));
    if (length_end == NULL) {
        length_end = end;
    }
    if (!num_parse(flags_end + 1, (size_t)(length_end - flags_end - 1), &data_length)) {
        return false;
    }
    item->data_length = data_length;
    return data_length <= BENCH_ITEM_MAX / 2;
}

static enum bench_item_kind cut_value(struct bench_item *item, size_t left, size_t *taken)
{
    if (!value_line(item)) {
        return broken(item, "bad VALUE line: ");
    }
    if (left < item->data_length + 2) {
        return BENCH_ITEM_PART;
    }
    if (memcmp(item->data + item->data_length, "\r\n", 2) != 0) {
        return broken(item, "data without its CRLF: ");
    }
    *taken = (size_t)(item->data - item->line) + item->data_length + 2;
    return BENCH_ITEM_VALUE;
}

enum bench_item_kind bench_item_cut(const char *bytes, size_t length, bool values,
                                    struct bench_item *item, size_t *taken)
{
    const char *newline = memchr(bytes, '\n', length);

    *taken = 0;
    *item = (struct bench_item){.line = bytes};
    if (newline == NULL && length <= LINE_MAX_BYTES) {
        return BENCH_ITEM_PART;
    }
    if (newline == NULL || newline == bytes || newline[-1] != '\r') {
        item->line_length = newline == NULL ? SHOWN_MAX : (size_t)(newline - bytes);
        return broken(item, "line without its CRLF: ");
    }
    item->line_length = (size_t)(newline - bytes) - 1;
    item->data = newline + 1;
    if (values && bench_item_begins(item, "VALUE ")) {
        return cut_value(item, length - (size_t)(item->data - bytes), taken);
    }
    *taken = (size_t)(item->data - bytes);
    return BENCH_ITEM_LINE;
}

bool bench_item_begins(const struct bench_item *item, const char *word)
{
    size_t length = strlen(word);
    return item->line_length >= length && memcmp(item->line, word, length) == 0;
}

bool bench_item_is(const struct bench_item *item, const char *line)
{
    return item->line_length == strlen(line) && memcmp(item->line, line, item->line_length) == 0;
}

bool bench_item_error(const struct bench_item *item)
{
    return bench_item_begins(item, "ERROR") || bench_item_begins(item, "CLIENT_ERROR") ||
           bench_item_begins(item, "SERVER_ERROR");
}

bool bench_item_numbers(const char *bytes, size_t length, size_t fields, bool empty)
{
    size_t seen = 1, digits = 0;

    for (size_t i = 0; i < length; i++) {
        if (bytes[i] >= '0' && bytes[i] <= '9') {
            digits++;
            continue;
        }
        if (bytes[i] != ',' || (digits == 0 && !empty)) {
            return false;
        }
        seen++;
        digits = 0;
    }
    return seen == fields && (digits > 0 || empty);
}
