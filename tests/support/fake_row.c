/* fake_row.c: the toy engine's tables, and what it does with ids. */
#include "tests/support/fake_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dict.h"
#include "base/memory.h"
#include "row/row_data.h"
#include "row/row_log.h"
#include "tests/support/fake_row_private.h"

#define ROUNDS_MAX  8
#define TABLE_BYTES 4096
#define SAMPLE      64
#define SHOWN_BYTES (64u << 10) /* of a dict that takes what is apart; it grows */
#define LATE_START  0.1

/* What a table is described as. */
struct description {
    uint64_t magic, capacity, window, region_bytes;
};
#define DESCRIPTION_MAGIC 0x66616b65u

/* -- the engine's functions -- */

static struct row_table *create(struct engine *engine, const struct row_want *want)
{
    struct fake *fake = (struct fake *)engine;
    const unsigned char *region = want->region;
    CHECK(want->region_bytes > 0);
    CHECK(region != NULL || want->description != NULL || want->apart);
    CHECK(region == NULL || (region[0] == 0 && region[want->region_bytes - 1] == 0));
    if (fake->refuse_create) {
        return NULL;
    }
    struct fake_table *table = memory_zalloc(sizeof(*table));
    table->fake = fake;
    table->window = fake->window;
    table->region_bytes = want->region_bytes;
    table->row.capacity = want->layer_of ? want->layer_of->capacity : fake->capacity;
    if (want->description != NULL) {
        struct description description;
        CHECK(want->description_bytes == sizeof(description));
        memcpy(&description, want->description, sizeof(description));
        CHECK(want->region_bytes == description.region_bytes);
        table->window = description.window;
        table->described = true;
        table->row.capacity = description.capacity;
    }
    table->row.window_last = ROW_ID_MAX;
    table->row.is_apart = want->apart;
    table->row.apart_first = UINT64_MAX;
    if (table->window != 0 && !want->first && table->window < ROW_ID_MAX - want->base) {
        table->row.window_last = want->base + table->window - 1;
    }
    if (want->region != NULL) {
        memset(want->region, 0xaa, want->region_bytes);
    }
    fake->live++;
    return &table->row;
}

static void destroy(struct row_table *table)
{
    struct fake_table *mine = (struct fake_table *)table;
    mine->fake->live--;
    fake_set_fini(&mine->placed);
    fake_set_fini(&mine->file);
    fake_set_fini(&mine->added);
    fake_set_fini(&mine->removed);
    free(mine);
}

static void settle(struct engine *engine, struct row_table *table)
{
    const struct fake *fake = (const struct fake *)engine;
    struct fake_table *mine = (struct fake_table *)table;
    mine->window = mine->described ? mine->window : fake->window;
    if (mine->window != 0 && mine->window < ROW_ID_MAX - table->low) {
        table->window_last = table->low + mine->window - 1;
    }
}

static bool is_held(const struct fake_table *mine, uint64_t id)
{
    if (!mine->row.cold) {
        return fake_set_has(&mine->placed, id);
    }
    return fake_set_has(&mine->added, id) ||
           (fake_set_has(&mine->file, id) && !fake_set_has(&mine->removed, id));
}

/* False: it stays apart. */
static bool place_one(struct fake *fake, struct row_table *apart, struct row_table *to, uint64_t id,
                      struct change_sink *sink)
{
    struct change change = {.type = CHANGE_SLOTS,
                            .space = fake->engine.space,
                            .place = CHANGE_INSIDE,
                            .id = id,
                            .named = 1,
                            .set = 1};
    if (!row_place(&fake->row, to, id)) {
        return false;
    }
    if (!to->is_apart) {
        CHECK(fake_set_remove(&((struct fake_table *)apart)->placed, id));
        row_removed(apart, apart, id);
        row_changed(fake_holder_of_new(to));
        row_changed(apart);
        sink->functions->put(sink, &change);
    }
    fake_put(fake_holder_of_new(to), id);
    return true;
}

