/*
 * Micro-benchmark of the journal (`make bench`): nanoseconds a put, and a put with its share of the
 * commit, of one-slot records by one writer; records a second, with the sync thread at work; and
 * how fast a scan reads them back.
 *
 * usage: bench_journal [DIRECTORY]      default: a new one in /tmp; files in it are removed again
 *
 * The disk is part of what is measured, but for `put` and under `never`, as long as the system's
 * memory takes it all. Each figure is of one run: writing again would only find a warmer disk.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "store/journal.h"
#include "tests/bench/line.h"

#define USAGE         "bench_journal [DIRECTORY]"
#define RECORDS       (4u << 20)
#define RECORD_BYTES  24u /* of a change of one slot */
#define PAYLOAD_BYTES (RECORD_BYTES - JOURNAL_HEADER_BYTES)
#define CLOSED_BYTES  16u /* of the clean end */
#define TYPE          JOURNAL_TYPES_RESERVED
#define PUT_RECORDS   (1u << 20) /* without a commit: what the ring holds */
#define GOAL_PUT_NS   40.0
#define GOAL_RATE     5e6

static const unsigned batches[] = {1, 16, 256};
#define BATCHES (sizeof(batches) / sizeof(batches[0]))

enum payload_word { ID, VALUE, PAYLOAD_WORDS };
_Static_assert(PAYLOAD_WORDS * 8 == PAYLOAD_BYTES, "a record of one slot");

static struct journal *open_journal(const char *directory, enum journal_sync sync, uint64_t start)
{
    struct journal_config config = {
        .vfs = vfs_real(),
        .directory = directory,
        .segment_bytes = 256u << 20,
        .buffer_bytes = 64u << 20,
        .sync = sync,
        .epoch = 1,
        .start_lsn = start,
    };
    char error[JOURNAL_ERROR_MAX];
    struct journal *journal = journal_open(&config, error);
    if (!journal) {
        fprintf(stderr, "bench_journal: %s\n", error);
        exit(1);
    }
    return journal;
}

static void put(struct journal_writer *writer, uint64_t i)
{
    const uint64_t payload[PAYLOAD_WORDS] = {[ID] = i * LINE_WEYL, [VALUE] = i};
    journal_put(writer, TYPE, 1, 0, payload, PAYLOAD_BYTES);
}

/* Puts into a ring that nobody empties. */
static double measure_put(struct journal *journal)
{
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    double began = line_now_ns();
    for (unsigned i = 0; i < PUT_RECORDS; i++) {
        CHECK(journal_reserve(&writer, RECORD_BYTES));
        put(&writer, i);
    }
    double ns = (line_now_ns() - began) / PUT_RECORDS;
    CHECK(journal_commit(&writer));
    journal_writer_fini(&writer);
    return ns;
}

/* Commits after every `batch`. *waits: times there was no room. */
static double measure_commit(struct journal *journal, unsigned batch, uint64_t *waits)
{
    struct journal_writer writer;
    journal_writer_init(&writer, journal);
    *waits = 0;
    uint64_t records = batch == 1 ? RECORDS / 16 : RECORDS;
    double began = line_now_ns();
    for (uint64_t i = 0; i < records; i += batch) {
        while (!journal_reserve(&writer, batch * RECORD_BYTES)) {
            ++*waits;
            sched_yield();
        }
        for (unsigned k = 0; k < batch; k++) {
            put(&writer, i + k);
        }
        CHECK(journal_commit(&writer));
    }
    double ns = (line_now_ns() - began) / (double)records;
    journal_writer_fini(&writer);
    return ns;
}

static bool count(void *context, const struct journal_record *record)
{
    uint64_t *sum = context;
    *sum += ((const uint64_t *)record->payload)[VALUE];
    return true;
}

/* Reads all of it. Returns where it ends. */
static uint64_t measure_scan(const char *directory)
{
    struct journal_scan scan = {.from = 0};
    uint64_t sum = 0;
    double began = line_now_ns();
    enum journal_scan_end end = journal_scan(vfs_real(), directory, &scan, count, &sum);
    double ns = line_now_ns() - began;
    if (end != JOURNAL_SCAN_CLEAN) {
        fprintf(stderr, "bench_journal: %s\n", scan.error);
        exit(1);
    }
    printf("scan            %8.1f ns a record %8.1f million records/s %8.0f MB/s\n",
           ns * RECORD_BYTES / (double)scan.end, (double)scan.end / RECORD_BYTES / ns * 1e3,
           (double)scan.end / ns * 1e3);
    return scan.end;
}

static void measure_sync(const char *directory, enum journal_sync sync, const char *name,
                         uint64_t *start)
{
    struct journal *journal = open_journal(directory, sync, *start);
    if (sync == JOURNAL_SYNC_NEVER) {
        double ns = measure_put(journal);
        printf("put             %8.1f ns (goal %.0f: %s)\n", ns, GOAL_PUT_NS,
               ns <= GOAL_PUT_NS ? "met" : "missed");
    }
    for (unsigned i = 0; i < BATCHES; i++) {
        uint64_t waits;
        double ns = measure_commit(journal, batches[i], &waits);
        printf(
            "%-8s x %-4u %8.1f ns a record %8.2f million records/s%s, %" PRIu64 " times no room\n",
            name, batches[i], ns, 1e3 / ns, 1e9 / ns >= GOAL_RATE ? " (goal 5: met)" : "", waits);
    }
    *start = journal_head(journal) + CLOSED_BYTES;
    journal_close(journal);
}

static void remove_entry(void *context, const char *name)
{
    char path[VFS_PATH_MAX];
    if (strncmp(name, "journal-", strlen("journal-")) == 0 && vfs_path(path, context, name)) {
        unlink(path);
    }
}

int main(int argc, char **argv)
{
    char made[] = "/tmp/bench_journal.XXXXXX";
    char *directory = argc > 1 ? argv[1] : mkdtemp(made);
    if (argc > 2 || !directory) {
        fprintf(stderr, "usage: " USAGE "\n");
        return 2;
    }
    uint64_t start = 0;
    measure_sync(directory, JOURNAL_SYNC_NEVER, "never", &start);
    measure_sync(directory, JOURNAL_SYNC_EVERYSEC, "everysec", &start);
    CHECK(measure_scan(directory) == start);
    vfs_real()->functions->list(vfs_real(), directory, remove_entry, directory);
    if (argc == 1) {
        rmdir(directory);
    }
    return 0;
}
