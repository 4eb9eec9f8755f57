#include "base/base64.h"

#include <stdint.h>
#include <string.h>

#define GROUP 4 /* letters, of up to three bytes */

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t length, char *text)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = (uint32_t)at[i] << 16;

        bits |= i + 1 < length ? (uint32_t)at[i + 1] << 8 : 0;
        bits |= i + 2 < length ? (uint32_t)at[i + 2] : 0;
        *text++ = letters[bits >> 18];
        *text++ = letters[bits >> 12 & 63];
        *text++ = i + 1 < length ? letters[bits >> 6 & 63] : '=';
        *text++ = i + 2 < length ? letters[bits & 63] : '=';
    }
    *text = '\0';
}

/* The bits of a group, and how many of its letters were `=`. False: it is none. */
static bool base64_group(const char *text, uint32_t *bits, size_t *pads)
{
    *bits = 0;
    *pads = 0;
    for (size_t i = 0; i < GROUP; i++) {
        const char *letter = *pads == 0 && text[i] != '=' ? strchr(letters, text[i]) : NULL;

        if (letter == NULL && (text[i] != '=' || i < 2)) {
            return false;
        }
        *pads += letter == NULL ? 1 : 0;
        *bits = *bits << 6 | (letter != NULL ? (uint32_t)(letter - letters) : 0);
    }
    return true;
}

bool base64_decode(const char *text, void *bytes, size_t room, size_t *length)
{
    unsigned char *to = bytes;
    size_t left = strlen(text);

    *length = 0;
    for (; left >= GROUP; left -= GROUP, text += GROUP) {
        uint32_t bits;
        size_t pads;

        if (!base64_group(text, &bits, &pads) || (pads > 0 && left > GROUP) ||
            *length + 3 - pads > room) {
            return false;
        }
        for (size_t i = 0; i < 3 - pads; i++) {
            to[(*length)++] = (unsigned char)(bits >> (16 - 8 * i));
        }
    }
    return left == 0;
}
