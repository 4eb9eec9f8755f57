/* forget.c: losses, compared with what the configuration lets go. */
#include "data/forget.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/size.h"

#define WHAT_MAX 192

static bool is_named(const struct space_settings *settings, const char *name)
{
    for (size_t i = 0; i < settings->forget_count; i++) {
        if (strcmp(settings->forget[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* "811 records have it, and up to 100 of dumped tables" */
static void slot_text(const struct engine_loss *loss, char text[WHAT_MAX])
{
    char dumped[64] = "";

    if (loss->dumped > 0) {
        snprintf(dumped, sizeof(dumped), ", and up to %" PRIu64 " of dumped tables", loss->dumped);
    }
    snprintf(text, WHAT_MAX, "slots: %s is missing, %" PRIu64 " record%s it%s", loss->name,
             loss->records, loss->records == 1 ? " has" : "s have", dumped);
}

static void tables_text(const struct engine_loss *loss, const struct space_settings *next,
                        char text[WHAT_MAX])
{
    bool dumps = strcmp(loss->name, ENGINE_LOSS_DUMPS) == 0;
    char bound[64], size[SIZE_TEXT_MAX];

    if (dumps) {
        snprintf(bound, sizeof(bound), "dumps-max: %u", next->row.dumps_max);
    } else {
        snprintf(bound, sizeof(bound), "tables: %u of %s", next->row.tables,
                 size_text(size, next->row.table_bytes));
    }
    snprintf(text, WHAT_MAX, "%s has no room for %" PRIu64 "%s table%s with %" PRIu64 " %s", bound,
             loss->tables, dumps ? " dumped" : "", loss->tables == 1 ? "" : "s", loss->records,
             next->kind == SPACE_PHANTOM ? "members" : "ids");
}

static void loss_text(const struct engine_loss *loss, const struct space_settings *next,
                      char text[WHAT_MAX])
{
    if (loss->slot) {
        slot_text(loss, text);
    } else {
        tables_text(loss, next, text);
    }
}

bool forget_allowed(const struct space *space, const struct space_settings *next,
                    char error[SPACES_ERROR_MAX])
{
    struct engine_loss losses[ENGINE_LOSSES_MAX];
    size_t count = space_losses(space, next, losses);
    char what[WHAT_MAX];

    for (size_t i = 0; i < count; i++) {
        if (!is_named(next, losses[i].name)) {
            loss_text(&losses[i], next, what);
            snprintf(error, SPACES_ERROR_MAX,
                     "space %s: %s; put it back as it was, or write forget: [%s] to let go of them "
                     "for good",
                     space->name, what, losses[i].name);
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        loss_text(&losses[i], next, what);
        log_warning("%s; they are forgotten, as forget says space=%s", what, space->name);
    }
    return true;
}
