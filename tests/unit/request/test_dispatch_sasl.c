/* SASL on a connection that is in already: who says the wrong thing then is out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/auth.h"
#include "harness.h"

#define HEADER_BYTES 24
#define SASL         0x21
#define STEP         0x22
#define GET          0x00
#define STATUS_OK    0
#define GONE         0xffff /* instead of a status: the connection was closed */

static struct harness harness;

static int setup(void **state)
{
    static const char users[] = "joe:secret\nann:other\n";
    char error[AUTH_ERROR_MAX];

    (void)state;
    harness_init(&harness, 1);
    harness.settings.auth = auth_parse_text(users, strlen(users), error);
    assert_non_null(harness.settings.auth);
    harness_start(&harness);
    return 0;
}

static int teardown(void **state)
{
    struct auth *auth = harness.settings.auth;

    (void)state;
    harness_fini(&harness);
    auth_destroy(auth);
    return 0;
}

static bool read_all(int fd, unsigned char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t got = recv(fd, bytes, length, 0);

        if (got <= 0) {
            return false;
        }
        bytes += got;
        length -= (size_t)got;
    }
    return true;
}

struct message {
    unsigned char bytes[256];
    size_t length;
};

static void add(struct message *message, unsigned char opcode, const char *key, const char *value,
                size_t length)
{
    unsigned char *request = message->bytes + message->length;
    size_t key_length = strlen(key);

    message->length += HEADER_BYTES + key_length + length;
    assert_true(message->length <= sizeof(message->bytes));
    memset(request, 0, HEADER_BYTES);
    request[0] = 0x80;
    request[1] = opcode;
    request[3] = (unsigned char)key_length;
    request[11] = (unsigned char)(key_length + length);
    memcpy(request + HEADER_BYTES, key, key_length);
    memcpy(request + HEADER_BYTES + key_length, value, length);
}

/* The status of the next answer. */
static unsigned hear(int fd, unsigned char opcode)
{
    unsigned char answer[128];

    if (!read_all(fd, answer, HEADER_BYTES)) {
        return GONE;
    }
    size_t body = answer[11];

    assert_int_equal(answer[0], 0x81);
    assert_int_equal(answer[1], opcode);
    assert_true(answer[10] == 0 && HEADER_BYTES + body <= sizeof(answer));
    assert_true(read_all(fd, answer + HEADER_BYTES, body));
    return (unsigned)answer[6] << 8 | answer[7];
}

static unsigned ask(int fd, unsigned char opcode, const char *key, const char *value, size_t length)
{
    struct message message = {.length = 0};

    add(&message, opcode, key, value, length);
    return send(fd, message.bytes, message.length, MSG_NOSIGNAL) > 0 ? hear(fd, opcode) : GONE;
}

#define LOGIN(user_password) "\0" user_password, sizeof("\0" user_password) - 1

static bool is_in(int fd)
{
    return ask(fd, GET, "f:1", "", 0) == STATUS_OK;
}

static int enter(void)
{
    int writer = harness_connect(&harness);
    int fd = harness_connect(&harness);

    harness_ask(writer, "set x 0 0 10\r\njoe secret\r\nset f:1 0 0 1\r\n5\r\n",
                "STORED\r\nSTORED\r\n");
    close(writer);
    assert_int_equal(ask(fd, SASL, "PLAIN", LOGIN("joe\0secret")), STATUS_OK);
    assert_true(is_in(fd));
    return fd;
}

static void test_right_again(void **state)
{
    (void)state;
    int fd = enter();

    assert_int_equal(ask(fd, SASL, "PLAIN", LOGIN("joe\0secret")), STATUS_OK);
    assert_true(is_in(fd));
    assert_int_equal(ask(fd, SASL, "PLAIN", LOGIN("ann\0other")), STATUS_OK);
    assert_true(is_in(fd));
    close(fd);
}

/* Whether the connection ends or only the login: it gets nothing more. */
static void test_wrong_again(void **state)
{
    static const struct {
        unsigned char opcode;
        const char *mechanism;
        const char *value;
        size_t length;
    } rows[] = {
        {SASL, "PLAIN", LOGIN("joe\0wrong")},
        {SASL, "PLAIN", LOGIN("joe\0secret\0")},
        {SASL, "PLAIN", LOGIN("ann\0secret")},
        {SASL, "PLAIN", LOGIN("joe")},
        {SASL, "PLAIN", "", 0},
        {SASL, "CRAM-MD5", LOGIN("joe\0secret")},
        {STEP, "PLAIN", LOGIN("joe\0wrong")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd = enter();

        assert_int_not_equal(
            ask(fd, rows[i].opcode, rows[i].mechanism, rows[i].value, rows[i].length), STATUS_OK);
        assert_false(is_in(fd));
        close(fd);
    }
}

/* What came with it is not carried out either. */
static void test_wrong_again_and_more(void **state)
{
    struct message message = {.length = 0};

    (void)state;
    int fd = enter();

    add(&message, SASL, "PLAIN", LOGIN("joe\0wrong"));
    add(&message, GET, "f:1", "", 0);
    harness_send(fd, message.bytes, message.length);
    assert_int_not_equal(hear(fd, SASL), STATUS_OK);
    assert_int_not_equal(hear(fd, GET), STATUS_OK);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_right_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_again_and_more, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
