/*
 * follow_slots.c: a follower's spaces have the slots of the other node, whatever its own file says,
 * until it is promoted: then they get those of its file, or it is refused, as what they count would
 * be lost. So it says where the two differ while there is time to change one of them.
 */
#include <stdio.h>
#include <string.h>

#include "base/barrier.h"
#include "base/log.h"
#include "data/follow_private.h"
#include "engine/slots.h"

static bool slots_are(const struct engine_slots *slots, const struct space_settings *settings)
{
    bool same = slots->count == settings->slot_count;

    for (size_t i = 0; i < settings->slot_count && same; i++) {
        same = strcmp(slots->names[i], settings->slots[i].name) == 0;
    }
    return same;
}

/* Appends as much as there is room for. */
static void slots_say(char text[DATA_ERROR_MAX], const char *before, const char *word)
{
    size_t length = strlen(text);

    snprintf(text + length, DATA_ERROR_MAX - length, "%s%s", before, word);
}

static void slots_say_space(char text[DATA_ERROR_MAX], const struct space *space)
{
    const struct engine_slots *slots = space->engine->slots;
    const struct space_settings *settings = &space->settings;

    slots_say(text, text[0] != '\0' ? "; space " : "space ", space->name);
    for (unsigned i = 0; i < slots->count; i++) {
        slots_say(text, i == 0 ? ": the other node has the slots " : ",", slots->names[i]);
    }
    for (size_t i = 0; i < settings->slot_count; i++) {
        slots_say(text, i == 0 ? ", the configuration here " : ",", settings->slots[i].name);
    }
}

/* World stopped, or nobody else there. */
static void slots_look(const struct follow *follow, char unlike[DATA_ERROR_MAX])
{
    unlike[0] = '\0';
    for (size_t i = 0; i < follow->recovery.count; i++) {
        const struct space *space = follow->recovery.spaces[i]->space;

        if (follow->recovery.spaces[i]->begun && space->engine->slots != NULL &&
            !slots_are(space->engine->slots, &space->settings)) {
            slots_say_space(unlike, space);
        }
    }
}

/* Says what is new, once. */
static void slots_tell(struct follow *follow, const char *unlike)
{
    enum follow_news news = follow_say(follow, follow->unlike, unlike);

    if (news == FOLLOW_BEGINS || news == FOLLOW_OTHERWISE) {
        log_warning("reads have the other node's slots, and a promotion would bring those of the "
                    "configuration here: make both the same: %s",
                    unlike);
    } else if (news == FOLLOW_OVER) {
        log_info("the slots are those of the configuration again");
    }
}

void follow_slots_begin(struct data *data)
{
    char unlike[DATA_ERROR_MAX];

    slots_look(data->follow, unlike);
    slots_tell(data->follow, unlike);
}

void follow_slots_see(struct data *data)
{
    struct follow *follow = data->follow;
    char unlike[DATA_ERROR_MAX];

    if (!atomic_exchange(&follow->recovery.slots_due, false)) {
        return;
    }
    barrier_stop(follow->barrier);
    slots_look(follow, unlike);
    barrier_go(follow->barrier);
    slots_tell(follow, unlike);
}

void data_follow_reloaded(struct data *data)
{
    atomic_store(&data->follow->recovery.slots_due, true);
}
