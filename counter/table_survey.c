/* table_survey.c: which values a table in memory has, step by step, while they change. */
#include "counter/table_private.h"

/* Of a step: less than half a millisecond. A record of many small slots has many values. */
#define SURVEY_GROUPS  2048u
#define SURVEY_ENTRIES 2048u

enum { SURVEY_PART_GROUPS, SURVEY_PART_EXTEND, SURVEY_PART_AUX };

struct surveying {
    const struct counter_table *table;
    const struct counter_slot *slots; /* of the view: as they are configured */
    struct engine_survey *survey;
};

/* The fewest bits a slot needs for it: of b bits it holds up to 2^b - 3. */
static unsigned bits_for(uint64_t value)
{
    return value < UINT64_MAX - 2 ? 64 - (unsigned)__builtin_clzll(value + 2) : 64;
}

static void survey_meet(const struct surveying *this, unsigned slot, uint64_t value)
{
    struct engine_slot_survey *met = &this->survey->slots[slot];
    unsigned bits = bits_for(value);
    met->largest = value > met->largest ? value : met->largest;
    if (bits > this->slots[slot].bits) {
        met->beside++;
        met->by_bits[bits]++;
    }
}

static void meet_payload(const struct surveying *this, const uint64_t *words, unsigned at_bit)
{
    const struct counter_schema *schema = &this->table->schema;
    const struct counter_view *view = &this->table->view;
    for (unsigned i = 0; i < view->slot_count; i++) {
        int physical = view->slots[i].physical;
        if (physical == SCHEMA_AUX_ONLY) {
            continue;
        }
        unsigned bits = schema->slots[physical].bits;
        uint64_t raw = bits_get(words, at_bit + schema->offset[physical], bits);
        if (raw != 0 && raw != counter_slot_in_aux(bits)) {
            survey_meet(this, i, raw - 1);
        }
    }
}

/* Surveys a group. One that is being changed is left for the next time. */
static void survey_group(const struct surveying *this, uint64_t group)
{
    const struct counter_table *t = this->table;
    const shared_word *words = group_words(t, group);
    uint64_t copy[TABLE_WIDE_BYTES / sizeof(uint64_t)];
    uint32_t word = verlock_read(group_lock(t, words));
    uint32_t choices = group_choices(t, words, word);
    uint32_t count = group_count(t, word);
    for (size_t i = 0; i < t->shape.group_bytes / sizeof(copy[0]); i++) {
        copy[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    }
    if (!verlock_unchanged(group_lock(t, words), word)) {
        return;
    }
    unsigned elsewhere = (unsigned)__builtin_popcount(choices);
    this->survey->reach[ENGINE_REACH_OTHER] += elsewhere;
    this->survey->reach[ENGINE_REACH_HOME] += count - elsewhere;
    for (uint32_t place = 0; place < count; place++) {
        meet_payload(this, copy, place * t->shape.payload_bytes * 8);
    }
}

static void survey_extend(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    const struct surveying *this = context;
    (void)id;
    (void)sub;
    this->survey->reach[ENGINE_REACH_DICT]++;
    meet_payload(this, value, 0);
}

static void survey_aux(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    const struct surveying *this = context;
    const struct counter_view *view = &this->table->view;
    (void)id;
    for (unsigned i = 0; i < view->slot_count; i++) {
        if (view->slots[i].sub == sub) {
            survey_meet(this, i, *value);
        }
    }
}

bool counter_table_survey(const struct counter_table *t, const struct counter_slot *slots,
                          struct engine_survey *survey)
{
    struct surveying this = {t, slots, survey};
    uint64_t groups = t->memory ? t->shape.groups : 0;
    uint64_t of_group = (uint64_t)t->shape.places * t->view.slot_count;
    uint64_t most = survey->at + SURVEY_GROUPS;
    bool more = false;
    if (!t->extend) {
        return false;
    }
    switch (survey->part) {
    case SURVEY_PART_GROUPS:
        most = most < groups ? most : groups;
        for (uint64_t values = 0; values < COUNTER_SURVEY_VALUES && survey->at < most;
             values += of_group) {
            survey_group(&this, survey->at++);
        }
        more = survey->at < groups;
        break;
    case SURVEY_PART_EXTEND:
        more = dict_walk(t->extend, &survey->at, SURVEY_ENTRIES, survey_extend, &this);
        break;
    default:
        more = dict_walk(t->aux, &survey->at, SURVEY_ENTRIES, survey_aux, &this);
        break;
    }
    if (!more) {
        survey->at = 0;
        survey->part++;
    }
    return survey->part <= SURVEY_PART_AUX;
}
