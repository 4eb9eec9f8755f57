/* history.c: what was put, and what it makes. */
#include "tests/sim/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "engine/change_record.h"
#include "row/row_log.h"

#define KEYS_FIRST    1024u /* rooms double: a power of two */
#define RECORDS_FIRST 1024u

struct history_record {
    uint64_t lsn;
    uint8_t space;
    uint8_t event; /* enum change_event; 0: a change */
    uint32_t member;
    uint64_t base, last; /* of an event */
    struct change change;
};

/* ---- names of members ---- */

static struct history_name *name_of(const struct history *history, uint8_t space, uint64_t id,
                                    uint64_t hash)
{
    size_t mask = history->name_room - 1;
    size_t at = hash_u64(id ^ hash_u64(hash + space)) & mask;
    struct history_name *name = &history->name[at];
    while (name->member != HISTORY_NO_MEMBER &&
           (name->id != id || name->hash != hash || name->space != space)) {
        at = (at + 1) & mask;
        name = &history->name[at];
    }
    return name;
}

static void grow_names(struct history *history)
{
    struct history_name *old = history->name;
    size_t room = history->name_room;
    history->name_room = room > 0 ? 2 * room : KEYS_FIRST;
    history->name = memory_zalloc(history->name_room * sizeof(*history->name));
    for (size_t i = 0; i < history->name_room; i++) {
        history->name[i].member = HISTORY_NO_MEMBER;
    }
    for (size_t i = 0; i < room; i++) {
        if (old[i].member != HISTORY_NO_MEMBER) {
            *name_of(history, old[i].space, old[i].id, old[i].hash) = old[i];
        }
    }
    free(old);
}

/* The member is known by this hash from now on. */
static void name_member(struct history *history, const struct history_key *key)
{
    if (2 * history->names >= history->name_room) {
        grow_names(history);
    }
    struct history_name *name = name_of(history, key->space, key->id, key->hash);
    history->names += name->member == HISTORY_NO_MEMBER;
    *name = (struct history_name){key->id, key->hash, key->member, key->space};
}

void history_init(struct history *history)
{
    memset(history, 0, sizeof(*history));
    history->key_room = KEYS_FIRST;
    history->key = memory_zalloc(history->key_room * sizeof(*history->key));
    grow_names(history);
}

void history_fini(struct history *history)
{
    free(history->records);
    free(history->key);
    free(history->name);
}

/* ---- keys ---- */

static struct history_key *place_of(const struct history *history, uint8_t space, uint64_t id,
                                    uint32_t member)
{
    size_t mask = history->key_room - 1;
    size_t at = hash_u64(id ^ hash_u64(((uint64_t)space << 32) + member)) & mask;
    struct history_key *key = &history->key[at];
    while (key->state != HISTORY_UNUSED &&
           (key->id != id || key->member != member || key->space != space)) {
        at = (at + 1) & mask;
        key = &history->key[at];
    }
    return key;
}

static void grow(struct history *history)
{
    struct history_key *old = history->key;
    size_t room = history->key_room;
    history->key_room = 2 * room;
    history->key = memory_zalloc(history->key_room * sizeof(*history->key));
    for (size_t i = 0; i < room; i++) {
        if (old[i].state != HISTORY_UNUSED) {
            *place_of(history, old[i].space, old[i].id, old[i].member) = old[i];
        }
    }
    free(old);
}

static struct history_key *key_of(struct history *history, const struct history_record *record)
{
    if (2 * history->keys >= history->key_room) {
        grow(history);
    }
    struct history_key *key = place_of(history, record->space, record->change.id, record->member);
    if (key->state == HISTORY_UNUSED) {
        history->keys++;
        *key = (struct history_key){.id = record->change.id,
                                    .member = record->member,
                                    .space = record->space,
                                    .state = HISTORY_ABSENT};
    }
    return key;
}

/* ---- what a change does ---- */

static void take_slots(struct history_key *key, const struct change *change)
{
    bool placed = key->apart && change->place == CHANGE_INSIDE;
    bool there = change->place == CHANGE_THERE || change->place == CHANGE_THERE_APART || placed;
    CHECK((key->state == HISTORY_THERE) == there); /* what is created is not there yet */
    CHECK(!placed || change->set == key->set);
    CHECK(change->place != CHANGE_THERE || !key->apart);
    CHECK(change->place != CHANGE_THERE_APART || key->apart);
    key->set = there ? key->set : 0;
    key->apart = change->place == CHANGE_APART || change->place == CHANGE_THERE_APART;
    key->state = HISTORY_THERE;
    key->set = (key->set & ~change->named) | (change->set & change->named);
    for (unsigned i = 0; i < HISTORY_SLOTS_MAX; i++) {
        if (change->named & change->set & 1u << i) {
            key->values[i] = change->values[i];
        }
    }
}

/* What it does to the count of members; apart: it was, and goes in place if it is added so. */
static int8_t members_of(const struct change *change, bool apart)
{
    if (change->type == CHANGE_MEMBER_ADD) {
        return !(apart && change->place == CHANGE_INSIDE);
    }
    return change->place == CHANGE_BOTH ? -2 : -1;
}

