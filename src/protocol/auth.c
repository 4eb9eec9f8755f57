#include "protocol/auth.h"

#include <string.h>

#include "base/num.h"
#include "protocol/binary.h"

#define MECHANISM "PLAIN"

static void fill(struct auth_request *request, const char *user, size_t user_length,
                 const char *password, size_t password_length)
{
    request->user = user;
    request->user_length = user_length;
    request->password = password;
    request->password_length = password_length;
}

/* ---- text ---- */

#define SET_TOKENS 5 /* set key flags exptime bytes; what follows is not looked at */

/* The token at *at, and *at behind it. Length 0: there is none. */
static size_t next_token(const char **at, const char *end, const char **token)
{
    while (*at < end && **at == ' ') {
        (*at)++;
    }
    *token = *at;
    while (*at < end && **at != ' ') {
        (*at)++;
    }
    return (size_t)(*at - *token);
}

/* A line that is a set: the bytes of its data. */
static bool is_set(const char *line, const char *end, uint64_t *bytes)
{
    const char *token = NULL;
    size_t length = next_token(&line, end, &token);

    if (length != strlen("set") || memcmp(token, "set", length) != 0) {
        return false;
    }
    for (int i = 1; i < SET_TOKENS; i++) {
        length = next_token(&line, end, &token);
    }
    return num_parse(token, length, bytes);
}

/* "user password" */
static void read_text(struct auth_request *request, const char *data, size_t length)
{
    const char *space = memchr(data, ' ', length);

    if (space != NULL) {
        size_t user_length = (size_t)(space - data);

        fill(request, data, user_length, space + 1, length - user_length - 1);
    }
}

static enum auth_wish parse_text(const char *bytes, size_t length, struct auth_request *request)
{
    size_t window = length < AUTH_REQUEST_MAX ? length : AUTH_REQUEST_MAX;
    const char *newline = memchr(bytes, '\n', window);
    uint64_t data_length;

    if (newline == NULL) {
        return length < AUTH_REQUEST_MAX ? AUTH_MORE : AUTH_CLOSE;
    }
    const char *line_end = newline > bytes && newline[-1] == '\r' ? newline - 1 : newline;
    const char *data = newline + 1;
    size_t left = length - (size_t)(data - bytes);

    request->end = (size_t)(data - bytes);
    if (!is_set(bytes, line_end, &data_length)) {
        return AUTH_OTHER;
    }
    if (data_length > AUTH_REQUEST_MAX) {
        return AUTH_CLOSE;
    }
    if (left < data_length + 2) {
        return AUTH_MORE;
    }
    if (data[data_length] != '\r' || data[data_length + 1] != '\n') {
        return AUTH_CLOSE;
    }
    request->end += data_length + 2;
    read_text(request, data, data_length);
    return AUTH_TRY;
}

/* ---- binary ---- */

enum {
    OPCODE_QUIT = 0x07,
    OPCODE_QUITQ = 0x17,
    OPCODE_SASL_LIST = 0x20,
    OPCODE_SASL_START = 0x21,
    OPCODE_SASL_STEP = 0x22,
};

static size_t big_endian(const unsigned char *bytes, size_t count)
{
    size_t value = 0;

    for (size_t i = 0; i < count; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static bool is_plain(const char *name, size_t length)
{
    return length == strlen(MECHANISM) && memcmp(name, MECHANISM, length) == 0;
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
        fill(request, first + 1, (size_t)(second - first - 1), second + 1,
             length - (size_t)(second + 1 - message));
    }
}

static enum auth_wish parse_body(unsigned opcode, const char *key, size_t key_length,
                                 size_t body_length, struct auth_request *request)
{
    switch (opcode) {
    case OPCODE_SASL_LIST:
        request->request.verb = VERB_SASL_LIST;
        return AUTH_LIST;
    case OPCODE_SASL_START:
    case OPCODE_SASL_STEP:
        request->request.verb = VERB_SASL;
        if (is_plain(key, key_length)) {
            read_plain(key + key_length, body_length - key_length, request);
        }
        return AUTH_TRY;
    case OPCODE_QUIT:
    case OPCODE_QUITQ:
        return AUTH_CLOSE;
    default:
        return AUTH_OTHER;
    }
}

static enum auth_wish parse_binary(const char *bytes, size_t length, struct auth_request *request)
{
    const unsigned char *header = (const unsigned char *)bytes;

    if (length < BINARY_HEADER_BYTES) {
        return header[0] == BINARY_MAGIC ? AUTH_MORE : AUTH_CLOSE;
    }
    size_t key_length = big_endian(header + 2, 2);
    size_t extras_length = header[4];
    size_t body_length = big_endian(header + 8, 4);

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

enum auth_wish auth_parse(bool binary, const char *bytes, size_t length,
                          struct auth_request *request)
{
    memset(request, 0, sizeof(*request));
    return binary ? parse_binary(bytes, length, request) : parse_text(bytes, length, request);
}
