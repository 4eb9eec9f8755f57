/* test_row_cold.c: which tables leave memory and when, who waits for it, what is needed after. */
#include "row/row_cold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "row/row_data.h"
#include "row/row_follow.h"
#include "row/row_private.h"
#include "tests/unit/row/kept_row.h"

#define CAPACITY KEPT_CAPACITY
#define FILL     KEPT_FILL
#define FIRST    KEPT_FIRST
#define FAR      KEPT_FAR

struct rig {
    struct kept kept;
    struct checkpoint point;
    struct engine_keeper imager;
    unsigned told;
};

/* Changes found no room meanwhile. */
static void fail_overrun(struct row *row, const struct row_image *image)
{
    row_tap_overran(row_image_table(row, image));
    row_image_failed(row, image);
}

static void tell(void *context)
{
    ((struct rig *)context)->told++;
}

static struct rig *rig_begin(unsigned tables, unsigned dumps_max)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    assert_non_null(rig);
    struct row_config config = fake_config(tables, false);
    config.late_room = 0.1;
    config.dump = true;
    config.dumps_max = dumps_max;
    kept_begin_with(&rig->kept, &config);
    rig->imager = (struct engine_keeper){tell, rig};
    rig->kept.rows.row.imager = &rig->imager;
    return rig;
}

static void rig_end(struct rig *rig)
{
    checkpoint_fini(&rig->point);
    kept_row_end(&rig->kept);
    free(rig);
}

static struct row *row_of(struct rig *rig)
{
    return &rig->kept.rows.row;
}

static void no_work(struct kept *kept, void *context)
{
    (void)kept;
    (void)context;
}

/* A whole round of images; the keeper has not come yet. */
static void all_images(struct rig *rig)
{
    checkpoint_begin(&rig->point, &rig->kept);
    while (checkpoint_step(&rig->point, &rig->kept, no_work, NULL)) {
    }
}

static void one_round(struct rig *rig)
{
    all_images(rig);
    fake_maintain(&rig->kept.rows);
}

static bool begins(struct rig *rig, struct fake_image *image)
{
    return fake_image_begin(&rig->kept.rows, rig->point.since, image);
}

static void give_up(struct rig *rig, struct fake_image *image)
{
    row_image_failed(row_of(rig), &image->image);
    fake_image_fini(image);
}

static size_t cold_of(struct rig *rig)
{
    size_t cold = 0;
    for (size_t i = 0; i < row_of(rig)->count; i++) {
        cold += row_of(rig)->tables[i]->cold;
    }
    return cold;
}

/* Made again of the last round and what came after. */
static void expect_same(struct rig *rig)
{
    struct kept *kept = &rig->kept;
    again_load(kept, &rig->point);
    again_replay(kept, rig->point.since, rig->point.m);
    again_same(kept, false);
    fake_maintain(&kept->again);
    fake_fini(&kept->again);
}

/* ---- who leaves ---- */

/* With the opening that takes the last spare region, the one opened longest ago. */
static void test_spare(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    kept_add(&rig->kept, FIRST, 2 * FILL);
    assert_false(row_cold_wanted(row_of(rig)));
    assert_int_equal(rig->told, 0);
    kept_add(&rig->kept, FIRST + 2 * FILL, FILL);
    assert_int_equal(row_of(rig)->count, 4);
    assert_true(row_cold_wanted(row_of(rig)));
    assert_int_equal(rig->told, 1);
    assert_true(kept_table(&rig->kept, 0)->leaving);
    assert_false(kept_table(&rig->kept, 1)->leaving); /* no more than are needed */
    one_round(rig);
    assert_true(kept_table(&rig->kept, 0)->cold);
    assert_int_equal(cold_of(rig), 1);
    assert_false(row_cold_wanted(row_of(rig)));
    assert_int_equal(row_regions_free(row_of(rig)), 1);
    expect_same(rig);
    /* So it goes on: nobody waits. */
    for (uint64_t i = 3; i < 12; i++) {
        kept_add(&rig->kept, FIRST + i * FILL, FILL);
        one_round(rig);
        assert_int_equal(cold_of(rig), i - 1);
    }
    assert_int_equal(row_of(rig)->recycled_tables, 0);
    assert_int_equal(rig->told, 10);
    expect_same(rig);
    rig_end(rig);
}

/* Of one that follows the next opening waits for the memory that a dump gives back; not while
 * nothing is dumped. */
static void test_follower_opens(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    struct row *row = row_of(rig);
    kept_add(&rig->kept, FIRST, 3 * FILL);
    assert_true(kept_table(&rig->kept, 0)->leaving);
    assert_int_equal(row_regions_free(row), 0);
    assert_false(row_follow_ready(row, CHANGE_EVENT_OPEN, NULL, 0, true));
    assert_false(row_follow_ready(row, CHANGE_EVENT_LAYER, NULL, 0, true));
    assert_true(row_follow_ready(row, CHANGE_EVENT_WHOLE, NULL, 0, true));
    assert_true(row_follow_ready(row, CHANGE_EVENT_OPEN, NULL, 0, false));
    one_round(rig);
    assert_true(row_follow_ready(row, CHANGE_EVENT_OPEN, NULL, 0, true));
    rig_end(rig);
}

