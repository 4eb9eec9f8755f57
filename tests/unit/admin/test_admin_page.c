/*
 * test_admin_page.c: the largest page that a configuration permits is bounded and well-formed, and
 * nothing is drawn outside its picture, whatever the figures are.
 */
#include "admin/admin_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define PAGE_MAX (60u << 10)
#define NEST_MAX 64
#define TAG_MAX  16
#define EDGE     0.15 /* of numbers with one digit after the point */
#define LONG_AGO 3000000000000ull

/* ---- figures ---- */

struct site {
    struct admin_figures *figures;
    struct admin_history *history;
};

/* Fills a text with one character, which HTML must escape if it is a quote. */
static void fill_text(char *text, size_t size, char with)
{
    memset(text, with, size - 1);
    text[size - 1] = '\0';
}

static void fill_tables(struct admin_space *space)
{
    space->table_count = ADMIN_TABLES_MAX;
    space->tables_left_out = 1000;
    space->tables = space->tables_max = ADMIN_TABLES_MAX + 1000;
    space->spare = 4;
    space->at = memory_zalloc(ADMIN_TABLES_MAX * sizeof(space->at[0]));
    for (size_t i = 0; i < ADMIN_TABLES_MAX; i++) {
        space->at[i] = (struct admin_table){.serial = i,
                                            .state = ADMIN_DUMPING,
                                            .rate = 0.00123456,
                                            .held = LONG_AGO,
                                            .capacity = 2 * LONG_AGO,
                                            .first_id = (uint64_t)INT64_MAX - 2 * i - 1,
                                            .last_id = (uint64_t)INT64_MAX - 2 * i,
                                            .layers = 2};
    }
}

static void fill_slots(struct admin_space *space)
{
    size_t used = 0;

    space->slot_count = ENGINE_SLOTS_MAX;
    for (size_t i = 0; i < ENGINE_SLOTS_MAX; i++) {
        struct admin_slot *slot = &space->slot_list[i];

        *slot = (struct admin_slot){
            .bits = 32, .enough_bits = 64, .largest = UINT64_MAX, .beside = LONG_AGO - 1};
        slot->enough_for = slot->beside;
        fill_text(slot->name, sizeof(slot->name), (char)('a' + i));
        used += (size_t)snprintf(space->slots + used, sizeof(space->slots) - used, "%s%s:32",
                                 i > 0 ? " " : "", slot->name);
        assert_true(used < sizeof(space->slots));
    }
}

/* Everything that can be said of a space is. */
static void fill_space(struct admin_space *space, size_t number)
{
    bool counts = number % 2 == 0;

    fill_text(space->name, sizeof(space->name), 'n');
    snprintf(space->name, sizeof(space->name), "%02zu", number);
    space->name[2] = 'n';
    space->kind = counts ? SPACE_COUNTER : SPACE_PHANTOM;
    space->oldest = SPACE_OLDEST_DUMP;
    space->target = counts ? 0 : 0.00123;
    space->held = space->held_bytes = LONG_AGO;
    space->dumped_tables = space->dumped_bytes = LONG_AGO;
    space->bytes_each = 123.4;
    space->trend.known = true;
    space->trend.added_each_s = 123456;
    space->trend.watched_s = 86400;
    space->room.refuses = true;
    space->full_in_s = 80000;
    for (size_t i = 0; i < ADMIN_REFUSALS_N; i++) {
        space->refused[i] = space->trend.refused[i] = LONG_AGO;
    }
    for (size_t i = 0; i < ENGINE_MEMORY_KINDS; i++) {
        space->memory[i].held_bytes = LONG_AGO;
    }
    fill_tables(space);
    if (counts) {
        fill_slots(space);
    }
}

