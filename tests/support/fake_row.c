/* fake_row.c: sets of ids by open addressing; removed ones leave a mark. */
#include "tests/support/fake_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "engine/row_log.h"

#define NEVER        UINT64_MAX
#define REMOVED      (UINT64_MAX - 1)
#define PLACES_LEAST 64
#define ROUNDS_MAX   8
#define TABLE_BYTES  4096
#define SAMPLE       64
#define LATE_START   0.1

struct fake_table {
    struct row_table row; /* first */
    struct fake *fake;
    uint64_t window; /* as the fake's when it was made or settled, or as described */
    bool described;
    struct fake_set placed, apart;
};

/* What a table is described as. */
struct description {
    uint64_t magic, capacity, window, region_bytes;
};
#define DESCRIPTION_MAGIC 0x66616b65u

static size_t place_of(const struct fake_set *set, uint64_t id)
{
    size_t at = hash_u64(id) & (set->places - 1);
    while (set->ids[at] != NEVER && set->ids[at] != id) {
        at = (at + 1) & (set->places - 1);
    }
    return at;
}

static bool set_has(const struct fake_set *set, uint64_t id)
{
    return set->places > 0 && set->ids[place_of(set, id)] == id;
}

static void set_add(struct fake_set *set, uint64_t id);

static void set_grow(struct fake_set *set)
{
    struct fake_set old = *set;
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

static void set_add(struct fake_set *set, uint64_t id)
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

static bool set_remove(struct fake_set *set, uint64_t id)
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
static uint64_t *set_sorted(const struct fake_set *set)
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
    table->window = fake->window;
    table->row.capacity = want->layer_of ? want->layer_of->capacity : fake->capacity;
    if (want->description != NULL) {
        struct description description;
        CHECK(want->description_bytes == sizeof description);
        memcpy(&description, want->description, sizeof description);
        CHECK(want->region_bytes == description.region_bytes);
        table->window = description.window;
        table->described = true;
        table->row.capacity = description.capacity;
    }
    table->row.window_last = ROW_ID_MAX;
    if (table->window != 0 && !want->first && table->window < ROW_ID_MAX - want->base) {
        table->row.window_last = want->base + table->window - 1;
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
    mine->window = mine->described ? mine->window : fake->window;
    if (mine->window != 0 && mine->window < ROW_ID_MAX - table->low) {
        table->window_last = table->low + mine->window - 1;
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

static size_t describe(const struct row_table *table, unsigned char *bytes)
{
    const struct fake_table *mine = (const struct fake_table *)table;
    struct description description = {DESCRIPTION_MAGIC, table->capacity, mine->window,
                                      table->region->bytes};
    memcpy(bytes, &description, sizeof description);
    return sizeof description;
}

static uint64_t described_bytes(const void *bytes, size_t length)
{
    struct description description;
    if (length != sizeof description) {
        return 0;
    }
    memcpy(&description, bytes, sizeof description);
    bool sound = description.magic == DESCRIPTION_MAGIC && description.capacity > 0;
    return sound ? description.region_bytes : 0;
}

static void each_apart(const struct row_table *table, void (*visit)(void *context, uint64_t id),
                       void *context)
{
    const struct fake_set *apart = &((const struct fake_table *)table)->apart;
    for (size_t i = 0; i < apart->places; i++) {
        if (apart->ids[i] < REMOVED) {
            visit(context, apart->ids[i]);
        }
    }
}

static const struct row_functions FUNCTIONS = {.create = create,
                                               .destroy = destroy,
                                               .settle = settle,
                                               .move = move,
                                               .describe = describe,
                                               .described_bytes = described_bytes,
                                               .each_apart = each_apart};

/* -- what tests call -- */

static const struct engine_functions ENGINE_FUNCTIONS;

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
    fake->engine.functions = &ENGINE_FUNCTIONS;
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

/* Nothing, if nothing is kept. One thread then. */
static void record(struct fake *fake, enum change_type type, enum change_place place, uint64_t id)
{
    if (fake->recorder == NULL) {
        return;
    }
    struct change change = {.type = type, .place = place, .space = fake->engine.space, .id = id};
    change.named = change.set = type == CHANGE_SLOTS;
    CHECK(fake->sink.sink.functions->reserve(&fake->sink.sink));
    fake->sink.sink.functions->put(&fake->sink.sink, &change);
}

static struct row_table *holder_of_new(struct row_table *table)
{
    return table->further ? table->further : table;
}

static void put_inside(struct fake *fake, struct row_table *table, uint64_t id)
{
    struct row_table *holder = holder_of_new(table);
    pthread_mutex_lock(&fake->lock);
    row_changed(holder);
    set_add(&((struct fake_table *)holder)->placed, id);
    record(fake, CHANGE_SLOTS, CHANGE_INSIDE, id);
    pthread_mutex_unlock(&fake->lock);
}

static bool put_apart(struct fake *fake, struct row_table *table, uint64_t id)
{
    struct fake_set *apart = &((struct fake_table *)table)->apart;
    pthread_mutex_lock(&fake->lock);
    bool fits = apart->count < fake->apart_max;
    if (fits) {
        row_changed(table);
        set_add(apart, id);
        record(fake, CHANGE_SLOTS, CHANGE_APART, id);
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
        if (fake->recorder != NULL && fake->recorder->refuse) {
            return FAKE_BUSY;
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

static void take_out(struct row_table *table, uint64_t id)
{
    struct row_table *holder = holds(table, id) ? table : table->further;
    struct fake_table *mine = (struct fake_table *)holder;
    CHECK(holds(holder, id));
    row_changed(holder);
    CHECK(set_remove(&mine->placed, id) || set_remove(&mine->apart, id));
    row_removed(table, holder, id);
}

void fake_remove(struct fake *fake, uint64_t id)
{
    take_out(row_find(&fake->row, id), id);
    record(fake, CHANGE_DELETE, CHANGE_THERE, id);
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

static void check_ids(const struct row_table *table, const struct fake_set *set)
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
    const struct fake_set *set = &((const struct fake_table *)table->further)->placed;
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

/* -- what is kept -- */

void fake_keep(struct fake *fake, struct recorder *recorder)
{
    fake->recorder = recorder;
    fake->row.log = &recorder->log;
    fake->row.space = fake->engine.space;
    recorder_sink_init(&fake->sink, recorder);
}

static void replay_created(struct fake *fake, struct row_table *table, const struct change *change)
{
    bool inside = change->place == CHANGE_INSIDE;
    struct row_table *holder = inside ? holder_of_new(table) : table;
    struct fake_table *mine = (struct fake_table *)holder;
    bool counted = !holds(table, change->id) && !holds(table->further, change->id);
    if (counted) {
        set_add(inside ? &mine->placed : &mine->apart, change->id);
    }
    row_replay_created(&fake->row, table, holder, change->id, change->place, counted);
}

static bool replay(struct engine *engine, const struct engine_replay *changes, size_t n,
                   char error[ENGINE_ERROR_MAX])
{
    struct fake *fake = (struct fake *)engine;
    (void)error;
    for (size_t i = 0; i < n; i++) {
        const struct change *change = &changes[i].change;
        struct row_table *table = row_replay_find(&fake->row, change->id, changes[i].lsn);
        if (table != NULL && change->type == CHANGE_SLOTS) {
            replay_created(fake, table, change);
        } else if (table != NULL &&
                   (holds(table, change->id) || holds(table->further, change->id))) {
            take_out(table, change->id);
        }
    }
    return true;
}

static bool replay_event(struct engine *engine, enum change_event event, uint64_t lsn, bool rows,
                         const void *bytes, size_t length, char error[ENGINE_ERROR_MAX])
{
    struct fake *fake = (struct fake *)engine;
    return !rows || row_replay_event(&fake->row, event, lsn, bytes, length, error);
}

static const struct engine_keeping KEEPING = {.replay = replay, .replay_event = replay_event};
static const struct engine_functions ENGINE_FUNCTIONS = {.kind = "fake", .keeping = &KEEPING};

bool fake_image_begin(struct fake *fake, uint64_t since, struct fake_image *image)
{
    memset(image, 0, sizeof *image);
    return row_image_next(&fake->row, since, fake->recorder->head, &image->image);
}

static void copy_part(struct fake_set *to, const struct fake_set *from, unsigned part)
{
    for (size_t i = 0; i < from->places; i++) {
        if (from->ids[i] < REMOVED && from->ids[i] % FAKE_IMAGE_PARTS == part) {
            set_add(to, from->ids[i]);
        }
    }
}

bool fake_image_copy(const struct fake *fake, struct fake_image *image, unsigned part)
{
    const struct row_table *table = row_image_table(&fake->row, &image->image);
    const struct fake_table *mine = (const struct fake_table *)table;
    if (table != NULL) {
        copy_part(&image->placed, &mine->placed, part);
        copy_part(&image->apart, &mine->apart, part);
    }
    return table != NULL;
}

void fake_image_fini(struct fake_image *image)
{
    free(image->placed.ids);
    free(image->apart.ids);
}

bool fake_load(struct fake *fake, const struct fake_image *image, char error[ROW_ERROR_MAX])
{
    const struct row_image *its = &image->image;
    struct row_table *table = row_restore_table(&fake->row, its->table, its->table_bytes,
                                                its->layer, its->start_lsn, error);
    struct fake_table *mine = (struct fake_table *)table;
    for (unsigned part = 0; table != NULL && part < FAKE_IMAGE_PARTS; part++) {
        copy_part(&mine->placed, &image->placed, part);
        copy_part(&mine->apart, &image->apart, part);
        atomic_store(&table->count, mine->placed.count + mine->apart.count);
    }
    return table != NULL;
}

void fake_see(void *context, const char *name, const char *text)
{
    struct fake_seen *seen = context;
    size_t room = sizeof seen->text - seen->length;
    int n = snprintf(seen->text + seen->length, room, "%s=%s\n", name, text);
    CHECK(n > 0 && (size_t)n < room);
    seen->length += (size_t)n;
}