/* Strays above a frontier keep no table in memory: they move later. */
static void test_strays(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    kept_add(&rig->kept, FIRST, 200);
    kept_add(&rig->kept, FAR, FILL / 2); /* another stream */
    assert_int_equal(kept_add_one(&rig->kept, FAR / 2), FAKE_ADDED);
    kept_add(&rig->kept, FAR + FILL / 2, FILL);
    assert_int_equal(row_of(rig)->count, 3);
    kept_add(&rig->kept, FAR + FILL / 2 + FILL, FILL);
    assert_int_equal(row_of(rig)->count, 4);
    assert_true(kept_table(&rig->kept, 0)->leaving);
    assert_false(kept_table(&rig->kept, 1)->leaving);
    one_round(rig);
    assert_true(kept_table(&rig->kept, 0)->cold);
    assert_true(fake_has(&rig->kept.rows, FAR / 2));
    kept_add(&rig->kept, FIRST + 200, 1);
    assert_int_equal(row_find(row_of(rig), FAR / 2)->base, FIRST + 200);
    assert_true(fake_is_apart(&rig->kept.rows, FAR / 2));
    rig_end(rig);
}

/* An open table that left takes what is late; what is above is another's. */
static void test_open_cold(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    kept_add(&rig->kept, FIRST, 200);
    kept_add(&rig->kept, FAR, 3 * FILL / 2);
    kept_add(&rig->kept, FAR + 3 * FILL / 2, FILL);
    assert_true(kept_table(&rig->kept, 0)->leaving);
    assert_int_equal(kept_add_one(&rig->kept, FIRST - 50), FAKE_ADDED);
    assert_int_equal(kept_add_one(&rig->kept, FIRST + 200), FAKE_WAITS); /* it leaves first */
    one_round(rig);
    assert_true(kept_table(&rig->kept, 0)->cold);
    assert_int_equal(row_of(rig)->count, 5); /* what had waited */
    assert_int_equal(kept_table(&rig->kept, 1)->base, FIRST + 200);
    kept_add(&rig->kept, FIRST + 200, 1);
    kept_add(&rig->kept, FIRST - 49, 10);
    one_round(rig);
    expect_same(rig);
    rig_end(rig);
}

/* The stream has left it, and no table has opened for that yet: it is still no stray. */
static void test_leap_leaving(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    kept_add(&rig->kept, FIRST, 200);
    rig->kept.rows.apart_max = 3;
    for (uint64_t i = 4; i < 7; i++) {
        kept_add(&rig->kept, i * FAR, 1);
    }
    assert_int_equal(kept_add_one(&rig->kept, FAR), FAKE_TOO_FAR);
    assert_int_equal(kept_add_one(&rig->kept, FAR + 1), FAKE_NO_TABLE);
    row_cold_leave(row_of(rig), kept_table(&rig->kept, 0));
    assert_int_equal(kept_add_one(&rig->kept, FAR + 2), FAKE_WAITS);
    one_round(rig);
    assert_int_equal(row_of(rig)->count, 2);
    assert_int_equal(kept_add_one(&rig->kept, FAR + 2), FAKE_NO_TABLE);
    for (uint64_t i = 3; i < ROW_CLUSTER - 1; i++) {
        assert_int_equal(kept_add_one(&rig->kept, FAR + i), FAKE_NO_TABLE);
    }
    kept_add(&rig->kept, FAR + ROW_CLUSTER - 1, FILL);
    rig_end(rig);
}

/* Nothing moves from a table while it leaves, be there memory: its image would be of no use. */
static void test_open_leaving(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(5, 0);
    kept_add(&rig->kept, FIRST, 200);
    assert_int_equal(kept_add_one(&rig->kept, FAR), FAKE_ADDED); /* a stray */
    assert_true(fake_is_apart(&rig->kept.rows, FAR));
    row_cold_leave(row_of(rig), kept_table(&rig->kept, 0));
    assert_int_equal(kept_add_one(&rig->kept, FIRST + 200), FAKE_WAITS);
    assert_int_equal(kept_add_one(&rig->kept, FAR - 1), FAKE_WAITS); /* none is kept apart */
    assert_int_equal(row_of(rig)->count, 1);
    one_round(rig);
    assert_int_equal(row_of(rig)->count, 2);
    assert_true(kept_table(&rig->kept, 0)->cold);
    assert_true(fake_has(&rig->kept.rows, FAR)); /* with the memory that was left of it */
    assert_ptr_equal(row_find(row_of(rig), FAR), kept_table(&rig->kept, 1));
    kept_add(&rig->kept, FIRST + 200, 1);
    expect_same(rig);
    rig_end(rig);
}

/* ---- waiting, failing ---- */

/* As many tables as there is memory for, and one more is needed. */
static struct rig *rig_in_need(unsigned dumps_max)
{
    struct rig *rig = rig_begin(3, dumps_max);
    kept_add(&rig->kept, FIRST, 2 * FILL + CAPACITY);
    assert_int_equal(row_of(rig)->count, 3);
    assert_int_equal(row_regions_free(row_of(rig)), 0);
    return rig;
}

static void test_wait(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
    uint64_t woken = rig->kept.rows.woken;
    uint64_t asked = rig->kept.recorder.events_room;
    for (int i = 0; i < 3; i++) {
        row_maintain(row_of(rig), NULL); /* for nothing */
        assert_false(row_asked(row_of(rig)));
    }
    assert_int_equal(rig->kept.recorder.events_room, asked);
    assert_int_equal(rig->kept.rows.woken, woken);
    assert_int_equal(row_of(rig)->waiters.count, 1);
    one_round(rig);
    assert_int_equal(row_of(rig)->waiters.count, 0);
    assert_true(rig->kept.rows.woken > woken);
    assert_int_equal(row_of(rig)->count, 4);
    assert_true(kept_table(&rig->kept, 1)->leaving); /* the next spare */
    kept_add(&rig->kept, next, 1);
    expect_same(rig);
    rig_end(rig);
}

