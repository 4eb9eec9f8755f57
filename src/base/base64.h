/* base64.h: bytes as letters, with `=` at the end. Pure functions, any thread. */
#ifndef ROLLCALL_BASE_BASE64_H
#define ROLLCALL_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#define BASE64_BYTES(length) (((length) + 2) / 3 * 4 + 1) /* of the text, with its NUL */

/* `text`: BASE64_BYTES(length). */
void base64_encode(const void *bytes, size_t length, char *text);
/* False: it is none, or more than `room`. */
bool base64_decode(const char *text, void *bytes, size_t room, size_t *length);

#endif
