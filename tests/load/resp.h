/*
 * resp.h: cuts a reply of the Redis protocol (RESP2) into items: a line, a number, a bulk
 * string with its data, nil, or the head of an array, whose elements are items of their own. Pure:
 * bytes in, places in them out; they are valid as long as the bytes. A few ns an item.
 */
#ifndef ROLLCALL_TESTS_LOAD_RESP_H
#define ROLLCALL_TESTS_LOAD_RESP_H

#include <stddef.h>
#include <stdint.h>

#include "tools/rollcall/bench_item.h"

enum load_resp_kind {
    LOAD_RESP_PART,   /* not all there yet */
    LOAD_RESP_LINE,   /* +, line */
    LOAD_RESP_ERROR,  /* -, line */
    LOAD_RESP_NUMBER, /* :, line: its digits, perhaps a minus */
    LOAD_RESP_BULK,   /* $, data; line: the same */
    LOAD_RESP_NIL,    /* $-1 */
    LOAD_RESP_ARRAY,  /* *, count */
    LOAD_RESP_BROKEN, /* no reply; item's `fault` says why, its `line` shows it */
};

struct load_resp {
    struct bench_item item; /* line without its first byte and its CRLF */
    uint64_t count;         /* elements of an array */
    size_t bytes;           /* in all */
};

/* Cuts the next item off, of 1 byte or more. Bulk strings are of BENCH_ITEM_MAX / 2 at most. */
enum load_resp_kind load_resp_cut(const char *bytes, size_t length, struct load_resp *resp);

#endif
