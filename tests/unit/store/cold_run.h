/* cold_run.h: a cold over files of a simulated disk, with a gate before each of its reads and
 * tickets that count their wakes, for the tests of cold. All abort the test on what is not said. */
#ifndef ROLLCALL_TESTS_UNIT_STORE_COLD_RUN_H
#define ROLLCALL_TESTS_UNIT_STORE_COLD_RUN_H

#include <pthread.h>

#include "store/cold.h"
#include "tests/support/vfs_sim.h"
#include "tests/unit/store/table_run.h"

#define RUN_TICKETS 100
#define RUN_FIRST   (RUN_TICKETS - 1) /* the ticket that goes first */
#define RUN_PAGES   1200              /* of each file */

struct run_file {
    struct table_shape shape;
    struct table_file *file;
};

struct run {
    struct vfs_sim *sim;
    struct run_file files[2];
    struct cold *cold;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;       /* the gate */
    unsigned at_gate;  /* reads that wait there */
    uint64_t take_us;  /* each read moves the clock by so much; 0: the clock is not touched */
    unsigned failures; /* told of */
    unsigned wakes[RUN_TICKETS];
};

/* threads, queue, and a cache of so many pages. Both files are open, and their calls not counted.
 */
struct run *run_create(unsigned threads, unsigned queue, uint64_t cache_pages);
void run_destroy(struct run *run); /* with the gate open */

void run_close_gate(struct run *run);
void run_open_gate(struct run *run);
void run_wait_at_gate(struct run *run, unsigned reads);

struct ticket run_ticket(struct run *run, uint64_t serial);
/* What cold_get says; checks the page of a HIT. `error` may be NULL. */
enum cold_result run_get_of(struct run *run, unsigned file, uint64_t serial, uint64_t number,
                            char *error);
enum cold_result run_get(struct run *run, uint64_t serial, uint64_t number); /* of file 0 */
void run_release(struct run *run, uint64_t serial);
void run_wait_woken(struct run *run, uint64_t serial, unsigned times);
unsigned run_wakes(struct run *run, uint64_t serial);
/* Asks, waits, finds, releases: one pread. */
void run_read(struct run *run, uint64_t serial, uint64_t number);
uint64_t run_preads(struct run *run);
struct cold_stats run_stats(struct run *run); /* after a cold_check */

#endif
