/*
 * test_row_log.c: the state of a table as bytes, events and when there is no room for them, and
 * which images a checkpoint needs.
 */
#include "row/row_data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "row/row_room.h"
#include "row/row_state.h"
#include "tests/unit/row/kept_row.h"

#define CAPACITY KEPT_CAPACITY
#define FILL     KEPT_FILL
#define FIRST    KEPT_FIRST
#define FAR      KEPT_FAR
#define SAMPLE   KEPT_SAMPLE

/* ---- state ---- */

struct seen {
    uint64_t fields, capacity, base, frontier;
};

static void see(void *context, const char *name, uint64_t value)
{
    struct seen *seen = context;
    seen->fields++;
    seen->capacity = strcmp(name, "capacity") == 0 ? value : seen->capacity;
    seen->base = strcmp(name, "base") == 0 ? value : seen->base;
    seen->frontier = strcmp(name, "frontier") == 0 ? value : seen->frontier;
}

static void test_state(void **unused)
{
    (void)unused;
    struct kept kept;
    unsigned char bytes[ROW_TABLE_BYTES_MAX];
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, FILL + 10);
    size_t length = row_describe_table(&kept.rows.row, kept_table(&kept, 1), bytes);
    assert_true(length > ROW_STATE_BYTES);
    struct seen seen = {0};
    size_t description = 0;
    assert_true(row_state_read(bytes, length, see, &seen, &description));
    assert_int_equal(description, ROW_STATE_BYTES);
    assert_int_equal(seen.fields, ROW_STATE_WORDS - 2 * ROW_DROPPED_MAX);
    assert_int_equal(seen.capacity, CAPACITY);
    assert_int_equal(seen.base, FIRST + FILL);
    assert_int_equal(seen.frontier, FIRST + FILL + 9);
    assert_false(row_state_read(bytes, length - 1, see, &seen, &description));
    assert_false(row_state_read(bytes, ROW_STATE_BYTES - 1, see, &seen, &description));
    assert_false(row_state_read(bytes, 0, see, &seen, &description));
    bytes[0]++; /* another version */
    assert_false(row_state_read(bytes, length, see, &seen, &description));
    kept_row_end(&kept);
}

/* What the journal says of the table after `before`, which was lost, is left out, and only that. */
static void concerns_nobody(struct row *row, struct fake_image *image,
                            const struct row_state *before)
{
    char error[ROW_ERROR_MAX] = "";
    uint64_t words[] = {before->serial + 1, before->last + 1};
    unsigned char *bytes = image->image.table;
    size_t length = image->image.table_bytes;
    struct row_state lost = *before;
    lost.serial = words[0];
    lost.base = lost.low = lost.last = lost.frontier = words[1];
    memcpy(bytes, &lost, sizeof(lost));
    assert_true(row_replay_table(row, CHANGE_EVENT_WHOLE, 1, words, sizeof(words), error));
    assert_true(row_replay_table(row, CHANGE_EVENT_DROP, 1, words, sizeof(words), error));
    assert_true(row_replay_table(row, CHANGE_EVENT_SETTLE, 1, bytes, length, error));
    assert_true(row_replay_table(row, CHANGE_EVENT_LAYER, 1, bytes, length, error));
    assert_null(row_replay_find(row, words[1], UINT64_MAX));
    assert_non_null(row_replay_find(row, words[1] - 1, UINT64_MAX));
    words[1] = before->last; /* a base that no lost table had */
    assert_false(row_replay_table(row, CHANGE_EVENT_WHOLE, 1, words, sizeof(words), error));
    assert_false(row_replay_table(row, CHANGE_EVENT_DROP, 1, words, sizeof(words), error));
}