/* Two that need a table: two leave. */
static void test_wait_for_two(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(5, 0);
    kept_add(&rig->kept, FIRST, 3 * FILL - 10);
    kept_add(&rig->kept, FAR, CAPACITY);
    kept_add(&rig->kept, FIRST + 3 * FILL - 10, 10);
    struct row *row = row_of(rig);
    size_t leaving = 0;
    assert_int_equal(row_regions_free(row), 0);
    for (uint64_t i = 0; i < CAPACITY; i++) {
        kept_add_one(&rig->kept, FAR + CAPACITY + i);
        kept_add_one(&rig->kept, FIRST + 3 * FILL + i);
    }
    for (size_t i = 0; i < row->count; i++) {
        leaving += row->tables[i]->leaving;
    }
    assert_int_equal(leaving, 2);
    one_round(rig);
    assert_int_equal(cold_of(rig), 2);
    assert_int_equal(row->waiters.count, 0);
    rig_end(rig);
}

static void test_failed(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct row *row = row_of(rig);
    struct fake_image image;
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
    checkpoint_begin(&rig->point, &rig->kept);
    assert_true(begins(rig, &image));
    assert_int_equal(image.image.kind, ROW_IMAGE_DUMP);
    assert_true(kept_table(&rig->kept, 0)->tapped);
    assert_false(row_cold_wanted(row)); /* it is on its way */
    give_up(rig, &image);
    assert_false(kept_table(&rig->kept, 0)->tapped);
    assert_false(row_cold_wanted(row));
    fake_maintain(&rig->kept.rows);
    assert_int_equal(row->waiters.count, 0); /* woken, and refused */
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_NO_TABLE);
    while (begins(rig, &image)) { /* not twice in a round: it may never end */
        assert_int_equal(image.image.kind, ROW_IMAGE_TABLE);
        fake_image_fini(&image);
    }
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_NO_TABLE);
    assert_false(row_cold_wanted(row));
    one_round(rig); /* tries it again */
    assert_int_equal(cold_of(rig), 1);
    kept_add(&rig->kept, next, 1);
    rig_end(rig);
}

/* In need, and a dump has failed. */
static struct rig *rig_failed(void)
{
    struct rig *rig = rig_in_need(0);
    struct fake_image image;
    assert_true(begins(rig, &image));
    give_up(rig, &image);
    fake_maintain(&rig->kept.rows);
    return rig;
}

/* Some time later who needs it has it tried. */
static void test_failed_later(void **unused)
{
    (void)unused;
    struct rig *rig = rig_failed();
    struct row *row = row_of(rig);
    struct fake_image image;
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_NO_TABLE);
    assert_int_equal(rig->told, 1);
    row->again_us = 1;
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
    assert_int_equal(rig->told, 2);
    assert_true(row_cold_wanted(row));
    checkpoint_begin(&rig->point, &rig->kept);
    assert_true(begins(rig, &image));
    assert_int_equal(image.image.kind, ROW_IMAGE_DUMP);
    give_up(rig, &image);
    fake_maintain(&rig->kept.rows);
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_NO_TABLE);
    rig_end(rig);
}

/*
 * The round fails after the images: the manifest cannot be stored. Who waits is refused, and the
 * tap stays, as nobody knows which manifest the disk has; some time later who needs it waits again,
 * and so on, until the dump is handed over.
 */
static void test_round_failed(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct row *row = row_of(rig);
    struct fake_image image;
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    checkpoint_begin(&rig->point, &rig->kept);
    assert_true(begins(rig, &image));
    assert_int_equal(image.image.kind, ROW_IMAGE_DUMP);
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
        row_images_failed(row);
        fake_maintain(&rig->kept.rows);
        assert_int_equal(row->waiters.count, 0); /* woken, and refused */
        assert_int_equal(kept_add_one(&rig->kept, next), FAKE_NO_TABLE);
        assert_true(kept_table(&rig->kept, 0)->tapped);
        row->again_us = 1;
    }
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
    for (unsigned part = 0; part < FAKE_IMAGE_PARTS; part++) {
        assert_true(fake_image_copy(&rig->kept.rows, &image, part));
    }
    assert_true(fake_image_dumped(&rig->kept.rows, &image));
    fake_maintain(&rig->kept.rows);
    fake_image_fini(&image);
    assert_int_equal(cold_of(rig), 1);
    kept_add(&rig->kept, next, 1);
    rig_end(rig);
}

/* Nothing fails, and nothing ends: who has waited as long as one may has all refused for a second,
 * and new ones wait again. */
static void test_waited(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct row *row = row_of(rig);
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
        assert_int_equal(row->waiters.count, 1);
        uint64_t woken = rig->kept.rows.woken;
        row_waited(row);
        assert_int_equal(row->waiters.count, 0);
        assert_true(rig->kept.rows.woken > woken);
        assert_int_equal(row_admit(row, row_find(row, next), next), ROW_BUSY);
        /* the next kept_add_one() has a second pass */
    }
    one_round(rig);
    assert_int_equal(cold_of(rig), 1);
    kept_add(&rig->kept, next, 1);
    rig_end(rig);
}

/* Where no table is to leave memory a round that fails is nobody's. */
static void test_round_failed_without_dumps(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    struct row *row = row_of(rig);
    kept_add(&rig->kept, FIRST, FILL);
    row_images_failed(row);
    assert_false(row->dump_failed);
    kept_add(&rig->kept, FIRST + FILL, 2 * FILL);
    assert_true(row_cold_wanted(row));
    rig_end(rig);
}

