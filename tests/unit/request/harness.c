#include "harness.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"

#define PATIENCE_S   10
#define ANSWER_BYTES (2u << 20) /* more than an output holds */

static struct engine *create(const struct space_settings *settings, uint32_t number,
                             char error[SPACES_ERROR_MAX])
{
    (void)number;
    (void)error;
    return fake_engine_create(settings->role == SPACE_CACHE);
}

/* What a real engine would take, too: a reload says what it holds. */
static void name_space(struct space_settings *space, const char *name, enum space_role role)
{
    space->row.table_bytes = 1u << 20;
    space->row.tables = 1;
    strcpy(space->slots[0].name, "a");
    strcpy(space->slots[1].name, "b");
    space->slots[0].bits = space->slots[1].bits = 20;
    space->slot_count = 2;
    snprintf(space->name, sizeof(space->name), "%s", name);
    snprintf(space->key, sizeof(space->key), "%s:{id}", name);
    space->role = role;
}

void harness_init(struct harness *harness, unsigned threads)
{
    memset(harness, 0, sizeof(*harness));
    harness->create = create;
    harness->settings.threads = threads;
    harness->settings.memory_bytes = 1u << 30;
    harness->settings.max_connections = 256;
    harness->settings.requests_per_turn = 20;
    harness->settings.version_shown = memory_strdup("1.6.45");
    harness->settings.space_count = 2;
    name_space(&harness->settings.spaces[0], "f", SPACE_STORE);
    name_space(&harness->settings.spaces[1], "c", SPACE_CACHE);
    harness->budget.bytes_max = 256u << 20;
}

static void *run(void *context)
{
    net_run(context, -1);
    return NULL;
}

void harness_start(struct harness *harness)
{
    static const char *const address = "127.0.0.1:0";
    const struct net_options options = {
        .addresses = &address,
        .address_count = 1,
        .threads = harness->settings.threads,
        .max_connections = harness->settings.max_connections,
        .backlog = 128,
        .budget = &harness->budget,
    };
    struct net_service service;
    char error[SPACES_ERROR_MAX];
    bool in_use;

    harness->spaces =
        spaces_create(&harness->settings, NULL, harness->settings.threads, harness->create, error);
    assert_non_null(harness->spaces);
    harness->store = spaces_find(harness->spaces, "f")->engine;
    harness->cache = spaces_find(harness->spaces, "c")->engine;
    harness->server = server_create(&harness->settings, harness->spaces);
    harness->server->wait_us = harness->wait_us != 0 ? harness->wait_us : SERVER_WAIT_US;
    if (harness->journal != NULL) {
        server_keep(harness->server, harness->journal, harness->log);
    }
    server_service(harness->server, &service);
    harness->net = net_create(&options, &service, error, &in_use);
    assert_non_null(harness->net);
    server_attach(harness->server, harness->net);
    if (!harness->keeper_later) {
        assert_true(keeper_start(harness->server->keeper, harness->spaces));
    }
    if (!harness->listen_later) {
        harness_listen(harness);
    }
}

void harness_listen(struct harness *harness)
{
    char error[NET_ERROR_MAX];
    bool in_use;

    assert_true(net_listen(harness->net, error, &in_use));
    assert_int_equal(pthread_create(&harness->thread, NULL, run, harness->net), 0);
}

void harness_fini(struct harness *harness)
{
    net_stop(harness->net);
    pthread_join(harness->thread, NULL);
    keeper_end(harness->server->keeper);
    net_destroy(harness->net);
    if (harness->net_gone != NULL) {
        harness->net_gone(harness);
    }
    harness->spaces = harness->server->spaces; /* a reload may have made others */
    server_destroy(harness->server);
    spaces_drop(harness->spaces, NULL);
    assert_int_equal(harness->budget.used_bytes, 0);
    free(harness->settings.version_shown);
}

int harness_setup(void **state)
{
    const struct harness_of *of = *state;

    harness_init(of->harness, of->threads);
    if (of->set != NULL) {
        of->set(&of->harness->settings);
    }
    harness_start(of->harness);
    return 0;
}

int harness_teardown(void **state)
{
    const struct harness_of *of = *state;

    harness_fini(of->harness);
    return 0;
}

int harness_connect(const struct harness *harness)
{
    const char *text = net_address(harness->net, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    const struct timeval patience = {.tv_sec = PATIENCE_S};

    address.sin_port = htons((uint16_t)atoi(strrchr(text, ':') + 1));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return fd;
}

void harness_send(int fd, const void *bytes, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t more = send(fd, (const char *)bytes + sent, length - sent, MSG_NOSIGNAL);

        assert_true(more > 0);
        sent += (size_t)more;
    }
}

void harness_say(int fd, const char *text)
{
    harness_send(fd, text, strlen(text));
}

void harness_expect_bytes(int fd, const char *bytes, size_t length)
{
    char *got = memory_zalloc(length + 1);
    size_t have = 0;

    while (have < length) {
        ssize_t more = recv(fd, got + have, length - have, 0);

        if (more <= 0) {
            print_error("nothing more after: %s\n", got);
        }
        assert_true(more > 0);
        have += (size_t)more;
    }
    if (length < ANSWER_BYTES) {
        char *wanted = memory_strndup(bytes, length);

        assert_string_equal(got, wanted);
        free(wanted);
    }
    assert_memory_equal(got, bytes, length);
    free(got);
}

void harness_expect(int fd, const char *text)
{
    harness_expect_bytes(fd, text, strlen(text));
}

void harness_expect_closed(int fd)
{
    char byte;

    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

void harness_ask(int fd, const char *text, const char *answer)
{
    harness_say(fd, text);
    harness_expect(fd, answer);
}

char *harness_until_end(int fd)
{
    char *got = memory_zalloc(ANSWER_BYTES);
    size_t have = 0;

    while (have < 5 || strcmp(got + have - 5, "END\r\n") != 0) {
        ssize_t more = recv(fd, got + have, ANSWER_BYTES - 1 - have, 0);

        assert_true(more > 0);
        have += (size_t)more;
    }
    return got;
}

unsigned long long harness_stat(const struct harness *harness, const char *name)
{
    int fd = harness_connect(harness);
    char line[128];

    harness_say(fd, "stats\r\n");
    char *answer = harness_until_end(fd);

    snprintf(line, sizeof(line), "STAT %s ", name);
    const char *at = strstr(answer, line);

    assert_non_null(at);
    unsigned long long number = strtoull(at + strlen(line), NULL, 10);

    free(answer);
    close(fd);
    return number;
}
