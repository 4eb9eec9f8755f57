/* sim_threads.c: the journal's threads, and what waits for them. */
#include <stdlib.h>

#include "base/check.h"
#include "store/journal_private.h"
#include "tests/sim/sim.h"
#include "tests/support/give_way.h"

#define HANG_ONE_IN     8
#define OPERATIONS_HERE 12
#define HANG_ROOM       (112u << 10) /* what they take at most, with an event's room */

/* ---- of a whole program ---- */

uint64_t sim_seeds_wanted(uint64_t seeds, uint64_t seeds_long)
{
    const char *given = getenv("ROLLCALL_SIM_SEEDS");

    if (given != NULL) {
        return strtoull(given, NULL, 10);
    }
    return test_long() ? seeds_long : test_scaled(seeds);
}

/* ---- at rest ---- */

/* The one that writes. It is not kicked in a recovery. */
bool sim_is_writer(const struct sim *sim)
{
    return sim->stage > SIM_RECOVERING && data_journal(sim->data) != NULL &&
           pthread_equal(pthread_self(), data_journal(sim->data)->writer);
}

static bool is_writer_at_rest(const struct journal *journal)
{
    return kick_rests(&journal->writer_kick);
}

/* The one that writes may kick the other, but not the other way round where nobody waits for room.
 */
static bool are_at_rest(const struct journal *journal)
{
    return is_writer_at_rest(journal) && !journal->kicked && journal->rests;
}

/* The sync thread, where it plays the workers, waits for the one that writes. */
void sim_calm(struct sim *sim)
{
    const struct journal *journal = sim->data != NULL ? data_journal(sim->data) : NULL;
    bool here =
        pthread_equal(pthread_self(), sim->main) || (sim->node != NULL && sim->node->acts());

    if (journal == NULL || sim->stage == SIM_STOPPING || sim_is_writer(sim)) {
        return; /* they may have ended */
    }
    while (!sim->ended && !(here ? are_at_rest(journal) : is_writer_at_rest(journal))) {
        give_way();
    }
}

/* ---- a write that hangs ---- */

/* Is what the others put written before the sync thread is kicked? Else it runs beside this one,
 * and a seed does not do the same again. By the thread that writes: it has the journal's lock. */
static bool can_hang(const struct sim *sim)
{
    struct journal *journal = data_journal(sim->data);
    uint64_t used = journal->run.end - journal->cleared;
    bool spare = journal->spare_fd >= 0 ||
                 journal->current->end - journal->run.end > journal->segment_bytes / 2 + HANG_ROOM;

    return !sim_always(sim) && spare && used + HANG_ROOM < journal->ring.bytes / 2 &&
           journal_ring_left(&journal->ring) >= HANG_ROOM;
}

void sim_hang(struct sim *sim)
{
    bool surge = sim->surge;

    sim->may_hang = false;
    if (!can_hang(sim)) {
        return;
    }
    sim->hangs = true;
    sim->occupied = false;
    workers_do(sim, 1 + (unsigned)test_random_below(&sim->random, OPERATIONS_HERE));
    sim->occupied = true;
    sim->hangs = false;
    sim->surge = surge;
    sim->figures.hangs++;
}

/* ---- commits and syncs ---- */

bool sim_wait_durable(struct sim *sim, uint64_t lsn)
{
    struct journal *journal = data_journal(sim->data);

    while (!sim->ended && journal_durable(journal) < lsn) {
        give_way();
    }
    return !sim->ended;
}

void sim_sync(struct sim *sim)
{
    (void)journal_sync_now(data_journal(sim->data));
    sim_calm(sim);
}

/* As a worker does: it submits, and what it has put is acknowledged when it is written. */
bool sim_wait_written(struct sim *sim, uint64_t lsn)
{
    struct journal *journal = data_journal(sim->data);

    while (!sim->ended && !journal_failed(journal) && journal_written(journal) < lsn) {
        give_way();
    }
    while (sim->hangs) { /* the process may have ended there: it is left first */
        give_way();
    }
    sim_calm(sim);
    return !sim->ended && journal_written(journal) >= lsn;
}

bool sim_commit(struct sim *sim, unsigned worker)
{
    if (sim->hangs) {
        return false;
    }
    sim->may_hang = test_random_once_in(&sim->random, HANG_ONE_IN);
    uint64_t lsn = journal_sink_submit(&sim->sinks[worker].journal);
    bool written = sim_wait_written(sim, lsn);

    sim->may_hang = false;
    if (!written || (sim_always(sim) && !sim_wait_durable(sim, lsn))) {
        return false;
    }
    sim_calm(sim);
    if (sim->ended) {
        return false;
    }
    CHECK(lsn >= sim->acknowledged);
    sim->acknowledged = lsn;
    return true;
}
