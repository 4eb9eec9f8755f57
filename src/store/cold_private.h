/*
 * cold_private.h: what the parts of cold share. Included by cold*.c and tests of their insides.
 *
 *     cold.c           the contract's functions
 *     cold_promise.c   reads, tickets and promises: all that is under the one lock
 *     cold_pool.c      the threads; ending them; forgetting a file
 *     cold_cache.c     the cache, with locks of its own, each taken last
 *
 * A read is a place of the queue with room for its page:
 *     FREE -> QUEUED -> READING -> THERE or BAD -> FREE
 * QUEUED goes to FREE when nobody waits any more, THERE and BAD when the last promise of it is
 * given up. Of a READING one the thread that reads owns page and error, nobody else looks at them,
 * and it goes nowhere but on; with the lock held all the rest belongs to whoever holds it.
 *
 * A waiter is a ticket that has something: WAITING for at least one page; WAKING when all are
 * there, in the list of those to be called; IDLE when it was called. Going by way of a list lets
 * the calls be made with nothing locked.
 *
 * A page enters the cache before its read is THERE, and a get that finds neither cached page nor
 * read looks at the cache once more under the lock: so a page that is here is never read again.
 */
#ifndef ROLLCALL_STORE_COLD_PRIVATE_H
#define ROLLCALL_STORE_COLD_PRIVATE_H

#include <pthread.h>

#include "store/cold.h"
#include "store/cold_cache.h"
#include "store/cold_lists.h"

#define COLD_CLASS 0x636f6c64u

enum cold_read_state { COLD_READ_FREE, COLD_READ_QUEUED, COLD_READING, COLD_THERE, COLD_BAD };

struct cold_read {
    enum cold_read_state state;
    bool forgotten; /* its file is: nothing of it is to be left */
    struct cold_key key;
    struct cold_node by_key;
    struct cold_link link;     /* free, or the queue, or none */
    struct cold_link promises; /* of this page */
    uint64_t failed_us;        /* BAD: when, and why */
    char *error;
    unsigned char *page;
};

enum cold_waiter_state { COLD_WAITING, COLD_WAKING, COLD_IDLE };

struct cold_waiter {
    enum cold_waiter_state state;
    uint32_t waiting; /* for this many pages */
    struct ticket ticket;
    struct cold_node by_ticket;
    struct cold_link link;     /* free, waking, or idle from the longest; none if WAITING */
    struct cold_link promises; /* to this ticket */
    uint64_t seen_us;          /* IDLE: when it was woken, or last asked for something */
};

struct cold_promise {
    struct cold_read *read;
    struct cold_waiter *waiter;
    struct cold_node by_both;
    struct cold_link of_read; /* or free */
    struct cold_link of_waiter;
};

struct cold {
    uint32_t class;
    struct cold_config config;
    uint32_t promises_max; /* also of waiters: each has at least one */
    unsigned threads;      /* started */
    pthread_t thread[COLD_THREADS_MAX];
    struct cold_cache *cache;
    unsigned char *pages; /* of the reads */

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t work;  /* something is queued, or it is the end */
    pthread_cond_t ended; /* a read of a forgotten file */
    bool stopping;
    bool called;      /* a thread that rested is on its way to the queue */
    unsigned resting; /* threads that wait for `work`, that one as well */
    bool first_waits; /* config.first was told BUSY */
    struct cold_read *reads;
    struct cold_waiter *waiters;
    struct cold_promise *promises;
    struct cold_map reads_by_key, waiters_by_ticket, promises_by_both;
    struct cold_link free_reads, free_waiters, free_promises;
    struct cold_link queue, waking, idle;
    struct cold_stats stats; /* all but what the cache counts */
};

static inline uint64_t cold_now(const struct cold *cold)
{
    return cold->config.vfs->functions->now_us(cold->config.vfs);
}

static inline bool cold_read_pending(const struct cold_read *read)
{
    return read->state == COLD_READ_QUEUED || read->state == COLD_READING;
}

/* ---- cold_promise.c; all under the lock ---- */

void cold_promise_setup(struct cold *cold);
void cold_promise_teardown(struct cold *cold);
uint64_t cold_promise_bytes(unsigned queue); /* what they take, and the pages */

struct cold_read *cold_read_find(const struct cold *cold, const struct cold_key *key);
struct cold_waiter *cold_waiter_find(const struct cold *cold, const struct ticket *ticket);
bool cold_promised(const struct cold *cold, const struct cold_read *read,
                   const struct cold_waiter *waiter);

/* The ticket waits for the read, a new one of `key` if NULL. False, nothing changed: no room. */
bool cold_promise(struct cold *cold, struct cold_read *read, const struct cold_key *key,
                  const struct ticket *ticket);
/* The waiter has asked for something: it is not lost. */
void cold_waiter_seen(struct cold *cold, struct cold_waiter *waiter);
/* Gives up all it was promised; it is not woken. */
void cold_waiter_drop(struct cold *cold, struct cold_waiter *waiter);
/* Takes a promised page away from all: any state but READING. Those that waited will be woken. */
void cold_read_drop(struct cold *cold, struct cold_read *read);
/* READING has ended, as THERE or BAD; those that waited for nothing else will be woken. */
void cold_read_end(struct cold *cold, struct cold_read *read, enum cold_read_state state);
/* Up to `count` tickets that are to be woken now; they count as woken. */
size_t cold_take_waking(struct cold *cold, struct ticket *tickets, size_t count);
void cold_promise_check(struct cold *cold);

/* ---- cold_pool.c ---- */

/*
 * Under the lock, after the queue grew or shrank. True: `work` is to be signalled. One thread at a
 * time is called, and calls the next: waking one is dear, and who asks has requests to answer.
 */
bool cold_calls(struct cold *cold);
bool cold_pool_start(struct cold *cold); /* false with errno; cold_stop() ends those started */

#endif
