/*
 * space_words.c: the refusals that name a space or its slots, made once for each configuration, and
 * the one that names what was sent.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

#include "space/spaces.h"

/* Writes the names of the slots with commas between; where not all fit, the first ones and an
 * ellipsis. */
static void words_put_slots(const struct space_settings *settings, char *text, size_t size)
{
    static const char ellipsis[] = "...";
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < settings->slot_count; i++) {
        const char *name = settings->slots[i].name;
        size_t rest = i + 1 < settings->slot_count ? sizeof(ellipsis) : 0; /* and a comma */
        if (length + (i > 0) + strlen(name) + rest >= size) {
            snprintf(text + length, size - length, "%s%s", i > 0 ? "," : "", ellipsis);
            return;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? "," : "", name);
    }
}

/* Writes `before`, the names of the slots as far as there is room, and `behind`. */
static void name_slots(const struct space *space, const char *before, const char *behind,
                       char words[SPACES_WORDS_MAX])
{
    size_t first = strlen(before);
    size_t last = strlen(behind);
    CHECK(first + last < SPACES_WORDS_MAX);
    memcpy(words, before, first);
    words_put_slots(&space->settings, words + first, SPACES_WORDS_MAX - first - last);
    memcpy(words + strlen(words), behind, last + 1);
}

void space_words_make(struct space *space)
{
    char before[SPACES_WORDS_MAX];
    const char *name = space->settings.name;
    size_t slots = space->settings.slot_count;
    snprintf(space->bad_key_words, SPACES_WORDS_MAX, "bad key for space %s", name);
    snprintf(space->id_large_words, SPACES_WORDS_MAX, "id above max-id of space %s", name);
    snprintf(space->similar_words, SPACES_WORDS_MAX, "no space for key: did you mean %.31s?", name);
    snprintf(before, sizeof(before), "record needs %zu numbers: ", slots);
    name_slots(space, before, ", or NAME=N", space->record_words);
    if (slots == 1) {
        snprintf(space->record_words, SPACES_WORDS_MAX, "record needs 1 number");
    }
    snprintf(before, sizeof(before), "bad key for space %.32s: slots ", name);
    name_slots(space, before, "", space->slot_words);
    snprintf(before, sizeof(before), "needs %zu numbers: ", slots);
    name_slots(space, before, ", or name a slot", space->delta_words);
}

/* A name of some length, of characters that may stand in an answer. */
static bool words_show(const char *name, size_t length)
{
    bool fits = length > 0 && length <= ENGINE_SPACE_NAME_MAX;
    for (size_t i = 0; fits && i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-') {
            return false;
        }
    }
    return fits;
}

static bool words_is_slot(const struct space *space, const char *name, size_t length)
{
    for (size_t i = 0; i < space->settings.slot_count; i++) {
        const char *slot = space->settings.slots[i].name;
        if (strlen(slot) == length && memcmp(slot, name, length) == 0) {
            return true;
        }
    }
    return false;
}

bool space_words_unknown(const struct space *space, const char *text, size_t length,
                         char words[SPACES_WORDS_MAX])
{
    const char *end = text + length;
    while (text < end) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma != NULL ? comma : end;
        const char *equals = memchr(text, '=', (size_t)(stop - text));
        size_t name = equals != NULL ? (size_t)(equals - text) : 0;
        if (words_show(text, name) && !words_is_slot(space, text, name)) {
            char before[SPACES_WORDS_MAX];
            snprintf(before, sizeof(before), "no slot %.*s: ", (int)name, text);
            name_slots(space, before, "", words);
            return true;
        }
        text = stop + 1;
    }
    return false;
}