/* So it is for what is far ahead, be it that the others have room and nobody else asks. */
static void test_failed_for_jump(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(3, 0);
    struct fake_image image;
    kept_add(&rig->kept, FIRST, 2 * FILL + 100);
    assert_true(begins(rig, &image));
    assert_int_equal(image.image.kind, ROW_IMAGE_DUMP);
    give_up(rig, &image);
    rig->kept.rows.apart_max = 20;
    kept_add(&rig->kept, FAR, 20);
    fake_maintain(&rig->kept.rows);
    assert_int_equal(kept_add_one(&rig->kept, FAR + 20), FAKE_NO_TABLE);
    row_of(rig)->again_us = 1;
    assert_int_equal(kept_add_one(&rig->kept, FAR + 20), FAKE_NO_TABLE);
    assert_int_equal(kept_add_one(&rig->kept, FAR + 20), FAKE_WAITS); /* it has been heard */
    one_round(rig);
    assert_int_equal(cold_of(rig), 1);
    kept_add(&rig->kept, FAR + 20, 100);
    rig_end(rig);
}

/* A round that looks again and again, as one does while others' images are written; each dump that
 * it begins is overrun. */
static unsigned overrun_round(struct rig *rig)
{
    struct fake_image image;
    unsigned dumps = 0;
    checkpoint_begin(&rig->point, &rig->kept);
    for (unsigned look = 0; look < 100; look++) {
        while (begins(rig, &image)) {
            bool dump = image.image.kind == ROW_IMAGE_DUMP;
            dumps += dump;
            if (dump) {
                assert_false(row_cold_wanted(row_of(rig)));
                fail_overrun(row_of(rig), &image.image);
            }
            fake_image_fini(&image);
            rig->kept.recorder.head++;
        }
    }
    return dumps;
}

/* What changes meanwhile may fill its overlay for a moment; who waits does so until it failed. */
static void test_overrun(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct row *row = row_of(rig);
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
        for (unsigned i = 1; i < ROW_OVERRUNS_MAX; i++) {
            assert_int_equal(overrun_round(rig), 1);
            assert_true(row_cold_wanted(row)); /* the imager is told */
            fake_maintain(&rig->kept.rows);
            assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
        }
        assert_int_equal(overrun_round(rig), 1);
        assert_false(row_cold_wanted(row));
        fake_maintain(&rig->kept.rows);
        assert_int_equal(kept_add_one(&rig->kept, next), FAKE_NO_TABLE);
        row->again_us = 1; /* and again from the beginning */
    }
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
    one_round(rig);
    assert_int_equal(cold_of(rig), 1);
    kept_add(&rig->kept, next, 1);
    rig_end(rig);
}

/* Nor is one dumped whose overlay overran when the last of its file was written already. */
static void test_overrun_at_the_end(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct fake_image image;
    char file; /* nobody looks into it */
    assert_int_equal(kept_add_one(&rig->kept, FIRST + 2 * FILL + CAPACITY), FAKE_WAITS);
    checkpoint_begin(&rig->point, &rig->kept);
    while (begins(rig, &image) && image.image.kind != ROW_IMAGE_DUMP) {
        fake_image_fini(&image);
    }
    assert_int_equal(image.image.kind, ROW_IMAGE_DUMP);
    row_tap_overran(row_image_table(row_of(rig), &image.image));
    struct table_file *given = row_image_done(row_of(rig), &image.image, (void *)&file);
    assert_ptr_equal(given, &file); /* it is not wanted */
    assert_int_equal(cold_of(rig), 0);
    fake_image_fini(&image);
    rig_end(rig);
}

/* One that failed stays so while the next try of it is overrun: nobody asks until the time comes.
 */
static void test_overrun_after_failing(void **unused)
{
    (void)unused;
    struct rig *rig = rig_failed();
    struct row *row = row_of(rig);
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    assert_int_equal(overrun_round(rig), 1);
    assert_false(row_cold_wanted(row));
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_NO_TABLE);
    row->again_us = 1;
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
    assert_true(row_cold_wanted(row));
    fake_maintain(&rig->kept.rows);
    assert_false(row_asked(row)); /* it waits in peace */
    assert_int_equal(row->waiters.count, 1);
    one_round(rig);
    kept_add(&rig->kept, next, 1);
    rig_end(rig);
}

/* Who waits for it is woken where it is not to leave any more, as the configuration has changed. */
static void test_overrun_reconfigured(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(5, 0);
    struct row *row = row_of(rig);
    struct fake_image image;
    kept_add(&rig->kept, FIRST, 200);
    row_cold_leave(row, kept_table(&rig->kept, 0));
    assert_true(begins(rig, &image));
    assert_int_equal(image.image.kind, ROW_IMAGE_DUMP);
    kept_add(&rig->kept, 0, CAPACITY - 200);
    struct row_config config = row->config;
    config.dump = false;
    config.recycle = true;
    row_reconfigure(row, &config, false);
    fake_maintain(&rig->kept.rows);
    assert_int_equal(kept_add_one(&rig->kept, FIRST + 200), FAKE_WAITS);
    fail_overrun(row, &image.image);
    fake_image_fini(&image);
    fake_maintain(&rig->kept.rows);
    assert_int_equal(row->waiters.count, 0);
    kept_add(&rig->kept, FIRST + 200, 1);
    rig_end(rig);
}

