#include "daemon/descriptors.h"

#include "admin/admin.h"
#include "base/log.h"
#include "daemon/process.h"
#include "data/data.h"
#include "repl/feed.h"

/*
 * The daemon's own descriptors: 3 standard ones, lock, wake-up and reserve of the listeners, log;
 * the checkpoint's file and directory, the sync thread's directory, what a reload reads, the last
 * of a connection that is being refused: about 20. The rest is for what it was started with.
 */
#define OWN        32
#define OWN_A_LOOP 4 /* epoll, its queue, what libevent has: of each worker and the main thread */
#define OWN_A_FEED                                                                                 \
    4 /* its socket, wake-up, a segment or a file of its copy, and what looks for one */

#define FILES_SHARE 8 /* one descriptor in this many, where there are not enough for all */

static uint64_t own(const struct settings *settings)
{
    uint64_t count = OWN + settings->listen_count + (settings->threads + 1) * OWN_A_LOOP;

    if (settings->admin != NULL) {
        count += ADMIN_CONNECTIONS_MAX + 1 + OWN_A_LOOP;
    }
    if (settings->replication.name != NULL) {
        count += REPL_FEEDS_MAX * OWN_A_FEED;
    }
    if (settings->data != NULL) {
        count += JOURNAL_FILES_MAX + settings->threads; /* each loader has one file */
    }
    return count;
}

/* Returns the number of files with which no reading thread waits for another. */
static uint64_t files_least(const struct settings *settings)
{
    return settings->data != NULL ? settings->cold.threads + DATA_OPEN_FILES_MORE : 0;
}

void descriptors_wanted(const struct settings *settings, struct descriptors *wanted)
{
    *wanted = (struct descriptors){.own = own(settings),
                                   .files = settings->data != NULL ? DESCRIPTORS_FILES_MOST : 0,
                                   .connections = settings->max_connections};
}

uint64_t descriptors_least(const struct settings *settings)
{
    return own(settings) + files_least(settings) + 1;
}

/* Returns how many files of dumped tables may be open, of what the daemon's own leave: all that
 * connections leave, or the files' share if that is more. */
static uint64_t files_of(const struct settings *settings, uint64_t limit, uint64_t left)
{
    uint64_t least = files_least(settings);
    uint64_t share = limit / FILES_SHARE > least ? limit / FILES_SHARE : least;
    uint64_t unused = left > settings->max_connections ? left - settings->max_connections : 0;
    uint64_t files = unused > share ? unused : share;

    files = files < left ? files : left - 1;
    return files < DESCRIPTORS_FILES_MOST ? files : DESCRIPTORS_FILES_MOST;
}

bool descriptors_divide(const struct settings *settings, uint64_t limit, struct descriptors *shares)
{
    if (limit < descriptors_least(settings)) {
        return false;
    }
    uint64_t left = limit - own(settings);
    uint64_t files = settings->data != NULL ? files_of(settings, limit, left) : 0;
    uint64_t connections = left - files;

    *shares = (struct descriptors){.own = own(settings),
                                   .files = files,
                                   .connections = connections < settings->max_connections
                                                      ? connections
                                                      : settings->max_connections};
    return true;
}

/* ---- this process ---- */

static uint64_t sum(const struct descriptors *shares)
{
    return shares->own + shares->files + shares->connections;
}

static void lower(struct settings *settings, uint64_t limit, const struct descriptors *shares)
{
    if (shares->connections < settings->max_connections) {
        log_warning("max-connections is %llu, not %u: of the %llu open files that the system "
                    "allows the daemon needs %llu, dumped tables %llu; for all of them set the "
                    "limit (ulimit -n, LimitNOFILE) to %llu",
                    (unsigned long long)shares->connections, settings->max_connections,
                    (unsigned long long)limit, (unsigned long long)shares->own,
                    (unsigned long long)shares->files,
                    (unsigned long long)limit + settings->max_connections - shares->connections);
        settings->max_connections = (unsigned)shares->connections;
    }
}

bool descriptors_provide(struct settings *settings)
{
    struct descriptors shares;
    uint64_t limit;

    descriptors_wanted(settings, &shares);
    if (!process_raise_descriptors(sum(&shares), &limit)) {
        return false;
    }
    if (!descriptors_divide(settings, limit, &shares)) {
        log_error("the system allows %llu open files, and at least %llu are needed; set the limit "
                  "(ulimit -n, LimitNOFILE) higher: %llu are enough for %u connections",
                  (unsigned long long)limit, (unsigned long long)descriptors_least(settings),
                  (unsigned long long)sum(&shares), settings->max_connections);
        return false;
    }
    lower(settings, limit, &shares);
    settings->cold.open_files = (unsigned)shares.files;
    return true;
}

void descriptors_provide_again(struct settings *next, const struct settings *now)
{
    struct descriptors shares = {
        .own = own(now), .files = now->cold.open_files, .connections = next->max_connections};
    uint64_t limit;

    next->cold.open_files = now->cold.open_files;
    if (process_raise_descriptors(sum(&shares), &limit) && limit < sum(&shares)) {
        uint64_t fixed = shares.own + shares.files;

        shares.connections = limit > fixed ? limit - fixed : 1;
        lower(next, limit, &shares);
    }
}
