/* cold_space.h: a phantom space whose tables leave memory, with all that belongs to it: a recorder
 * as its journal, a simulated disk, rounds, the readers. Expectations that do not hold fail the
 * cmocka test that runs. Thread rule: one thread. */
#ifndef ROLLCALL_TESTS_UNIT_PHANTOM_COLD_SPACE_H
#define ROLLCALL_TESTS_UNIT_PHANTOM_COLD_SPACE_H

#include "phantom/phantom_private.h"
#include "tests/support/phantom_dumps.h"
#include "tests/support/vfs_sim.h"

#define COLD_DIRECTORY "data"
#define COLD_MEMBERS   20u /* of an id that rolls by: u0, u1 .. */
#define COLD_BATCH     7u  /* of a replay */

struct cold_space {
    struct recorder recorder;
    struct recorder_sink sink;
    struct vfs_sim *sim;
    struct phantom_dumps dumps;
    struct phantom_config config; /* of what is restored */
    struct engine *engine;
};

/* Two tables in memory and one more, deletes on, no cache of pages. */
struct phantom_config cold_config(void);
void cold_begin(struct cold_space *space, const struct phantom_config *config, uint64_t cache_bytes,
                uint64_t overlay_max);
void cold_end(struct cold_space *space);

/* An operation on the member u<number>, as it ended. */
struct engine_op cold_op(struct cold_space *space, struct engine *engine, enum engine_verb verb,
                         uint64_t id, uint64_t number);
enum engine_status cold_run(struct cold_space *space, enum engine_verb verb, uint64_t id,
                            uint64_t number);
bool cold_holds(struct cold_space *space, struct engine *engine, uint64_t id, uint64_t number);

/* Sets the members of ids from 0 on until so many tables are cold; returns the first id that was
 * not used. */
uint64_t cold_roll(struct cold_space *space, unsigned cold_tables);
unsigned cold_tables(const struct engine *engine);
/* The oldest table. */
struct phantom_table *cold_oldest(const struct engine *engine);

void cold_round(struct cold_space *space); /* that comes to its end */
/* A new engine of the last round and the journal. NULL: refused, dumps.error says why. */
struct engine *cold_restore(struct cold_space *space);
/* A new engine of the journal alone, all of it in memory. */
struct engine *cold_twin(struct cold_space *space);
/* Do both give the same answers, right and wrong ones, to `ids` ids from 0 on? */
void cold_compare(struct cold_space *space, struct engine *a, struct engine *b, uint64_t ids);

#endif
