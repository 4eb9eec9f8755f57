/*
 * data_run.h: a server's data directory without the server, on a simulated disk: what the tests of
 * data share. Spaces `a` (kind counter) and `b` (phantom), of toy engines.
 *
 * A value that was set is acknowledged when data_run_set() has returned true. `wanted` remembers
 * it, so that after any end of the process data_run_check() can say whether all is there.
 */
#ifndef ROLLCALL_TESTS_DATA_RUN_H
#define ROLLCALL_TESTS_DATA_RUN_H

#include "base/barrier.h"
#include "data/data.h"
#include "data/journal_sink.h"
#include "space/keeper.h"
#include "store/manifest.h"
#include "store/vfs.h"
#include "tests/support/vfs_sim.h"

#define DATA_RUN_DIRECTORY "/data"
#define DATA_RUN_IDS       (8u * 1024)
#define DATA_RUN_SPACES    2

struct data_run {
    struct vfs_sim *sim;
    struct settings settings;
    char error[DATA_ERROR_MAX];
    uint64_t wanted[DATA_RUN_SPACES][DATA_RUN_IDS]; /* by number of the space in the settings */
    /* Of the present process. */
    struct data *data;
    struct spaces *spaces;
    struct barrier *barrier;
    struct keeper *keeper;
    struct journal_sink sink;
    _Atomic bool stop; /* given to data_recover */
    bool checkpoints;  /* data_start was called */
    bool filled;       /* its clean stop says that it is */
    bool fills;        /* the next process fills the directory (data/fill.h) */
};

void data_run_init(struct data_run *run, uint64_t seed);
void data_run_fini(struct data_run *run);
/* For cmocka: *state is the run of the test. */
int data_run_setup(void **state);
int data_run_teardown(void **state);
#define DATA_RUN_TEST(name, run)                                                                   \
    cmocka_unit_test_prestate_setup_teardown(name, data_run_setup, data_run_teardown, run)

/* A process begins: opens, makes engines, recovers. False: run->error. */
bool data_run_open(struct data_run *run);
bool data_run_recover(struct data_run *run);
bool data_run_begin(struct data_run *run);       /* both; false: all is given back */
void data_run_checkpoints(struct data_run *run); /* starts their thread, and the keeper */
void data_run_start(struct data_run *run);       /* begins, and starts them, or the test fails */
/* Kills the process and begins the next, which has all that was acknowledged, or the test fails. */
void data_run_restart(struct data_run *run);

/* Sets an id of space i, committed. False: refused or not acknowledged. */
bool data_run_set(struct data_run *run, unsigned i, uint64_t id, uint64_t value);
/* Sets every seventh id of the first `tables` tables, to id + salt in space 0 and one more in space
 * 1. Fails the test if one is refused. */
void data_run_fill(struct data_run *run, unsigned tables, uint64_t salt);
/* Fails the test unless every id has the value it was given last. */
void data_run_check(const struct data_run *run);
struct engine *data_run_engine(const struct data_run *run, unsigned i);

/* One checkpoint from asking to its end. True if it succeeded. */
bool data_run_checkpoint(struct data_run *run);

bool data_run_end(struct data_run *run); /* a clean stop; what data_close said */
void data_run_kill(struct data_run *run);
void data_run_power_cut(struct data_run *run, uint64_t seed);
/* Winds up what is left of a process that was ended by the simulation. */
void data_run_wind_up(struct data_run *run);

/* Files in the directory whose names hold this. */
unsigned data_run_files(const struct data_run *run, const char *part);
struct manifest *data_run_manifest(const struct data_run *run); /* of the disk; the caller's */
uint64_t data_run_epoch(const struct data_run *run);            /* in it */
struct data_stats data_run_stats(const struct data_run *run);

/* Waits until the condition holds, at most a minute; then fails the test. */
#define DATA_RUN_WAIT_FOR(condition)                                                               \
    do {                                                                                           \
        uint64_t data_run_waited = 0;                                                              \
        while (!(condition)) {                                                                     \
            data_run_pause(&data_run_waited);                                                      \
        }                                                                                          \
    } while (0)
void data_run_pause(uint64_t *waited);

#endif