/* Of tables above that were lost: their ids are dropped ones, and the state holds by itself. */
static void test_amend(void **unused)
{
    (void)unused;
    struct kept kept;
    struct fake_image image;
    char error[ROW_ERROR_MAX] = "";
    bool changed = false;
    uint64_t left_out = 1;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, 3 * FILL);
    assert_true(fake_image_begin(&kept.rows, 0, &image));
    unsigned char *bytes = image.image.table;
    size_t length = image.image.table_bytes;
    struct row_state before, after;
    memcpy(&before, bytes, sizeof(before));
    const struct row_amend same = {.last = before.last, .layered = true};
    const struct row_amend wider = {.last = before.last + FILL, .layered = true};
    const struct row_amend narrow = {.last = before.last - 1, .layered = true};
    assert_true(row_state_amend(bytes, length, &same, &changed, &left_out));
    assert_false(changed);
    assert_false(row_state_amend(bytes, length, &narrow, &changed, &left_out));
    assert_true(row_state_amend(bytes, length, &wider, &changed, &left_out));
    assert_true(changed);
    assert_int_equal(left_out, 0);
    memcpy(&after, bytes, sizeof(after));
    assert_int_equal(after.last, before.last + FILL);
    assert_int_equal(after.frontier, after.last); /* it was closed, and is */
    assert_int_equal(after.dropped.count, 1);
    assert_int_equal(after.dropped.at[0].first, before.last + 1);
    assert_int_equal(after.dropped.at[0].last, after.last);
    row_restore_clear(&kept.rows.row);
    if (!fake_load(&kept.rows, &image, NULL, error)) {
        fail_msg("%s", error);
    }
    kept.rows.row.log = NULL; /* what follows is replay */
    concerns_nobody(&kept.rows.row, &image, &before);
    kept_row_end(&kept);
}

/* Without its layer a table has none; `ids: any` and ids apart take nothing over. */
static void test_amend_flags(void **unused)
{
    (void)unused;
    struct kept kept;
    unsigned char bytes[ROW_TABLE_BYTES_MAX];
    struct row_state state;
    bool changed;
    uint64_t left_out;
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, 3 * FILL);
    size_t length = row_describe_table(&kept.rows.row, kept_table(&kept, 0), bytes);
    memcpy(&state, bytes, sizeof(state));
    const struct row_amend unlayered = {.last = state.last};
    const uint64_t flags = state.flags;
    state.flags = flags | ROW_STATE_LAYERED;
    memcpy(bytes, &state, sizeof(state));
    assert_true(row_state_amend(bytes, length, &unlayered, &changed, &left_out));
    assert_true(changed);
    memcpy(&state, bytes, sizeof(state));
    assert_int_equal(state.flags, flags);
    static const uint64_t never[] = {ROW_STATE_ANY_IDS, ROW_STATE_APART};
    for (size_t i = 0; i < 2; i++) {
        state.flags = flags | never[i];
        memcpy(bytes, &state, sizeof(state));
        assert_false(row_state_amend(bytes, length, &unlayered, &changed, &left_out));
    }
    assert_false(row_state_amend(bytes, ROW_STATE_BYTES - 1, &unlayered, &changed, &left_out));
    kept_row_end(&kept);
}

/* A word of the state that is not what it could be, each by itself. */
struct damage {
    size_t word;
    uint64_t value;
};

static const struct damage DAMAGES[] = {
    {0, ROW_STATE_VERSION - 1}, /* version */
    {1, ROW_STATE_FLAGS + 1},   /* no such flag */
    {1, ROW_STATE_CLOSED},      /* closed, but not settled */
    {1, ROW_STATE_SETTLED | ROW_STATE_LAYER},
    {1, ROW_STATE_SETTLED | ROW_STATE_ANY_IDS},
    {1, 0},             /* unsettled, but not over all ids */
    {2, UINT64_MAX},    /* serial */
    {3, UINT64_MAX},    /* base above last */
    {4, 1},             /* last below base */
    {4, UINT64_MAX},    /* no id */
    {6, 0},             /* begins below its base */
    {8, UINT64_MAX},    /* range */
    {10, 0},            /* capacity */
    {10, CAPACITY + 1}, /* not what is described */
    {11, 0},            /* fill */
    {11, CAPACITY + 1},
    {13, 0},              /* bytes of the description */
    {15, 0},              /* frontier below the base */
    {15, ROW_ID_MAX},     /* above the last id */
    {16, ROW_ID_MAX - 1}, /* trusted above the frontier */
    {18, ROW_CLUSTER},    /* as many have been passed */
    {19, CAPACITY + 50},  /* more than it can hold */
    {25, 1},              /* what was dropped lies below the base */
    {25, ROW_DROPPED_MAX + 1},
    {27, 1},                  /* where nothing is */
    {ROW_STATE_WORDS, 0},     /* the description's own first word */
    {ROW_STATE_WORDS + 3, 0}, /* no memory */
};