static bool place(struct engine *engine, struct row_table *apart, struct row_table *to,
                  struct change_sink *sink)
{
    struct fake *fake = (struct fake *)engine;
    const struct fake_set *set = &((struct fake_table *)apart)->placed;
    CHECK(!to->cold && apart->is_apart);
    size_t n = set->count;
    uint64_t *ids = fake_set_sorted(set);
    bool placed = !fake->refuse_place;
    for (size_t i = 0; placed && i < n; i++) {
        bool wanted = to->base <= ids[i] && ids[i] <= to->last;
        placed = !wanted || place_one(fake, apart, to, ids[i], sink);
    }
    free(ids);
    return placed;
}

static uint64_t forget(struct row_table *apart, uint64_t first, uint64_t last)
{
    struct fake_set *set = &((struct fake_table *)apart)->placed;
    size_t n = set->count;
    uint64_t forgotten = 0;
    uint64_t *ids = fake_set_sorted(set);
    for (size_t i = 0; i < n; i++) {
        if (first <= ids[i] && ids[i] <= last) {
            CHECK(fake_set_remove(set, ids[i]));
            forgotten++;
        }
    }
    free(ids);
    return forgotten;
}

static size_t describe(const struct row_table *table, unsigned char *bytes, unsigned *doubles)
{
    (void)doubles;
    const struct fake_table *mine = (const struct fake_table *)table;
    struct description description = {DESCRIPTION_MAGIC, table->capacity, mine->window,
                                      mine->region_bytes};
    memcpy(bytes, &description, sizeof(description));
    return sizeof(description);
}

static uint64_t described_bytes(const void *bytes, size_t length)
{
    struct description description;
    if (length != sizeof(description)) {
        return 0;
    }
    memcpy(&description, bytes, sizeof(description));
    bool sound = description.magic == DESCRIPTION_MAGIC && description.capacity > 0;
    return sound ? description.region_bytes : 0;
}

/* What is apart, in a dict that is made anew for each look. */
static const struct dict *section(const struct row_table *table, unsigned number, unsigned part,
                                  const struct dict **front)
{
    const struct fake_table *mine = (const struct fake_table *)table;
    struct fake *fake = mine->fake;
    CHECK(table->is_apart && number == 0 && part == 0);
    (void)front;
    dict_destroy(fake->shown);
    fake->shown = dict_create(sizeof(uint64_t), SHOWN_BYTES, 1);
    for (size_t i = 0; i < mine->placed.places; i++) {
        uint64_t id = mine->placed.ids[i];
        while (id < FAKE_REMOVED && !dict_put(fake->shown, id, 0, &id)) {
            CHECK(dict_grow(&fake->shown));
        }
    }
    return fake->shown;
}

/* Nothing of its overlays is worth a merge. */
static void overlay_size(const struct row_table *table, struct row_overlay_size *size)
{
    (void)table;
    memset(size, 0, sizeof(*size));
}

static const struct table_kind KIND = {.name = "fake",
                                       .create = create,
                                       .destroy = destroy,
                                       .settle = settle,
                                       .place = place,
                                       .forget = forget,
                                       .describe = describe,
                                       .described_bytes = described_bytes,
                                       .section = section,
                                       .replay = fake_replay,
                                       .file_begin = fake_file_begin,
                                       .file_end = fake_file_end,
                                       .overlay_size = overlay_size};

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
    memset(fake, 0, sizeof(*fake));
    fake->capacity = capacity;
    fake->apart_max = ROW_SAMPLE_MAX;
    CHECK(pthread_mutex_init(&fake->lock, NULL) == 0);
    CHECK(row_init(&fake->row, config, &KIND, &fake->engine));
    row_set_cold(&fake->row, &fake->cold);
    fake->engine.row = &fake->row;
    fake->row.keeper = &fake->keeper;
}

void fake_fini(struct fake *fake)
{
    row_fini(&fake->row);
    dict_destroy(fake->shown);
    pthread_mutex_destroy(&fake->lock);
    CHECK(fake->live == 0);
}

static void wake(void *target, uint64_t serial)
{
    (void)serial;
    ((struct fake *)target)->woken++;
}

