/* counter_kind.c: counters as a kind of table of a row. */
#include "base/check.h"
#include "counter/counter_private.h"
#include "row/row_follow.h"
#include "row/row_image.h"
#include "row/table_kind.h"

/* ---- a table ---- */

static const struct counter_table *counter_kind_table(const struct row_table *table)
{
    return (const struct counter_table *)(const void *)table;
}

static struct row_table *counter_kind_create(struct engine *engine, const struct row_want *want)
{
    struct counter *counter = counter_of(engine);
    struct counter_config config = counter->config;
    config.row.table_bytes = want->region_bytes;
    struct counter_table *table = counter_table_create(&config, want, &counter->row);
    return table ? counter_table_in_row(table) : NULL;
}

static void counter_kind_destroy(struct row_table *table)
{
    counter_table_destroy(counter_table_of(table));
}

/* Returns a full table's range by the given spacing, before a table has shown one. */
static uint64_t spaced_range(const struct row_table *table, uint64_t spacing)
{
    unsigned __int128 range = (unsigned __int128)table->capacity * spacing;
    return range > ROW_ID_MAX ? ROW_ID_MAX : (uint64_t)range;
}

static void counter_kind_settle(struct engine *engine, struct row_table *table)
{
    const struct counter *counter = counter_of(engine);
    struct counter_table *this = counter_table_of(table);
    table->range = spaced_range(table, counter->config.id_spacing);
    counter_table_settle(this);
    if (!counter_schema_is(counter_table_schema(this), &counter->config)) {
        /* The slots were changed while nobody knew where the next table would begin. */
        atomic_fetch_or(&table->wants, ROW_WANT_RENEW);
    }
}

static void counter_kind_reopened(struct engine *engine)
{
    counter_forget_below(counter_of(engine));
}

/* ---- parts ---- */

static uint64_t counter_kind_part_fill(const struct row_table *table, uint64_t base, uint64_t last,
                                       uint64_t bytes)
{
    return counter_table_part_fill(counter_kind_table(table), base, last, bytes);
}

static bool counter_kind_part_move(struct row_table *from, struct row_table *to)
{
    return counter_table_part_move(counter_table_of(from), counter_table_of(to));
}

static bool counter_kind_recall(struct row_table *part, struct row_table *loaded, bool stopped)
{
    if (!stopped) {
        return counter_table_recall_older(counter_table_of(part), counter_table_of(loaded));
    }
    counter_table_recall(counter_table_of(part), counter_table_of(loaded));
    if (part->owner->log != NULL) { /* else replay goes on, and needs all its room */
        counter_table_restored(counter_table_of(part));
    }
    return true;
}

/* ---- ids apart ---- */

static bool counter_kind_place(struct engine *engine, struct row_table *apart, struct row_table *to,
                               struct change_sink *sink)
{
    return counter_table_place(counter_table_of(apart), counter_table_of(to), engine->space, sink);
}

static uint64_t counter_kind_forget(struct row_table *apart, uint64_t first, uint64_t last)
{
    return counter_table_forget(counter_table_of(apart), first, last);
}

/* ---- images ---- */

static size_t counter_kind_describe(const struct row_table *table, unsigned char *bytes,
                                    unsigned *doubles)
{
    return counter_table_describe(counter_kind_table(table), bytes, doubles);
}

static uint64_t counter_kind_copy_pages(const struct row_table *table, uint64_t first,
                                        uint64_t most, void *to)
{
    uint64_t left = counter_table_pages(counter_kind_table(table)) - first;
    uint64_t count = left < most ? left : most;
    counter_table_copy_pages(counter_kind_table(table), first, (unsigned)count, to);
    return count;
}

static const struct dict *counter_kind_section(const struct row_table *table, unsigned section,
                                               unsigned part, const struct dict **front)
{
    return counter_table_section(counter_kind_table(table), section, part, front);
}

static bool counter_kind_owns(const struct row_table *table, uint64_t id, uint8_t sub)
{
    return counter_table_owns_aux(counter_kind_table(table), id, sub);
}

static bool counter_kind_load(struct engine *engine, struct row_table *table,
                              const struct table_file *file, _Atomic uint64_t *done,
                              const _Atomic bool *stop, char error[ENGINE_ERROR_MAX])
{
    (void)engine;
    return counter_table_load(counter_table_of(table), file, done, stop, error);
}

static void counter_kind_restored(struct engine *engine, struct row_table *table)
{
    struct counter_table *this = counter_table_of(table);
    if (counter_table_is_previewed(this)) {
        counter_table_set_view(this, &counter_of(engine)->config);
    }
    if (!row_follows(&counter_of(engine)->row)) { /* else replay goes on, and needs all its room */
        counter_table_restored(this);
    }
}

/* ---- dumps ---- */

static bool counter_kind_file_begin(struct row_table *table, struct engine_cold *cold,
                                    unsigned overruns)
{
    return counter_table_file_begin(counter_table_of(table), cold, overruns);
}

static struct table_file *counter_kind_file_end(struct row_table *table, struct table_file *file)
{
    return counter_table_file_end(counter_table_of(table), file);
}

static enum row_fold counter_kind_fold(struct row_table *table, unsigned most)
{
    return counter_table_fold(counter_table_of(table), most);
}

static bool counter_kind_load_dumped(struct engine *engine, struct row_table *table,
                                     struct engine_cold *cold, struct table_file *file,
                                     const struct table_file *overlay, char error[ENGINE_ERROR_MAX])
{
    (void)engine;
    return counter_table_restore_cold(counter_table_of(table), cold, file, overlay, error);
}

static void counter_kind_overlay_size(const struct row_table *table, struct row_overlay_size *size)
{
    counter_table_overlay_size(counter_kind_table(table), size);
}

static enum engine_image counter_kind_merge_write(const struct row_writing *w)
{
    struct row_table *table;
    enum engine_image result = row_writing_enter(w, &table);
    if (result != ENGINE_IMAGE_DONE) {
        return result;
    }
    struct counter_merge *merge = counter_merge_create(counter_kind_table(table));
    row_writing_leave(w);
    result = counter_merge_write(merge, w->writer, w->stop);
    counter_merge_destroy(merge);
    return result;
}

const struct table_kind counter_kind = {
    .name = "counter",
    .apart_section = COUNTER_TABLE_EXTEND,
    .overlay_sections = COUNTER_TABLE_SECTIONS,
    .sifted = 1u << COUNTER_TABLE_AUX,
    .create = counter_kind_create,
    .destroy = counter_kind_destroy,
    .settle = counter_kind_settle,
    .reopened = counter_kind_reopened,
    .part_fill = counter_kind_part_fill,
    .part_move = counter_kind_part_move,
    .recall = counter_kind_recall,
    .place = counter_kind_place,
    .forget = counter_kind_forget,
    .write_space = counter_write_space,
    .take_space = counter_take_space,
    .describe = counter_kind_describe,
    .described_bytes = counter_table_described_bytes,
    .replay = counter_replay,
    .replay_reads = counter_replay_reads,
    .copy_pages = counter_kind_copy_pages,
    .section = counter_kind_section,
    .owns = counter_kind_owns,
    .load = counter_kind_load,
    .restored = counter_kind_restored,
    .file_begin = counter_kind_file_begin,
    .file_end = counter_kind_file_end,
    .fold = counter_kind_fold,
    .load_dumped = counter_kind_load_dumped,
    .overlay_size = counter_kind_overlay_size,
    .merge_write = counter_kind_merge_write,
};
