/*
 * text_list.c: keys as lru_crawler metadump, lru_crawler mgdump and stats cachedump list them, and
 * ids with their records as lru_crawler export does.
 *
 * memcached's tools read these lines up to their end, which therefore always comes.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/text_private.h"
#include "protocol/text_put.h"

#define NUMBERS_MAX 256 /* bytes of a line beside its key */
#define ESCAPED_MAX 3   /* bytes of a byte as %XX */

static bool is_unreserved(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

/* As in a URI. */
static char *put_escaped(char *to, const char *bytes, size_t length)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (is_unreserved(byte)) {
            *to++ = (char)byte;
        } else {
            *to++ = '%';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    return to;
}

/* A key that no text line can hold was sent in base64. */
static bool is_binary(const struct listed_key *key)
{
    for (size_t i = 0; i < key->length; i++) {
        unsigned char byte = (unsigned char)key->bytes[i];
        if (byte <= ' ' || byte == 0x7f) {
            return true;
        }
    }
    return false;
}

static char *put_base64(char *to, const char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = 0;
        for (size_t k = i; k < i + 3; k++) {
            bits = bits << 8 | (k < length ? (unsigned char)bytes[k] : 0);
        }
        *to++ = digits[bits >> 18 & 63];
        *to++ = digits[bits >> 12 & 63];
        *to++ = i + 1 < length ? digits[bits >> 6 & 63] : '=';
        *to++ = i + 2 < length ? digits[bits & 63] : '=';
    }
    return to;
}

static char *put_meta(char *to, const struct listed_key *key)
{
    to = put_escaped(TEXT_PUT(to, "key="), key->bytes, key->length);
    int length =
        snprintf(to, NUMBERS_MAX, " exp=%lld la=%llu cas=%llu fetch=%s cls=%u size=%u flags=%u\n",
                 key->expires_at == 0 ? -1ll : (long long)key->expires_at,
                 (unsigned long long)key->accessed_at, (unsigned long long)key->cas,
                 key->fetched ? "yes" : "no", key->class, key->item_bytes, key->flags);
    CHECK(length > 0 && length < NUMBERS_MAX);
    return to + length;
}

static char *put_get(char *to, const struct listed_key *key)
{
    to = TEXT_PUT(to, "mg ");
    if (is_binary(key)) {
        return TEXT_PUT(put_base64(to, key->bytes, key->length), " b\r\n");
    }
    return TEXT_PUT(text_put(to, key->bytes, key->length), "\r\n");
}

static char *put_item(char *to, const struct listed_key *key)
{
    to = text_put(TEXT_PUT(to, "ITEM "), key->bytes, key->length);
    int length = snprintf(to, NUMBERS_MAX, " [%zu b; %llu s]\r\n", key->value_length,
                          (unsigned long long)key->expires_at);
    CHECK(length > 0 && length < NUMBERS_MAX);
    return to + length;
}

static char *put_record(char *to, const struct listed_key *key)
{
    to = TEXT_PUT(text_put(to, key->bytes, key->length), " ");
    return TEXT_PUT(text_put(to, key->value, key->value_length), "\r\n");
}

bool text_list_key(struct buf *out, enum listing listing, const struct listed_key *key)
{
    static char *(*const puts[])(char *to,
                                 const struct listed_key *key) = {[LISTING_META] = put_meta,
                                                                  [LISTING_GETS] = put_get,
                                                                  [LISTING_ITEMS] = put_item,
                                                                  [LISTING_RECORDS] = put_record};
    size_t value = listing == LISTING_RECORDS ? key->value_length : 0;
    char *start = buf_room(out, NUMBERS_MAX + ESCAPED_MAX * key->length + value);
    if (start == NULL) {
        return false;
    }
    buf_commit(out, (size_t)(puts[listing](start, key) - start));
    return true;
}

bool text_list_end(struct buf *out, enum listing listing)
{
    return listing == LISTING_GETS ? buf_append(out, "EN\r\n", 4) : buf_append(out, "END\r\n", 5);
}
