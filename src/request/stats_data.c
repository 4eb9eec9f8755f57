/* stats: what is on the disk. Only with a data directory. */
#include <stdio.h>

#include "data/data.h"
#include "request/stats_private.h"
#include "store/open_files.h"

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
    stats_number(out, "dumps", stats->dumps);
    stats_number(out, "dump_merges", stats->merges);
    stats_number(out, "dump_failures", stats->dump_failures);
    stats_number(out, "dump_files", stats->dump_files);
    stats_number(out, "dump_file_bytes", stats->dump_file_bytes);
}

/* ---- dumped tables ---- */

static void emit_cold(struct stats_out *out, struct cold *cold)
{
    struct cold_stats stats;

    cold_stats(cold, &stats);
    stats_number(out, "cold_reads", stats.reads);
    stats_number(out, "cold_hits", stats.hits);
    stats_number(out, "cold_misses", stats.misses);
    stats_number(out, "cold_joined", stats.joined);
    stats_number(out, "cold_busy", stats.busy);
    stats_number(out, "cold_queue", stats.depth);
    stats_number(out, "cold_queue_highest", stats.depth_highest);
    stats_number(out, "cold_promised", stats.promised);
    stats_number(out, "cold_cache_bytes", stats.cached_bytes);
    stats_number(out, "cold_evicted", stats.evicted);
    stats_number(out, "cold_bad_pages", stats.bad_pages);
    stats_number(out, "cold_failed", stats.failed);
}

static void emit_files(struct stats_out *out, const struct data *data)
{
    struct open_files_stats stats;

    data_files_stats(data, &stats);
    stats_number(out, "cold_files_limit", stats.limit);
    stats_number(out, "cold_files_open", stats.open);
    stats_number(out, "cold_files_opened", stats.opened);
    stats_number(out, "cold_files_waits", stats.waits);
}

/* latency_below_us:N: reads that took less than N microseconds, and not less than the one before.
 */
void stats_cold(struct stats_out *out)
{
    struct cold *cold = out->worker->server->cold;
    struct cold_stats stats;
    char name[32];

    if (cold == NULL) {
        return;
    }
    emit_cold(out, cold);
    cold_stats(cold, &stats);
    for (unsigned i = 0; i + 1 < COLD_LATENCY_BUCKETS; i++) {
        snprintf(name, sizeof(name), "latency_below_us:%lu", 1ul << i);
        stats_number(out, name, stats.latency_us[i]);
    }
    stats_number(out, "latency_longer", stats.latency_us[COLD_LATENCY_BUCKETS - 1]);
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
    emit_checkpoints(out, &stats);
    if (worker->has_cold) {
        emit_cold(out, worker->server->cold);
        emit_files(out, data);
    }
}