static void fill_nodes(struct admin_replication *repl)
{
    static char name[REPL_NAME_MAX + 1];

    fill_text(name, sizeof(name), 'o');
    repl->role = ADMIN_ROLE_LEADER;
    repl->has_feeds = repl->waits = repl->leased = true;
    repl->lease_us = 1234567;
    repl->epoch = UINT64_MAX;
    repl->feeds.name = name;
    repl->feeds.waits.count = REPL_WAITS_MAX;
    fill_text(repl->waits_for, sizeof(repl->waits_for), 'w');
    repl->feeds.count = REPL_FEEDS_MAX;
    for (size_t i = 0; i < REPL_FEEDS_MAX; i++) {
        struct repl_feed_stats *feed = &repl->feeds.feeds[i];

        feed->state = REPL_FEED_STREAMING;
        feed->lag_bytes = LONG_AGO;
        feed->lag_us = LONG_AGO;
        fill_text(feed->name, sizeof(feed->name), 'f');
        fill_text(feed->peer, 64, 'p'); /* [v6%scope]:port */
    }
}

static void fill_watches(struct admin_figures *figures)
{
    for (size_t kind = 0; kind < WATCH_KINDS; kind++) {
        figures->hot[kind].count = ADMIN_HOT_MAX;
        figures->hot[kind].worst = 0.123;
        for (size_t i = 0; i < ADMIN_HOT_MAX; i++) {
            fill_text(figures->hot[kind].tops[i].key, WATCH_KEY_MAX, '"');
            figures->hot[kind].tops[i].key[0] = '<';
            figures->hot[kind].tops[i].share = 0.123;
        }
    }
    figures->slow_count = WATCH_SLOW;
    for (size_t i = 0; i < WATCH_SLOW; i++) {
        figures->slow[i] = (struct watch_request){
            .class = WATCH_DELETE, .tier = WATCH_TABLE, .took_us = 1234567, .at_s = 1};
        fill_text(figures->slow[i].key, WATCH_KEY_MAX, '"');
    }
    for (size_t tier = 0; tier < WATCH_TIERS; tier++) {
        figures->times[tier].count = WATCH_BUCKETS * 1000000ull;
        figures->lately[tier] = (struct admin_latency){
            figures->times[tier].count, 999, 99999, 999999, 9999999, 99999999};
        for (size_t i = 0; i < WATCH_BUCKETS; i++) {
            figures->times[tier].counts[i] = 1000000;
        }
    }
}

/* A day of samples that are all different. */
static void fill_history(struct admin_history *history, struct admin_figures *figures)
{
    for (uint64_t second = 1; second <= 86400; second++) {
        struct admin_sample sample = {.at_us = second * 1000000};

        for (size_t line = 0; line < ADMIN_LINES; line++) {
            sample.counted[line] = second * second * (line + 1) + second % 7;
        }
        admin_history_second(history, &sample, second);
        if (admin_history_minute_due(history, sample.at_us)) {
            figures->now_us = sample.at_us;
            admin_history_minute(history, figures);
        }
    }
}

static void fill_site(struct site *site)
{
    struct admin_figures *figures = memory_zalloc(sizeof(*figures));

    site->figures = figures;
    site->history = admin_history_create();
    figures->serving = figures->has_data = figures->has_journal = figures->has_cold = true;
    figures->now_us = 86400ull * 1000000;
    fill_text(figures->address, 64, 'h');
    figures->uptime_s = figures->now_s = LONG_AGO / 1000;
    figures->threads = figures->max_connections = UINT32_MAX;
    figures->memory_bytes = figures->resident_bytes = 100 * LONG_AGO;
    figures->data.disk_bytes = figures->data.disk_free_bytes = LONG_AGO;
    figures->journal.unsynced_us = LONG_AGO;
    figures->journal.full = true;
    figures->journal.segment_bytes = figures->journal.segments = LONG_AGO;
    figures->data.last_checkpoint_s = 1;
    figures->data.checkpoint_running = true;
    fill_watches(figures);
    fill_nodes(&figures->repl);
    fill_history(site->history, figures);
    figures->space_count = SETTINGS_SPACES_MAX;
    for (size_t i = 0; i < SETTINGS_SPACES_MAX; i++) {
        fill_space(&figures->spaces[i], i);
    }
}

