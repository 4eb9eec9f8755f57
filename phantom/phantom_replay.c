/* phantom_replay.c: changes of the journal made again, a batch whose lines are asked for first. */

#include "base/fail.h"
#include "phantom/phantom_private.h"

static void ask_for_lines(const struct phantom *phantom, const struct engine_replay *changes,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct row_table *table = row_find(&phantom->row, changes[i].change.id);
        if (LIKELY(table != NULL)) {
            phantom_table_prefetch((const struct phantom_table *)table,
                                   changes[i].change.member[0]);
        }
    }
}

static bool replay_all(struct phantom *phantom, const struct engine_replay *changes, size_t n,
                       char error[ENGINE_ERROR_MAX])
{
    for (size_t i = 0; i < n; i++) {
        uint64_t id = changes[i].change.id;
        if (id > ROW_ID_MAX) {
            return fail_with(error, ENGINE_ERROR_MAX,
                             "the journal has a change of an id that cannot be");
        }
        struct row_table *table = row_find(&phantom->row, id);
        if (UNLIKELY(row_replay_was_dropped(table, id))) {
            table = NULL; /* but the image of ids apart may be of before (row_log.h) */
        }
        if (!phantom_table_replay(&phantom->row, phantom_table_of(table), &changes[i], error)) {
            return false;
        }
    }
    return true;
}

bool phantom_replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                    char error[ENGINE_ERROR_MAX])
{
    struct phantom *phantom = phantom_of(engine);
    ask_for_lines(phantom, changes, n);
    return replay_all(phantom, changes, n, error);
}
