/*
 * cold.h: pages of table files that lie on the disk, read by a pool of threads and kept in a
 * bounded cache. One for all spaces.
 *
 * cold_get() never touches the disk. It copies the page out if it is here (its checksum was right
 * when it was read); else it queues one read of 4096 bytes, or joins an equal one under way, and
 * says PENDING: the ticket is woken when all that it was told to wait for is here. The caller then
 * runs its request again from the start and asks for the same pages again.
 *
 * Promises. A page a ticket was told to wait for is *promised* to it: it stays here, apart from the
 * cache and whatever the cache's size, until the ticket is released. It does not go when it was got
 * once: a request may learn from its first page that it needs a second one, and then runs a third
 * time and needs both. So each run finds all that earlier runs waited for, each run but the last
 * adds at least one page, and a request ends after as many runs as its pages depend on each other
 * (two or three; one more for each time a page that was in the cache is evicted between two runs,
 * never more than it has pages). The caller that answers a request with any page PENDING, even with
 * an error in its first run, or drops it (its connection closed), calls cold_release(). If nobody
 * does: a ticket that was woken and has asked for nothing but cached pages since COLD_HOLD_US is
 * taken for lost, and its promises are given up once their room is needed.
 *
 * BUSY: there is room for `queue` promised pages (queued, being read, or read and not released),
 * and for COLD_JOINS * queue promises of them. Beyond that a ticket which waits for another
 * page anyway is told PENDING (it asks again after its wake), any other BUSY. So nobody waits while
 * holding nothing, and of those that hold something one always ends: no deadlock. One request that
 * needs more than `queue` pages at once, none of them in the cache, ends in BUSY each time: `queue`
 * should be a few times the keys of one request.
 *
 * One ticket goes first (cold_config.first): once it was told BUSY nobody else is promised anything
 * until it was, or was released. So it has room as soon as any becomes free, whatever is asked.
 *
 * FAILED: the page could not be read, or is not what was written there. The failure is told to the
 * tickets that waited for it, however late, and to all others that ask before those are released,
 * but not longer than COLD_HOLD_US. Then the page is read anew. So the run after a wake finds the
 * failure and does not wait again, and a disk that recovers is noticed.
 *
 * Absence: whether an id is there at all is said by the page it would be in, so a cached page knows
 * its absent ids too; there is nothing else to remember about them.
 *
 * Cache: pages that were read, the least recently used go first; up to 16 parts by a hash of
 * file and page, each with a lock of its own and an order of its own. A page is known by the open
 * file, the file's random identity and its number, so another generation is another page.
 *
 * Memory: cache_bytes with all bookkeeping of the cache; besides, 4096 bytes for each promised
 * page, resident once used, and about 850 bytes of bookkeeping a place of the queue.
 * cold_memory_bytes() is the sum, without the threads' stacks. Nothing is allocated later, but the
 * text of a failure.
 *
 * Cost: a page in the cache one lock of its part and a copy, about 0.1 us; else one more lock,
 * which all share. No lock is held during a read or a wake.
 *
 * Thread rule: get, release, stats by any thread at once; forget by any thread that may block;
 * create, stop and destroy by one. `wake` is called with nothing locked, by a thread of the pool,
 * or by the caller of forget or stop. It must not block; it may call what is here but forget, stop
 * and destroy.
 */
#ifndef ROLLCALL_STORE_COLD_H
#define ROLLCALL_STORE_COLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ticket.h"
#include "store/table_file.h"

#define COLD_THREADS_MAX     64
#define COLD_QUEUE_MAX       65536
#define COLD_JOINS           4       /* waiting tickets a place of the queue, on the average */
#define COLD_HOLD_US         1000000 /* see above: a lost ticket; the memory of a failure */
#define COLD_LATENCY_BUCKETS 26

struct cold;

struct cold_config {
    struct vfs *vfs;      /* for the clock; each file is read through its own */
    unsigned threads;     /* 1 .. COLD_THREADS_MAX */
    unsigned queue;       /* pages promised at once: 1 .. COLD_QUEUE_MAX */
    uint64_t cache_bytes; /* less than one page costs: no cache */
    struct ticket first;  /* goes first; `wake` NULL: none does */
    /* Told of each failed read, once, by a thread of the pool, nothing locked. May be NULL. */
    void (*failed)(void *context, const char *error);
    void *context;
};