/* Touched, or begun again: nobody's failure. */
static void test_touched(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct row *row = row_of(rig);
    struct row_table *table = kept_table(&rig->kept, 0);
    struct fake_image first, second;
    assert_true(begins(rig, &first));
    row_touch(table);
    assert_null(row_image_table(row, &first.image));
    assert_ptr_equal(row_cold_imaged(row, &first.image), table); /* the tap was on all the time */
    give_up(rig, &first);
    assert_false(row->dump_failed || table->tapped);
    assert_null(row_cold_imaged(row, &first.image));
    assert_true(row_cold_wanted(row));
    rig->kept.recorder.head++;
    assert_true(begins(rig, &second));
    assert_int_equal(second.image.kind, ROW_IMAGE_DUMP);
    assert_int_equal(second.image.serial, table->serial);
    assert_null(row_cold_imaged(row, &first.image));
    give_up(rig, &first); /* an older one says nothing */
    assert_true(table->tapped);
    assert_false(fake_image_dumped(&rig->kept.rows, &first));
    give_up(rig, &second);
    assert_true(row->dump_failed);
    assert_true(row->again_us > 1); /* and it is tried again by then */
    rig_end(rig);
}

/* The oldest has one, and both are to leave. */
static struct rig *rig_with_layer(void)
{
    struct rig *rig = rig_begin(4, 0);
    kept_add(&rig->kept, FIRST, FILL + 10);
    kept_add(&rig->kept, 0, 200);
    assert_non_null(kept_table(&rig->kept, 0)->further);
    one_round(rig);
    kept_add(&rig->kept, FIRST + FILL + 10, FILL);
    assert_true(kept_table(&rig->kept, 0)->leaving && kept_table(&rig->kept, 0)->further->leaving);
    return rig;
}

static void next_is(struct rig *rig, struct fake_image *image, bool layer)
{
    rig->kept.recorder.head++;
    assert_true(begins(rig, image));
    assert_int_equal(image->image.kind, ROW_IMAGE_DUMP);
    assert_int_equal(image->image.layer, layer);
    assert_true(fake_image_copy(&rig->kept.rows, image, 0));
    assert_true(fake_image_copy(&rig->kept.rows, image, 1));
}

static void test_layer(void **unused)
{
    (void)unused;
    struct rig *rig = rig_with_layer();
    one_round(rig);
    const struct row_table *table = kept_table(&rig->kept, 0);
    assert_true(table->cold && table->further->cold);
    assert_int_equal(row_regions_free(row_of(rig)), 2);
    kept_add(&rig->kept, 200, 5); /* to the layer */
    fake_remove(&rig->kept.rows, FIRST);
    fake_remove(&rig->kept.rows, 150);
    expect_same(rig);
    one_round(rig);
    expect_same(rig);
    rig_end(rig);
}

/* What is journaled from the table's S on must be whole for both. */
static void test_layer_first(void **unused)
{
    (void)unused;
    struct rig *rig = rig_with_layer();
    struct fake_image layer, second, table;
    checkpoint_begin(&rig->point, &rig->kept);
    next_is(rig, &layer, true);
    kept_add(&rig->kept, 200, 5); /* to the layer, tapped already */
    next_is(rig, &table, false);
    kept_add(&rig->kept, 205, 5);
    next_is(rig, &second, true);
    assert_false(fake_image_dumped(&rig->kept.rows, &layer));
    assert_true(fake_image_dumped(&rig->kept.rows, &table));
    assert_true(fake_image_dumped(&rig->kept.rows, &second));
    fake_image_fini(&layer);
    fake_image_fini(&second);
    fake_image_fini(&table);
    fake_maintain(&rig->kept.rows);
    rig_end(rig);
}

/* Without its layer a table cannot leave. */
static void test_layer_failed(void **unused)
{
    (void)unused;
    struct rig *rig = rig_with_layer();
    struct fake_image layer, second, table;
    next_is(rig, &layer, true);
    kept_add(&rig->kept, 200, 5);
    next_is(rig, &table, false);
    next_is(rig, &second, true);
    give_up(rig, &second);
    assert_false(fake_image_dumped(&rig->kept.rows, &table));
    assert_null(row_image_table(row_of(rig), &table.image));
    fake_image_fini(&layer);
    fake_image_fini(&table);
    row_check(row_of(rig));
    while (checkpoint_step(&rig->point, &rig->kept, no_work, NULL)) {
    }
    assert_int_equal(cold_of(rig), 0); /* not in this round */
    one_round(rig);
    assert_int_equal(cold_of(rig), 1);
    expect_same(rig);
    rig_end(rig);
}

/* ---- layers of what stays in memory ---- */

#define STRETCHED_TABLES 4 /* tables' worth of ids, about, that strays moved a frontier over */

/* Puts the stream's next ids, with rounds of images. False: one is refused. */
static bool stream_until(struct rig *rig, uint64_t *next, uint64_t until)
{
    while (*next < until) {
        enum fake_answer answer = kept_add_one(&rig->kept, *next);
        if (answer == FAKE_WAITS) {
            one_round(rig);
            continue;
        }
        if (answer != FAKE_ADDED && answer != FAKE_THERE) {
            return false;
        }
        ++*next;
    }
    return true;
}

/*
 * A table opened for strays two tables ahead when the stream had shown little: it does not know how
 * dense ids are, and further strays move its frontier over more than it can hold.
 */
