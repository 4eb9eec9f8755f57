/* binary_auth.c: a login in binary, SASL PLAIN. */
#include <string.h>

#include "protocol/binary_private.h"

static bool is_plain(const char *name, size_t length)
{
    return length == strlen(AUTH_MECHANISM) && memcmp(name, AUTH_MECHANISM, length) == 0;
}

/* The message of SASL PLAIN, [identity] NUL user NUL password: fills both, or leaves them NULL. */
static void read_plain(const char *message, size_t length, struct auth_request *request)
{
    const char *first = memchr(message, '\0', length);
    const char *second = NULL;

    if (first != NULL) {
        second = memchr(first + 1, '\0', length - (size_t)(first + 1 - message));
    }
    if (second != NULL) {
        auth_fill(request, first + 1, (size_t)(second - first - 1), second + 1,
                  length - (size_t)(second + 1 - message));
    }
}

static enum auth_wish parse_body(unsigned opcode, const char *key, size_t key_length,
                                 size_t body_length, struct auth_request *request)
{
    switch (opcode) {
    case BINARY_SASL_LIST:
        request->request.verb = VERB_SASL_LIST;
        return AUTH_LIST;
    case BINARY_SASL_START:
    case BINARY_SASL_STEP:
        request->request.verb = VERB_SASL;
        if (is_plain(key, key_length)) {
            read_plain(key + key_length, body_length - key_length, request);
        }
        return AUTH_TRY;
    case BINARY_QUIT:
    case BINARY_QUITQ:
        return AUTH_CLOSE;
    default:
        return AUTH_OTHER;
    }
}

enum auth_wish binary_auth_read(const char *bytes, size_t length, struct auth_request *request)
{
    const unsigned char *header = (const unsigned char *)bytes;

    memset(request, 0, sizeof(*request));
    if (length < BINARY_HEADER_BYTES) {
        return header[0] == BINARY_MAGIC ? AUTH_MORE : AUTH_CLOSE;
    }
    size_t key_length = binary_read16(bytes + 2);
    size_t extras_length = header[4];
    size_t body_length = binary_read32(bytes + 8);

    if (header[0] != BINARY_MAGIC || body_length > AUTH_REQUEST_MAX ||
        extras_length + key_length > body_length) {
        return AUTH_CLOSE;
    }
    if (length - BINARY_HEADER_BYTES < body_length) {
        return AUTH_MORE;
    }
    request->end = BINARY_HEADER_BYTES + body_length;
    request->request.binary.opcode = header[1];
    memcpy(&request->request.binary.opaque, header + 12, sizeof(uint32_t));
    return parse_body(header[1], bytes + BINARY_HEADER_BYTES + extras_length, key_length,
                      body_length - extras_length, request);
}
