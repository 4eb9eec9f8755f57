/* sim_settings.c: the server that is simulated: two spaces, one of four kinds of load. */
#include <stdio.h>

#include "tests/sim/sim.h"

#define SEGMENT_BYTES (4u << 20)
#define BUFFER_BYTES  (1u << 20)

static void set_space(struct space_settings *space, const char *name, enum space_kind kind)
{
    snprintf(space->name, sizeof(space->name), "%s", name);
    snprintf(space->key, sizeof(space->key), "%s:{id}", name);
    space->kind = kind;
    space->ids = SPACE_IDS_GROWING;
    space->row.table_bytes = 64u << 10;
    space->row.tables = 4;
    space->oldest = SPACE_OLDEST_RECYCLE;
    space->row.late_room = -1;
}

static void set_slots(struct space_settings *space, size_t count, unsigned bits)
{
    space->slot_count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(space->slots[i].name, sizeof(space->slots[i].name), "s%zu", i);
        space->slots[i].bits = i == 0 ? 4 : bits;
    }
}

/* It grows in parts, or has one whose pages are copied in two pieces. */
static void set_any(struct space_settings *space, bool grows)
{
    set_slots(space, 3, 20);
    space->ids = SPACE_IDS_ANY;
    space->max_id = 1u << 20;
    space->row.table_bytes = 512u << 10;
    space->row.part_bytes = grows ? 16u << 10 : 0;
    space->row.tables = 1;
}

/* The oldest tables leave memory; in some of the simulations those files are few. */
static void set_dumps(struct sim *sim)
{
    static const uint64_t caches[] = {0, 128u << 10, 16u << 20};
    static const uint64_t overlays[] = {96u << 10, 512u << 10, 16u << 20};
    bool limited = !test_random_once_in(&sim->random, 3);
    unsigned most = test_random_once_in(&sim->random, 4) ? 2 : 1;

    sim->settings.cold.threads = 1; /* whoever waits for it does nothing else */
    sim->settings.cold.queue = 64;
    sim->settings.cold.cache_bytes = caches[test_random_below(&sim->random, 3)];
    sim->settings.cold.overlay_bytes = overlays[test_random_below(&sim->random, 3)];
    for (size_t i = 0; i < SIM_SPACES; i++) {
        struct space_settings *space = &sim->settings.spaces[i];

        if (space->ids == SPACE_IDS_GROWING) {
            space->oldest = SPACE_OLDEST_DUMP;
            space->row.tables = 2 + (unsigned)test_random_below(&sim->random, 2);
            space->row.dumps_max = limited ? most : 0;
        }
    }
}

/* Records are wide, and filters exact, so that few keys fill a table. */
static void set_spaces(struct sim *sim)
{
    struct space_settings *first = &sim->settings.spaces[0];
    struct space_settings *second = &sim->settings.spaces[1];

    sim->settings.space_count = SIM_SPACES;
    set_space(first, "a", SPACE_COUNTER);
    set_slots(first, 6, 64);
    set_space(second, "b", SPACE_PHANTOM);
    second->deletes = true;
    second->false_positives = 0.000001;
    if (sim->seed % 4 == 0) {
        second->row.table_bytes = 512u << 10; /* likewise, a filter */
    }
    if (sim->seed % 4 == 1) {
        set_space(second, "b", SPACE_COUNTER);
        set_any(second, sim->seed % 8 == 5);
    }
}

void sim_settings(struct sim *sim)
{
    static char directory[] = SIM_DIRECTORY;
    static const enum journal_sync syncs[] = {JOURNAL_SYNC_NEVER, JOURNAL_SYNC_EVERYSEC,
                                              JOURNAL_SYNC_ALWAYS};

    sim->settings.data = directory;
    sim->settings.threads = 1; /* one that loads, and this one waits for it */
    sim->settings.journal.sync = syncs[test_random_below(&sim->random, 3)];
    sim->settings.journal.segment_bytes = SEGMENT_BYTES;
    sim->settings.journal.buffer_bytes = BUFFER_BYTES;
    sim->dumps = sim->seed % 5 > 1;
    sim->fill = sim->seed % 4 == 3 || (sim->dumps && sim->seed % 4 == 2);
    set_spaces(sim);
    if (sim->dumps) {
        set_dumps(sim);
    }
}