static struct rig *rig_with_stretched(unsigned tables, uint64_t *next)
{
    struct rig *rig = rig_begin(tables, 0);
    uint64_t far = FIRST + 2 * CAPACITY;
    *next = FIRST + 100;
    kept_add(&rig->kept, FIRST, 100);
    kept_add(&rig->kept, far, ROW_CLUSTER + 4);
    for (uint64_t i = 1; i <= 100; i++) {
        kept_add(&rig->kept, far + 100 + i * STRETCHED_TABLES * CAPACITY / 100, 1);
    }
    return rig;
}

/* Such a table takes the stream in layers while it is in memory, and leaves with all of them. */
static void test_stretched(void **unused)
{
    (void)unused;
    uint64_t next;
    struct rig *rig = rig_with_stretched(16, &next);
    assert_true(stream_until(rig, &next, FIRST + 8 * CAPACITY));
    struct row_table *stretched = row_find(row_of(rig), FIRST + 5 * CAPACITY);
    assert_true(row_last_layer(stretched)->layer > 1);
    assert_false(stretched->cold);
    one_round(rig);
    expect_same(rig);
    while (!stretched->cold) {
        assert_true(stream_until(rig, &next, next + CAPACITY));
    }
    for (struct row_table *layer = stretched; layer != NULL; layer = layer->further) {
        assert_true(layer->cold);
    }
    fake_remove(&rig->kept.rows, FIRST + 5 * CAPACITY);
    one_round(rig);
    expect_same(rig);
    rig_end(rig);
}

/* It has all memory: what is above its frontier waits until it has left itself. */
static void test_stretched_over_all(void **unused)
{
    (void)unused;
    uint64_t next;
    struct rig *rig = rig_with_stretched(4, &next);
    struct row_table *stretched = row_find(row_of(rig), FIRST + 5 * CAPACITY);
    for (; !stream_until(rig, &next, row_frontier_of(stretched) + 1); next++) {
        assert_int_equal(row_regions_free(row_of(rig)), 0);
        assert_false(stretched->leaving); /* for a layer it would never get again */
    }
    assert_int_equal(row_last_layer(stretched)->layer, 3);
    assert_true(stream_until(rig, &next, next + 3 * CAPACITY));
    assert_true(stretched->cold);
    expect_same(rig);
    rig_end(rig);
}

/* ---- cold ones ---- */

/* Late ids up to the capacity; no layer. */
static void test_late(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    one_round(rig);
    const struct row_table *table = kept_table(&rig->kept, 0);
    assert_true(table->cold);
    kept_add(&rig->kept, 0, CAPACITY - FILL);
    assert_int_equal(kept_add_one(&rig->kept, CAPACITY), FAKE_NO_TABLE);
    assert_null(table->further);
    assert_false(row_asked(row_of(rig)));
    expect_same(rig);
    /* What changed is imaged with the next round, in front of the file. */
    struct fake_image image;
    checkpoint_begin(&rig->point, &rig->kept);
    assert_true(begins(rig, &image));
    assert_int_equal(image.image.kind, ROW_IMAGE_OVERLAY);
    assert_ptr_equal(row_image_table(row_of(rig), &image.image), table);
    give_up(rig, &image);
    assert_false(row_of(rig)->dump_failed);
    one_round(rig);
    fake_remove(&rig->kept.rows, 7);
    fake_remove(&rig->kept.rows, FIRST + 7);
    kept_add(&rig->kept, FIRST + 7, 1);
    expect_same(rig);
    rig_end(rig);
}

static void test_dumps_max(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(3, 2);
    for (uint64_t i = 0; i < 8; i++) {
        kept_add(&rig->kept, FIRST + i * FILL, FILL);
        one_round(rig);
        assert_true(cold_of(rig) <= 2);
    }
    assert_int_equal(cold_of(rig), 2);
    assert_int_equal(row_of(rig)->recycled_tables, 5);
    assert_int_equal(row_of(rig)->recycled_ids, 5 * FILL);
    assert_null(row_find(row_of(rig), FIRST));
    expect_same(rig);
    /* Not while the log has no room for it. */
    kept_add(&rig->kept, FIRST + 8 * FILL, FILL);
    all_images(rig);
    rig->kept.recorder.refuse = true;
    fake_maintain(&rig->kept.rows);
    assert_int_equal(cold_of(rig), 3);
    rig->kept.recorder.refuse = false;
    row_ask(row_of(rig));
    fake_maintain(&rig->kept.rows);
    assert_int_equal(cold_of(rig), 2);
    rig_end(rig);
}

/* ---- as many tables as there can be ---- */

#define ROUTES 6u

/* Few tables are many here. */
static struct rig *rig_of_few(unsigned dumps_max)
{
    struct rig *rig = rig_begin(3, dumps_max);
    struct row_config config = row_of(rig)->config;
    config.routes = ROUTES;
    row_reconfigure(row_of(rig), &config, false);
    fake_maintain(&rig->kept.rows);
    return rig;
}

/* Adds ids on end, with rounds of images. Returns the first that was refused, or `until`. */
static uint64_t add_until(struct rig *rig, uint64_t from, uint64_t until)
{
    for (uint64_t id = from; id < until; id++) {
        enum fake_answer answer = kept_add_one(&rig->kept, id);
        if (answer == FAKE_NO_TABLE) {
            return id;
        }
        if (answer != FAKE_ADDED) {
            assert_int_equal(answer, FAKE_WAITS);
            one_round(rig);
            id--;
        }
    }
    return until;
}

/* What is logged goes to a file instead of stderr, until said_end(). */
struct said {
    FILE *file;
    int saved;
    char text[4096];
};

