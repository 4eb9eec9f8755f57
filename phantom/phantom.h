/*
 * phantom.h: the phantom engine: "has member M been at id I?", for any number of members, in two
 * bytes a pair and one line of memory a question.
 *
 * Answers may be wrong in one direction only: a member that was added is always found until it is
 * deleted; one that never was is found with the probability `false_positives`, at capacity. A space
 * is a row of tables, each for a range of ids (row/row.h); with ids: any, one table. The design
 * and its figures are in phantom/DESIGN.md. Cost: a check in a batch about 20 ns, an add 40 to 60
 * ns. It stores and restores itself (row/row_data.h), wrong answers included.
 *
 * Thread rule: as engine.h says.
 */
#ifndef ROLLCALL_PHANTOM_PHANTOM_H
#define ROLLCALL_PHANTOM_PHANTOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "row/row_config.h"

#define PHANTOM_FALSE_POSITIVES_MIN  0.000001
#define PHANTOM_FALSE_POSITIVES_MAX  0.5
#define PHANTOM_EXCEPTIONS_BYTES_MIN 4096u
#define PHANTOM_ERROR_MAX            256
#define PHANTOM_LATE_START           0.50 /* members of an id go on arriving long after it */

struct phantom_config {
    uint32_t space;
    struct row_config row; /* but late_start and sample: those are the engine's to say */
    uint64_t max_id;       /* any_ids only */
    bool role_cache;
    uint32_t value_flags;
    double false_positives;    /* a share, at capacity */
    bool deletes;              /* keep exact exceptions, so that members can be deleted */
    uint64_t exceptions_bytes; /* of memory for them; 0: table_bytes / 32 */
};

/* Returns whether this is a configuration. On false `error` says what is wrong and what would be
 * right. */
bool phantom_config_valid(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX]);

/* What it will cost and hold, for the memory sum and the start-up line. */
struct phantom_size {
    uint64_t bytes;         /* of memory held: all tables and pools */
    unsigned tables;        /* that hold members at a time */
    unsigned spare;         /* 1 or 0 more */
    uint64_t members;       /* capacity of all that hold members */
    double bits_per_member; /* table bits at capacity */
};
void phantom_config_size(const struct phantom_config *config, struct phantom_size *size);

/* NULL with `error` when memory is refused. The config has been found valid. */
struct engine *phantom_create(const struct phantom_config *config, char error[PHANTOM_ERROR_MAX]);

/*
 * Takes a changed configuration with the world stopped. At once: role, value-flags and deletes
 * (what was deleted before deletes are turned off stays deleted). From the next table on:
 * the row's, false_positives, pools. ids and max_id
 * keep their values until a restart, with ids: any table_bytes and false_positives too (a table
 * that was stored keeps those two over a restart as well, and a space its `ids:`). With a log,
 * after its reserve() said true. False, with nothing changed, if memory for exceptions is refused
 * (`error` says so).
 */
bool phantom_reconfigure(struct engine *engine, const struct phantom_config *config,
                         char error[PHANTOM_ERROR_MAX]);

/* Tables that it would drop by that configuration, as counter_losses(); no others. */
size_t phantom_losses(const struct engine *engine, const struct phantom_config *config,
                      struct engine_loss losses[ENGINE_LOSSES_MAX]);

/* Walks everything and CHECKs the invariants listed in phantom/table.h. World stopped. */
void phantom_check(const struct engine *engine);

#endif
