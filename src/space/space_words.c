/*
 * space_words.c: the refusals that name a space or its slots, made once for each configuration.
 */
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
