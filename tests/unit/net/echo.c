#include "echo.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "tests/support/step.h"

struct echo_worker {
    struct echo *echo;
    struct net_worker *worker;
    bool inside; /* between turns_begin and turns_end */
};

struct echo_state {
    bool seen;  /* counted in conns_of */
    bool early; /* the "early" at the head was suspended once */
};

struct early_wake {
    struct net_worker *worker;
    uint64_t serial;
};

static void *echo_worker_open(void *context, struct net_worker *worker)
{
    struct echo_worker *state = calloc(1, sizeof(*state));
    CHECK(state != NULL);
    state->echo = context;
    state->worker = worker;
    atomic_store(&state->echo->workers[net_worker_index(worker)], worker);
    return state;
}

static void echo_worker_close(void *worker_state)
{
    struct echo_worker *state = worker_state;
    CHECK(!state->inside);
    atomic_fetch_add(&state->echo->workers_closed, 1);
    free(state);
}

static void echo_turns_begin(void *worker_state)
{
    struct echo_worker *state = worker_state;
    CHECK(!state->inside);
    state->inside = true;
}

/* In the middle of what follows the commit. */
static void release_now(void *context)
{
    struct echo_worker *state = context;
    net_release(state->worker, atomic_load(&state->echo->number));
}

static void echo_turns_end(void *worker_state)
{
    struct echo_worker *state = worker_state;
    CHECK(state->inside);
    state->inside = false;
    if (atomic_load(&state->echo->steps) > 0 && !step_end()) {
        atomic_store(&state->echo->steps, 0); /* the wake-up was over before */
        release_now(state);
    }
}

static enum net_commit echo_commit(void *worker_state, uint64_t *wait)
{
    struct echo_worker *state = worker_state;
    struct echo *echo = state->echo;
    CHECK(state->inside && *wait == 0);
    if (atomic_load(&echo->gated)) {
        unsigned mine = atomic_fetch_add(&echo->at_gate, 1) + 1;
        while (atomic_load(&echo->permits) < mine) {
            (void)poll(NULL, 0, 1);
        }
    }
    enum net_commit verdict = (enum net_commit)atomic_load(&echo->verdict);
    *wait = atomic_fetch_add(&echo->number, 1) + 1;
    if (atomic_load(&echo->release_in_commit)) {
        net_release(state->worker, *wait);
    }
    atomic_fetch_add(&echo->commits, 1);
    if (atomic_load(&echo->steps) > 0) {
        step_begin(atomic_load(&echo->steps) - 1, release_now, state);
    }
    return verdict;
}

static void *wake_early(void *argument)
{
    const struct early_wake *wake = argument;
    net_wake(wake->worker, wake->serial);
    return NULL;
}

/* No two neighbouring pieces of it are alike. */
static char big_letter(size_t at)
{
    return (char)('a' + (at + at / 1000) % 23);
}

static bool append_big(struct buf *out, const char *number)
{
    size_t bytes = (size_t)strtoul(number, NULL, 10);
    char *room = buf_room(out, bytes + 1);
    if (room == NULL) {
        return false; /* does not fit after the others: the next turn's */
    }
    for (size_t i = 0; i < bytes; i++) {
        room[i] = big_letter(i);
    }
    room[bytes] = '\n';
    buf_commit(out, bytes + 1);
    return true;
}

/* The line at the head is "early": suspends once, with the wake already on its way. */
static enum net_next early(struct echo_worker *worker, struct net_conn *conn, struct buf *out)
{
    struct echo_state *state = net_conn_state(conn);
    if (state->early) {
        state->early = false;
        CHECK(buf_append(out, "early\n", 6));
        return NET_WAIT;
    }
    state->early = true;
    struct early_wake wake = {worker->worker, net_conn_serial(conn)};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wake_early, &wake) == 0);
    pthread_join(thread, NULL);
    return NET_SUSPENDED;
}

static enum net_next wait_line(struct echo_worker *worker, struct net_conn *conn, struct buf *out)
{
    struct echo *echo = worker->echo;
    if (atomic_load(&echo->released)) {
        CHECK(buf_append(out, "done\n", 5));
        return NET_WAIT;
    }
    atomic_store(&echo->waiting_worker, worker->worker);
    atomic_store(&echo->waiting_serial, net_conn_serial(conn));
    atomic_fetch_add(&echo->waiting, 1);
    return NET_SUSPENDED;
}

