/* stats spaces and stats tables: what memcached has no name for. */
#include <stddef.h>
#include <string.h>

#include "base/num.h"
#include "request/stats_private.h"

/* The tables of one answer. At most 32 figures of 110 bytes a table: they fit the largest output,
 * and the event loop is held for about two ms. */
#define STATS_TABLES_MAX 256u

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
        stats_number(out, "held_bytes", engine_held_bytes(engine));
        engine->functions->stats_space(engine, stats_text, out);
    }
    out->prefix = NULL;
}

/* ---- tables ---- */

/* The space whose tables are asked for, and the first id. */
struct asked {
    const struct space *space; /* NULL: of all */
    uint64_t from;
};

/* [SPACE [ID]], a blank in front of each. False: out->wrong says what is not. */
static bool parse_asked(struct stats_out *out, struct asked *asked)
{
    char name[ENGINE_SPACE_NAME_MAX + 1] = "";
    const char *at = out->words;
    size_t left = out->words_length;

    *asked = (struct asked){NULL, 0};
    if (left == 0) {
        return true;
    }
    size_t length = stats_word(at + 1, left - 1);

    if (length <= ENGINE_SPACE_NAME_MAX) {
        memcpy(name, at + 1, length);
    }
    asked->space = spaces_find(out->worker->spaces, name);
    if (asked->space == NULL) {
        out->wrong = "no space of that name: stats tables [SPACE [ID]]";
        return false;
    }
    at += 1 + length;
    left -= 1 + length;
    if (left > 0 && !num_parse(at + 1, left - 1, &asked->from)) {
        out->wrong = "that is no id: stats tables [SPACE [ID]]";
        return false;
    }
    return true;
}

/* Emits the tables of one space while any are *left to show; then says with which id to go on. */
static void emit_tables(struct stats_out *out, const struct space *space, uint64_t from,
                        unsigned *left)
{
    const struct engine *engine = space->engine;
    bool more = true;

    out->prefix = space->name;
    while (more && *left > 0) {
        from = engine->functions->stats_table(engine, from, stats_text, out);
        more = from != 0;
        (*left)--;
    }
    if (more) {
        stats_number(out, "more", from);
    }
    out->prefix = NULL;
}

void stats_tables(struct stats_out *out)
{
    const struct spaces *spaces = out->worker->spaces;
    struct asked asked;
    unsigned left = STATS_TABLES_MAX;

    if (!parse_asked(out, &asked)) {
        return;
    }
    for (size_t i = 0; i < spaces->count; i++) {
        if (asked.space == NULL || asked.space == spaces->at[i]) {
            emit_tables(out, spaces->at[i], asked.from, &left);
        }
    }
}