static void said_begin(struct said *said)
{
    said->file = tmpfile();
    said->saved = dup(STDERR_FILENO);
    assert_true(said->file != NULL && said->saved >= 0);
    assert_true(dup2(fileno(said->file), STDERR_FILENO) >= 0);
}

static void said_end(struct said *said)
{
    assert_true(dup2(said->saved, STDERR_FILENO) >= 0);
    close(said->saved);
    rewind(said->file);
    size_t length = fread(said->text, 1, sizeof(said->text) - 1, said->file);
    said->text[length] = '\0';
    fclose(said->file);
}

/* All ids of the stream are refused from then on, though memory is free: the log says once what to
 * do, and it helps. */
static void test_full_of_tables(void **unused)
{
    (void)unused;
    struct rig *rig = rig_of_few(0);
    struct row *row = row_of(rig);
    struct said said = {.file = NULL};
    said_begin(&said);
    uint64_t refused = add_until(rig, FIRST, FIRST + 2 * ROUTES * CAPACITY);
    one_round(rig);
    for (uint64_t i = 0; i < 10; i++) {
        assert_int_equal(add_until(rig, refused, refused + 1), refused);
        row_ask(row);
        fake_maintain(&rig->kept.rows);
    }
    said_end(&said);
    assert_in_range(refused, FIRST + (ROUTES - 1) * FILL, FIRST + ROUTES * CAPACITY);
    assert_int_equal(row->count, ROUTES);
    assert_true(row_regions_free(row) > 0);
    const char *first = strstr(said.text, "no table can follow another: ");
    assert_non_null(first);
    assert_non_null(strstr(first, "set dumps-max"));
    assert_null(strstr(first + 1, "no table can follow another: "));
    struct row_config config = row->config;
    config.dumps_max = ROUTES - 3;
    row_reconfigure(row, &config, false);
    fake_maintain(&rig->kept.rows);
    uint64_t until = refused + 2 * ROUTES * CAPACITY;
    assert_int_equal(add_until(rig, refused, until), until);
    expect_same(rig);
    rig_end(rig);
}

/* The largest dumps-max there may be leaves room for all tables in memory: the stream goes on. */
static void test_dumps_max_beside_memory(void **unused)
{
    (void)unused;
    assert_int_equal(ROW_DUMPS_MAX + ROW_TABLES_MAX, ROW_ROUTES_MAX);
    struct rig *rig = rig_of_few(ROUTES - 3);
    uint64_t until = FIRST + 4 * ROUTES * CAPACITY;
    assert_int_equal(add_until(rig, FIRST, until), until);
    assert_int_equal(cold_of(rig), ROUTES - 3);
    assert_true(row_of(rig)->recycled_tables > ROUTES);
    expect_same(rig);
    rig_end(rig);
}

static size_t losses_of(struct rig *rig, unsigned dumps_max, struct engine_loss *loss)
{
    struct engine_loss losses[ENGINE_LOSSES_MAX];
    struct row_config next = row_of(rig)->config;
    size_t count = 0;
    next.dumps_max = dumps_max;
    row_losses(row_of(rig), &next, losses, &count);
    *loss = losses[0];
    return count;
}

/* A smaller number of dumped tables would have some of them dropped at once: that is known before,
 * and after a restart, by what was stored. */
static void test_dumps_max_lowered(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(3, 0);
    struct row *row = row_of(rig);
    struct engine_loss loss;
    for (uint64_t i = 0; i < 8; i++) {
        kept_add(&rig->kept, FIRST + i * FILL, FILL);
        one_round(rig);
    }
    size_t cold = cold_of(rig);
    assert_true(cold > 4);
    assert_int_equal(losses_of(rig, (unsigned)cold, &loss), 0);
    assert_int_equal(losses_of(rig, 0, &loss), 0);
    assert_int_equal(losses_of(rig, 2, &loss), 1);
    assert_string_equal(loss.name, ENGINE_LOSS_DUMPS);
    assert_int_equal(loss.tables, cold - 2);
    assert_int_equal(loss.records, (cold - 2) * FILL);
    /* Where so few were there might be before, they go by that configuration. */
    row->stored = (struct row_bounds){.dumps_max = 3, .tables = 3, .table_bytes = 1};
    assert_int_equal(losses_of(rig, 3, &loss), 0);
    assert_int_equal(losses_of(rig, 2, &loss), 1);
    assert_int_equal(loss.tables, 1);
    assert_int_equal(loss.records, FILL);
    rig_end(rig);
}

/* All is forgotten; what was on its way comes to nothing. */
static void test_clear(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct row *row = row_of(rig);
    struct fake_image image;
    one_round(rig);
    kept_add(&rig->kept, FIRST + 2 * FILL + CAPACITY, FILL);
    assert_true(row_cold_wanted(row));
    assert_true(begins(rig, &image));
    assert_int_equal(image.image.kind, ROW_IMAGE_DUMP);
    row_clear(row);
    assert_false(row_cold_wanted(row));
    assert_false(fake_image_dumped(&rig->kept.rows, &image));
    give_up(rig, &image);
    fake_maintain(&rig->kept.rows);
    assert_int_equal(row->count, 1);
    assert_int_equal(row_regions_free(row), 2);
    kept_add(&rig->kept, FIRST, FILL);
    expect_again(&rig->kept);
    rig_end(rig);
}

