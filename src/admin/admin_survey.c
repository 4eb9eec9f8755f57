/* admin_survey.c: one space after the other, some steps a second. */
#include "admin/admin_survey.h"

#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/memory.h"
#include "counter/counter.h"

struct surveyed {
    char name[ENGINE_SPACE_NAME_MAX + 1]; /* "": none */
    uint64_t reach[ENGINE_REACHES];
    size_t slot_count;
    struct admin_slot slots[ENGINE_SLOTS_MAX];
};

struct admin_survey {
    struct engine_survey now;
    char name[ENGINE_SPACE_NAME_MAX + 1]; /* of the space that is looked at */
    struct surveyed shape;                /* its slots as the look began: names and bits */
    size_t next;                          /* place of the space that comes after it */
    unsigned rest_s;
    struct surveyed past[SETTINGS_SPACES_MAX];
};

struct admin_survey *admin_survey_create(void)
{
    return memory_zalloc(sizeof(struct admin_survey));
}

void admin_survey_destroy(struct admin_survey *survey)
{
    free(survey);
}

static void survey_sum_up(const struct engine_slot_survey *met, struct admin_slot *slot)
{
    slot->largest = met->largest;
    slot->beside = met->beside;
    slot->enough_bits = slot->bits;
    slot->enough_for = 0;
    for (unsigned bits = 0; bits < sizeof(met->by_bits) / sizeof(met->by_bits[0]); bits++) {
        if ((double)slot->enough_for < ADMIN_SURVEY_ENOUGH * (double)met->beside) {
            slot->enough_for += met->by_bits[bits];
            slot->enough_bits = bits;
        }
    }
}

static void survey_shape(const struct space *space, struct surveyed *shape)
{
    const struct space_settings *settings = &space->settings;

    memset(shape, 0, sizeof(*shape));
    memcpy(shape->name, space->name, sizeof(shape->name));
    shape->slot_count = settings->slot_count;
    for (size_t i = 0; i < shape->slot_count; i++) {
        memcpy(shape->slots[i].name, settings->slots[i].name, sizeof(shape->slots[i].name));
        shape->slots[i].bits = settings->slots[i].bits;
    }
}

/* Has the space the slots it had when the look began? What was met is told by their order. */
static bool survey_is_same(const struct admin_survey *survey, const struct space *space)
{
    const struct space_settings *settings = &space->settings;
    bool same = survey->shape.slot_count == settings->slot_count;

    for (size_t i = 0; same && i < settings->slot_count; i++) {
        const struct admin_slot *slot = &survey->shape.slots[i];

        same = strcmp(slot->name, settings->slots[i].name) == 0 &&
               slot->bits == settings->slots[i].bits;
    }
    return same;
}

/* The look at a space is over: it is what is told until the next one is. */
static void survey_keep(const struct admin_survey *survey, struct surveyed *past)
{
    *past = survey->shape;
    memcpy(past->reach, survey->now.reach, sizeof(past->reach));
    for (size_t i = 0; i < past->slot_count; i++) {
        survey_sum_up(&survey->now.slots[i], &past->slots[i]);
    }
}

/* Returns the place of a space, or that of a space that is gone. */
static struct surveyed *survey_place(struct admin_survey *survey, const struct spaces *spaces,
                                     const char *name)
{
    struct surveyed *found = NULL;

    for (size_t i = 0; i < SETTINGS_SPACES_MAX; i++) {
        struct surveyed *past = &survey->past[i];

        if (strcmp(past->name, name) == 0) {
            return past;
        }
        if (found == NULL && (past->name[0] == '\0' || spaces_find(spaces, past->name) == NULL)) {
            found = past;
        }
    }
    return found;
}

static void survey_begin(struct admin_survey *survey, const struct space *space)
{
    memset(&survey->now, 0, sizeof(survey->now));
    memcpy(survey->name, space->name, sizeof(survey->name));
    survey_shape(space, &survey->shape);
}

/* Inside the barrier. False: there is none with slots. */
static bool survey_begin_next(struct admin_survey *survey, const struct spaces *spaces)
{
    for (size_t i = 0; i < spaces->count; i++) {
        size_t at = (survey->next + i) % spaces->count;

        if (spaces->at[at]->settings.kind == SPACE_COUNTER) {
            survey_begin(survey, spaces->at[at]);
            survey->next = at + 1;
            return true;
        }
    }
    return false;
}

/* Inside the barrier. False: enough for now: all spaces were looked at. */
static bool survey_step(struct admin_survey *survey, const struct spaces *spaces)
{
    const struct space *space = survey->name[0] != '\0' ? spaces_find(spaces, survey->name) : NULL;

    if (space == NULL || space->settings.kind != SPACE_COUNTER) {
        return survey_begin_next(survey, spaces);
    }
    if (!survey_is_same(survey, space)) {
        survey_begin(survey, space);
    }
    if (counter_survey(space->engine, &survey->now)) {
        return true;
    }
    struct surveyed *past = survey_place(survey, spaces, survey->name);

    if (past != NULL) {
        survey_keep(survey, past);
    }
    size_t before = survey->next;

    return survey_begin_next(survey, spaces) && survey->next > before;
}

void admin_survey_go_on(struct admin_survey *survey, const struct server *server,
                        struct barrier_member *member)
{
    bool more = survey->rest_s == 0;

    survey->rest_s -= !more;
    for (unsigned i = 0; more && i < ADMIN_SURVEY_STEPS; i++) {
        barrier_enter(member);
        more = survey_step(survey, server->spaces);
        barrier_leave(member);
        survey->rest_s = more ? 0 : ADMIN_SURVEY_REST_S;
    }
}

void admin_survey_tell(const struct admin_survey *survey, struct admin_figures *figures)
{
    for (size_t i = 0; i < figures->space_count; i++) {
        struct admin_space *space = &figures->spaces[i];

        for (size_t k = 0; k < SETTINGS_SPACES_MAX; k++) {
            const struct surveyed *past = &survey->past[k];

            if (strcmp(past->name, space->name) == 0) {
                memcpy(space->reach, past->reach, sizeof(space->reach));
                memcpy(space->slot_list, past->slots, sizeof(space->slot_list));
                space->slot_count = past->slot_count;
            }
        }
    }
}
