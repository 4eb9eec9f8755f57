/* kept_space.h: a phantom space with all that belongs to it when it is kept: a recorder as its
 * journal, a simulated disk, checkpoints. Expectations that do not hold fail the cmocka test that
 * runs. Thread rule: one thread. */
#ifndef ROLLCALL_TESTS_UNIT_PHANTOM_KEPT_SPACE_H
#define ROLLCALL_TESTS_UNIT_PHANTOM_KEPT_SPACE_H

#include "tests/support/checkpoints.h"
#include "tests/support/phantoms.h"
#include "tests/support/recorder.h"
#include "tests/support/vfs_sim.h"

#define KEPT_DIRECTORY "data"
#define KEPT_MEMBERS   20u /* of an id that rolls by: u0, u1 .. */
#define KEPT_BATCH     7u  /* of a replay */

struct kept_space {
    struct recorder recorder;
    struct recorder_sink sink;
    struct vfs_sim *sim;
    struct checkpoints checkpoints;
    struct phantom_config config; /* of what is restored */
    struct engine *engine;
};

void kept_begin(struct kept_space *space, const struct phantom_config *config);
void kept_end(struct kept_space *space);

/* An operation on the member u<number>. */
enum engine_status kept_run(struct kept_space *space, enum engine_verb verb, uint64_t id,
                            uint64_t number);
bool kept_holds(struct engine *engine, uint64_t id, uint64_t number);
/* Sets the members of ids first .. end - 1, an id after the other. */
void kept_roll(struct kept_space *space, uint64_t first, uint64_t end);

void kept_checkpoint(struct kept_space *space);
/* A new engine of the last checkpoint and the journal. NULL: refused, checkpoints.error says why.
 */
struct engine *kept_restore(struct kept_space *space);

#endif
