/* buf.c: a growable run of bytes. */
#include "base/buf.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_BYTES 512 /* a buffer's first piece of memory: most replies fit */
#define KEPT_SHARE      2u  /* of a budget: one over this is kept for its parts */

void budget_divide(struct budget *budget, unsigned parts)
{
    budget->kept_bytes = parts > 1 ? budget->bytes_max / KEPT_SHARE / parts : 0;
    budget->beyond_max = budget->bytes_max - parts * budget->kept_bytes;
}

/* Returns how many of the bytes that a part uses lie beyond what is kept for it. */
static uint64_t beyond_kept(const struct budget *budget, uint64_t bytes)
{
    return bytes > budget->kept_bytes ? bytes - budget->kept_bytes : 0;
}

static bool take_beyond(struct budget *budget, uint64_t bytes)
{
    uint64_t used = atomic_load_explicit(&budget->beyond_bytes, memory_order_relaxed);
    do {
        if (used > budget->beyond_max || bytes > budget->beyond_max - used) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&budget->beyond_bytes, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static bool take(struct budget_part *part, size_t bytes)
{
    if (part == NULL) {
        return true;
    }
    struct budget *budget = part->budget;
    uint64_t after = part->used_bytes + bytes;
    uint64_t more = beyond_kept(budget, after) - beyond_kept(budget, part->used_bytes);
    if (more > 0 && !take_beyond(budget, more)) {
        return false;
    }
    part->used_bytes = after;
    atomic_fetch_add_explicit(&budget->used_bytes, bytes, memory_order_relaxed);
    return true;
}

static void give(struct budget_part *part, size_t bytes)
{
    if (part == NULL) {
        return;
    }
    struct budget *budget = part->budget;
    CHECK(part->used_bytes >= bytes);
    uint64_t after = part->used_bytes - bytes;
    uint64_t less = beyond_kept(budget, part->used_bytes) - beyond_kept(budget, after);
    part->used_bytes = after;
    atomic_fetch_sub_explicit(&budget->beyond_bytes, less, memory_order_relaxed);
    atomic_fetch_sub_explicit(&budget->used_bytes, bytes, memory_order_relaxed);
}

void buf_init(struct buf *buf, size_t length_max, struct budget_part *part)
{
    *buf = (struct buf){.length_max = length_max, .part = part};
}

void buf_fini(struct buf *buf)
{
    free(buf->data);
    give(buf->part, buf->capacity);
    buf->data = NULL;
    buf->length = 0;
    buf->capacity = 0;
}

static bool buf_resize(struct buf *buf, size_t capacity)
{
    size_t more = capacity - buf->capacity;
    if (!take(buf->part, more)) {
        return false;
    }
    char *data = realloc(buf->data, capacity);
    if (data == NULL) {
        give(buf->part, more);
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

bool buf_print(struct buf *buf, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    CHECK(length >= 0);
    char *room = buf_room(buf, (size_t)length + 1);
    if (room == NULL) {
        return false;
    }
    va_start(arguments, format);
    vsnprintf(room, (size_t)length + 1, format, arguments);
    va_end(arguments);
    buf_commit(buf, (size_t)length);
    return true;
}

void buf_consume(struct buf *buf, size_t length)
{
    CHECK(length <= buf->length);
    buf->length -= length;
    if (length > 0 && buf->length > 0) {
        memmove(buf->data, buf->data + length, buf->length);
    }
}
