/* fake_row.c: sets of ids by open addressing; removed ones leave a mark. */
#include "tests/support/fake_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

#define NEVER        UINT64_MAX
#define REMOVED      (UINT64_MAX - 1)
#define PLACES_LEAST 64
#define ROUNDS_MAX   8
#define TABLE_BYTES  4096
#define SAMPLE       64
#define LATE_START   0.1

struct set {
    size_t places, used, count;
    uint64_t *ids;
};

struct fake_table {
    struct row_table row; /* first */
    struct fake *fake;
    struct set placed, apart;
};

static size_t place_of(const struct set *set, uint64_t id)
{
    size_t at = hash_u64(id) & (set->places - 1);
    while (set->ids[at] != NEVER && set->ids[at] != id) {
        at = (at + 1) & (set->places - 1);
    }
    return at;
}

static bool set_has(const struct set *set, uint64_t id)
{
    return set->places > 0 && set->ids[place_of(set, id)] == id;
}

static void set_add(struct set *set, uint64_t id);

static void set_grow(struct set *set)
{
    struct set old = *set;
    set->places = PLACES_LEAST;
    while (set->places < old.count * 4) {
        set->places *= 2;
    }
    set->used = set->count = 0;
    set->ids = memory_zalloc(set->places * sizeof *set->ids);
    memset(set->ids, 0xff, set->places * sizeof *set->ids);
    for (size_t i = 0; i < old.places; i++) {
        if (old.ids[i] < REMOVED) {
            set_add(set, old.ids[i]);
        }
    }
    free(old.ids);
}

static void set_add(struct set *set, uint64_t id)
{
    if (set->used * 2 >= set->places) {
        set_grow(set);
    }
    size_t at = place_of(set, id);
    CHECK(set->ids[at] == NEVER);
    set->ids[at] = id;
    set->used++;
    set->count++;
}

static bool set_remove(struct set *set, uint64_t id)
{
    if (!set_has(set, id)) {
        return false;
    }
    set->ids[place_of(set, id)] = REMOVED;
    set->count--;
    return true;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Its ids, sorted; the caller frees. */
static uint64_t *set_sorted(const struct set *set)
{
    uint64_t *ids = memory_zalloc((set->count + 1) * sizeof *ids);
    size_t n = 0;
    for (size_t i = 0; i < set->places; i++) {
        if (set->ids[i] < REMOVED) {
            ids[n++] = set->ids[i];
        }
    }
    CHECK(n == set->count);
    qsort(ids, n, sizeof *ids, compare);
    return ids;
}

/* -- the engine's functions -- */

static struct row_table *create(void *engine, const struct row_want *want)
{
    struct fake *fake = engine;
    const unsigned char *region = want->region;
    CHECK(want->region_bytes > 0 && region[0] == 0 && region[want->region_bytes - 1] == 0);
    if (fake->refuse_create) {
        return NULL;
    }
    struct fake_table *table = memory_zalloc(sizeof *table);
    table->fake = fake;
    table->row.capacity = want->layer_of ? want->layer_of->capacity : fake->capacity;
    table->row.window_last = ROW_ID_MAX;
    if (fake->window != 0 && !want->first && fake->window < ROW_ID_MAX - want->base) {
        table->row.window_last = want->base + fake->window - 1;
    }
    memset(want->region, 0xaa, want->region_bytes);
    fake->live++;
    return &table->row;
}

static void destroy(struct row_table *table)
{
    struct fake_table *mine = (struct fake_table *)table;
    mine->fake->live--;
    free(mine->placed.ids);
    free(mine->apart.ids);
    free(mine);
}

static void settle(void *engine, struct row_table *table)
{
    const struct fake *fake = engine;
    struct fake_table *mine = (struct fake_table *)table;
    if (fake->window != 0 && fake->window < ROW_ID_MAX - table->low) {
        table->window_last = table->low + fake->window - 1;
    }
    size_t n = mine->apart.count;
    uint64_t *ids = set_sorted(&mine->apart);
    for (size_t i = 0; i < n; i++) {
        if (row_place(table, ids[i], false)) {
            CHECK(set_remove(&mine->apart, ids[i]));
            set_add(&mine->placed, ids[i]);
        }
    }
    free(ids);
}

static bool move(void *engine, struct row_table *from, struct row_table *to, bool all)
{
    struct fake *fake = engine;
    if (all && (fake->refuse_move || fake->misfits > 0)) {
        fake->misfits -= fake->misfits > 0;
        return false;
    }
    struct fake_table *source = (struct fake_table *)from;
    struct fake_table *target = (struct fake_table *)to;
    size_t n = source->apart.count;
    uint64_t *ids = set_sorted(&source->apart);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < to->base) {
            continue;
        }
        CHECK(set_remove(&source->apart, ids[i]));
        if (fake->refuse_move) {
            row_removed(from, from, ids[i]);
        } else {
            set_add(row_place(to, ids[i], true) ? &target->placed : &target->apart, ids[i]);
        }
    }
    free(ids);
    return true;
}

