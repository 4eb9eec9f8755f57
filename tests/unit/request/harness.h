/*
 * harness.h: a whole server on 127.0.0.1 with fake engines, and clients of it, for tests.
 *
 * Two spaces: f (role store) and c (role cache), keys f:{id} and c:{id}. Clients fail the test
 * after ten seconds without an answer.
 */
#ifndef ROLLCALL_TESTS_HARNESS_H
#define ROLLCALL_TESTS_HARNESS_H

#include <pthread.h>

#include "fake_engine.h"
#include "request/server.h"

struct harness {
    struct settings settings;
    struct budget budget;
    struct spaces *spaces;
    struct server *server;
    struct net *net;
    space_engine_fn *create; /* of all spaces; by default of fake engines */
    struct engine *store;    /* of f, as it was at the start … */
    struct engine *cache;    /* … and of c */
    uint64_t wait_us;        /* 0: the server's own bound of waits */
    bool keeper_later;       /* the test starts the keeper itself, or never */
    bool listen_later;       /* the test calls harness_listen() */
    struct journal *journal; /* what it keeps changes in; NULL: none */
    struct change_log *log;
    void (*net_gone)(struct harness *harness); /* of harness_fini: before the server goes */
    pthread_t thread;                          /* runs net_run */
};

void harness_init(struct harness *harness, unsigned threads);
void harness_start(struct harness *harness);  /* after init, and changes of the settings */
void harness_listen(struct harness *harness); /* clients may connect */
void harness_fini(struct harness *harness);

/* What cmocka's prestate is with these two: the server of a test begins and ends with it. */
struct harness_of {
    struct harness *harness;
    unsigned threads;
    void (*set)(struct settings *settings); /* NULL: as they are */
};
int harness_setup(void **state);
int harness_teardown(void **state);
#define HARNESS_TEST(name, of)                                                                     \
    cmocka_unit_test_prestate_setup_teardown(name, harness_setup, harness_teardown, of)

int harness_connect(const struct harness *harness);
void harness_send(int fd, const void *bytes, size_t length);
void harness_say(int fd, const char *text);
void harness_expect(int fd, const char *text); /* exactly these bytes next */
void harness_expect_bytes(int fd, const char *bytes, size_t length);
void harness_expect_closed(int fd);
/* Sends, expects, in one. */
void harness_ask(int fd, const char *text, const char *answer);
/* Reads up to and with a line END; returns it with a NUL, to be freed. */
char *harness_until_end(int fd);
/* A figure of `stats` on a connection of its own. */
unsigned long long harness_stat(const struct harness *harness, const char *name);

#endif