static void restore_damaged(struct kept *kept, const unsigned char *good, size_t length,
                            const struct damage *damage)
{
    struct row *row = &kept->rows.row;
    char error[ROW_ERROR_MAX] = "";
    uint64_t words[ROW_TABLE_BYTES_MAX / sizeof(uint64_t)];
    memcpy(words, good, length);
    words[damage->word] = damage->value;
    size_t used = row->region_count;
    row_restore_clear(row);
    if (row_restore_table(row, words, length, false, 1, error) != NULL) {
        fail_msg("taken with word %zu as %llu", damage->word, (unsigned long long)damage->value);
    }
    assert_string_not_equal(error, "");
    assert_int_equal(row->count, 0);
    assert_int_equal(row_regions_free(row), used); /* all that was taken is back */
}

static void test_bad_states(void **unused)
{
    (void)unused;
    struct kept kept;
    unsigned char bytes[ROW_TABLE_BYTES_MAX];
    char error[ROW_ERROR_MAX] = "";
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, 2 * FILL + 10);
    size_t length = row_describe_table(&kept.rows.row, kept_table(&kept, 1), bytes);
    kept.rows.row.log = NULL;
    for (size_t i = 0; i < sizeof(DAMAGES) / sizeof(DAMAGES[0]); i++) {
        restore_damaged(&kept, bytes, length, &DAMAGES[i]);
    }
    struct row *row = &kept.rows.row;
    kept.rows.refuse_create = true;
    assert_null(row_restore_table(row, bytes, length, false, 1, error));
    kept.rows.refuse_create = false;
    assert_non_null(row_restore_table(row, bytes, length, false, 1, error));
    assert_null(row_restore_table(row, bytes, length, false, 1, error)); /* twice */
    assert_null(row_restore_table(row, bytes, length, true, 1, error));  /* no layer */
    row_restore_clear(row);
    assert_false(row_restore_end(row));
    kept_row_end(&kept);
}

/* Tables whose ranges do not meet, or that lack a layer. */
static void test_incomplete(void **unused)
{
    (void)unused;
    struct kept kept;
    struct fake_image images[4], apart;
    char error[ROW_ERROR_MAX] = "";
    kept_row_begin(&kept, 8, false);
    kept_add(&kept, FIRST, 3 * FILL + 10);
    for (size_t i = 0; i < 4; i++) {
        assert_true(fake_image_begin(&kept.rows, 0, &images[i]));
        kept.rows.row.tables[i]->count = 0; /* they come back empty */
        images[i].image.table_bytes =
            row_describe_table(&kept.rows.row, kept.rows.row.tables[i], images[i].image.table);
    }
    assert_true(fake_image_begin(&kept.rows, 0, &apart));
    struct row *row = &kept.rows.row;
    row->log = NULL;
    row_restore_clear(row);
    assert_true(row_restore_complete(row, error)); /* of nothing */
    static const size_t order[] = {0, 3, 2};
    for (size_t i = 0; i < 3; i++) {
        assert_true(fake_load(&kept.rows, &images[order[i]], NULL, error));
        assert_false(row_restore_complete(row, error));
    }
    assert_true(fake_load(&kept.rows, &images[1], NULL, error));
    assert_true(fake_load(&kept.rows, &apart, NULL, error));
    assert_false(fake_load(&kept.rows, &apart, NULL, error));
    assert_true(row_restore_complete(row, error));
    assert_true(row_restore_end(row));
    fake_check(&kept.rows);

    row_restore_clear(row);
    struct row_state state;
    memcpy(&state, images[3].image.table, sizeof(state));
    uint64_t serial = state.serial;
    state.serial = 1;
    memcpy(images[3].image.table, &state, sizeof(state));
    for (size_t i = 0; i < 4; i++) {
        assert_true(fake_load(&kept.rows, &images[i], NULL, error));
    }
    assert_false(row_restore_complete(row, error));
    assert_string_equal(error, "table 1 is there twice");
    state.serial = serial;
    memcpy(images[3].image.table, &state, sizeof(state));

    row_restore_clear(row);
    memcpy(&state, images[0].image.table, sizeof(state));
    state.flags |= ROW_STATE_LAYERED;
    state.last = ROW_ID_MAX;
    state.flags &= ~(uint64_t)ROW_STATE_CLOSED;
    memcpy(images[0].image.table, &state, sizeof(state));
    assert_true(fake_load(&kept.rows, &images[0], NULL, error));
    assert_false(row_restore_complete(row, error));
    row_restore_clear(row);
    assert_false(row_restore_end(row));
    kept_row_end(&kept);
}