static const struct row_functions FUNCTIONS = {
    .create = create, .destroy = destroy, .settle = settle, .move = move};

/* -- what tests call -- */

struct row_config fake_config(unsigned tables, bool recycle)
{
    return (struct row_config){.recycle = recycle,
                               .tables = tables,
                               .table_bytes = TABLE_BYTES,
                               .late_room = ROW_LATE_AUTO,
                               .late_start = LATE_START,
                               .sample = SAMPLE};
}

void fake_init(struct fake *fake, const struct row_config *config, uint64_t capacity)
{
    memset(fake, 0, sizeof *fake);
    fake->capacity = capacity;
    fake->apart_max = ROW_SAMPLE_MAX;
    CHECK(pthread_mutex_init(&fake->lock, NULL) == 0);
    CHECK(row_init(&fake->row, config, &FUNCTIONS, fake, &fake->keeper));
}

void fake_fini(struct fake *fake)
{
    row_fini(&fake->row);
    pthread_mutex_destroy(&fake->lock);
    CHECK(fake->live == 0);
}

static void wake(void *target, uint64_t serial)
{
    (void)serial;
    ((struct fake *)target)->woken++;
}

static bool holds(const struct row_table *table, uint64_t id)
{
    const struct fake_table *mine = (const struct fake_table *)table;
    return mine != NULL && (set_has(&mine->placed, id) || set_has(&mine->apart, id));
}

static bool is_there(struct fake *fake, const struct row_table *table, uint64_t id)
{
    pthread_mutex_lock(&fake->lock);
    bool there = holds(table, id) || holds(table->further, id);
    pthread_mutex_unlock(&fake->lock);
    return there;
}

static void put_inside(struct fake *fake, struct row_table *table, uint64_t id)
{
    struct row_table *holder = table->further ? table->further : table;
    pthread_mutex_lock(&fake->lock);
    set_add(&((struct fake_table *)holder)->placed, id);
    pthread_mutex_unlock(&fake->lock);
}

static bool put_apart(struct fake *fake, struct row_table *table, uint64_t id)
{
    struct set *apart = &((struct fake_table *)table)->apart;
    pthread_mutex_lock(&fake->lock);
    bool fits = apart->count < fake->apart_max;
    if (fits) {
        set_add(apart, id);
    }
    pthread_mutex_unlock(&fake->lock);
    return fits;
}

bool fake_try(struct fake *fake, uint64_t id, enum row_verdict *verdict)
{
    *verdict = ROW_INSIDE;
    struct row_table *table = row_find(&fake->row, id);
    if (table == NULL) {
        return false;
    }
    if (is_there(fake, table, id)) {
        return true;
    }
    *verdict = row_admit(&fake->row, table, id);
    if (*verdict == ROW_INSIDE) {
        put_inside(fake, table, id);
    } else if (*verdict == ROW_APART && !put_apart(fake, table, id)) {
        row_removed(table, table, id);
        *verdict = row_too_far(&fake->row, table);
    }
    return true;
}

