/*
 * table_image.c: the groups of a table copied while they are used, and a table filled again from
 * the file they were written to.
 *
 * A page is copied so that all its groups are as they were at one moment, since records move
 * between groups of one page: each group's word is noted, then the group copied; when all are,
 * every word is looked at again. Those that changed are copied anew; after COPY_TRIES rounds the
 * page's groups are locked, in rising order. Waiting for a second lock is safe: who holds one only
 * tries further ones (table_insert.c).
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/point.h"
#include "counter/table_private.h"
#include "engine/engine.h"
#include "store/dict_image.h"

#define COPY_TRIES      8u
#define PAGE_GROUPS_MAX (TABLE_PAGE_BYTES / TABLE_GROUP_BYTES)

_Static_assert(TABLE_PAGE_BYTES == TABLE_FILE_PAGE_BYTES, "a file's page is the table's");
_Static_assert(ENGINE_ERROR_MAX >= TABLE_FILE_ERROR_MAX, "errors of a file are passed on");

/* ---- copying ---- */

/* Copies one group as `word` says it is, without lock and version. */
static void copy_group(const struct counter_table *t, uint64_t group, uint32_t word, uint64_t *to)
{
    const shared_word *words = group_words(t, group);
    size_t last = t->shape.group_bytes / sizeof(*to) - 1;
    for (size_t i = 0; i <= last; i++) {
        to[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    }
    to[last] = (to[last] & UINT32_MAX) | (uint64_t)group_word_still(t, word) << 32;
}

/* Notes the word of a group, and copies it. */
static void copy_anew(const struct counter_table *t, uint64_t first, unsigned i, uint32_t *words,
                      uint64_t *to)
{
    words[i] = verlock_read(group_lock(t, group_words(t, first + i)));
    copy_group(t, first + i, words[i], to + i * (t->shape.group_bytes / sizeof(*to)));
}

/* Copies what changed since it was copied last. False: nothing had. */
static bool copy_changed(const struct counter_table *t, uint64_t first, uint32_t *words,
                         uint64_t *to)
{
    bool any = false;
    for (unsigned i = 0; i < t->page_groups; i++) {
        if (!verlock_unchanged(group_lock(t, group_words(t, first + i)), words[i])) {
            copy_anew(t, first, i, words, to);
            any = true;
        }
    }
    return any;
}

static void copy_locked(const struct counter_table *t, uint64_t first, uint64_t *to)
{
    uint32_t words[PAGE_GROUPS_MAX];
    for (unsigned i = 0; i < t->page_groups; i++) {
        words[i] = verlock_take(group_lock(t, group_words(t, first + i)));
    }
    for (unsigned i = 0; i < t->page_groups; i++) {
        copy_group(t, first + i, words[i], to + i * (t->shape.group_bytes / sizeof(*to)));
    }
    for (unsigned i = 0; i < t->page_groups; i++) {
        verlock_release(group_lock(t, group_words(t, first + i)), words[i]);
    }
}

static void copy_page(const struct counter_table *t, uint64_t page, uint64_t *to)
{
    uint64_t first = page * t->page_groups;
    uint32_t words[PAGE_GROUPS_MAX];
    for (unsigned i = 0; i < t->page_groups; i++) {
        words[i] = verlock_read(group_lock(t, group_words(t, first + i)));
    }
    POINT("page begun, not copied");
    for (unsigned i = 0; i < t->page_groups; i++) {
        copy_group(t, first + i, words[i], to + i * (t->shape.group_bytes / sizeof(*to)));
    }
    for (unsigned tries = 0; tries < COPY_TRIES; tries++) {
        if (!copy_changed(t, first, words, to)) {
            return;
        }
    }
    copy_locked(t, first, to);
}

void counter_table_copy_pages(const struct counter_table *t, uint64_t first, unsigned count,
                              void *to)
{
    CHECK(t->magic == TABLE_MAGIC);
    CHECK((first + count) * TABLE_PAGE_BYTES <= t->shape.table_bytes);
    for (unsigned i = 0; i < count; i++) {
        POINT("pages half copied");
        copy_page(t, first + i, (uint64_t *)to + i * (TABLE_PAGE_BYTES / sizeof(uint64_t)));
    }
}

uint64_t counter_table_pages(const struct counter_table *t)
{
    return t->memory ? t->shape.table_bytes / TABLE_PAGE_BYTES : 0;
}

const struct dict *counter_table_section(const struct counter_table *t, unsigned section,
                                         unsigned part, const struct dict **front)
{
    const struct table_overlay *overlays[] = {t->older ? t->older : t->overlay,
                                              t->older ? t->overlay : NULL};
    bool extend = section == COUNTER_TABLE_EXTEND;
    CHECK(section < COUNTER_TABLE_SECTIONS && part < sizeof(overlays) / sizeof(overlays[0]));
    if (t->extend) {
        return part > 0 ? NULL : extend ? t->extend : t->aux;
    }
    *front = part == 0 && t->older ? t->overlay->extend : NULL;
    return !overlays[part] ? NULL : extend ? overlays[part]->extend : overlays[part]->aux;
}

/* Under the lock of its home. */
static bool overlays_have(const struct counter_table *t, uint64_t id, uint8_t sub)
{
    return dict_get(t->overlay->aux, id, sub, NULL) ||
           (t->older && !dict_get(t->overlay->extend, id, 0, NULL) &&
            dict_get(t->older->aux, id, sub, NULL));
}

bool counter_table_owns_aux(const struct counter_table *t, uint64_t id, uint8_t sub)
{
    struct counter_locus locus;
    counter_table_locate(t, id, false, &locus);
    const verlock *home = table_home_lock(t, &locus);
    uint32_t word;
    bool there;
    do {
        word = verlock_read(home);
        there = t->extend ? dict_get(t->aux, id, sub, NULL) : overlays_have(t, id, sub);
    } while (!verlock_unchanged(home, word));
    return there;
}

/* ---- loading ---- */

struct loading {
    struct counter_table *table;
    const struct table_file *file;
    _Atomic uint64_t *done;
    const _Atomic bool *stop;
    char *error;    /* ENGINE_ERROR_MAX */
    uint64_t pages; /* looked at */
    uint64_t records;
    bool bad; /* and `error` says what is */
};

static bool complain(struct loading *loading, const char *what, uint64_t number)
{
    snprintf(loading->error, ENGINE_ERROR_MAX, "%s: %s %" PRIu64 " is not one of this table's",
             table_file_path(loading->file), what, number);
    loading->bad = true;
    return false;
}

/* T2 of one group; counts its records. */
static bool take_group(struct loading *loading, uint64_t group)
{
    struct counter_table *t = loading->table;
    const shared_word *words = group_words(t, group);
    uint32_t word = __atomic_load_n(group_lock(t, words), __ATOMIC_RELAXED);
    uint32_t count = group_count(t, word);
    if (word != group_word_still(t, word) || count > t->shape.places ||
        (uint64_t)group_choices(t, words, word) >> count != 0) {
        return false;
    }
    loading->records += count;
    table_shadow_group(t, group, word);
    return true;
}

/* Checks the groups of a piece that has come, while they are in the cache. */
static bool take_pages(void *context, uint64_t pages_done)
{
    struct loading *loading = context;
    const struct counter_table *t = loading->table;
    uint64_t bytes = (pages_done - loading->pages) * TABLE_PAGE_BYTES;
    for (; loading->pages < pages_done; loading->pages++) {
        for (unsigned i = 0; i < t->page_groups; i++) {
            if (!take_group(loading, loading->pages * t->page_groups + i)) {
                return complain(loading, "page", loading->pages);
            }
        }
    }
    atomic_fetch_add(loading->done, bytes);
    return !*loading->stop;
}

/* A group's record is newer than the dict's, or replay makes it so. */
static bool wants_record(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    struct loading *loading = context;
    struct counter_table *t = loading->table;
    struct counter_locus locus;
    (void)value;
    if (sub != 0 || id > ROW_ID_MAX) {
        return complain(loading, "the entry of id", id);
    }
    counter_table_locate(t, id, true, &locus);
    if (locus.group != TABLE_OUTSIDE) {
        if (table_in_groups(t, &locus)) {
            return false;
        }
        verlock *home = group_lock(t, group_words(t, locus.group));
        verlock_release(home, __atomic_load_n(home, __ATOMIC_RELAXED) | GROUP_SPILLED);
    }
    loading->records++;
    return true;
}

/* A name learned since the image began: replay learns it again, and what it holds. */
static bool wants_value(void *context, uint64_t id, uint8_t sub, const uint64_t *value)
{
    const struct counter_table *t = ((struct loading *)context)->table;
    (void)id;
    (void)value;
    return sub < t->schema.slot_count ||
           (sub >= ENGINE_SLOTS_MAX && sub < ENGINE_SLOTS_MAX + t->schema.extra_count);
}

static bool load_groups(struct loading *loading)
{
    struct counter_table *t = loading->table;
    const struct table_file_info *info = table_file_info(loading->file);
    if (info->pages != counter_table_pages(t) || info->sections != COUNTER_TABLE_SECTIONS) {
        snprintf(loading->error, ENGINE_ERROR_MAX,
                 "%s: it has %" PRIu64 " pages and %u sections, its description says otherwise",
                 table_file_path(loading->file), info->pages, info->sections);
        return false;
    }
    if (!table_dicts_hold(t, info->section[COUNTER_TABLE_EXTEND].entries,
                          info->section[COUNTER_TABLE_AUX].entries)) {
        return fail_with(loading->error, ENGINE_ERROR_MAX, "%s: no memory for its entries",
                         table_file_path(loading->file));
    }
    if (info->pages == 0) {
        return true;
    }
    memory_populate_until((void *)t->memory, t->shape.table_bytes, loading->stop);
    return table_file_load_pages(loading->file, 0, info->pages, (void *)t->memory, take_pages,
                                 loading, loading->error) == TABLE_FILE_DONE;
}

static bool load_entries(struct loading *loading)
{
    struct counter_table *t = loading->table;
    return dict_image_load(loading->file, COUNTER_TABLE_EXTEND, t->extend, wants_record, loading,
                           loading->error) == TABLE_FILE_DONE &&
           !loading->bad &&
           dict_image_load(loading->file, COUNTER_TABLE_AUX, t->aux, wants_value, loading,
                           loading->error) == TABLE_FILE_DONE;
}

bool counter_table_load(struct counter_table *t, const struct table_file *file,
                        _Atomic uint64_t *done, const _Atomic bool *stop,
                        char error[ENGINE_ERROR_MAX])
{
    CHECK(t->magic == TABLE_MAGIC);
    const struct table_file_info *info = table_file_info(file);
    struct loading loading = {.table = t, .file = file, .done = done, .stop = stop, .error = error};
    error[0] = '\0';
    if (!load_groups(&loading) || !load_entries(&loading)) {
        return false;
    }
    atomic_fetch_add(done, info->file_bytes - info->pages * TABLE_PAGE_BYTES);
    atomic_store(&t->row.count, loading.records);
    return true;
}
