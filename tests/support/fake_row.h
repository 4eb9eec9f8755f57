/*
 * fake_row.h: an engine that only keeps ids, exactly, to try the row of tables with: each table is
 * a set of ids, those in place and those apart. It checks on the way what a real one relies on: ids
 * are never created twice, nothing in place lies above a new base, counts are what is held.
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

#include "engine/row.h"

enum fake_answer {
    FAKE_ADDED,
    FAKE_THERE,
    FAKE_BELOW,
    FAKE_NO_TABLE,
    FAKE_TOO_FAR,
};

struct fake {
    struct row row;
    struct engine_keeper keeper; /* nobody is told, until a test says whom */
    pthread_mutex_t lock;        /* of the sets */
    uint64_t capacity;
    uint64_t window;     /* ids a table's window spans; 0: no end */
    size_t apart_max;    /* of a table */
    bool refuse_create;  /* the next tables are refused */
    bool refuse_move;    /* nothing that moves fits */
    unsigned misfits;    /* the next so many movings are refused */
    _Atomic size_t live; /* structs that exist; destroyed by any thread */
    uint64_t woken;      /* tickets */
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
void fake_remove(struct fake *fake, uint64_t id); /* it is there */

/* The keeper's round while it is asked for, with all checks. */
void fake_maintain(struct fake *fake);
/* row_check, and everything of the sets. */
void fake_check(const struct fake *fake);
size_t fake_layers(const struct fake *fake);

/* Collects figures as lines "name=value": fake_see is an engine_stat_fn, its context a fake_seen.
 */
struct fake_seen {
    char text[4096];
    size_t length;
};
void fake_see(void *context, const char *name, const char *text);

#endif
