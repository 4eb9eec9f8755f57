/*
 * dumps.h: a counter space whose tables leave memory, for tests: rounds of images as the server
 * takes them, with a recorder as the journal, and an engine made of the last round and what was
 * recorded since. Files lie on a simulated disk and are read by a real store/cold.
 *
 * Expectations that do not hold end the test. Thread rule: one thread, but dumps_run: any.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_DUMPS_H
#define ROLLCALL_TESTS_SUPPORT_DUMPS_H

#include "base/barrier.h"
#include "counter/counter.h"
#include "row/row_log.h"
#include "store/cold.h"
#include "tests/support/random.h"
#include "tests/support/recorder.h"
#include "tests/support/vfs_sim.h"
#include "tests/support/woken.h"

#define DUMPS_FILES_MAX 256
#define DUMPS_NAME_MAX  32

struct dumps_file {
    uint64_t serial;
    unsigned layer; /* as table_file_info.layer */
    bool dump;
    char name[DUMPS_NAME_MAX];
};

struct dumps_set {
    uint64_t c, m;
    size_t state_bytes;
    unsigned char state[ENGINE_STATE_MAX];
    size_t count;
    struct dumps_file files[DUMPS_FILES_MAX];
};

struct dumps_image {
    struct row_image image;
    char name[DUMPS_NAME_MAX];
    bool superseded;
};

struct dumps {
    struct vfs_sim *sim;
    struct vfs *vfs;
    struct recorder recorder;
    struct engine_cold cold;
    struct engine *engine;
    struct woken woken; /* for the tickets of whoever runs operations one by one */
    struct test_random random;
    struct dumps_set last, next;
    struct dumps_image images[DUMPS_FILES_MAX];
    size_t image_count;
    bool waits; /* dumps_run() leaves a change that waits for a merge pending; false: it is busy */
    uint64_t numbers;
    uint64_t kinds[4], gone, failed; /* images so far */
    uint64_t stops;                  /* in which overlays were folded so far */
    void (*folds)(void *context);    /* called between two steps of a fold; NULL: nobody is */
    void *context;
    char error[ENGINE_ERROR_MAX];
};

void dumps_init(struct dumps *dumps, uint64_t overlay_bytes_max, uint64_t cache_bytes,
                uint64_t seed);
void dumps_fini(struct dumps *dumps); /* and the engine, unless NULL */
/* A new space with a log. */
void dumps_create(struct dumps *dumps, const struct counter_config *config);
/* The table of that place in the row, and its layer, are to leave. False: they have, or may not. */
bool dumps_leave(struct dumps *dumps, size_t table);
size_t dumps_tables(const struct dumps *dumps); /* of the row */
size_t dumps_cold(const struct dumps *dumps);   /* of these */
size_t dumps_layers(const struct dumps *dumps); /* of these, those with a layer */
/*
 * One round. barrier and member: NULL if nobody else is there. fails: its manifest cannot be
 * written, so no image of it counts.
 */
void dumps_round(struct dumps *dumps, struct barrier *barrier, struct barrier_member *member,
                 bool fails);
/* The engine goes, as in a crash, and comes back from the last round, without what was recorded
 * since. False: its tables are refused (dumps.error); it may be tried again. */
bool dumps_restore(struct dumps *dumps, const struct counter_config *config);
/* So, and all that was recorded since is replayed. */
void dumps_restart(struct dumps *dumps, const struct counter_config *config);
/* Runs one operation once, and forgets its pages unless it is pending. */
void dumps_run(struct dumps *dumps, struct engine_op *op, struct change_sink *sink);

#endif
