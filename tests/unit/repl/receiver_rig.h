/*
 * receiver_rig.h: what the tests of the receiver share: a data directory and a journal that are the
 * test's own (the functions of data/follow.h stand here), and a leader that the test plays.
 *
 * Every wait ends after RIG_ANSWER_S with a failed test.
 */
#ifndef ROLLCALL_TESTS_UNIT_REPL_RECEIVER_RIG_H
#define ROLLCALL_TESTS_UNIT_REPL_RECEIVER_RIG_H

#include <pthread.h>

#include "data/follow.h"
#include "repl/receiver_private.h"

#define RIG_ANSWER_S 20
#define RIG_STREAM   "0000000000000007000000000000000b"
#define RIG_LSN      4096u

/* The data directory. */
struct fake {
    pthread_mutex_t lock;
    struct data_position position;
    char taken[65536]; /* from RIG_LSN on */
    unsigned no_room;  /* calls of take that have none */
    char why[64];      /* the disk is full; "": it is the buffer */
    _Atomic enum data_taken result;
    bool has_sum;
    enum data_rewind rewind;
    _Atomic bool full; /* no start has room */
    uint64_t sum;
    _Atomic unsigned takes;
    _Atomic bool little_memory;
    _Atomic uint64_t written, durable, applied;
    /* what again() said */
    _Atomic bool again;
    uint64_t cut_lsn;
    bool copied;
    _Atomic unsigned copies; /* calls of copies() */
};
extern struct fake fake;

struct rig {
    int listener;
    char address[64];
    char directory[64];
    struct settings *settings;
    struct repl_receiver *receiver;
    int fd; /* -1: not connected */
    char in[65536];
    size_t length;
};
extern struct rig rig;

/* Around each test. */
int rig_begin(void **state);
int rig_end(void **state);

void rig_go(void); /* the receiver begins */
void rig_hang_up(void);
void rig_pick_up(void);       /* its next connection, instead of the one there is */
void rig_agree(uint64_t lsn); /* the same, as far as STREAM, of what it asks from there on */
void rig_say_bytes(const void *bytes, size_t length);
__attribute__((format(printf, 1, 2))) void rig_say(const char *format, ...);
void rig_send_data(uint64_t lsn, size_t length);
void rig_expect(const char *line);
void rig_expect_hung_up(void); /* it may say A before */
/* Until it says that it is so far. None falls on the way, nor goes beyond. */
void rig_expect_progress(uint64_t written, uint64_t durable, uint64_t applied);
void rig_expect_taken(size_t length); /* waits for that, too */
uint64_t rig_head(void);              /* how far it has taken, at any time */

struct repl_receiver_stats rig_figures(void);
/* Waits until it is so. */
#define RIG_AWAIT(what)                                                                            \
    do {                                                                                           \
        for (unsigned waits_ = 0; !(what); waits_++) {                                             \
            assert_true(waits_ < RIG_ANSWER_S * 1000u);                                            \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)
void rig_await_trouble(const char *text);

#endif
