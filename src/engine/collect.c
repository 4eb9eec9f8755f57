/* collect.c: the smallest ids of many, sorted: see collect.h. */
#include "engine/collect.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

#define DIGIT_BITS 8u
#define DIGITS     (64u / DIGIT_BITS)
#define DIGIT_SIZE (1u << DIGIT_BITS)

void engine_collect_init(struct engine_collect *c, size_t most)
{
    memset(c, 0, sizeof(*c));
    CHECK(most > 0);
    c->most = most;
    c->room = 2 * most + ENGINE_COLLECT_STEP;
    c->items = memory_zalloc(c->room * sizeof(*c->items));
    c->spare = memory_zalloc(c->room * sizeof(*c->spare));
    c->texts_max = most * ENGINE_COLLECT_TEXT;
}

void engine_collect_fini(struct engine_collect *c)
{
    free(c->items);
    free(c->spare);
    free(c->texts);
    memset(c, 0, sizeof(*c));
}

void engine_collect_begin(struct engine_collect *c, uint64_t last)
{
    c->count = 0;
    c->texts_length = 0;
    c->last = last;
    c->cut = c->ended = false;
    c->error[0] = '\0';
}

static unsigned collect_digit(const struct engine_collected *item, unsigned digit)
{
    return (unsigned)(item->id >> digit * DIGIT_BITS) & (DIGIT_SIZE - 1);
}

static void swap_items(struct engine_collect *c)
{
    struct engine_collected *items = c->items;
    c->items = c->spare;
    c->spare = items;
}

/* Sorts, stably. A digit that all ids have in common costs one look at each. */
static void sort_by_digit(struct engine_collect *c, unsigned digit)
{
    size_t starts[DIGIT_SIZE] = {0};
    for (size_t i = 0; i < c->count; i++) {
        starts[collect_digit(&c->items[i], digit)]++;
    }
    if (starts[collect_digit(&c->items[0], digit)] == c->count) {
        return;
    }
    size_t at = 0;
    for (unsigned i = 0; i < DIGIT_SIZE; i++) {
        size_t count = starts[i];
        starts[i] = at;
        at += count;
    }
    for (size_t i = 0; i < c->count; i++) {
        c->spare[starts[collect_digit(&c->items[i], digit)]++] = c->items[i];
    }
    swap_items(c);
}

/* Texts of what stays, in its order. */
static void move_texts(struct engine_collect *c)
{
    if (c->texts_length == 0) {
        return;
    }
    char *texts = memory_zalloc(c->texts_room);
    size_t length = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct engine_collected *item = &c->items[i];
        memcpy(texts + length, c->texts + item->text_at, item->text_length);
        item->text_at = (uint32_t)length;
        length += item->text_length;
    }
    free(c->texts);
    c->texts = texts;
    c->texts_length = length;
}

/* Sorted, each id once, no more than there is room for. */
static void tidy(struct engine_collect *c)
{
    size_t kept = 0;
    size_t bytes = 0;
    for (unsigned digit = 0; digit < DIGITS && c->count > 0; digit++) {
        sort_by_digit(c, digit);
    }
    for (size_t i = 0; i < c->count; i++) {
        struct engine_collected *item = &c->items[i];
        if (kept > 0 && c->items[kept - 1].id == item->id) {
            continue;
        }
        if (kept == c->most || (kept > 0 && bytes + item->text_length > c->texts_max)) {
            c->cut = true;
            break;
        }
        bytes += item->text_length;
        c->items[kept++] = *item;
    }
    c->count = kept;
    if (c->cut && kept > 0) {
        c->last = c->items[kept - 1].id;
    }
    move_texts(c);
}

void engine_collect_make_room(struct engine_collect *c)
{
    if (c->count + ENGINE_COLLECT_STEP > c->room || c->texts_length > 2 * c->texts_max) {
        tidy(c);
    }
}

void engine_collect_add(struct engine_collect *c, uint64_t id)
{
    CHECK(c->count < c->room);
    c->items[c->count++] = (struct engine_collected){.id = id};
}

void engine_collect_add_text(struct engine_collect *c, uint64_t id, const char *text, size_t length)
{
    engine_collect_make_room(c);
    if (!engine_collect_wants(c, id)) {
        return; /* what was dropped for room was smaller */
    }
    if (c->texts_length + length > c->texts_room) {
        c->texts_room = 2 * (c->texts_length + length);
        c->texts = realloc(c->texts, c->texts_room);
        CHECK(c->texts != NULL);
    }
    memcpy(c->texts + c->texts_length, text, length);
    engine_collect_add(c, id);
    c->items[c->count - 1].text_at = (uint32_t)c->texts_length;
    c->items[c->count - 1].text_length = (uint32_t)length;
    c->texts_length += length;
}

void engine_collect_settle(struct engine_collect *c, bool top)
{
    tidy(c);
    c->ended = top && !c->cut;
    c->next = c->last + 1;
}