bool fake_holds(const struct row_table *table, uint64_t id)
{
    return table != NULL && is_held((const struct fake_table *)table, id);
}

void fake_put(struct row_table *table, uint64_t id)
{
    struct fake_table *mine = (struct fake_table *)table;
    if (!table->cold) {
        fake_set_add(&mine->placed, id);
    }
    if (table->cold || table->tapped) {
        fake_set_remove(&mine->removed, id);
        fake_set_add(&mine->added, id);
    }
}

void fake_take(struct row_table *table, uint64_t id)
{
    struct fake_table *mine = (struct fake_table *)table;
    CHECK(fake_holds(table, id));
    CHECK(table->cold || fake_set_remove(&mine->placed, id));
    if (table->cold || table->tapped) {
        fake_set_remove(&mine->added, id);
        fake_set_add(&mine->removed, id);
    }
}

const struct row_table *fake_holder_of(const struct row_table *table, uint64_t id)
{
    while (table != NULL && !fake_holds(table, id)) {
        table = table->further;
    }
    return table;
}

static bool is_there(struct fake *fake, const struct row_table *table, uint64_t id)
{
    pthread_mutex_lock(&fake->lock);
    bool there = fake_holder_of(table, id) != NULL ||
                 (row_may_be_apart(table, id) && fake_holds(fake->row.apart, id));
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

struct row_table *fake_holder_of_new(struct row_table *table)
{
    return row_last_layer(table);
}

static void put_inside(struct fake *fake, struct row_table *table, uint64_t id)
{
    struct row_table *holder = fake_holder_of_new(table);
    pthread_mutex_lock(&fake->lock);
    row_changed(holder);
    fake_put(holder, id);
    record(fake, CHANGE_SLOTS, CHANGE_INSIDE, id);
    pthread_mutex_unlock(&fake->lock);
}

static bool put_apart(struct fake *fake, uint64_t id)
{
    struct row_table *apart = fake->row.apart;
    pthread_mutex_lock(&fake->lock);
    bool fits = ((struct fake_table *)apart)->placed.count < fake->apart_max;
    if (fits) {
        row_changed(apart);
        fake_put(apart, id);
        record(fake, CHANGE_SLOTS, CHANGE_APART, id);
    }
    pthread_mutex_unlock(&fake->lock);
    return fits;
}

bool fake_try(struct fake *fake, uint64_t id, enum row_verdict *verdict)
{
    *verdict = ROW_INSIDE;
    struct row_table *table = row_route(&fake->row, id);
    if (table == NULL) {
        *verdict = row_admit_again(&fake->row, id);
        return *verdict != ROW_BELOW;
    }
    if (is_there(fake, table, id)) {
        return true;
    }
    *verdict = row_admit(&fake->row, table, id);
    if (*verdict == ROW_INSIDE) {
        put_inside(fake, table, id);
    } else if (*verdict == ROW_APART && !put_apart(fake, id)) {
        row_removed(fake->row.apart, fake->row.apart, id);
        *verdict = row_too_far(&fake->row, table, id);
    }
    return true;
}

enum fake_answer fake_add(struct fake *fake, uint64_t id)
{
    static const enum fake_answer answers[] = {
        [ROW_INSIDE] = FAKE_ADDED, [ROW_APART] = FAKE_ADDED,     [ROW_NO_TABLE] = FAKE_NO_TABLE,
        [ROW_BUSY] = FAKE_BUSY,    [ROW_TOO_FAR] = FAKE_TOO_FAR,
    };
    struct ticket ticket = {.wake = wake, .target = fake};
    for (int round = 0;; round++) {
        CHECK(round < ROUNDS_MAX); /* the row has it wait for ever */
        if (fake_has(fake, id)) {
            return FAKE_THERE;
        }
        if (fake->recorder != NULL && fake->recorder->refuse) {
            return FAKE_BUSY;
        }
        if (fake->row.denied) {
            fake->row.denied_us = 1; /* time has passed */
        }
        if (fake->row.waited_us != 0) {
            fake->row.waited_us = 1;
        }
        enum row_verdict verdict;
        if (!fake_try(fake, id, &verdict)) {
            return FAKE_BELOW;
        }
        if (verdict != ROW_WAIT) {
            return answers[verdict];
        }
        row_wait(&fake->row, &ticket);
        if (!row_asked(&fake->row)) {
            return FAKE_WAITS;
        }
        uint64_t woken = fake->woken;
        fake_maintain(fake);
        CHECK(fake->woken > woken);
    }
}

bool fake_has(const struct fake *fake, uint64_t id)
{
    const struct row_table *table = row_find(&fake->row, id);
    return table != NULL && (fake_holder_of(table, id) != NULL || fake_is_apart(fake, id));
}

bool fake_is_apart(const struct fake *fake, uint64_t id)
{
    return fake_holds(fake->row.apart, id);
}

uint64_t fake_apart(const struct fake *fake)
{
    return fake->row.apart ? fake->row.apart->count : 0;
}

void fake_take_out(struct row_table *table, uint64_t id)
{
    struct row_table *holder = (struct row_table *)fake_holder_of(table, id);
    row_changed(holder);
    fake_take(holder, id);
    row_removed(table, holder, id);
}

void fake_remove(struct fake *fake, uint64_t id)
{
    bool apart = fake_is_apart(fake, id);
    fake_take_out(apart ? fake->row.apart : row_find(&fake->row, id), id);
    record(fake, CHANGE_DELETE, apart ? CHANGE_APART : CHANGE_THERE, id);
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
        CHECK(id >= FAKE_REMOVED || (table->base <= id && id <= table->last));
    }
}

