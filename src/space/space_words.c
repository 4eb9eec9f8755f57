/*
 * space_words.c: the refusals that name a space or its slots, made once for each configuration.
 */
#include <stdio.h>

#include "space/spaces.h"

void space_words_make(struct space *space)
{
    const char *name = space->settings.name;
    size_t slots = space->settings.slot_count;
    snprintf(space->bad_key_words, SPACES_WORDS_MAX, "bad key for space %s", name);
    snprintf(space->id_large_words, SPACES_WORDS_MAX, "id above max-id of space %s", name);
    snprintf(space->record_words, SPACES_WORDS_MAX, "record needs %zu number%s", slots,
             slots == 1 ? "" : "s");
}
