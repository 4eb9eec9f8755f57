/*
 * phantom_dumps.h: checkpoints of one phantom space whose tables leave memory, as the server takes
 * them, with a recorder as the journal: images of all kinds, a manifest in memory that names them,
 * image_done() for what left, and an engine made of all that again. Operations wait for what they
 * need: pages, the keeper's work, and rounds.
 *
 * Expectations that do not hold end the test. Thread rule: rounds and restores by one thread; run
 * by any, each with a struct of its own, and with rounds by another if there is a barrier.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_PHANTOM_DUMPS_H
#define ROLLCALL_TESTS_SUPPORT_PHANTOM_DUMPS_H

#include <semaphore.h>

#include "base/barrier.h"
#include "row/row_log.h"
#include "store/vfs.h"
#include "tests/support/phantoms.h"
#include "tests/support/recorder.h"

#define PHANTOM_DUMPS_FILES 512
#define PHANTOM_DUMPS_NAME  64
#define PHANTOM_DUMPS_KINDS (ROW_IMAGE_MERGE + 1)

/* What the manifest names of a table or layer. */
struct phantom_dumps_table {
    uint64_t serial;
    unsigned layer;
    bool kept;
    bool dumped; /* `file` is to be opened, not loaded */
    char file[PHANTOM_DUMPS_NAME];
    char overlay[PHANTOM_DUMPS_NAME]; /* "": none */
};

struct phantom_dumps_set {
    bool any;
    uint64_t c, m;
    size_t state_bytes;
    unsigned char state[ENGINE_STATE_MAX];
    size_t count;
    struct phantom_dumps_table tables[PHANTOM_DUMPS_FILES];
};

/* An image that is durable, until image_done(). */
struct phantom_dumps_done {
    struct row_image image;
    char file[PHANTOM_DUMPS_NAME];
};

struct phantom_dumps {
    struct vfs *vfs;
    const char *directory;
    struct engine_cold cold;
    struct recorder *recorder;
    struct barrier *barrier;       /* NULL: nobody else is there */
    struct barrier_member *member; /* of whoever takes rounds; NULL as image_write says */
    struct phantom_dumps_set last, next;
    bool in_round;
    sem_t woken; /* whoever runs operations */
    size_t done_count;
    struct phantom_dumps_done done[PHANTOM_DUMPS_FILES];
    uint64_t numbers;                     /* of files */
    uint64_t images[PHANTOM_DUMPS_KINDS]; /* made, by kind */
    uint64_t gone[PHANTOM_DUMPS_KINDS];   /* abandoned */
    unsigned fails[PHANTOM_DUMPS_KINDS];  /* the next so many are taken for failed once written */
    void (*written)(void *context, const struct row_image *image); /* after each; may be NULL */
    void (*folds)(void *context); /* between two steps of a fold; may be NULL */
    void *context;
    uint64_t stops; /* in which overlays were folded so far */
    char error[ENGINE_ERROR_MAX];
};

/* With a pool of two threads and a cache of so many bytes. The directory exists. */
void phantom_dumps_init(struct phantom_dumps *dumps, struct vfs *vfs, const char *directory,
                        struct recorder *recorder, uint64_t cache_bytes, uint64_t overlay_max);
/* All engines with tables in it have been destroyed. */
void phantom_dumps_fini(struct phantom_dumps *dumps);

/* A whole round: true if it came to its end, and is in force. */
bool phantom_dumps_round(struct phantom_dumps *dumps, struct engine *engine);
/* The same without an end, as if the program was killed in it: `images` at most are written. */
void phantom_dumps_cut_round(struct phantom_dumps *dumps, struct engine *engine, unsigned images);

/* Of a fresh engine without a log; set_cold() has been called. False: dumps->error. */
bool phantom_dumps_restore(struct phantom_dumps *dumps, struct engine *engine, size_t batch);

/*
 * An operation until it is not pending any more, with whatever work that takes. Inside a round (by
 * whoever is called back) what waits for one stays pending. One thread.
 */
enum engine_status phantom_dumps_run(struct phantom_dumps *dumps, struct engine *engine,
                                     struct phantoms_call *call, struct change_sink *sink);

#endif