static void free_site(struct site *site)
{
    admin_history_destroy(site->history);
    admin_figures_free(site->figures);
    free(site->figures);
}

/* The page, ended by a zero byte. The caller frees it. */
static char *page_of(const struct site *site, size_t *length)
{
    const struct admin_view view = {site->figures, site->history};
    struct evbuffer *out = evbuffer_new();

    admin_make_page(&view, out);
    *length = evbuffer_get_length(out);
    char *page = memory_zalloc(*length + 1);

    assert_int_equal(evbuffer_remove(out, page, *length), (int)*length);
    evbuffer_free(out);
    return page;
}

/* ---- what a browser would read ---- */

struct reading {
    const char *at;
    char open[NEST_MAX][TAG_MAX];
    size_t depth, pictures;
    double wide, tall; /* of the picture it is in */
};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

static void read_close(struct reading *reading, const char *name)
{
    static const char *const may_stay_open[] = {"li", "tr", "td", "th", NULL};

    while (reading->depth > 0 && strcmp(reading->open[reading->depth - 1], name) != 0) {
        if (!is_one_of(reading->open[--reading->depth], may_stay_open)) {
            fail_msg("</%s> within <%s>: %.200s", name, reading->open[reading->depth], reading->at);
        }
    }
    assert_true(reading->depth > 0);
    reading->depth--;
}

/* An item ends where the next one begins, a row and its cells likewise. */
static void read_implied(struct reading *reading, const char *name)
{
    static const char *const ends[][5] = {
        {"li", "li"}, {"td", "td", "th"}, {"th", "td", "th"}, {"tr", "td", "th", "tr"}};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        while (strcmp(ends[i][0], name) == 0 && reading->depth > 0 &&
               is_one_of(reading->open[reading->depth - 1], ends[i] + 1)) {
            reading->depth--;
        }
    }
}

/* The value of an attribute of a tag that ends at `end`; NAN: it has none. */
static double number_of(const char *tag, const char *end, const char *name)
{
    char wanted[TAG_MAX];
    double number = NAN;

    snprintf(wanted, sizeof(wanted), " %s=", name);
    const char *found = strstr(tag, wanted);

    if (found != NULL && found < end) {
        assert_int_equal(sscanf(found + strlen(wanted), "%lf", &number), 1);
        assert_true(isfinite(number));
    }
    return number;
}

static void read_shape(struct reading *reading, const char *tag, const char *end, const char *name)
{
    if (strcmp(name, "svg") == 0) {
        const char *box = strstr(tag, "viewBox=\"0 0 ");

        assert_true(box != NULL && box < end);
        assert_int_equal(sscanf(box, "viewBox=\"0 0 %lf %lf\"", &reading->wide, &reading->tall), 2);
        reading->pictures++;
    } else if (strcmp(name, "rect") == 0) {
        double x = number_of(tag, end, "x"), y = number_of(tag, end, "y");
        double wide = number_of(tag, end, "width"), tall = number_of(tag, end, "height");

        if (wide < 0 || tall < 0 || x < 0 || y < 0 || x + wide > reading->wide + EDGE ||
            y + tall > reading->tall + EDGE) {
            fail_msg("outside of its picture: %.*s", (int)(end - tag), tag);
        }
    }
}

/* The end of a tag: its '>', outside of quotes. */
static const char *tag_end(const char *tag)
{
    bool quoted = false;

    for (; *tag != '\0' && (quoted || *tag != '>'); tag++) {
        quoted ^= *tag == '"';
        assert_true(*tag != '<');
    }
    assert_true(*tag == '>');
    return tag;
}