static void test_space(void **unused)
{
    (void)unused;
    struct kept kept;
    unsigned char bytes[ROW_SPACE_BYTES];
    char error[ROW_ERROR_MAX] = "";
    kept_row_begin(&kept, 3, true);
    kept_add(&kept, FIRST, 5 * FILL);
    struct row *row = &kept.rows.row;
    uint64_t serials = row->serials;
    uint64_t recycled = row->recycled_ids;
    assert_true(recycled > 0 && row->recycled_tables > 0);
    row_describe(row, bytes);
    assert_int_equal(row_stored_bytes(bytes, sizeof(bytes)), 3 * row->config.table_bytes);
    assert_int_equal(row_stored_bytes(bytes, sizeof(bytes) - 1), 0);
    row->log = NULL;
    row_restore_clear(row);
    assert_int_equal(row->serials, 0);
    assert_false(row_restore_space(row, bytes, sizeof(bytes) - 1, error));
    assert_true(row_restore_space(row, bytes, sizeof(bytes), error));
    assert_int_equal(row->recycled_ids, recycled);
    row->config.tables = 2; /* until it is reconfigured, what kept its tables is what counts */
    row_describe(row, bytes);
    assert_int_equal(row_stored_bytes(bytes, sizeof(bytes)), 3 * row->config.table_bytes);
    row->config.tables = 3;
    /* The first table of a row of none has a serial that none had. */
    assert_false(row_restore_end(row));
    assert_int_equal(row->tables[0]->serial, serials);
    bytes[0]++;
    assert_int_equal(row_stored_bytes(bytes, sizeof(bytes)), 0);
    assert_false(row_restore_space(row, bytes, sizeof(bytes), error));
    kept_row_end(&kept);
}

/* ---- events ---- */

static void test_events(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 3, true);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_FIRST), 1);
    kept_add(&kept, FIRST, SAMPLE);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_SETTLE), 1);
    kept_add(&kept, FIRST + SAMPLE, 2 * FILL - SAMPLE);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_OPEN), 2);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_DROP), 1);
    kept_add(&kept, FIRST + 2 * FILL, 2 * FILL);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_DROP), kept.rows.row.recycled_tables);
    row_clear(&kept.rows.row);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_FIRST), 2);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_DROP), kept.rows.row.recycled_tables);
    struct row_config other = kept.rows.row.config;
    other.tables = 4;
    row_reconfigure(&kept.rows.row, &other, true); /* an empty one gives way */
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_FIRST), 3);
    fake_maintain(&kept.rows);
    kept_row_end(&kept);
}

static void test_event_of_layer(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 6, false);
    kept_add(&kept, FIRST, FILL + 10);
    for (uint64_t id = 0; id < 200; id++) { /* late ones: beyond its capacity */
        assert_int_equal(fake_add(&kept.rows, id), FAKE_ADDED);
    }
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_LAYER), 1);
    assert_true(kept_table(&kept, 0)->touched && kept_table(&kept, 0)->further->touched);
    kept_row_end(&kept);
}

/* ---- no room for events ---- */

static void try_until(struct kept *kept, uint64_t id, enum row_verdict verdict)
{
    enum row_verdict got = ROW_INSIDE;
    for (uint64_t n = 0; got != verdict; n++) {
        assert_true(n < 2 * CAPACITY);
        assert_true(fake_try(&kept->rows, id + n, &got));
        if (got == ROW_INSIDE) {
            kept_note(kept, id + n);
        }
    }
}

/* Where the log's room does for one table only, the round is gone through again for the other. */
static void test_room_for_a_part(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 6, false);
    kept_add(&kept, FIRST, FILL + 10);
    try_until(&kept, 0, ROW_WAIT);                 /* the first needs a layer */
    try_until(&kept, FIRST + FILL + 10, ROW_WAIT); /* the second the next one */
    size_t layers = kept_events(&kept, CHANGE_EVENT_LAYER);
    size_t opened = kept_events(&kept, CHANGE_EVENT_OPEN);
    kept.recorder.narrow = true;
    row_maintain(&kept.rows.row, NULL);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_LAYER), layers + 1);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_OPEN), opened + 1);
    assert_false(kept.rows.row.denied);
    kept.recorder.narrow = false;
    expect_again(&kept);
    kept_row_end(&kept);
}

