/*
 * fuzz_auth.c: who may come in. The first byte of the input chooses: 't' and 'b': what a text or
 * binary client says before it is in, of which every beginning must be read alike; else a file of
 * users, each of whom must be let in, and nobody else.
 */
#include <stdio.h>

#include "base/buf.h"
#include "config/auth.h"
#include "protocol/binary.h"
#include "protocol/text.h"
#include "tests/fuzz/fuzz.h"

/* ---- what a client says ---- */

static bool is_inside(const char *from, size_t length, const char *bytes, size_t room)
{
    return from >= bytes && (size_t)(from - bytes) <= room &&
           length <= room - (size_t)(from - bytes);
}

static enum auth_wish ask(const struct codec *codec, const char *bytes, size_t length, size_t *end,
                          uint64_t *sum)
{
    struct auth_request request = {.user = NULL};
    char *copy = fuzz_copy(bytes, length);
    enum auth_wish wish = codec->read_auth(copy, length, &request);

    *end = 0;
    *sum = 0;
    if (wish != AUTH_MORE && wish != AUTH_CLOSE) {
        CHECK(request.end > 0 && request.end <= length);
        *end = request.end;
    }
    if (wish == AUTH_TRY && request.user != NULL) {
        CHECK(is_inside(request.user, request.user_length, copy, request.end));
        CHECK(is_inside(request.password, request.password_length, copy, request.end));
        *sum = hash_bytes(request.user, request.user_length, 1) ^
               hash_bytes(request.password, request.password_length, 2);
    }
    free(copy);
    return wish;
}

/* As much as comes at once makes no difference to the first request. */
static void ask_all(const struct codec *codec, const char *bytes, size_t length)
{
    size_t end;
    uint64_t sum;

    while (length > 0) {
        enum auth_wish whole = ask(codec, bytes, length, &end, &sum);

        for (size_t part = 1; part < length; part++) {
            size_t part_end;
            uint64_t part_sum;
            enum auth_wish wish = ask(codec, bytes, part, &part_end, &part_sum);

            CHECK(wish == AUTH_MORE || (wish == whole && part_end == end && part_sum == sum));
            CHECK(wish != AUTH_MORE || whole == AUTH_MORE || whole == AUTH_CLOSE || part < end);
            CHECK(wish != AUTH_MORE || part < 4 * AUTH_REQUEST_MAX);
        }
        if (whole == AUTH_MORE || whole == AUTH_CLOSE) {
            return;
        }
        bytes += end;
        length -= end;
    }
}

/* ---- the file ---- */

/* A line with one bit turned over lets in only whom the file has, too. */
static void check_changed(const struct auth *auth, const char *text, const char *end,
                          const char *line, size_t length)
{
    struct test_random random = fuzz_random(line, length);
    char *changed = fuzz_copy(line, length);

    changed[test_random_below(&random, length)] ^= (char)(1 << test_random_below(&random, 8));
    const char *colon = memchr(changed, ':', length);

    if (colon != NULL && memmem(text, (size_t)(end - text), changed, length) == NULL) {
        size_t user = (size_t)(colon - changed);

        CHECK(!auth_check(auth, changed, user, colon + 1, length - user - 1));
    }
    free(changed);
}

static void check_line(const struct auth *auth, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);

    CHECK(colon != NULL && colon != line && length <= AUTH_LINE_MAX);
    size_t user = (size_t)(colon - line);
    size_t password = length - user - 1;

    CHECK(auth_check(auth, line, user, colon + 1, password));
    CHECK(!auth_check(auth, line, length, colon + 1, 0));
}

static void check_file(const struct auth *auth, const char *text, const char *end)
{
    const char *at = text;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        size_t length = (size_t)(stop - at);

        length -= length > 0 && stop[-1] == '\r';
        if (length > 0) {
            check_line(auth, at, length);
            check_changed(auth, text, end, at, length);
        }
        at = newline != NULL ? newline + 1 : end;
    }
    CHECK(!auth_check(auth, "nobody", 6, "\0", 1));
}

static void read_file(const char *text, size_t length)
{
    char error[AUTH_ERROR_MAX] = "";
    struct auth *auth = auth_parse_text(text, length, error);

    if (auth != NULL) {
        check_file(auth, text, text + length);
    } else {
        CHECK(strncmp(error, "line ", 5) == 0 || strncmp(error, "no user", 7) == 0);
    }
    auth_destroy(auth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *copy = fuzz_copy((const char *)data + 1, size - 1);

    if (data[0] == 't' || data[0] == 'b') {
        ask_all(data[0] == 'b' ? binary_codec() : text_codec(), copy, size - 1);
    } else {
        read_file(copy, size - 1);
    }
    free(copy);
    return 0;
}