/* Every table is cold, and their memory is not cleared yet. */
static void test_clear_cold(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(1, 0);
    struct fake_image image;
    kept_add(&rig->kept, FIRST, 200);
    row_cold_leave(row_of(rig), kept_table(&rig->kept, 0));
    assert_true(begins(rig, &image));
    assert_true(fake_image_copy(&rig->kept.rows, &image, 0));
    assert_true(fake_image_copy(&rig->kept.rows, &image, 1));
    assert_true(fake_image_dumped(&rig->kept.rows, &image));
    fake_image_fini(&image);
    row_check(row_of(rig));
    row_clear(row_of(rig));
    fake_maintain(&rig->kept.rows);
    rig_end(rig);
}

static void test_reconfigured(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct row *row = row_of(rig);
    uint64_t next = FIRST + 2 * FILL + CAPACITY;
    assert_int_equal(kept_add_one(&rig->kept, next), FAKE_WAITS);
    struct fake_image image;
    assert_true(begins(rig, &image));
    struct row_config config = row->config;
    config.dump = false;
    row_reconfigure(row, &config, false);
    assert_true(kept_table(&rig->kept, 0)->leaving); /* it goes on, or fails */
    give_up(rig, &image);
    assert_false(row_cold_wanted(row));
    fake_maintain(&rig->kept.rows);
    assert_false(kept_table(&rig->kept, 0)->leaving);
    assert_int_equal(row->waiters.count, 0);
    config.recycle = true;
    row_reconfigure(row, &config, false);
    fake_maintain(&rig->kept.rows);
    kept_add(&rig->kept, next, FILL);
    assert_true(row->recycled_tables > 0);
    rig_end(rig);
}

/* With recycling tables give their memory: those that have none stay, however old. */
static void test_recycling_spares_the_dumped(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    struct row *row = row_of(rig);
    kept_add(&rig->kept, FIRST, 3 * FILL);
    one_round(rig);
    assert_int_equal(cold_of(rig), 1);
    struct row_config config = row->config;
    config.dump = false;
    config.recycle = true;
    row_reconfigure(row, &config, false);
    fake_maintain(&rig->kept.rows);
    kept_add(&rig->kept, FIRST + 3 * FILL, 4 * FILL);
    assert_true(row->recycled_tables >= 3);
    assert_int_equal(cold_of(rig), 1);
    assert_true(kept_table(&rig->kept, 0)->cold);
    rig_end(rig);
}

/* Where nobody reads a dumped table from the disk none leaves: all are used, then ids are refused.
 */
static void test_without_reader(void **unused)
{
    (void)unused;
    struct rig *rig = rig_begin(4, 0);
    struct row *row = row_of(rig);
    row_set_cold(row, NULL);
    uint64_t id = FIRST;
    while (id < FIRST + 10 * CAPACITY && kept_add_one(&rig->kept, id) == FAKE_ADDED) {
        id++;
    }
    assert_true(kept_add_one(&rig->kept, id) >= FAKE_NO_TABLE);
    assert_int_equal(row->count, 4);
    assert_false(row_images_wanted(row));
    for (size_t i = 0; i < row->count; i++) {
        assert_false(row->tables[i]->leaving);
    }
    row_check(row);
    rig_end(rig);
}

static void test_stats(void **unused)
{
    (void)unused;
    struct rig *rig = rig_in_need(0);
    struct fake_seen *seen = calloc(1, sizeof(*seen));
    assert_non_null(seen);
    struct emitter to = {.emit = fake_see, .context = seen};
    uint64_t held = row_held_bytes(row_of(rig));
    one_round(rig);
    row_emit_space(row_of(rig), &to);
    row_emit_table(row_of(rig), kept_table(&rig->kept, 0), &to);
    row_emit_table(row_of(rig), kept_table(&rig->kept, 1), &to);
    assert_non_null(strstr(seen->text, "oldest=dump\n"));
    assert_non_null(strstr(seen->text, "cold_tables=1\n"));
    assert_non_null(strstr(seen->text, "0:cold=1\n"));
    assert_non_null(strstr(seen->text, "1:cold=0\n"));
    assert_int_equal(row_held_bytes(row_of(rig)), held);
    free(seen);
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spare),
        cmocka_unit_test(test_follower_opens),
        cmocka_unit_test(test_strays),
        cmocka_unit_test(test_open_cold),
        cmocka_unit_test(test_leap_leaving),
        cmocka_unit_test(test_open_leaving),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_wait_for_two),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_failed_later),
        cmocka_unit_test(test_round_failed),
        cmocka_unit_test(test_round_failed_without_dumps),
        cmocka_unit_test(test_waited),
        cmocka_unit_test(test_failed_for_jump),
        cmocka_unit_test(test_overrun),
        cmocka_unit_test(test_overrun_at_the_end),
        cmocka_unit_test(test_overrun_after_failing),
        cmocka_unit_test(test_overrun_reconfigured),
        cmocka_unit_test(test_touched),
        cmocka_unit_test(test_layer),
        cmocka_unit_test(test_layer_first),
        cmocka_unit_test(test_layer_failed),
        cmocka_unit_test(test_stretched),
        cmocka_unit_test(test_stretched_over_all),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_dumps_max),
        cmocka_unit_test(test_full_of_tables),
        cmocka_unit_test(test_dumps_max_beside_memory),
        cmocka_unit_test(test_dumps_max_lowered),
        cmocka_unit_test(test_clear),
        cmocka_unit_test(test_clear_cold),
        cmocka_unit_test(test_reconfigured),
        cmocka_unit_test(test_recycling_spares_the_dumped),
        cmocka_unit_test(test_without_reader),
        cmocka_unit_test(test_stats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