static void take_change(struct history *history, const struct history_record *record)
{
    struct history_key *key = key_of(history, record);

    if (key->member != HISTORY_NO_MEMBER) {
        key->members = (int8_t)(key->members + members_of(&record->change, key->apart));
    }
    switch (record->change.type) {
    case CHANGE_SLOTS:
        take_slots(key, &record->change);
        return;
    case CHANGE_DELETE:
        CHECK(key->apart == (record->change.place == CHANGE_APART));
        key->apart = false;
        key->state = HISTORY_ABSENT;
        return;
    case CHANGE_MEMBER_ADD:
        key->hash = record->change.member[0];
        name_member(history, key);
        key->apart = record->change.place == CHANGE_APART;
        key->state = HISTORY_THERE;
        return;
    case CHANGE_MEMBER_DELETE:
        key->apart = false;
        /* without an exception the filter may say yes by chance one day */
        key->state = record->change.place == CHANGE_APART ? HISTORY_UNKNOWN : HISTORY_ABSENT;
        return;
    }
}

/* ---- what an event does ---- */

/* But for what is apart above `kept`. */
static uint64_t take_away(struct history *history, uint8_t space, uint64_t from, uint64_t last,
                          uint64_t kept)
{
    uint64_t taken = 0;
    for (size_t i = 0; i < history->key_room; i++) {
        struct history_key *key = &history->key[i];
        if (key->state == HISTORY_UNUSED || key->space != space || key->id < from ||
            key->id > last || (key->apart && key->id > kept)) {
            continue;
        }
        taken += key->state == HISTORY_THERE;
        key->members = 0;
        key->apart = false;
        key->state = key->member == HISTORY_NO_MEMBER ? HISTORY_ABSENT : HISTORY_UNKNOWN;
    }
    history->dropped += taken;
    return taken;
}

/* Where the base is, or belongs. */
static size_t index_of(const struct history_bases *tables, uint64_t base)
{
    size_t i = 0;
    while (i < tables->count && tables->base[i] < base) {
        i++;
    }
    return i;
}

static void take_open(struct history *history, const struct history_record *record)
{
    struct history_bases *tables = &history->tables[record->space];
    uint64_t base = record->base;
    size_t i = index_of(tables, base);
    if (i < tables->count && tables->base[i] == base) {
        return; /* in place of an empty one */
    }
    CHECK(tables->count < HISTORY_BASES_MAX);
    memmove(&tables->base[i + 1], &tables->base[i], (tables->count - i) * sizeof(uint64_t));
    tables->base[i] = base;
    tables->count++;
}

static void take_drop(struct history *history, uint8_t space, uint64_t base, uint64_t frontier)
{
    struct history_bases *tables = &history->tables[space];
    size_t i = index_of(tables, base);
    CHECK(i < tables->count && tables->base[i] == base);
    (void)take_away(history, space, base,
                    i + 1 < tables->count ? tables->base[i + 1] - 1 : UINT64_MAX,
                    i > 0 ? frontier : UINT64_MAX);
    tables->count--;
    memmove(&tables->base[i], &tables->base[i + 1], (tables->count - i) * sizeof(uint64_t));
}

static void take(struct history *history, const struct history_record *record)
{
    struct history_bases *tables = &history->tables[record->space];
    switch (record->event) {
    case 0:
        take_change(history, record);
        return;
    case CHANGE_EVENT_FIRST:
        (void)take_away(history, record->space, 0, UINT64_MAX, UINT64_MAX);
        *tables = (struct history_bases){.count = 1, .base = {record->base}};
        return;
    case CHANGE_EVENT_OPEN:
        take_open(history, record);
        return;
    case CHANGE_EVENT_DROP:
        take_drop(history, record->space, record->base, record->last);
        return;
    default:
        return;
    }
}

/* ---- records ---- */

static void add(struct history *history, const struct history_record *record)
{
    if (history->count == history->room) {
        history->room = history->room > 0 ? 2 * history->room : RECORDS_FIRST;
        history->records = realloc(history->records, history->room * sizeof(*history->records));
        CHECK(history->records != NULL);
    }
    CHECK(history->count == 0 || history->records[history->count - 1].lsn < record->lsn);
    CHECK(record->space < HISTORY_SPACES_MAX);
    history->records[history->count++] = *record;
    take(history, record);
}

void history_change(struct history *history, uint64_t lsn, const struct change *change,
                    uint32_t member)
{
    struct history_record record = {
        .lsn = lsn, .space = (uint8_t)change->space, .member = member, .change = *change};
    add(history, &record);
}

