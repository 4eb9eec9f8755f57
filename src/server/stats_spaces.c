/* stats spaces and stats tables: what memcached has no name for. */
#include <stddef.h>

#include "server/stats_private.h"

static void emit_figures(struct stats_out *out, const struct space *space)
{
    static const struct {
        const char *name;
        size_t offset;
    } figures[] = {
#define ROW(name, meaning) {#name, offsetof(struct space_metrics, name)},
        SPACE_METRICS(ROW)
#undef ROW
    };

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        stats_number(out, figures[i].name,
                     stats_sum(space->metrics, sizeof(space->metrics[0]),
                               out->worker->server->threads, figures[i].offset));
    }
}

void stats_spaces(struct stats_out *out)
{
    for (size_t i = 0; i < out->worker->spaces->count; i++) {
        const struct space *space = out->worker->spaces->at[i];
        const struct engine *engine = space->engine;

        out->prefix = space->name;
        stats_text(out, "key", space->settings.key);
        emit_figures(out, space);
        engine->functions->stats_space(engine, stats_text, out);
    }
    out->prefix = NULL;
}

void stats_tables(struct stats_out *out)
{
    for (size_t i = 0; i < out->worker->spaces->count; i++) {
        const struct space *space = out->worker->spaces->at[i];

        out->prefix = space->name;
        space->engine->functions->stats_tables(space->engine, stats_text, out);
    }
    out->prefix = NULL;
}