enum cold_result {
    COLD_HIT,     /* the page was copied out */
    COLD_PENDING, /* the ticket will be woken */
    COLD_BUSY,    /* no room to wait; also after cold_stop() */
    COLD_FAILED,  /* `error` says which file, page, and why */
};

struct cold_stats {
    uint64_t hits;   /* gets that found their page, those of a run after a wake too */
    uint64_t misses; /* gets that did not: all of the next five and failures that were told again */
    uint64_t queued; /* of these: began a read */
    uint64_t joined; /* waited for a read that somebody else had begun */
    uint64_t again;  /* asked once more for what their ticket waits for already */
    uint64_t put_off;              /* no room, but told to wait: the ticket waits for other pages */
    uint64_t busy;                 /* no room, refused */
    uint64_t reads;                /* preads done, the failed ones too */
    uint64_t failed;               /* of these: the system could not read */
    uint64_t bad_pages;            /* of these: not what was written there */
    uint64_t dropped;              /* reads taken out of the queue, nobody wanting them any more */
    uint64_t robbed;               /* tickets taken for lost */
    uint64_t depth, depth_highest; /* reads queued or under way: now, and at most so far */
    uint64_t promised;             /* pages held for tickets now, those being read too */
    uint64_t cached_pages, cached_bytes; /* in the cache now; bytes with their bookkeeping */
    uint64_t evicted;                    /* from the cache, to make room */
    /* Reads by their time on the disk, checksum included, waiting in the queue not: [0] below 1 us,
     * [i] below 2^i us, the last also all above. */
    uint64_t latency_us[COLD_LATENCY_BUCKETS];
};

/* Starts the threads, named "cold-0" and so on, signals blocked. CHECKs the config's limits. NULL
 * with errno. */
struct cold *cold_create(const struct cold_config *config);
/*
 * From here on what is not here is BUSY. Queued reads are dropped, those under way finished, every
 * ticket that waits is woken, the threads end; no wake is under way or comes once it has returned.
 * Blocks for a read. Get, release and stats may still be called meanwhile and after. Again: no-op.
 */
void cold_stop(struct cold *cold);
void cold_destroy(struct cold *cold); /* stops it first. NULL: no-op */

/* The most a cold of that config will ever hold. */
uint64_t cold_memory_bytes(const struct cold_config *config);

/*
 * Page `number` of an open file, of the table or of entries (as table_file_read_page), to `page`
 * (TABLE_FILE_PAGE_BYTES, any alignment; touched only by HIT). `error` is filled only by FAILED.
 * The ticket may be woken before this has returned, once for several pages, and, seldom, once more
 * than was promised, after its release too.
 */
enum cold_result cold_get(struct cold *cold, const struct table_file *file, uint64_t number,
                          const struct ticket *ticket, void *page,
                          char error[TABLE_FILE_ERROR_MAX]);

/* Returns how many pages may be asked for ahead, by a ticket that waits anyway: half of the queue
 * is for those that wait for nothing yet. */
unsigned cold_spare(struct cold *cold);

/*
 * The ticket's request is over: its promises are given up, queued reads that nobody else waits for
 * are dropped. What was read stays in the cache as long as that lasts. Not known: no-op.
 */
void cold_release(struct cold *cold, const struct ticket *ticket);

/*
 * The file is about to be closed: when this returns no read touches it and nothing of it is held.
 * The caller sees to it that no get of this file is under way or comes after the call has begun.
 * Tickets that wait for its pages are woken. Blocks for the reads under way.
 */
void cold_forget(struct cold *cold, const struct table_file *file);

void cold_stats(struct cold *cold, struct cold_stats *stats);

/*
 * CHECKs: C1 every place of the queue is free, queued, being read, or ended, and found by its key;
 * depth and promised count them. C2 every promise stands in the lists of its page and its ticket.
 * C3 a ticket waits for as many pages as it has promises of unread ones; it is idle, or about to be
 * woken, if and only if that is none; a page that is queued or ended has a promise. C4 each cached
 * page is found by its key, in its part, once. Any thread; O(queue + cache), locked meanwhile.
 */
void cold_check(struct cold *cold);

#endif
