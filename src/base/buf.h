/*
 * buf.h: a growable run of bytes with a hard limit, drawn from a shared budget.
 *
 * A buffer doubles when it must, up to length_max bytes; the memory it holds is counted in the part
 * of a budget that it was given. A buffer holds nothing before its first room and after buf_fini();
 * emptied otherwise it keeps its memory.
 * Writers ask for room, write into it and commit what they wrote, so that composing a reply costs
 * one bounds check. Not thread-safe: a part and its buffers belong to one thread. The budget is.
 */
#ifndef ROLLCALL_BASE_BUF_H
#define ROLLCALL_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

/* The bytes all buffers together may hold: some are kept for each part, the others go to the part
 * that asks first. Any thread. */
struct budget {
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t beyond_bytes; /* of these, what parts use beyond what is kept for them */
    uint64_t bytes_max;
    uint64_t kept_bytes; /* for each part */
    uint64_t beyond_max;
};

struct budget_part {
    struct budget *budget;
    uint64_t used_bytes;
};

/* Called before the first part is used: half of bytes_max is kept for `parts` parts; a single part
 * has all. */
void budget_divide(struct budget *budget, unsigned parts);

struct buf {
    char *data;               /* NULL while the capacity is 0 */
    size_t length;            /* bytes in use */
    size_t capacity;          /* bytes held */
    size_t length_max;        /* capacity never exceeds it */
    struct budget_part *part; /* may be NULL: not counted */
};

void buf_init(struct buf *buf, size_t length_max, struct budget_part *part);
void buf_fini(struct buf *buf); /* gives everything back; the buffer may be used again as empty */

bool buf_grow(struct buf *buf, size_t bytes); /* for buf_room() alone */

/*
 * Room for `bytes` more bytes after the ones in use. Returns where to write them, valid until the
 * next call with this buffer, or NULL if the limit, the budget or memory does not allow it.
 */
static inline char *buf_room(struct buf *buf, size_t bytes)
{
    CHECK(buf->length <= buf->capacity);
    if (UNLIKELY(bytes > buf->capacity - buf->length || buf->data == NULL) &&
        !buf_grow(buf, bytes)) {
        return NULL;
    }
    return buf->data + buf->length;
}

/* Counts bytes of the last room as written. */
static inline void buf_commit(struct buf *buf, size_t bytes)
{
    CHECK(bytes <= buf->capacity - buf->length);
    buf->length += bytes;
}

bool buf_append(struct buf *buf, const void *bytes, size_t length); /* false: as buf_room's NULL */
/* Appends a formatted text, without its NUL. False: as buf_append. */
bool buf_print(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops what is beyond length. */
static inline void buf_truncate(struct buf *buf, size_t length)
{
    CHECK(length <= buf->length);
    buf->length = length;
}

void buf_consume(struct buf *buf, size_t length); /* drops the first bytes, moves the others down */

#endif
