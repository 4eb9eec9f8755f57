/*
 * bench_text.h: appending to the text of requests. Pure; the caller has made room.
 */
#ifndef ROLLCALL_TOOLS_BENCH_TEXT_H
#define ROLLCALL_TOOLS_BENCH_TEXT_H

#include <stddef.h>

/* Appends length bytes; returns the new end. */
static inline char *bench_put(char *out, const char *bytes, size_t length)
{
    __builtin_memcpy(out, bytes, length);
    return out + length;
}

#endif
