/* text_auth.c: a login in text, the data of a `set`. */
#include <string.h>

#include "base/num.h"
#include "protocol/text_private.h"

#define SET_TOKENS 5 /* set key flags exptime bytes; what follows is not looked at */

/* Finds the token at *at and moves *at after it. Returns its length; 0: there is none. */
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
static void read_user(struct auth_request *request, const char *data, size_t length)
{
    const char *space = memchr(data, ' ', length);

    if (space != NULL) {
        size_t user_length = (size_t)(space - data);

        auth_fill(request, data, user_length, space + 1, length - user_length - 1);
    }
}

enum auth_wish text_auth_read(const char *bytes, size_t length, struct auth_request *request)
{
    size_t window = length < AUTH_REQUEST_MAX ? length : AUTH_REQUEST_MAX;
    const char *newline = memchr(bytes, '\n', window);
    uint64_t data_length;

    memset(request, 0, sizeof(*request));
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
    read_user(request, data, data_length);
    return AUTH_TRY;
}
