/*
 * fake_row.h: an engine that only keeps ids, exactly, to try the row of tables with: each table is
 * a set of ids, and so is the one for ids apart. It checks on the way what a real one relies on:
 * ids are never created twice, nothing in place lies above a new base, counts are what is held.
 *
 * With a recorder it keeps what it does, can be imaged as blurred as a real one, and be made again.
 * Its tables may leave memory: then they are what an image of them holds, with what changed since.
 *
 * Thread rule: fake_try by any number of threads inside the barrier, each with ids of its own; the
 * rest as row.h says of what it calls, or by one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_FAKE_ROW_H
#define ROLLCALL_TESTS_SUPPORT_FAKE_ROW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "row/row.h"
#include "row/row_data.h"
#include "tests/support/fake_set.h"
#include "tests/support/recorder.h"

enum fake_answer {
    FAKE_ADDED,
    FAKE_THERE,
    FAKE_BELOW,
    FAKE_NO_TABLE,
    FAKE_TOO_FAR,
    FAKE_BUSY,  /* the recorder has no room */
    FAKE_WAITS, /* for what the keeper does not bring by itself: a dump. Its ticket is left */
};

struct fake {
    struct engine engine; /* first; it has no functions */
    struct row row;
    struct engine_cold cold;     /* tables may leave memory; no overlay of theirs grows */
    struct engine_keeper keeper; /* nobody is told, until a test says whom */
    pthread_mutex_t lock;        /* of the sets */
    uint64_t capacity;
    uint64_t window;           /* ids a table's window spans; 0: no end */
    size_t apart_max;          /* ids */
    bool refuse_create;        /* the next tables are refused */
    bool refuse_place;         /* what is apart stays so */
    struct dict *shown;        /* what the row was shown of it last */
    _Atomic size_t live;       /* structs that exist; destroyed by any thread */
    uint64_t woken;            /* tickets */
    struct recorder *recorder; /* NULL: nothing is kept */
    struct recorder_sink sink;
};

/* A usual configuration: `tables` tables, recycling or not, late room auto from a tenth. */
struct row_config fake_config(unsigned tables, bool recycle);

void fake_init(struct fake *fake, const struct row_config *config, uint64_t capacity);
void fake_fini(struct fake *fake); /* checks that every table was destroyed */

/* Creates an id; where it has to wait, the keeper's round is done here. */
enum fake_answer fake_add(struct fake *fake, uint64_t id);
/* The same without waiting: what the row said, in *verdict; INSIDE too if it is there already.
 * False: below the oldest. */
bool fake_try(struct fake *fake, uint64_t id, enum row_verdict *verdict);
bool fake_has(const struct fake *fake, uint64_t id); /* where its range says */
bool fake_is_apart(const struct fake *fake, uint64_t id);
uint64_t fake_apart(const struct fake *fake);     /* how many */
void fake_remove(struct fake *fake, uint64_t id); /* it is there */

/* The keeper's round while it is asked for, with all checks. */
void fake_maintain(struct fake *fake);
/* row_check, and everything of the sets. */
void fake_check(const struct fake *fake);
size_t fake_layers(const struct fake *fake);

/* From here on changes and events are recorded; one thread. FIRST is the caller's: row_log_first.
 */
void fake_keep(struct fake *fake, struct recorder *recorder);

/* The contents of a table, taken in parts at different times. */
#define FAKE_IMAGE_PARTS 2u /* an id belongs to one by its remainder */
struct fake_image {
    struct row_image image;
    struct fake_set placed;         /* of a table, also one that leaves, or of the ids apart */
    struct fake_set added, removed; /* of an overlay */
};
/* As row_image_next, now. */
bool fake_image_begin(struct fake *fake, uint64_t since, struct fake_image *image);
/* Adds a part, as it is now; false: the table was touched meanwhile. */
bool fake_image_copy(const struct fake *fake, struct fake_image *image, unsigned part);
void fake_image_fini(struct fake_image *image);
/*
 * That of a table that leaves is durable: it is cold from here, which must change nothing of what
 * it holds. False: the table is gone, or another image of it has begun.
 */
bool fake_image_dumped(struct fake *fake, const struct fake_image *image);
/*
 * Makes the table of an image, with its contents; overlay: of a dumped one, or NULL. False with
 * `error`.
 */
bool fake_load(struct fake *fake, const struct fake_image *image, const struct fake_image *overlay,
               char error[ROW_ERROR_MAX]);

/* Collects figures as lines "name=value": fake_see is an engine_stat_fn, its context a fake_seen.
 */
struct fake_seen {
    char text[4096];
    size_t length;
};
void fake_see(void *context, const char *name, const char *text);

#endif
