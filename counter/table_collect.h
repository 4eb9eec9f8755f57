/*
 * table_collect.h: ids of a table for lists (engine/collect.h): of one in memory page by page and
 * piece by piece of its dicts, of a dumped one from its file, which is read by whoever lists.
 *
 * Thread rule: as said at each.
 */
#ifndef ROLLCALL_COUNTER_TABLE_COLLECT_H
#define ROLLCALL_COUNTER_TABLE_COLLECT_H

#include "counter/table.h"
#include "engine/collect.h"

#define TABLE_COLLECT_PAGES   16u   /* of a step: at most ENGINE_COLLECT_STEP ids */
#define TABLE_COLLECT_ENTRIES 4096u /* of a step */

/* Ids in the groups of some pages, at most TABLE_COLLECT_PAGES. Inside the barrier. */
void counter_table_collect_pages(const struct counter_table *t, uint64_t first, unsigned count,
                                 struct engine_collect *collect);
/* Ids of a piece of a dict; *at is 0 at first. True: there is more. Inside the barrier. */
bool counter_table_collect_dict(const struct dict *dict, uint64_t *at,
                                struct engine_collect *collect);
/* What holds ids of a table in memory beside its groups. Inside the barrier. */
const struct dict *counter_table_extend(const struct counter_table *t);
/* What lies in front of the file of a dumped one: `older` may be NULL. Inside the barrier. */
void counter_table_overlays(const struct counter_table *t, const struct dict **overlay,
                            const struct dict **older);
/* NULL: it is in memory. Inside the barrier. */
const struct table_file *counter_table_file(const struct counter_table *t);

/*
 * Records of the file of a dumped table, with their texts by `config`. Blocks; touches no table
 * that others know.
 */
enum engine_collect_end counter_table_collect_file(const struct table_file *file,
                                                   const struct counter_config *config,
                                                   struct engine_collect *collect);

#endif
