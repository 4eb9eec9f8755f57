/*
 * row_follow.h: a row that follows: its replay does not end. Changes and events of another node are
 * replayed in their order, a slice at a time with the world stopped, and between two slices others
 * read the row as ever. Nobody changes it but the replay.
 *
 * What a leader's keeper decides (openings, layers, what settles or is recycled) comes as events.
 * What this row decides itself is what no event says: when a table is dumped, and what is merged.
 * A table leaves as soon as WHOLE says that it may, since an opening will want its memory.
 *
 * So an opening may come before the dump has ended that is to make room for it. Then replay waits
 * (row_follow_ready), not the journal: the dump needs nothing that is still to come. If no table is
 * about to leave, memory beyond the row's budget is taken, as at a start; so it is while nothing is
 * dumped, since tables are ahead of the journal. Likewise a part that is dumped here, and has grown
 * there, comes back first.
 *
 * row_restore_end ends it: the row decides for itself from there on.
 *
 * Thread rule: world stopped.
 */
#ifndef ROLLCALL_ROW_ROW_FOLLOW_H
#define ROLLCALL_ROW_ROW_FOLLOW_H

#include "row/row_data.h"

/* All that is there was replayed (row_restore_complete, row_replay), and others may read. */
void row_follow_begin(struct row *row);
static inline bool row_follows(const struct row *row)
{
    return row->follows;
}
/* Returns whether this event may be replayed now. False: later. Bytes: as in row_replay_event().
 * dumps: tables are dumped now, if they may be. */
bool row_follow_ready(struct row *row, enum change_event event, const void *bytes, size_t length,
                      bool dumps);

/*
 * A change may need a page of a dumped table's file: to say which of table and layer has the
 * record, or what of it stays. No disk is waited for with the world stopped: such a change is
 * replayed alone, by row_follow_replay, and later where its page is not here.
 */
bool row_follow_dumped(const struct row *row); /* any table is */
/* Returns whether the change is one. ticket: its pages are asked for, too (store/cold.h); NULL: no.
 */
bool row_follow_reads(struct row *row, const struct engine_replay *replay,
                      const struct ticket *ticket);
enum row_replayed row_follow_replay(struct row *row, const struct engine_replay *replay,
                                    const struct ticket *ticket, char error[ENGINE_ERROR_MAX]);

/* Notices which dumps and merges are due. Now and then. */
void row_follow_see(struct row *row);

#endif
