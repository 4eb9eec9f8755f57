#include "tests/load/resp.h"

#include <string.h>

#include "base/num.h"

static enum load_resp_kind broken(struct load_resp *resp, const char *fault)
{
    resp->item.fault = fault;
    return LOAD_RESP_BROKEN;
}

static enum load_resp_kind cut_bulk(struct load_resp *resp, const char *end)
{
    struct bench_item *item = &resp->item;
    uint64_t data_length = 0;

    if (bench_item_is(item, "-1")) {
        return LOAD_RESP_NIL;
    }
    if (!num_parse(item->line, item->line_length, &data_length) ||
        data_length > BENCH_ITEM_MAX / 2) {
        return broken(resp, "bad length of a bulk string: ");
    }
    if ((size_t)(end - item->data) < data_length + 2) {
        return LOAD_RESP_PART;
    }
    if (memcmp(item->data + data_length, "\r\n", 2) != 0) {
        return broken(resp, "data without its CRLF: ");
    }
    item->data_length = data_length;
    item->line = item->data;
    item->line_length = data_length;
    resp->bytes += data_length + 2;
    return LOAD_RESP_BULK;
}

enum load_resp_kind load_resp_cut(const char *bytes, size_t length, struct load_resp *resp)
{
    struct bench_item *item = &resp->item;
    enum bench_item_kind kind = bench_item_cut(bytes, length, false, item, &resp->bytes);

    if (kind == BENCH_ITEM_PART) {
        return LOAD_RESP_PART;
    }
    if (kind == BENCH_ITEM_BROKEN) {
        return LOAD_RESP_BROKEN;
    }
    if (item->line_length == 0) {
        return broken(resp, "an empty line: ");
    }
    item->line++;
    item->line_length--;
    switch (*bytes) {
    case '+':
        return LOAD_RESP_LINE;
    case '-':
        return LOAD_RESP_ERROR;
    case ':':
        return LOAD_RESP_NUMBER;
    case '$':
        return cut_bulk(resp, bytes + length);
    case '*':
        return num_parse(item->line, item->line_length, &resp->count)
                   ? LOAD_RESP_ARRAY
                   : broken(resp, "bad length of an array: ");
    default:
        item->line--;
        item->line_length++;
        return broken(resp, "no reply of Redis: ");
    }
}
