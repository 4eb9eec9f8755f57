/*
 * bench_item.h: cuts a reply of the memcached text protocol into items: a VALUE with its data, or a
 * line. Pure: bytes in, places in them out; they are valid as long as the bytes. A few ns an item.
 */
#ifndef ROLLCALL_TOOLS_BENCH_ITEM_H
#define ROLLCALL_TOOLS_BENCH_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_ITEM_MAX 8192u /* bytes of one item of a reply; a longer one is a fault */

enum bench_item_kind {
    BENCH_ITEM_PART,   /* not all there yet */
    BENCH_ITEM_VALUE,  /* line, key, data */
    BENCH_ITEM_LINE,   /* any other line */
    BENCH_ITEM_BROKEN, /* no reply; `fault` says why, `line` shows it */
};

struct bench_item {
    const char *line; /* without its CRLF */
    size_t line_length;
    size_t key_end; /* VALUE: of the line, "VALUE <key>" */
    const char *data;
    size_t data_length;
    const char *fault;
};

/* Cuts the next item off; *taken: its bytes, 0 for a part. values: a line "VALUE ..." has data. */
enum bench_item_kind bench_item_cut(const char *bytes, size_t length, bool values,
                                    struct bench_item *item, size_t *taken);

bool bench_item_begins(const struct bench_item *item, const char *word);
bool bench_item_is(const struct bench_item *item, const char *line); /* the whole line */
bool bench_item_error(const struct bench_item *item); /* ERROR, CLIENT_ERROR, SERVER_ERROR */

/* Returns whether these are `fields` numbers with commas between. empty: a field may be empty. */
bool bench_item_numbers(const char *bytes, size_t length, size_t fields, bool empty);

#endif