uint64_t fake_count_cold(const struct fake_table *mine)
{
    uint64_t count = mine->added.count;
    for (size_t i = 0; i < mine->file.places; i++) {
        uint64_t id = mine->file.ids[i];
        count += id < FAKE_REMOVED && !fake_set_has(&mine->added, id) && is_held(mine, id);
    }
    return count;
}

static void check_cold(const struct fake_table *mine)
{
    CHECK(mine->placed.places == 0);
    CHECK(fake_count_cold(mine) == mine->row.count);
    check_ids(&mine->row, &mine->added);
}

static void check_one(const struct fake *fake, const struct row_table *table)
{
    const struct fake_table *mine = (const struct fake_table *)table;
    if (table->cold) {
        check_cold(mine);
        return;
    }
    CHECK(mine->placed.count == table->count);
    CHECK(mine->placed.count <= table->capacity);
    check_ids(table, &mine->placed);
    for (size_t i = 0; i < mine->placed.places; i++) {
        uint64_t id = mine->placed.ids[i];
        CHECK(id >= FAKE_REMOVED || (id <= table->frontier && id <= table->window_last));
        CHECK(id >= FAKE_REMOVED || !fake_is_apart(fake, id));
        CHECK(id >= FAKE_REMOVED || fake_holder_of(table->further, id) == NULL);
    }
}

/* What is in a layer is not above the frontier, though the range may be. */
static void check_reached(const struct row_table *table, const struct row_table *layer)
{
    const struct fake_set *set = &((const struct fake_table *)layer)->placed;
    CHECK(layer->base == table->base && layer->last == table->last);
    for (size_t i = 0; i < set->places; i++) {
        CHECK(set->ids[i] >= FAKE_REMOVED || set->ids[i] <= table->frontier);
    }
}

void fake_check(const struct fake *fake)
{
    row_check(&fake->row);
    const struct fake_table *apart = (const struct fake_table *)fake->row.apart;
    CHECK(apart == NULL || apart->placed.count == fake_apart(fake));
    for (size_t i = 0; i < fake->row.count; i++) {
        const struct row_table *table = fake->row.tables[i];
        check_one(fake, table);
        const struct row_table *layer = table->further;
        for (; layer != NULL; layer = layer->further) {
            check_one(fake, layer);
            check_reached(table, layer);
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
    size_t room = sizeof(seen->text) - seen->length;
    int n = snprintf(seen->text + seen->length, room, "%s=%s\n", name, text);
    CHECK(n > 0 && (size_t)n < room);
    seen->length += (size_t)n;
}
