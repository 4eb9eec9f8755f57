/* buf.c: a growable run of bytes. */
#include "base/buf.h"

#include "base/check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_BYTES 512 /* a buffer's first piece of memory: most replies fit */

static bool budget_take(struct budget *budget, size_t bytes)
{
    if (budget == NULL) {
        return true;
    }
    uint64_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
    do {
        if (used > budget->bytes_max || bytes > budget->bytes_max - used) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&budget->used_bytes, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void budget_give(struct budget *budget, size_t bytes)
{
    if (budget != NULL) {
        uint64_t before =
            atomic_fetch_sub_explicit(&budget->used_bytes, bytes, memory_order_relaxed);
        CHECK(before >= bytes);
    }
}

void buf_init(struct buf *buf, size_t length_max, struct budget *budget)
{
    *buf = (struct buf){.length_max = length_max, .budget = budget};
}

void buf_fini(struct buf *buf)
{
    free(buf->data);
    budget_give(buf->budget, buf->capacity);
    buf->data = NULL;
    buf->length = 0;
    buf->capacity = 0;
}

static bool buf_resize(struct buf *buf, size_t capacity)
{
    size_t more = capacity - buf->capacity;
    if (!budget_take(buf->budget, more)) {
        return false;
    }
    char *data = realloc(buf->data, capacity);
    if (data == NULL) {
        budget_give(buf->budget, more);
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

bool buf_grow(struct buf *buf, size_t bytes)
{
    if (bytes > buf->length_max - buf->length) {
        return false;
    }
    size_t need = buf->length + bytes;
    size_t want = buf->capacity > buf->length_max / 2 ? buf->length_max : buf->capacity * 2;
    if (want < BUF_FIRST_BYTES) {
        want = BUF_FIRST_BYTES;
    }
    if (want < need) {
        want = need;
    }
    if (want > buf->length_max) {
        want = buf->length_max;
    }
    /* A budget too tight for doubling may still have what is needed. */
    return buf_resize(buf, want) || (want > need && buf_resize(buf, need));
}

bool buf_append(struct buf *buf, const void *bytes, size_t length)
{
    if (length == 0) {
        return true;
    }
    char *room = buf_room(buf, length);
    if (room == NULL) {
        return false;
    }
    memcpy(room, bytes, length);
    buf->length += length;
    return true;
}

void buf_truncate(struct buf *buf, size_t length)
{
    CHECK(length <= buf->length);
    buf->length = length;
}

void buf_consume(struct buf *buf, size_t length)
{
    CHECK(length <= buf->length);
    buf->length -= length;
    if (length > 0 && buf->length > 0) {
        memmove(buf->data, buf->data + length, buf->length);
    }
}
