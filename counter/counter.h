/*
 * counter.h: the counter engine: small numbers of ids, several to a record, packed in bits.
 *
 * A space is a row of tables, each for a range of ids (row/row.h); with ids: any, one table. The
 * design and its figures are in counter/DESIGN.md. Cost: a read in a batch 30 to 50 ns, a change 40
 * to 60 ns; 13.9 bytes an id with four 20-bit slots, at capacity.
 *
 * Thread rule: as engine.h says.
 */
#ifndef ROLLCALL_COUNTER_COUNTER_H
#define ROLLCALL_COUNTER_COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/collect.h"
#include "engine/engine.h"
#include "row/row_config.h"

#define COUNTER_SLOT_BITS_MIN   2
#define COUNTER_SLOT_BITS_MAX   64
#define COUNTER_RECORD_BITS_MAX 512
#define COUNTER_MAX_ID_DEFAULT  (1ull << 40)
#define COUNTER_ERROR_MAX       256
#define COUNTER_LATE_START      0.10 /* of a capacity: ROW_LATE_AUTO, before it is known */
#define COUNTER_FORGET_MAX      ENGINE_LOSSES_MAX /* names */

struct counter_slot {
    char name[ENGINE_SPACE_NAME_MAX + 1];
    unsigned bits;
    unsigned number; /* the engine's: two slots that had one name at different times differ */
};

#define COUNTER_SLOT_NUMBER_MAX UINT16_MAX /* slots a space may have had */

struct counter_config {
    uint32_t space;
    struct counter_slot slots[ENGINE_SLOTS_MAX];
    size_t slot_count;
    struct row_config row; /* but late_start, sample, ids_once: those are the engine's to say */
    uint64_t max_id;       /* any_ids only */
    uint64_t id_spacing;   /* growing only; 0: not known */
    bool role_cache;       /* a record is there when all its slots are */
    bool keep_empty;       /* not with role_cache: an empty field of a record leaves its slot */
    uint32_t value_flags;
    uint64_t extend_bytes; /* 0: table_bytes / 32, or twice that for records of few bytes; 8 KiB+ */
    uint64_t aux_bytes;    /* 0: table_bytes / 32 */
    bool undo; /* reconfigure: to what it was before the last one; slots are those of then */
    /* reconfigure: slots that are not named any more and are to be gone for good. Others, which no
     * record has, are known again if their names come back (the last 16). */
    char forget[COUNTER_FORGET_MAX][ENGINE_SPACE_NAME_MAX + 1];
    size_t forget_count;
    /* role_cache, growing only: memory for records below the oldest table (counter/below.h);
     * too little, or 0: writes there are refused with ENGINE_E_ID_BELOW, as in role store. */
    uint64_t below_bytes;
};

/* Returns whether this is a configuration. On false `error` says what is wrong and what would be
 * right. */
bool counter_config_valid(const struct counter_config *config, char error[COUNTER_ERROR_MAX]);

/* What it will cost and hold, for the memory sum and the start-up line. */
struct counter_size {
    uint64_t bytes;   /* of memory held: all tables and pools, ids apart, records below them */
    unsigned tables;  /* that hold ids at a time */
    unsigned spare;   /* 1 or 0 more */
    uint64_t records; /* capacity of all that hold ids, dense ones in all but the first */
    double bytes_per_record; /* tables and pools at capacity */
};
void counter_config_size(const struct counter_config *config, struct counter_size *size);

/* NULL with `error` when memory is refused. The config has been found valid. */
struct engine *counter_create(const struct counter_config *config, char error[COUNTER_ERROR_MAX]);

/*
 * Takes a changed configuration with the world stopped. At once: slots (matched by name; a table of
 * the new ones is opened as soon as the keeper can), role, keep_empty, value-flags. From the next
 * table on: the row's, and pools. Until a restart ids, max_id and id_spacing keep their values,
 * with ids: any all but what holds at once; and below_bytes, but from 0 and to 0. False, with
 * nothing changed, if the slots cannot be taken (`error` says why). Records below the oldest table
 * are forgotten if the slots change.
 */
bool counter_reconfigure(struct engine *engine, const struct counter_config *config,
                         char error[COUNTER_ERROR_MAX]);

/*
 * What that configuration would have it lose, to losses[]: slots that it does not name and records
 * have, and tables (row_losses). Returns how many. Reads all tables in memory, a second for a few
 * GiB. By any thread while nothing is maintained; records may change meanwhile.
 */
size_t counter_losses(const struct engine *engine, const struct counter_config *config,
                      struct engine_loss losses[ENGINE_LOSSES_MAX]);

/*
 * Collects the next records, in the order of their ids (engine/collect.h): every record that is
 * there all the while is met. Blocks, also for the disk. Called by a thread outside the barrier,
 * which enters it for steps of less than a millisecond; by several at once. The engine may go while
 * the thread is outside.
 */
enum engine_collect_end counter_collect(struct engine *engine, struct engine_collect *collect);

/*
 * Goes on with a look at the values of all records in memory by a step of less than a millisecond;
 * some that change meanwhile are left out. False: that was the last. Any thread inside the barrier,
 * which may be left between steps.
 */
bool counter_survey(const struct engine *engine, struct engine_survey *survey);

/*
 * n prepared ops in their order, each INCR or DECR. Carries out what is simple, up to the first
 * that is not, and puts the number of each into now[], with want_cas its token into tokens[]:
 * nothing else is told of these. Returns how many; the next one is for change() of
 * engine_functions, whose rules hold here too.
 */
size_t counter_add(struct engine *engine, struct engine_op *const *ops, size_t n,
                   struct change_sink *sink, uint64_t *now, uint64_t *tokens);

/* Walks everything and CHECKs the invariants listed in counter/table.h. World stopped. */
void counter_check(const struct engine *engine);

#endif