/* One line without its newline. NET_WAIT: go on with the next. */
static enum net_next line(struct echo_worker *worker, struct net_conn *conn, const char *text,
                          size_t length, struct buf *out)
{
    if (length > 4 && memcmp(text, "big ", 4) == 0) {
        return append_big(out, text + 4) ? NET_WAIT : NET_AGAIN;
    }
    if (length == 4 && memcmp(text, "quit", 4) == 0) {
        CHECK(buf_append(out, "bye\n", 4));
        return NET_CLOSE;
    }
    if (length == 4 && memcmp(text, "wait", 4) == 0) {
        return wait_line(worker, conn, out);
    }
    if (length == 5 && memcmp(text, "early", 5) == 0) {
        return early(worker, conn, out);
    }
    if (length == 5 && memcmp(text, "again", 5) == 0) {
        atomic_store(&worker->echo->waiting_worker, worker->worker);
        atomic_store(&worker->echo->waiting_serial, net_conn_serial(conn));
        atomic_fetch_add(&worker->echo->again, 1);
        return NET_AGAIN;
    }
    return buf_append(out, text, length + 1) ? NET_WAIT : NET_AGAIN;
}

/* Takes "hold " off the line; the rest is done as ever, but for "mute". */
static enum net_next any_line(struct echo_worker *worker, struct net_conn *conn,
                              struct net_turn *turn, const char *text, size_t length)
{
    if (length < 5 || memcmp(text, "hold ", 5) != 0) {
        return line(worker, conn, text, length, turn->out);
    }
    turn->hold = true;
    if (length == 9 && memcmp(text, "hold mute", 9) == 0) {
        return NET_WAIT;
    }
    return line(worker, conn, text + 5, length - 5, turn->out);
}

static enum net_next echo_turn(void *worker_state, struct net_conn *conn, struct net_turn *turn)
{
    struct echo_worker *worker = worker_state;
    struct echo_state *state = net_conn_state(conn);
    CHECK(worker->inside && turn->out->length == 0 && !turn->hold);
    if (!state->seen) {
        state->seen = true;
        atomic_fetch_add(&worker->echo->conns_of[net_worker_index(worker->worker)], 1);
    }
    for (int n = 0; n < ECHO_LINES_PER_TURN; n++) {
        const char *text = turn->in + turn->consumed;
        const char *end = memchr(text, '\n', turn->in_length - turn->consumed);
        if (end == NULL) {
            return NET_WAIT;
        }
        enum net_next next = any_line(worker, conn, turn, text, (size_t)(end - text));
        if (next == NET_AGAIN || next == NET_SUSPENDED) {
            return next;
        }
        turn->consumed += (size_t)(end - text) + 1;
        if (next == NET_CLOSE) {
            return next;
        }
    }
    return NET_AGAIN;
}

static void echo_closed(void *worker_state, struct net_conn *conn)
{
    struct echo_worker *worker = worker_state;
    CHECK(worker->inside && net_conn_serial(conn) != 0);
    atomic_fetch_add(&worker->echo->closed, 1);
}

static bool echo_signalled(void *context, const struct signalfd_siginfo *signal)
{
    struct echo *echo = context;
    if (echo->renewal != NULL) {
        net_renew_tls(echo->net, echo->renewal);
    }
    CHECK(signal->ssi_pid == (uint32_t)getpid() && signal->ssi_uid == getuid());
    atomic_fetch_add(&echo->signalled, 1);
    return signal->ssi_signo != atomic_load(&echo->stop_signal);
}

struct net_options echo_options(struct echo *echo, const char *const *address)
{
    memset(echo, 0, sizeof(*echo));
    echo->signal_fd = -1;
    echo->budget.bytes_max = 16u << 20;
    return (struct net_options){.addresses = address,
                                .address_count = 1,
                                .unix_mode = 0700,
                                .threads = ECHO_WORKERS,
                                .max_connections = 256,
                                .backlog = 256,
                                .budget = &echo->budget};
}

static void *run(void *argument)
{
    struct echo *echo = argument;
    net_run(echo->net, echo->signal_fd);
    return NULL;
}

bool echo_start(struct echo *echo, const struct net_options *options)
{
    const struct net_service service = {.context = echo,
                                        .worker_open = echo_worker_open,
                                        .worker_close = echo_worker_close,
                                        .turns_begin = echo_turns_begin,
                                        .turns_end = echo_turns_end,
                                        .turn = echo_turn,
                                        .commit = echo->holds ? echo_commit : NULL,
                                        .closed = echo_closed,
                                        .signalled = echo_signalled,
                                        .state_bytes = sizeof(struct echo_state)};
    echo->threads = options->threads;
    echo->net = net_create(options, &service, echo->error, &echo->in_use);
    if (echo->net == NULL) {
        return false;
    }
    CHECK(net_listen(echo->net, echo->error, &echo->in_use));
    CHECK(pthread_create(&echo->thread, NULL, run, echo) == 0);
    return true;
}

