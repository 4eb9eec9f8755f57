/*
 * settings_table.c: what the rows of settings_table_top.c and settings_table_spaces.c have in
 * common.
 */
#include "config/settings_draft.h"

#include <string.h>

#include "base/check.h"

int settings_rows_find(const struct settings_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (strcmp(rows->rows[i].option.name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *settings_rows_nearest(const struct settings_rows *rows, const char *wrong)
{
    const char *names[SETTINGS_ROWS_MAX];

    for (size_t i = 0; i < rows->count; i++) {
        names[i] = rows->rows[i].option.name;
    }
    return options_nearest(wrong, names, rows->count);
}

void settings_rows_initial(const struct settings_rows *rows, void *object)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct option_row *option = &rows->rows[i].option;
        struct option_value value = {0};
        char error[OPTIONS_ERROR_MAX];

        if (option->initial == NULL || option->type == OPTION_CUSTOM) {
            continue;
        }
        CHECK(options_parse(option, option->initial, &value, error));
        options_store(option, object, &value);
    }
}

bool settings_row_applies(const struct settings_row *row, const struct space_settings *space)
{
    unsigned wrong = space->ids == SPACE_IDS_ANY ? ROW_GROWING : ROW_ANY_ONLY;

    wrong |= space->role == SPACE_CACHE ? ROW_STORE_ONLY : 0;
    return (row->kinds & 1u << space->kind) != 0 && (row->option.flags & wrong) == 0;
}

bool settings_row_reloads(const struct settings_row *row, const struct space_settings *now,
                          const struct space_settings *next)
{
    unsigned flags = row->option.flags;
    bool growing = now->ids == SPACE_IDS_GROWING && next->ids == SPACE_IDS_GROWING;

    return (flags & ROW_RELOADABLE) != 0 || ((flags & ROW_NEXT_TABLE) != 0 && growing);
}

bool settings_row_valued(const struct settings_row *row)
{
    return (row->option.flags & ROW_GROUP) == 0;
}

const char *settings_row_key(const struct settings_row *row)
{
    const char *dot = strchr(row->option.name, '.');

    return dot != NULL ? dot + 1 : row->option.name;
}
