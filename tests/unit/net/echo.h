/*
 * echo.h: a service of lines for the tests of net, a server that runs it, and a blocking client.
 *
 *     text        echoed
 *     big N       N letters and a newline
 *     quit        "bye" and close
 *     wait        suspended until released is set and a wake comes, then "done"
 *     again       its turn comes again and again, for ever
 *     early       woken by another thread before the turn has returned NET_SUSPENDED, then "early"
 *     hold text   echoed, and the turn's answers are held
 *     hold big N  as big N, held
 *     hold mute   held, without an answer
 *
 * A turn does at most ECHO_LINES_PER_TURN lines. With `holds` set there is a commit: it counts, and
 * says `verdict`, with a number that rises by one each time.
 */
#ifndef ROLLCALL_TESTS_UNIT_NET_ECHO_H
#define ROLLCALL_TESTS_UNIT_NET_ECHO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "net/net.h"

#define ECHO_LINES_PER_TURN 16
#define ECHO_WORKERS        2

struct echo {
    struct net *net;
    struct budget budget;
    pthread_t thread;
    char error[NET_ERROR_MAX];
    bool in_use;
    int signal_fd;                   /* echo_take_signals; -1: none */
    struct net_tls_context *renewal; /* before the start: what net gets at a signal, or NULL */

    _Atomic unsigned closed;
    _Atomic unsigned waiting; /* turns that ended in NET_SUSPENDED because of "wait" */
    _Atomic unsigned again;   /* turns that ended in NET_AGAIN because of "again" */
    _Atomic bool released;
    _Atomic unsigned signalled;
    _Atomic unsigned stop_signal; /* ends net_run */
    _Atomic unsigned conns_of[ECHO_WORKERS];
    _Atomic unsigned workers_closed;
    _Atomic(struct net_worker *) waiting_worker; /* of the last "wait" or "again" */
    _Atomic uint64_t waiting_serial;

    bool holds;                     /* before the start: the service has a commit */
    _Atomic unsigned verdict;       /* enum net_commit */
    _Atomic bool gated;             /* a commit waits for its permit before it says anything */
    _Atomic unsigned at_gate;       /* commits that came to the gate */
    _Atomic unsigned permits;       /* so many of them may go on */
    _Atomic bool release_in_commit; /* the number is released before the commit returns */
    _Atomic unsigned commits;       /* ended */
    _Atomic uint64_t number;        /* of the last commit */
    /* n > 0: its number is released n - 1 instructions after a commit, or, if the wake-up is over
     * by then, at its end; then this is 0. One worker. */
    _Atomic uint64_t steps;
    _Atomic(struct net_worker *) workers[ECHO_WORKERS];
    unsigned threads; /* as started */
};

/* Options for one listener on `address`, ECHO_WORKERS threads and the echo's budget. */
struct net_options echo_options(struct echo *echo, const char *const *address);

/* False: echo->error and in_use say why. */
bool echo_start(struct echo *echo, const struct net_options *options);
/* Before the start: they are blocked, on this thread and those it makes, and net_run reads them. */
void echo_take_signals(struct echo *echo, const int *signals, size_t count);
void echo_stop(struct echo *echo);

/* One figure of net's metrics, by its name. */
#define FIGURE(echo, name) echo_figure(echo, offsetof(struct net_metrics, name))
uint64_t echo_figure(const struct echo *echo, size_t offset);

/* The client: blocking sockets with a time-out of ECHO_TIMEOUT_S, so that no test hangs. */
#define ECHO_TIMEOUT_S 20

int client_socket(const struct echo *echo);
void client_connect(const struct echo *echo, int fd);
int client_open(const struct echo *echo); /* both */
void client_send(int fd, const char *bytes, size_t length);
void client_say(int fd, const char *text);
void client_receive(int fd, char *bytes, size_t length); /* all of them */
void client_expect(int fd, const char *text);            /* exactly these bytes come next */
void client_expect_end(int fd);                          /* the server has closed, in order */
void client_expect_nothing(int fd);                      /* nothing has come yet */
void client_expect_big(int fd, size_t letters);          /* the answer to "big" */
void client_reset(int fd);                               /* closes by a reset */
int client_ready(const struct echo *echo);               /* opened, and its worker has it */
void client_say_taken(int fd, const char *text);         /* and it lies in the server's socket */

/* Looks again and again until the figure has the value; fails the test after ECHO_TIMEOUT_S. */
void wait_for(_Atomic unsigned *figure, unsigned value);
void wait_for_read(const struct echo *echo, uint64_t bytes);       /* bytes_read */
void wait_for_open(const struct echo *echo, uint64_t connections); /* curr_connections */
void wait_for_held(const struct echo *echo, uint64_t bytes);       /* of the budget, at least */

#endif