uint32_t history_member(const struct history *history, const struct change *change)
{
    if (change->type == CHANGE_SLOTS) {
        return HISTORY_NO_MEMBER;
    }
    const struct history_name *name =
        name_of(history, (uint8_t)change->space, change->id, change->member[0]);
    if (name->member != HISTORY_NO_MEMBER) {
        const struct history_key *key = place_of(history, name->space, name->id, name->member);
        if (key->state == HISTORY_THERE && key->hash == name->hash) {
            return name->member;
        }
    }
    fprintf(stderr, "a member of id %" PRIu64 " that was never added goes in place\n", change->id);
    abort();
}

static void keep_base(void *context, const char *name, uint64_t value)
{
    if (strcmp(name, "base") == 0) {
        *(uint64_t *)context = value;
    }
}

static uint64_t base_of(enum change_event event, const void *bytes, size_t length, uint64_t *last)
{
    uint64_t base = 0;
    size_t description;
    *last = 0;
    if (event == CHANGE_EVENT_DROP || event == CHANGE_EVENT_WHOLE) {
        struct row_dropped dropped;
        uint64_t serial;
        CHECK(row_drop_read(bytes, length, &serial, &base, &dropped));
        for (uint64_t i = 0; i < dropped.count; i++) {
            bool own = dropped.at[i].first <= base && base <= dropped.at[i].last;
            *last = own ? dropped.at[i].last : *last;
        }
    } else if (event != CHANGE_EVENT_SPACE) {
        CHECK(row_state_read(bytes, length, keep_base, &base, &description));
    }
    return base;
}

struct history_event history_event_of(uint32_t space, enum change_event event, const void *bytes,
                                      size_t length)
{
    struct history_event taken = {.space = space, .event = event};
    taken.base = base_of(event, bytes, length, &taken.last);
    return taken;
}

void history_event(struct history *history, uint64_t lsn, const struct history_event *event)
{
    struct history_record record = {.lsn = lsn,
                                    .space = (uint8_t)event->space,
                                    .event = (uint8_t)event->event,
                                    .base = event->base,
                                    .last = event->last};
    add(history, &record);
}

/* The first record at or above lsn. */
static size_t find(const struct history *history, uint64_t lsn)
{
    size_t low = 0;
    size_t high = history->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (history->records[middle].lsn < lsn) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t history_above(const struct history *history, uint64_t lsn)
{
    return history->count - find(history, lsn);
}

void history_follow(struct history *history, const struct history *from, uint64_t lsn)
{
    size_t at = history->count > 0 ? find(from, history->records[history->count - 1].lsn + 1) : 0;

    for (; at < from->count && from->records[at].lsn < lsn; at++) {
        add(history, &from->records[at]);
    }
}

void history_cut(struct history *history, uint64_t lsn)
{
    size_t left = find(history, lsn);
    if (left == history->count) {
        return;
    }
    history->count = left;
    history->keys = 0;
    history->dropped = 0;
    memset(history->key, 0, history->key_room * sizeof(*history->key));
    memset(history->tables, 0, sizeof(history->tables));
    for (size_t i = 0; i < left; i++) {
        take(history, &history->records[i]);
    }
}

static bool same_change(const struct change *a, const struct change *b)
{
    struct change_record one, other;
    change_record_encode(a, &one);
    change_record_encode(b, &other);
    return one.type == other.type && one.a == other.a && one.b == other.b &&
           one.bytes == other.bytes && memcmp(one.words, other.words, one.bytes) == 0;
}

/* Is it what is known at its LSN? */
static bool is_known(const struct history_record *known, const struct journal_record *record)
{
    struct change change;
    struct change_record_event event;
    enum change_record_kind kind = change_record_decode(
        record->type, record->a, record->b, record->payload, record->bytes, &change, &event);

    if (kind == CHANGE_RECORD_IS_CHANGE) {
        return known->event == 0 && same_change(&known->change, &change);
    }
    return kind == CHANGE_RECORD_IS_EVENT && known->event == event.event &&
           known->space == event.space &&
           known->base == base_of(event.event, event.bytes, event.length, &(uint64_t){0});
}

bool history_learn(struct history *history, const struct history *from,
                   const struct journal_record *record)
{
    size_t at = find(from, record->lsn);
    bool behind = history->count == 0 || history->records[history->count - 1].lsn < record->lsn;

    if (!behind || at == from->count || from->records[at].lsn != record->lsn ||
        !is_known(&from->records[at], record)) {
        return false;
    }
    add(history, &from->records[at]);
    return true;
}

bool history_meet(struct history *history, const struct journal_record *record)
{
    struct change change;
    struct change_record_event event;
    enum change_record_kind kind = change_record_decode(
        record->type, record->a, record->b, record->payload, record->bytes, &change, &event);
    size_t at = find(history, record->lsn);
    const struct history_record *known = at < history->count ? &history->records[at] : NULL;
    if (kind == CHANGE_RECORD_IS_BAD) {
        return false;
    }
    if (known != NULL && known->lsn == record->lsn) {
        return is_known(known, record);
    }
    if (kind == CHANGE_RECORD_IS_CHANGE || known != NULL) {
        return false;
    }
    struct history_event put =
        history_event_of(event.space, event.event, event.bytes, event.length);

    history_event(history, record->lsn, &put);
    return true;
}
