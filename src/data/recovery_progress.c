/* recovery_progress.c: what a start that takes long says meanwhile. */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "data/recovery_private.h"
#include "store/journal_format.h"

#define TELL_US       2000000u  /* the service manager; at most so often a line */
#define LOG_US        10000000u /* a line at least so often */
#define STATE_MAX     256
#define BYTES_A_GIB   (1024.0 * 1024 * 1024)
#define LINE_TEXT_MAX 128

/* Tells the service manager how far the start is, so that it waits longer. Returns whether it is
 * time to log the line, too. */
static bool recovery_progress_tell(struct recovery *recovery, const char *line, uint64_t now_us)
{
    char state[STATE_MAX];

    snprintf(state, sizeof(state), "STATUS=%s\nEXTEND_TIMEOUT_USEC=" DATA_EXTEND_US, line);
    notify_manager(state);
    recovery->told_us = now_us;
    return now_us - recovery->logged_us >= LOG_US;
}

static void log_line(struct recovery *recovery, const char *line, uint64_t now_us)
{
    log_info("%s", line);
    recovery->logged_us = now_us;
}

void recovery_tell_loading(struct recovery *recovery, uint64_t done, uint64_t total)
{
    uint64_t now_us = clock_monotonic_us();
    unsigned tenth = total > 0 ? (unsigned)((double)done / (double)total * 10) : 0;
    char line[LINE_TEXT_MAX];

    if (now_us - recovery->told_us < TELL_US) {
        return;
    }
    snprintf(line, sizeof(line), "loading: %.0f %% of %.1f GiB",
             total > 0 ? 100.0 * (double)done / (double)total : 0, (double)total / BYTES_A_GIB);
    if (recovery_progress_tell(recovery, line, now_us) || tenth > recovery->logged_tenth) {
        log_line(recovery, line, now_us);
        recovery->logged_tenth = tenth;
    }
}

static void note_segment(void *context, const char *name)
{
    struct recovery *recovery = context;
    uint64_t begin;

    if (journal_name_parse(name, &begin) &&
        begin + recovery->data->segment_bytes > recovery->replay_end) {
        recovery->replay_end = begin + recovery->data->segment_bytes;
    }
}

void recovery_tell_replay(struct recovery *recovery)
{
    struct vfs *vfs = recovery->data->vfs;

    recovery->replay_end = recovery->scan.from;
    (void)vfs->functions->list(vfs, recovery->data->directory, note_segment, recovery);
}

void recovery_tell_replaying(struct recovery *recovery, uint64_t records, uint64_t lsn)
{
    uint64_t now_us = clock_monotonic_us();
    uint64_t from = recovery->scan.from;
    uint64_t most = recovery->replay_end > lsn ? recovery->replay_end : lsn;
    char line[LINE_TEXT_MAX];

    if (now_us - recovery->told_us < TELL_US) {
        return;
    }
    snprintf(line, sizeof(line), "replaying: %.2f of at most %.2f GiB, %.1f million records",
             (double)(lsn - from) / BYTES_A_GIB, (double)(most - from) / BYTES_A_GIB,
             (double)records / 1e6);
    if (recovery_progress_tell(recovery, line, now_us)) {
        log_line(recovery, line, now_us);
    }
}
