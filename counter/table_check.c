/*
 * table_check.c: walks a table and CHECKs the invariants of table.h.
 */
#include "counter/table_private.h"

struct check {
    const struct counter_table *table;
    uint64_t records;
    uint64_t aux_named; /* aux entries that payloads speak of */
    uint64_t aux_extra; /* those of names the table learned */
};

/* Returns whether there is a record of the id. */
static bool stands_in(const struct counter_table *t, uint64_t id)
{
    struct counter_locus locus;
    counter_table_locate(t, id, false, &locus);
    return dict_get(t->extend, id, 0, NULL) ||
           (locus.group != TABLE_OUTSIDE && table_in_groups(t, &locus));
}

/* T6, T7, T9 of one record. */
static void check_payload(struct check *check, uint64_t id, const uint64_t *payload)
{
    const struct counter_table *t = check->table;
    bool any = false;
    for (unsigned i = 0; i < t->schema.slot_count; i++) {
        unsigned bits = t->schema.slots[i].bits;
        uint64_t raw = bits_get(payload, t->schema.offset[i], bits);
        any = any || raw != 0;
        if (raw == counter_slot_in_aux(bits)) {
            CHECK(dict_get(t->aux, id, (uint8_t)i, NULL));
            check->aux_named++;
        }
    }
    for (unsigned i = 0; i < t->schema.extra_count; i++) {
        bool there = dict_get(t->aux, id, (uint8_t)(ENGINE_SLOTS_MAX + i), NULL);
        check->aux_extra += there;
        any = any || there;
    }
    CHECK(any); /* T7 */
    uint64_t route = table_route_of(t, id);
    CHECK(route >= t->root->row.base && route <= t->root->row.last);    /* T9 */
    CHECK(t->root == t || !t->root->memory || !stands_in(t->root, id)); /* T9 */
    check->records++;
}

static void check_place(struct check *check, uint64_t group, uint32_t place, uint32_t word)
{
    const struct counter_table *t = check->table;
    const shared_word *words = group_words(t, group);
    uint64_t id = table_place_id(t, group, place, word);
    table_shadow_check(t, group, place, id);
    struct counter_locus locus;
    counter_table_locate(t, id, false, &locus);
    uint64_t rem = group_rem(t, words, place);
    bool alternate = group_choices(t, words, word) >> place & 1;
    uint64_t hash = rem_hash(t, rem);
    CHECK(locus.rem == rem);
    CHECK(locus.group == (alternate ? group_other(t, group, hash) : group)); /* T3 */
    if (alternate) {
        uint32_t home = verlock_read(group_lock(t, group_words(t, locus.group)));
        CHECK(home & rem_mark(hash));
    }
    CHECK(table_match(t, words, word, rem, alternate) == (int)place); /* T4, in this group */
    uint64_t other_group = group_other(t, group, hash);
    const shared_word *other = group_words(t, other_group);
    CHECK(table_match(t, other, verlock_read(group_lock(t, other)), rem, !alternate) < 0);
    CHECK(!dict_get(t->extend, id, 0, NULL));
    uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
    words_copy_out(words, (size_t)place * t->shape.payload_bytes, t->shape.payload_bytes, payload);
    check_payload(check, id, payload);
}

static void check_group(struct check *check, uint64_t group)
{
    const struct counter_table *t = check->table;
    const shared_word *words = group_words(t, group);
    uint32_t word = __atomic_load_n(group_lock(t, words), __ATOMIC_ACQUIRE);
    uint32_t count = group_count(t, word);
    CHECK(!(word & VERLOCK_LOCKED));                              /* T1 */
    CHECK(count <= t->shape.places);                              /* T2 */
    CHECK((uint64_t)group_choices(t, words, word) >> count == 0); /* T2 */
    for (uint32_t place = 0; place < count; place++) {
        check_place(check, group, place, word);
    }
}

static void check_extend(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct check *check = context;
    const struct counter_table *t = check->table;
    CHECK(sub == 0);
    struct counter_locus locus;
    counter_table_locate(t, id, false, &locus);
    if (locus.group != TABLE_OUTSIDE) {
        uint32_t home = verlock_read(group_lock(t, group_words(t, locus.group)));
        CHECK(home & GROUP_SPILLED); /* T5 */
    }
    uint64_t payload[SCHEMA_PAYLOAD_WORDS] = {0};
    for (unsigned i = 0; i < (t->shape.payload_bytes + 7) / 8; i++) {
        payload[i] = value[i];
    }
    check_payload(check, id, payload);
}

/* ---- a dumped table, or a tapped one ---- */

struct check_overlay {
    const struct counter_table *table;
    const struct table_overlay *overlay;
    uint64_t values;
};

static void check_entry(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct check_overlay *check = context;
    const struct counter_table *t = check->table;
    const struct dict *aux = check->overlay->aux;
    struct table_record record = {0};
    uint64_t route = table_route_of(t, id);
    (void)value;
    CHECK(sub == 0 && route >= t->root->row.base && route <= t->root->row.last);
    CHECK(dict_get(check->overlay->extend, id, 0, record.payload));
    uint64_t marked = table_subs_marked(&t->schema, record.payload, table_subs_all(&t->schema));
    table_record_read_aux(&record, aux, id, table_subs_all(&t->schema));
    CHECK((record.subs & ~marked) == 0);
    CHECK((marked & ~record.subs & ~table_subs_extra(&t->schema)) == 0);
    check->values += (uint64_t)__builtin_popcountll(record.subs);
}

/* T10 */
static void check_overlay(const struct counter_table *t, const struct table_overlay *overlay)
{
    struct check_overlay check = {t, overlay, 0};
    if (overlay) {
        dict_check(overlay->extend);
        dict_check(overlay->aux);
        dict_each(overlay->extend, check_entry, &check);
        CHECK(check.values == dict_count(overlay->aux));
    }
}

void counter_table_check(const struct counter_table *t)
{
    CHECK(t->magic == TABLE_MAGIC);
    struct check check = {.table = t};
    for (unsigned i = 0; i < TABLE_STRIPES; i++) {
        CHECK(!(__atomic_load_n(&t->stripes[i].lock, __ATOMIC_ACQUIRE) & VERLOCK_LOCKED)); /* T1 */
    }
    check_overlay(t, t->overlay);
    check_overlay(t, t->older);
    if (!t->extend) {
        CHECK(t->overlay && t->file && !t->extend && !t->aux);
        return;
    }
    for (uint64_t group = 0; t->memory && group < t->shape.groups; group++) {
        check_group(&check, group);
    }
    dict_check(t->extend);
    dict_check(t->aux);
    dict_each(t->extend, check_extend, &check);
    CHECK(check.records == atomic_load(&t->row.count));             /* T8 */
    CHECK(check.aux_named + check.aux_extra == dict_count(t->aux)); /* T6 */
}