void echo_take_signals(struct echo *echo, const int *signals, size_t count)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < count; i++) {
        sigaddset(&set, signals[i]);
    }
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    echo->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    CHECK(echo->signal_fd >= 0);
}

void echo_stop(struct echo *echo)
{
    net_stop(echo->net);
    pthread_join(echo->thread, NULL);
    net_destroy(echo->net);
    echo->net = NULL;
    if (echo->signal_fd >= 0) {
        close(echo->signal_fd);
    }
    assert_int_equal(atomic_load(&echo->workers_closed), echo->threads);
    assert_int_equal(atomic_load(&echo->budget.used_bytes), 0);
}

uint64_t echo_figure(const struct echo *echo, size_t offset)
{
    struct net_metrics sum;
    net_metrics_sum(echo->net, &sum);
    return metric_read((const metric *)((const char *)&sum + offset));
}

int client_socket(const struct echo *echo)
{
    bool is_unix = net_address(echo->net, 0)[0] == '/';
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval timeout = {.tv_sec = ECHO_TIMEOUT_S};
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)), 0);
    return fd;
}

void client_connect(const struct echo *echo, int fd)
{
    const char *address = net_address(echo->net, 0);
    if (address[0] == '/') {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        assert_true(strlen(address) < sizeof(name.sun_path));
        strcpy(name.sun_path, address);
        assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
        return;
    }
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    in.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
}

int client_open(const struct echo *echo)
{
    int fd = client_socket(echo);
    client_connect(echo, fd);
    return fd;
}

void client_send(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        assert_true(sent > 0);
        bytes += sent;
        length -= (size_t)sent;
    }
}

void client_say(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

void client_receive(int fd, char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t got = recv(fd, bytes, length, 0);
        assert_true(got > 0);
        bytes += got;
        length -= (size_t)got;
    }
}

void client_expect(int fd, const char *text)
{
    char got[4096];
    size_t length = strlen(text);
    assert_true(length < sizeof(got));
    client_receive(fd, got, length);
    assert_memory_equal(got, text, length);
}

void client_expect_end(int fd)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

void client_reset(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    close(fd);
}

int client_ready(const struct echo *echo)
{
    int fd = client_open(echo);
    client_say(fd, "hi\n");
    client_expect(fd, "hi\n");
    return fd;
}

void client_say_taken(int fd, const char *text)
{
    int left = 1;
    client_say(fd, text);
    for (unsigned looks = 0; left != 0; looks++) {
        assert_true(looks < ECHO_TIMEOUT_S * 1000);
        assert_int_equal(ioctl(fd, SIOCOUTQ, &left), 0);
        (void)poll(NULL, 0, left != 0);
    }
}

void client_expect_nothing(int fd)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
}

void client_expect_big(int fd, size_t letters)
{
    char *got = malloc(letters + 1);
    assert_non_null(got);
    client_receive(fd, got, letters + 1);
    for (size_t i = 0; i < letters; i++) {
        if (got[i] != big_letter(i)) {
            fail_msg("letter %zu is not the one that was sent", i);
        }
    }
    assert_int_equal(got[letters], '\n');
    free(got);
}

/* One more look of a wait: false when it took too long. */
static bool look_again(unsigned *looks)
{
    (void)poll(NULL, 0, 1);
    return ++*looks < ECHO_TIMEOUT_S * 1000;
}

void wait_for(_Atomic unsigned *figure, unsigned value)
{
    unsigned looks = 0;
    while (atomic_load(figure) != value) {
        assert_true(look_again(&looks));
    }
}

void wait_for_read(const struct echo *echo, uint64_t bytes)
{
    unsigned looks = 0;
    while (FIGURE(echo, bytes_read) < bytes) {
        assert_true(look_again(&looks));
    }
}

void wait_for_open(const struct echo *echo, uint64_t connections)
{
    unsigned looks = 0;
    while (FIGURE(echo, curr_connections) != connections) {
        assert_true(look_again(&looks));
    }
}

void wait_for_held(const struct echo *echo, uint64_t bytes)
{
    unsigned looks = 0;
    while (atomic_load(&echo->budget.used_bytes) < bytes) {
        assert_true(look_again(&looks));
    }
}
