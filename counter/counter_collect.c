/*
 * counter_collect.c: records of a space in the order of their ids (engine/collect.h).
 *
 * A batch is of one table, its layer, and the ids apart of its range. Ids apart come first: they
 * only go from there into tables. Each step inside the barrier finds its table anew, by serials; if
 * it is gone, or left memory, or its file was replaced before all that lies in front of the file
 * was seen, the batch begins again. That is rare, as tables change seldom.
 *
 * A dumped table: first what lies in front of its file, then the file as it was then, opened anew:
 * that it may be merged and unlinked meanwhile does not matter.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "counter/counter_private.h"
#include "counter/table_collect.h"
#include "store/table_file.h"

#define TRIES_MAX 1000 /* of one batch */

/* PART_LAYER and on: each layer of the table. */
enum part { PART_APART, PART_TABLE, PART_LAYER, PARTS = PART_LAYER + ROW_LAYERS_MAX };

struct collecting {
    struct counter *counter;
    struct engine_collect *to;
    uint64_t serials[PARTS];
    bool has[PARTS];
    bool top;      /* no table is above this one */
    uint64_t at;   /* of a parted row: the batch is of all parts, and here is the next one's base */
    uint64_t next; /* the base of the one after it; 0: there is none */
    bool changed;
};

/* A step is to be made. False: it cannot, and outside. */
static bool collecting_enter(struct collecting *c)
{
    engine_collect_make_room(c->to);
    atomic_fetch_add(&c->to->steps, 1);
    return !*c->to->stop && c->to->enter(c->to->context);
}

static void collecting_leave(const struct collecting *c)
{
    c->to->leave(c->to->context);
}

static enum engine_collect_end why_not(const struct collecting *c)
{
    return *c->to->stop ? ENGINE_COLLECT_STOPPED : ENGINE_COLLECT_GONE;
}

/* Inside. NULL: it is not there. */
static struct row_table *find_part(const struct collecting *c, enum part part)
{
    const struct row *row = &c->counter->row;
    if (part == PART_APART) {
        return row->apart;
    }
    struct row_table *table = row_find_from(row, row->parted ? c->at : c->to->from);
    for (unsigned i = PART_TABLE; i < (unsigned)part && table; i++) {
        table = table->further;
    }
    return table;
}

/* Inside; else `changed`. */
static struct counter_table *same_part(struct collecting *c, enum part part)
{
    struct row_table *table = find_part(c, part);
    c->changed = !table || table->serial != c->serials[part];
    return c->changed ? NULL : counter_table_of(table);
}

/* Inside: what the batch is of. */
static void collecting_look(struct collecting *c)
{
    struct row_table *root = find_part(c, PART_TABLE);
    for (unsigned i = 0; i < PARTS; i++) {
        const struct row_table *table = find_part(c, (enum part)i);
        c->has[i] = table && atomic_load(&table->count) > 0;
        c->serials[i] = table ? table->serial : 0;
    }
    c->top = row_next_base(root) == 0;
    c->next = row_next_base(root);
    if (!c->counter->row.parted) {
        engine_collect_begin(c->to, root->last);
    } else if (c->at == 0) {
        engine_collect_begin(c->to, ROW_ID_MAX);
    }
}

/* ---- in memory ---- */

/* True: it is in memory still. */
static bool is_near(struct collecting *c, const struct counter_table *table)
{
    c->changed = c->changed || counter_table_file(table);
    return !c->changed;
}

static enum engine_collect_end collect_pages(struct collecting *c, enum part part)
{
    uint64_t pages = 1;
    for (uint64_t at = 0; at < pages && !c->changed; at += TABLE_COLLECT_PAGES) {
        if (!collecting_enter(c)) {
            return why_not(c);
        }
        const struct counter_table *table = same_part(c, part);
        if (table && is_near(c, table)) {
            pages = counter_table_pages(table);
            uint64_t left = pages > at ? pages - at : 0;
            unsigned count = left < TABLE_COLLECT_PAGES ? (unsigned)left : TABLE_COLLECT_PAGES;
            counter_table_collect_pages(table, at, count, c->to);
        }
        collecting_leave(c);
    }
    return ENGINE_COLLECT_DONE;
}

static enum engine_collect_end collect_extend(struct collecting *c, enum part part)
{
    uint64_t at = 0;
    for (bool more = true; more && !c->changed;) {
        if (!collecting_enter(c)) {
            return why_not(c);
        }
        const struct counter_table *table = same_part(c, part);
        if (table && is_near(c, table)) {
            more = counter_table_collect_dict(counter_table_extend(table), &at, c->to);
        }
        collecting_leave(c);
    }
    return ENGINE_COLLECT_DONE;
}

/* ---- dumped ---- */

struct dumped {
    struct vfs *vfs;
    uint64_t identity;
    const struct dict *dicts[2]; /* in front of the file */
    struct counter_config config;
    char path[VFS_PATH_MAX];
};

/* Inside: where it lies, and what lies in front of it. */
static void note_dumped(struct collecting *c, const struct counter_table *table, struct dumped *is)
{
    const struct table_file *file = counter_table_file(table);
    is->vfs = table_file_vfs(file);
    is->identity = table_file_info(file)->identity;
    is->config = c->counter->config;
    snprintf(is->path, sizeof(is->path), "%s", table_file_path(file));
    counter_table_overlays(table, &is->dicts[0], &is->dicts[1]);
}