static void read_tag(struct reading *reading)
{
    static const char *const void_tags[] = {"meta", "link", NULL};
    static const char *const raw_tags[] = {"style", "script", NULL};
    const char *tag = reading->at + 1;
    const char *end = tag_end(tag);
    char name[TAG_MAX] = "";

    if (strncmp(tag, "!DOCTYPE ", 9) != 0) {
        assert_int_equal(sscanf(tag, "%15[a-z0-9/]", name), 1);
    }
    reading->at = end + 1;
    if (name[0] == '/') {
        read_close(reading, name + 1);
        return;
    }
    read_shape(reading, tag, end, name);
    if (name[0] == '\0' || is_one_of(name, void_tags)) {
        return;
    }
    if (end[-1] == '/') { /* else it would be of an attribute's value */
        assert_true(end[-2] == ' ' || end[-2] == '"');
        return;
    }
    read_implied(reading, name);
    assert_true(reading->depth < NEST_MAX);
    snprintf(reading->open[reading->depth++], TAG_MAX, "%s", name);
    if (is_one_of(name, raw_tags)) {
        reading->at = strstr(end, "</");
        assert_non_null(reading->at);
    }
}

/* Every tag is closed, every picture has its shapes inside, and no text is taken for markup. */
static size_t check_page(const char *page)
{
    struct reading *reading = memory_zalloc(sizeof(*reading));

    reading->at = page;
    while (*reading->at != '\0') {
        if (*reading->at == '<') {
            read_tag(reading);
            continue;
        }
        if (*reading->at == '&') {
            size_t word = strspn(reading->at + 1, "#abcdefghijklmnopqrstuvwxyz0123456789");

            assert_true(word > 0 && reading->at[1 + word] == ';');
        }
        assert_true(*reading->at != '>');
        reading->at++;
    }
    assert_int_equal(reading->depth, 0);
    size_t pictures = reading->pictures;

    free(reading);
    return pictures;
}

/* ---- tests ---- */

static void test_largest(void **unused)
{
    struct site site;
    size_t length;

    (void)unused;
    fill_site(&site);
    char *page = page_of(&site, &length);

    if (length > PAGE_MAX) {
        fail_msg("the page has %zu bytes", length);
    }
    assert_true(length > PAGE_MAX / 2); /* all of that is on it */
    assert_true(check_page(page) > 40);
    for (size_t i = 0; i < SETTINGS_SPACES_MAX; i++) {
        assert_non_null(strstr(page, site.figures->spaces[i].name));
    }
    free(page);
    free_site(&site);
}

/* One space alone has all its tables and slots on the page. */
static void test_one(void **unused)
{
    struct site site;
    size_t length;

    (void)unused;
    fill_site(&site);
    for (size_t i = 1; i < SETTINGS_SPACES_MAX; i++) {
        free(site.figures->spaces[i].at);
    }
    site.figures->space_count = 1;
    char *page = page_of(&site, &length);

    assert_true(length <= PAGE_MAX);
    check_page(page);
    assert_null(strstr(page, "Further spaces"));
    free(page);
    free_site(&site);
}

static void spoil(struct admin_figures *figures, double rate, double target, uint64_t small)
{
    for (size_t i = 0; i < figures->space_count; i++) {
        struct admin_space *space = &figures->spaces[i];

        space->target = target;
        for (size_t k = 0; k < space->table_count; k++) {
            space->at[k].rate = rate;
            space->at[k].held = UINT64_MAX;
            space->at[k].capacity = small;
        }
    }
    figures->memory_bytes = small;
    for (size_t tier = 0; tier < WATCH_TIERS; tier++) {
        figures->times[tier].count = small;
    }
}

/* Shares that are none: more than all, less than nothing, no number. */
static void test_wrong_figures(void **unused)
{
    static const double wrong[] = {7, -3, NAN, INFINITY, -INFINITY, 0, 0.001};
    size_t count = sizeof(wrong) / sizeof(wrong[0]);
    struct site site;
    size_t length;

    (void)unused;
    fill_site(&site);
    for (size_t i = 0; i < count * count; i++) {
        spoil(site.figures, wrong[i % count], wrong[i / count], i % 3);
        char *page = page_of(&site, &length);

        check_page(page);
        free(page);
    }
    free_site(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_wrong_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
