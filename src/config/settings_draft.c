/* settings_draft.c: puts values into a draft. */
#include "config/settings_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

struct settings_draft *settings_draft_create(void)
{
    struct settings_draft *draft = memory_zalloc(sizeof(*draft));

    draft->settings = memory_zalloc(sizeof(*draft->settings));
    settings_rows_initial(&settings_top_rows, draft->settings);
    draft->settings->listen[0] = memory_strdup("127.0.0.1");
    draft->settings->listen_count = 1;
    return draft;
}

void settings_draft_destroy(struct settings_draft *draft)
{
    if (draft == NULL) {
        return;
    }
    settings_destroy(draft->settings);
    settings_errors_clear(draft);
    free(draft->file_text);
    free(draft->port);
    free(draft);
}

struct settings *settings_draft_take(struct settings_draft *draft)
{
    struct settings *settings = draft->settings;

    draft->settings = NULL;
    return settings;
}

void settings_draft_put(struct settings_draft *draft, int row, int space, const char *text,
                        const struct settings_place *place)
{
    const struct settings_rows *rows = space < 0 ? &settings_top_rows : &settings_space_rows;
    struct settings_place *noted = space < 0 ? &draft->top[row] : &draft->spaces[space][row];
    void *object = space < 0 ? (void *)draft->settings : (void *)&draft->settings->spaces[space];
    struct option_value value = {0};
    char error[OPTIONS_ERROR_MAX];

    CHECK(row >= 0 && (size_t)row < rows->count);
    *noted = *place;
    noted->given = true;
    noted->bad = !options_parse(&rows->rows[row].option, text, &value, error);
    if (noted->bad) {
        settings_error(draft, place, "%s", error);
    } else {
        options_store(&rows->rows[row].option, object, &value);
    }
}

struct settings_place *settings_draft_place(struct settings_draft *draft, const char *name)
{
    int row = settings_rows_find(&settings_top_rows, name);

    CHECK(row >= 0);
    return &draft->top[row];
}

struct settings_place *settings_draft_space_place(struct settings_draft *draft, size_t space,
                                                  const char *name)
{
    int row = settings_rows_find(&settings_space_rows, name);

    CHECK(row >= 0 && space < draft->settings->space_count);
    return &draft->spaces[space][row];
}

/* Returns whether a space or slot may have the name. Adds a mistake about `what` ("space", "slot")
 * if not. */
static bool settings_draft_name(struct settings_draft *draft, const char *what, const char *name,
                                const struct settings_place *place)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t length = strlen(name);
    char quoted[OPTIONS_QUOTE_MAX];

    if (length >= 1 && length <= ENGINE_SPACE_NAME_MAX && strspn(name, letters) == length) {
        return true;
    }
    settings_error(draft, place, "%s name %s must be 1 to %d of the letters a-z 0-9 _ -", what,
                   options_quote(name, quoted), ENGINE_SPACE_NAME_MAX);
    return false;
}

/* There is room for it. Returns its number. */
static int draft_add_space(struct settings_draft *draft, const char *name,
                           const struct settings_place *place)
{
    struct settings *settings = draft->settings;
    struct space_settings *space = &settings->spaces[settings->space_count];
    draft->space_names[settings->space_count] = *place;
    settings_rows_initial(&settings_space_rows, space);
    strcpy(space->name, name);
    space->binary_create = true;
    return (int)settings->space_count++;
}

int settings_draft_space(struct settings_draft *draft, const char *name,
                         const struct settings_place *place)
{
    struct settings *settings = draft->settings;
    for (size_t i = 0; i < settings->space_count; i++) {
        if (strcmp(settings->spaces[i].name, name) == 0) {
            return (int)i;
        }
    }
    if (!settings_draft_name(draft, "space", name, place)) {
        return -1;
    }
    if (settings->space_count == SETTINGS_SPACES_MAX) {
        if (!draft->spaces_full) {
            settings_error(draft, place, "too many spaces: at most %d", SETTINGS_SPACES_MAX);
        }
        draft->spaces_full = true;
        return -1;
    }
    return draft_add_space(draft, name, place);
}

int settings_draft_nameless(struct settings_draft *draft, const struct settings_place *place)
{
    char name[ENGINE_SPACE_NAME_MAX + 1];
    snprintf(name, sizeof(name), "in-line-%zu", place->line);
    bool full = draft->settings->space_count == SETTINGS_SPACES_MAX;
    return full ? -1 : draft_add_space(draft, name, place);
}

void settings_draft_listen_clear(struct settings_draft *draft)
{
    for (size_t i = 0; i < draft->settings->listen_count; i++) {
        free(draft->settings->listen[i]);
    }
    draft->settings->listen_count = 0;
}

void settings_draft_listen(struct settings_draft *draft, const char *address, size_t length,
                           const struct settings_place *place)
{
    struct settings *settings = draft->settings;

    if (settings->listen_count == SETTINGS_LISTEN_MAX) {
        settings_error(draft, place, "too many addresses: at most %d", SETTINGS_LISTEN_MAX);
        return;
    }
    draft->listen[settings->listen_count] = *place;
    settings->listen[settings->listen_count++] = memory_strndup(address, length);
}

void settings_draft_addresses(struct settings_draft *draft, const char *text,
                              const struct settings_place *place)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        size_t blanks = strspn(text, " ");
        settings_draft_listen(draft, text + blanks, blanks < length ? length - blanks : 0, place);
        if (text[length] == '\0') {
            return;
        }
        text += length + 1;
    }
}

void settings_draft_slot(struct settings_draft *draft, int space_number, const char *name,
                         const char *bits, const struct settings_place *name_place,
                         const struct settings_place *bits_place)
{
    struct space_settings *space = &draft->settings->spaces[space_number];
    struct option_row row = {.name = name,
                             .type = OPTION_NUMBER,
                             .min = SETTINGS_SLOT_BITS_MIN,
                             .max = SETTINGS_SLOT_BITS_MAX};
    struct option_value value = {0};
    char text[OPTIONS_TEXT_MAX], error[OPTIONS_ERROR_MAX];
    size_t at = 0;

    if (!settings_draft_name(draft, "slot", name, name_place)) {
        return;
    }
    snprintf(text, sizeof(text), "bits of slot %s", name);
    row.name = text;
    if (!options_parse(&row, bits, &value, error)) {
        settings_error(draft, bits_place, "%s", error);
    }
    settings_draft_space_place(draft, (size_t)space_number, "slots")->given = true;
    while (at < space->slot_count && strcmp(space->slots[at].name, name) != 0) {
        at++;
    }
    if (at == ENGINE_SLOTS_MAX) {
        settings_error(draft, name_place, "too many slots: at most %d", ENGINE_SLOTS_MAX);
        return;
    }
    if (at == space->slot_count) {
        space->slot_count++;
    }
    strcpy(space->slots[at].name, name);
    space->slots[at].bits = (unsigned)value.number;
}

void settings_draft_forget(struct settings_draft *draft, int space_number, const char *name,
                           const struct settings_place *place)
{
    struct space_settings *space = &draft->settings->spaces[space_number];

    if (!settings_draft_name(draft, "slot", name, place)) {
        return;
    }
    if (space->forget_count == SETTINGS_FORGET_MAX) {
        settings_error(draft, place, "too much to forget: at most %d names", SETTINGS_FORGET_MAX);
        return;
    }
    strcpy(space->forget[space->forget_count++], name);
}