/* Returns whether all that lies in front of the file is still there. Inside. */
static bool is_same(struct collecting *c, const struct counter_table *table,
                    const struct dumped *is)
{
    const struct dict *dicts[2];
    const struct table_file *file = counter_table_file(table);
    c->changed = !file || table_file_info(file)->identity != is->identity;
    if (!c->changed) {
        counter_table_overlays(table, &dicts[0], &dicts[1]);
        c->changed = dicts[0] != is->dicts[0] || dicts[1] != is->dicts[1];
    }
    return !c->changed;
}

static enum engine_collect_end collect_overlay(struct collecting *c, enum part part,
                                               const struct dumped *is, unsigned which)
{
    uint64_t at = 0;
    for (bool more = is->dicts[which] != NULL; more && !c->changed;) {
        if (!collecting_enter(c)) {
            return why_not(c);
        }
        const struct counter_table *table = same_part(c, part);
        if (table && is_same(c, table, is)) {
            more = counter_table_collect_dict(is->dicts[which], &at, c->to);
        }
        collecting_leave(c);
    }
    return ENGINE_COLLECT_DONE;
}

/* Its file is open. */
static enum engine_collect_end collect_opened(struct collecting *c, enum part part,
                                              const struct dumped *is,
                                              const struct table_file *file)
{
    enum engine_collect_end end = ENGINE_COLLECT_DONE;
    c->changed = table_file_info(file)->identity != is->identity;
    for (unsigned i = 0; i < 2 && end == ENGINE_COLLECT_DONE; i++) {
        end = collect_overlay(c, part, is, i);
    }
    if (end != ENGINE_COLLECT_DONE || c->changed) {
        return end;
    }
    return counter_table_collect_file(file, &is->config, c->to);
}

static enum engine_collect_end collect_dumped(struct collecting *c, enum part part,
                                              const struct dumped *is)
{
    struct table_file *file = NULL;
    switch (table_file_open(is->vfs, is->path, true, &file, c->to->error)) {
    case TABLE_FILE_DONE:
        break;
    case TABLE_FILE_ABSENT: /* a merge has just replaced it */
        c->changed = true;
        return ENGINE_COLLECT_DONE;
    default:
        return ENGINE_COLLECT_FAILED;
    }
    enum engine_collect_end end = collect_opened(c, part, is, file);
    table_file_close(file);
    return end;
}

/* ---- a batch ---- */

static enum engine_collect_end collect_part(struct collecting *c, enum part part)
{
    struct dumped is;
    bool cold = false;
    if (!collecting_enter(c)) {
        return why_not(c);
    }
    const struct counter_table *table = same_part(c, part);
    if (table && counter_table_file(table)) {
        cold = true;
        note_dumped(c, table, &is);
    }
    collecting_leave(c);
    if (cold) {
        return collect_dumped(c, part, &is);
    }
    enum engine_collect_end end = c->changed ? ENGINE_COLLECT_DONE : collect_pages(c, part);
    return end == ENGINE_COLLECT_DONE && !c->changed ? collect_extend(c, part) : end;
}

static enum engine_collect_end collect_once(struct collecting *c)
{
    enum engine_collect_end end = ENGINE_COLLECT_DONE;
    c->changed = false;
    if (!collecting_enter(c)) {
        return why_not(c);
    }
    collecting_look(c);
    collecting_leave(c);
    for (unsigned i = 0; i < PARTS && end == ENGINE_COLLECT_DONE && !c->changed; i++) {
        if (c->has[i]) {
            end = collect_part(c, (enum part)i);
        }
    }
    return end;
}

/*
 * Ids lie in parts by their keys, so all parts are looked at for one batch. One that has grown
 * meanwhile is looked at again: its records are in what has followed it.
 */
static enum engine_collect_end collect_parts(struct collecting *c)
{
    enum engine_collect_end end = ENGINE_COLLECT_DONE;
    unsigned tries = 0;
    c->at = 0;
    do {
        end = collect_once(c);
        tries = c->changed ? tries + 1 : 0;
        c->at = c->changed ? c->at : c->next;
    } while (end == ENGINE_COLLECT_DONE && tries < TRIES_MAX && (c->changed || c->at != 0));
    return end;
}

enum engine_collect_end counter_collect(struct engine *engine, struct engine_collect *collect)
{
    struct collecting c = {.counter = (struct counter *)engine, .to = collect};
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        enum engine_collect_end end = c.counter->row.parted ? collect_parts(&c) : collect_once(&c);
        if (end != ENGINE_COLLECT_DONE) {
            return end;
        }
        if (c.changed) {
            continue;
        }
        engine_collect_settle(collect, c.top);
        if (collect->count > 0 || collect->ended) {
            return ENGINE_COLLECT_DONE;
        }
        collect->from = collect->next;
        tries = 0;
    }
    snprintf(collect->error, ENGINE_COLLECT_ERROR,
             "the tables change faster than they can be listed; try again");
    return ENGINE_COLLECT_FAILED;
}