enum fake_answer fake_add(struct fake *fake, uint64_t id)
{
    static const enum fake_answer answers[] = {
        [ROW_INSIDE] = FAKE_ADDED,
        [ROW_APART] = FAKE_ADDED,
        [ROW_NO_TABLE] = FAKE_NO_TABLE,
        [ROW_TOO_FAR] = FAKE_TOO_FAR,
    };
    struct engine_ticket ticket = {.wake = wake, .target = fake};
    for (int round = 0;; round++) {
        CHECK(round < ROUNDS_MAX); /* the row has it wait for ever */
        if (fake_has(fake, id)) {
            return FAKE_THERE;
        }
        enum row_verdict verdict;
        if (!fake_try(fake, id, &verdict)) {
            return FAKE_BELOW;
        }
        if (verdict != ROW_WAIT) {
            return answers[verdict];
        }
        row_wait(&fake->row, &ticket);
        uint64_t woken = fake->woken;
        fake_maintain(fake);
        CHECK(fake->woken == woken + 1);
    }
}

bool fake_has(const struct fake *fake, uint64_t id)
{
    const struct row_table *table = row_find(&fake->row, id);
    return table != NULL && (holds(table, id) || holds(table->further, id));
}

bool fake_is_apart(const struct fake *fake, uint64_t id)
{
    const struct fake_table *table = (const struct fake_table *)row_find(&fake->row, id);
    return table != NULL && set_has(&table->apart, id);
}

void fake_remove(struct fake *fake, uint64_t id)
{
    struct row_table *table = row_find(&fake->row, id);
    struct row_table *holder = holds(table, id) ? table : table->further;
    struct fake_table *mine = (struct fake_table *)holder;
    CHECK(holds(holder, id));
    CHECK(set_remove(&mine->placed, id) || set_remove(&mine->apart, id));
    row_removed(table, holder, id);
}

void fake_maintain(struct fake *fake)
{
    row_maintain(&fake->row, NULL);
    for (int round = 0; row_asked(&fake->row); round++) {
        CHECK(round < ROUNDS_MAX);
        row_maintain(&fake->row, NULL);
    }
    fake_check(fake);
}

static void check_ids(const struct row_table *table, const struct set *set)
{
    for (size_t i = 0; i < set->places; i++) {
        uint64_t id = set->ids[i];
        CHECK(id >= REMOVED || (table->base <= id && id <= table->last));
    }
}

static void check_one(const struct row_table *table)
{
    const struct fake_table *mine = (const struct fake_table *)table;
    CHECK(mine->placed.count + mine->apart.count == table->count);
    CHECK(mine->placed.count <= table->capacity);
    check_ids(table, &mine->placed);
    check_ids(table, &mine->apart);
    for (size_t i = 0; i < mine->placed.places; i++) {
        uint64_t id = mine->placed.ids[i];
        CHECK(id >= REMOVED || (id <= table->frontier && id <= table->window_last));
        CHECK(id >= REMOVED || !set_has(&mine->apart, id));
        CHECK(id >= REMOVED || !holds(table->further, id));
    }
}

/* What is in a layer is not above the frontier, though the range may be. */
static void check_reached(const struct row_table *table)
{
    const struct set *set = &((const struct fake_table *)table->further)->placed;
    CHECK(table->further->base == table->base && table->further->last == table->last);
    for (size_t i = 0; i < set->places; i++) {
        CHECK(set->ids[i] >= REMOVED || set->ids[i] <= table->frontier);
    }
}

void fake_check(const struct fake *fake)
{
    row_check(&fake->row);
    for (size_t i = 0; i < fake->row.count; i++) {
        const struct row_table *table = fake->row.tables[i];
        check_one(table);
        if (table->further != NULL) {
            check_one(table->further);
            CHECK(((const struct fake_table *)table->further)->apart.count == 0);
            check_reached(table);
        }
    }
}

size_t fake_layers(const struct fake *fake)
{
    size_t layers = 0;
    for (size_t i = 0; i < fake->row.count; i++) {
        layers += fake->row.tables[i]->further != NULL;
    }
    return layers;
}

void fake_see(void *context, const char *name, const char *text)
{
    struct fake_seen *seen = context;
    size_t room = sizeof seen->text - seen->length;
    int n = snprintf(seen->text + seen->length, room, "%s=%s\n", name, text);
    CHECK(n > 0 && (size_t)n < room);
    seen->length += (size_t)n;
}