static void test_refused(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 4, false);
    for (uint64_t i = 0; i < SAMPLE; i++) {
        assert_int_equal(fake_add(&kept.rows, FIRST + i), FAKE_ADDED);
    }
    struct row *row = &kept.rows.row;
    uint64_t head = kept.recorder.head;
    kept.recorder.refuse = true;
    enum row_verdict verdict;
    struct ticket ticket = {0};
    for (int round = 0; round < 3; round++) {
        row->denied_us = round > 0; /* time has passed */
        assert_true(fake_try(&kept.rows, FIRST + SAMPLE, &verdict));
        assert_int_equal(verdict, ROW_WAIT);
        row_wait(row, &ticket);
        assert_true(row_asked(row)); /* it is tried again for who needs it */
        assert_true(fake_try(&kept.rows, FIRST + SAMPLE, &verdict));
        assert_int_equal(verdict, ROW_WAIT); /* who comes before the keeper waits for that try */
        uint64_t asked = kept.recorder.events_room;
        row_maintain(row, NULL);
        assert_true(kept.recorder.events_room > asked);
        assert_int_equal(row->waiters.count, 0);
        assert_false(kept_table(&kept, 0)->settled);
        /* Who was woken is refused: waiting again would have all this again, without end. */
        assert_true(fake_try(&kept.rows, FIRST + SAMPLE, &verdict));
        assert_int_equal(verdict, ROW_BUSY); /* tables are free */
        assert_false(row_asked(row));
    }
    assert_int_equal(kept.recorder.head, head);
    assert_int_equal(fake_add(&kept.rows, FIRST + SAMPLE), FAKE_BUSY);
    kept.recorder.refuse = false;
    assert_int_equal(fake_add(&kept.rows, FIRST + SAMPLE), FAKE_ADDED);
    assert_true(kept_table(&kept, 0)->settled);
    assert_int_equal(kept_events(&kept, CHANGE_EVENT_SETTLE), 1);
    fake_maintain(&kept.rows);
    kept_row_end(&kept);
}

/* ---- images ---- */

/* Which tables are imaged, as bits of their places in the row; layers 8 further on. */
static unsigned needed(struct kept *kept, uint64_t since)
{
    struct fake_image image;
    struct row *row = &kept->rows.row;
    unsigned bits = 0;
    while (fake_image_begin(&kept->rows, since, &image)) {
        if (image.image.serial == row->apart->serial) {
            assert_ptr_equal(row_image_table(row, &image.image), row->apart);
            continue;
        }
        size_t at = row_rank(row, image.image.base, row->count) - 1;
        unsigned bit = 1u << (at + (image.image.layer ? 8 : 0));
        assert_false(bits & bit); /* each once */
        assert_non_null(row_image_table(row, &image.image));
        assert_int_equal(image.image.serial, row->tables[at]->serial);
        assert_int_equal(image.image.start_lsn, kept->recorder.head);
        bits |= bit;
    }
    return bits;
}

static void test_image_needed(void **unused)
{
    (void)unused;
    struct kept kept;
    kept_row_begin(&kept, 6, false);
    assert_int_equal(needed(&kept, kept.recorder.head), 1); /* never imaged */
    assert_int_equal(needed(&kept, kept.recorder.head), 0);
    kept_add(&kept, FIRST, FILL + 10);
    assert_int_equal(needed(&kept, 0), 3);
    uint64_t since = kept.recorder.head;
    assert_int_equal(needed(&kept, since), 0); /* nothing came since */
    kept_add(&kept, FIRST + FILL + 10, 1);
    assert_int_equal(needed(&kept, since), 0); /* theirs are young enough */
    assert_int_equal(needed(&kept, kept.recorder.head), 2);
    fake_remove(&kept.rows, FIRST);
    assert_int_equal(needed(&kept, kept.recorder.head), 1);
    for (uint64_t id = 0; id < 200; id++) {
        assert_int_equal(fake_add(&kept.rows, id), FAKE_ADDED);
    }
    assert_int_equal(needed(&kept, kept.recorder.head), 1 | 1 << 8);
    assert_int_equal(fake_add(&kept.rows, 200), FAKE_ADDED); /* to the layer alone */
    assert_int_equal(needed(&kept, kept.recorder.head), 1 << 8);
    kept_row_end(&kept);
}

