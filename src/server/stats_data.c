/* stats: what is on the disk. Only with a data directory. */
#include <string.h>

#include "server/data.h"
#include "server/stats_private.h"

#define PERCENT 100

static void emit_journal(struct stats_out *out, const struct journal *journal)
{
    struct journal_stats stats;

    journal_stats(journal, &stats);
    stats_number(out, "journal_head", stats.head);
    stats_number(out, "journal_written", stats.written);
    stats_number(out, "journal_durable", stats.durable);
    stats_number(out, "journal_oldest", stats.oldest);
    stats_number(out, "journal_unsynced_us", stats.unsynced_us);
    stats_number(out, "journal_segments", stats.segments);
    stats_number(out, "journal_bytes", stats.segment_bytes);
    stats_number(out, "journal_buffer_used_bytes", stats.buffer_used_bytes);
    stats_number(out, "journal_records", stats.records);
    stats_number(out, "journal_writes", stats.writes);
    stats_number(out, "journal_syncs", stats.syncs);
    stats_number(out, "journal_reserve_failures", stats.reserve_failures);
    stats_number(out, "journal_full", stats.full);
    stats_number(out, "journal_failed", stats.failed);
}

static void emit_loading(struct stats_out *out, const struct data_stats *stats)
{
    uint64_t done = stats->load_done_bytes;
    uint64_t total = stats->load_total_bytes;

    stats_number(out, "load_done_bytes", done);
    stats_number(out, "load_total_bytes", total);
    stats_number(out, "load_percent",
                 total > 0 ? (uint64_t)((double)done / (double)total * PERCENT) : 0);
    stats_number(out, "replayed_records", stats->replayed_records);
}

static void emit_checkpoints(struct stats_out *out, const struct data_stats *stats)
{
    stats_number(out, "checkpoints", stats->checkpoints);
    stats_number(out, "checkpoint_failures", stats->checkpoint_failures);
    stats_number(out, "checkpoint_running", stats->checkpoint_running);
    stats_number(out, "checkpoint_lsn", stats->checkpoint_lsn);
    stats_number(out, "last_checkpoint", stats->last_checkpoint_s);
    stats_number(out, "last_checkpoint_us", stats->last_checkpoint_us);
    stats_number(out, "images", stats->images);
    stats_number(out, "image_bytes", stats->image_bytes);
    stats_number(out, "table_files", stats->table_files);
    stats_number(out, "table_file_bytes", stats->table_file_bytes);
    stats_number(out, "recovery_us", stats->recovery_us);
    stats_number(out, "recovered_records", stats->recovered_records);
    stats_number(out, "recovery_cut_bytes", stats->cut_bytes);
}

void stats_data(struct stats_out *out)
{
    const struct dispatch_worker *worker = out->worker;
    const struct data *data = worker->server->data;

    if (worker->journal != NULL) {
        emit_journal(out, worker->journal);
    }
    if (data == NULL) {
        return;
    }
    struct data_stats stats;

    data_stats(data, &stats);
    stats_number(out, "loading", worker->loading);
    if (worker->loading) {
        emit_loading(out, &stats);
    } else {
        emit_checkpoints(out, &stats);
    }
}