/* What a layer's image has begun with must not lie below a later one of its table. */
static void test_image_of_layer(void **unused)
{
    (void)unused;
    struct kept kept;
    struct fake_image image;
    kept_row_begin(&kept, 6, false);
    kept_add(&kept, FIRST, FILL + 10);
    kept_add(&kept, 0, 200);
    needed(&kept, 0);
    kept_add(&kept, 200, 1); /* to the layer alone */
    uint64_t since = kept.recorder.head;
    assert_true(fake_image_begin(&kept.rows, since, &image));
    assert_true(image.image.layer);
    kept_add(&kept, 201, 1);
    fake_remove(&kept.rows, FIRST); /* of the table, which needs one now */
    assert_int_equal(needed(&kept, since), 1 | 1 << 8);
    /* Where nothing of the layer lies between, the table alone. */
    fake_remove(&kept.rows, FIRST + 1);
    assert_int_equal(needed(&kept, kept.recorder.head), 1);
    kept_row_end(&kept);
}

/* What lies apart belongs to another from the opening on: an image of before is of no use. */
static void test_image_touched(void **unused)
{
    (void)unused;
    struct kept kept;
    struct fake_image image;
    kept_row_begin(&kept, 6, true);
    kept_add(&kept, FIRST, SAMPLE - 1);
    assert_true(fake_image_begin(&kept.rows, 0, &image));
    kept_add(&kept, FIRST + SAMPLE - 1, 200 - SAMPLE + 1);
    assert_true(kept_table(&kept, 0)->settled);
    assert_null(row_image_table(&kept.rows.row, &image.image));
    uint64_t since = kept.recorder.head;
    assert_true(fake_image_begin(&kept.rows, since, &image));
    assert_true(fake_image_copy(&kept.rows, &image, 0));
    kept_add(&kept, FIRST + 200, 10);
    assert_true(fake_image_copy(&kept.rows, &image, 1)); /* changes alone do no harm */
    kept_add(&kept, FAR, ROW_CLUSTER);                   /* a table opens for these */
    assert_int_equal(kept.rows.row.count, 2);
    assert_null(row_image_table(&kept.rows.row, &image.image));
    assert_false(fake_image_copy(&kept.rows, &image, 1));
    fake_image_fini(&image);
    assert_int_equal(needed(&kept, since), 3);
    /* Begun again meanwhile, the first one is still of no use. */
    assert_null(row_image_table(&kept.rows.row, &image.image));
    /* One that could not be kept is made again. */
    fake_remove(&kept.rows, FIRST);
    assert_true(fake_image_begin(&kept.rows, kept.recorder.head, &image));
    row_image_failed(&kept.rows.row, &image.image);
    assert_int_equal(needed(&kept, 0), 1);
    kept_row_end(&kept);
}

/* A range that is taken over, and one that is gone. */
static void test_image_recycled(void **unused)
{
    (void)unused;
    struct kept kept;
    struct fake_image below, gone;
    kept_row_begin(&kept, 6, true);
    kept_add(&kept, FIRST, 500);
    kept_add(&kept, FAR, ROW_CLUSTER + 1);
    assert_true(fake_image_begin(&kept.rows, 0, &below));
    assert_true(fake_image_begin(&kept.rows, 0, &gone));
    row_recycle(&kept.rows.row, kept_table(&kept, 1));
    assert_null(row_image_table(&kept.rows.row, &below.image));
    assert_null(row_image_table(&kept.rows.row, &gone.image));
    row_image_failed(&kept.rows.row, &gone.image); /* nobody's any more */
    assert_int_equal(needed(&kept, 0), 1);
    fake_maintain(&kept.rows);
    kept_row_end(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state),           cmocka_unit_test(test_bad_states),
        cmocka_unit_test(test_incomplete),      cmocka_unit_test(test_space),
        cmocka_unit_test(test_events),          cmocka_unit_test(test_event_of_layer),
        cmocka_unit_test(test_room_for_a_part), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_image_needed),    cmocka_unit_test(test_image_touched),
        cmocka_unit_test(test_image_of_layer),  cmocka_unit_test(test_image_recycled),
        cmocka_unit_test(test_amend),           cmocka_unit_test(test_amend_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
