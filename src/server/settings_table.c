/* settings_table.c: every option there is, once. */
#include "server/settings_draft.h"

#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "engine/row.h"

#define TOP(member)                                                                                \
    .offset = offsetof(struct settings, member), .bytes = sizeof(((struct settings *)0)->member)
#define OF_SPACE(member)                                                                           \
    .offset = offsetof(struct space_settings, member),                                             \
    .bytes = sizeof(((struct space_settings *)0)->member)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define LATER(key, which)                                                                          \
    {                                                                                              \
        .option = {.name = (key), .type = OPTION_CUSTOM, .flags = ROW_LATER}, .kinds = (which)     \
    }

static const char *const sync_words[] = {"never", "everysec", "always", NULL};
static const char *const log_level_words[] = {"error", "warning", "info", "debug", NULL};
static const char *const kind_words[] = {"counter", "phantom", "plain", NULL};
static const char *const ids_words[] = {"growing", "any", NULL};
static const char *const role_words[] = {"store", "cache", NULL};
static const char *const oldest_words[] = {"auto", "dump", "recycle", "refuse", NULL};

const char settings_sample_space[] = "feed";

static const struct settings_row top_rows[] = {
    {.option = {.name = "listen",
                .type = OPTION_CUSTOM,
                .initial = "[127.0.0.1:11211]",
                .help =
                    "Addresses to listen on: host:port, [v6]:port or /path.sock. Without a port "
                    "it is 11211 or that of -p; port 0 takes any free one. Flags -l, -p, -s."}},
    {.option = {.name = "threads",
                .type = OPTION_NUMBER,
                TOP(threads),
                .min = 1,
                .max = SETTINGS_THREADS_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help =
                    "Worker threads. auto: one a processor this process may run on, but no more "
                    "than one for each 4 MiB of memory. Flag -t."}},
    {.option = {.name = "memory",
                .type = OPTION_SIZE,
                TOP(memory_bytes),
                .min = 1ull << 20,
                .max = 1ull << 46,
                .initial = "4GiB",
                .help = "Hard limit of everything: tables, buffers, workers. What does not fit is "
                        "refused at start with the sum. Flag -m, in MiB."}},
    {.option = {.name = "max-connections",
                .type = OPTION_NUMBER,
                .flags = ROW_RELOADABLE,
                TOP(max_connections),
                .min = 1,
                .max = 1000000,
                .initial = "1024",
                .help = "Connections open at one time. Flag -c."}},
    {.option = {.name = "idle-timeout",
                .type = OPTION_DURATION,
                .flags = ROW_RELOADABLE,
                TOP(idle_timeout_s),
                .max = 30 * 86400,
                .unit_ms = 1000,
                .initial = "0",
                .help = "Seconds after which a silent connection is closed; 0: never."}},
    {.option = {.name = "request-timeout",
                .type = OPTION_DURATION,
                .flags = ROW_RELOADABLE,
                TOP(request_timeout_s),
                .max = 86400,
                .unit_ms = 1000,
                .initial = "30",
                .help = "Seconds a half-sent request may take; 0: for ever."}},
    {.option = {.name = "requests-per-turn",
                .type = OPTION_NUMBER,
                TOP(requests_per_turn),
                .min = 1,
                .max = 65536,
                .initial = "256",
                .help =
                    "Requests of one connection after which the others get their turn. Flag -R."}},
    {.option = {.name = "backlog",
                .type = OPTION_NUMBER,
                TOP(backlog),
                .min = 1,
                .max = 1 << 20,
                .initial = "1024",
                .help = "Connections that may wait to be accepted. Flag -b."}},
    {.option = {.name = "unix-mode",
                .type = OPTION_OCTAL,
                TOP(unix_mode),
                .max = 0777,
                .initial = "0700",
                .help = "Permissions of unix sockets, in octal. Flag -a."}},
    {.option = {.name = "allow-open",
                .type = OPTION_BOOL,
                TOP(allow_open),
                .initial = "no",
                .help =
                    "Listen beyond this machine without a warning at start. There is no "
                    "authentication: whoever reaches the port can read and change everything."}},
    {.option = {.name = "flush-all",
                .type = OPTION_BOOL,
                .flags = ROW_RELOADABLE,
                TOP(flush_all),
                .initial = "no",
                .help =
                    "Obey the command flush_all, which empties every space. Flag -F forbids it."}},
    {.option = {.name = "shutdown-command",
                .type = OPTION_BOOL,
                TOP(shutdown_command),
                .initial = "no",
                .help = "Obey the command shutdown. Flag -A."}},
    {.option = {.name = "version-shown",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(version_shown),
                .min = 5,
                .max = 31,
                .initial = "1.6.45",
                .help =
                    "The memcached version clients are told: three numbers with dots, the first "
                    "not 0, and nothing behind them, or libraries refuse to work."}},
    {.option = {.name = "user",
                .type = OPTION_STRING,
                TOP(user),
                .min = 1,
                .max = 64,
                .help = "User to become when started as root. Default: none. Flag -u."},
     .sample = "nobody"},
    {.option = {.name = "pidfile",
                .type = OPTION_STRING,
                TOP(pidfile),
                .min = 1,
                .max = 255,
                .help = "File to write the process id to. Default: none. Flag -P."},
     .sample = "/run/rollcalld.pid"},
    {.option = {.name = "daemonize",
                .type = OPTION_BOOL,
                TOP(daemonize),
                .initial = "no",
                .help = "Go to the background; the log then goes to syslog. Flag -d."}},
    {.option = {.name = "log-level",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                TOP(log_level),
                .words = log_level_words,
                .initial = "info",
                .help = "The least important lines to log. Flag -v: debug."}},
    {.option = {.name = "lock-memory",
                .type = OPTION_BOOL,
                TOP(lock_memory),
                .initial = "no",
                .help = "Lock all memory, so that nothing is swapped out. Flag -k."}},
    {.option = {.name = "core-files",
                .type = OPTION_BOOL,
                TOP(core_files),
                .initial = "no",
                .help = "Raise the limit of core files to what is allowed. Flag -r."}},
    {.option = {.name = "data",
                .type = OPTION_STRING,
                TOP(data),
                .min = 1,
                .max = SETTINGS_DATA_PATH_MAX,
                .help =
                    "Directory of one daemon's data, made if it is not there: what is acknowledged "
                    "survives a kill and a restart. Default: none, all is in memory only."},
     .sample = "/var/lib/rollcall"},
    {.option = {.name = "journal",
                .type = OPTION_CUSTOM,
                .flags = ROW_GROUP,
                .help = "With data: the journal, to which every change is written before it is "
                        "acknowledged."}},
    {.option = {.name = "journal.sync",
                .type = OPTION_WORD,
                TOP(journal.sync),
                .words = sync_words,
                .initial = "everysec",
                .help =
                    "What a power cut may cost; a killed daemon never loses what was acknowledged. "
                    "never: what the system had not written yet. everysec: about the last second. "
                    "always: nothing, and answers to writes wait for the disk."}},
    {.option = {.name = "journal.segment",
                .type = OPTION_SIZE,
                TOP(journal.segment_bytes),
                .min = JOURNAL_SEGMENT_BYTES_MIN,
                .max = JOURNAL_SEGMENT_BYTES_MAX,
                .initial = "256MiB",
                .help = "Size of one of its files, a multiple of 4KiB. Two are on the disk at "
                        "least."}},
    {.option = {.name = "journal.buffer",
                .type = OPTION_SIZE,
                .flags = OPTION_POWER_OF_TWO,
                TOP(journal.buffer_bytes),
                .min = JOURNAL_BUFFER_BYTES_MIN,
                .max = JOURNAL_BUFFER_BYTES_MAX,
                .initial = "64MiB",
                .help = "Memory for changes that are not on the disk yet. When it is full, writes "
                        "wait up to a second, then they are refused."}},
    {.option = {.name = "checkpoint",
                .type = OPTION_CUSTOM,
                .flags = ROW_GROUP,
                .help = "With data: when tables that changed are written to files, so that older "
                        "journal is not needed any more. One is made at the end, too, and on "
                        "SIGUSR2."}},
    {.option = {.name = "checkpoint.every",
                .type = OPTION_DURATION,
                .flags = ROW_RELOADABLE,
                TOP(checkpoint.every_ms),
                .min = SETTINGS_CHECKPOINT_MS_MIN,
                .max = SETTINGS_CHECKPOINT_MS_MAX,
                .unit_ms = 1,
                .automatic = "0",
                .initial = "10min",
                .help = "Time between two, if anything changed; 0: not by time."}},
    {.option = {.name = "checkpoint.journal",
                .type = OPTION_SIZE,
                .flags = ROW_RELOADABLE,
                TOP(checkpoint.journal_bytes),
                .min = SETTINGS_CHECKPOINT_JOURNAL_BYTES_MIN,
                .max = SETTINGS_CHECKPOINT_JOURNAL_BYTES_MAX,
                .initial = "1GiB",
                .help = "Journal after which one is made: a restart reads about so much, and what "
                        "was written meanwhile."}},
    {.option = {.name = "cold",
                .type = OPTION_CUSTOM,
                .flags = ROW_GROUP,
                .help = "With data and oldest: dump: how tables that left memory are read."}},
    {.option = {.name = "cold.threads",
                .type = OPTION_NUMBER,
                TOP(cold.threads),
                .min = 1,
                .max = COLD_THREADS_MAX,
                .initial = "8",
                .help = "Threads that read the disk, a page of 4KiB at a time each."}},
    {.option = {.name = "cold.cache",
                .type = OPTION_SIZE,
                TOP(cold.cache_bytes),
                .max = SETTINGS_COLD_BYTES_MAX,
                .automatic = "0",
                .initial = "64MiB",
                .help = "Memory for pages that were read."}},
    /* A get of 1,024 keys may need two pages of each, and a request that needs more than fit here,
     * none of them in the cache, is busy each time. */
    {.option = {.name = "cold.queue",
                .type = OPTION_NUMBER,
                TOP(cold.queue),
                .min = 1,
                .max = COLD_QUEUE_MAX,
                .initial = "4096",
                .help = "Pages that requests may wait for at one time; beyond that they are "
                        "refused. A get of 1,024 keys may need two pages of each key: with fewer "
                        "than 2048 it may be refused each time."}},
    {.option = {.name = "cold.overlay",
                .type = OPTION_SIZE,
                TOP(cold.overlay_bytes),
                .min = SETTINGS_OVERLAY_BYTES_MIN,
                .max = SETTINGS_COLD_BYTES_MAX,
                .initial = "64MiB",
                .help = "Memory for what has changed of tables that left it; when half of it is "
                        "used their files are written anew."}},
    LATER("auth-file", 0),
    LATER("tls", 0),
    {.option = {.name = "spaces",
                .type = OPTION_CUSTOM,
                .flags = ROW_RELOADABLE | ROW_MANDATORY,
                .help = "The spaces, by name: a-z 0-9 _ and -, at most 32 letters; at most 64 "
                        "spaces."}},
};

static const struct settings_row space_rows[] = {
    {.option = {.name = "kind",
                .type = OPTION_WORD,
                .flags = ROW_MANDATORY,
                OF_SPACE(kind),
                .words = kind_words,
                .words_hidden = 1u << SPACE_PLAIN,
                .help = "Required. What the space holds. counter: small numbers behind ids. "
                        "phantom: whether a "
                        "member has been at an id."},
     .kinds = KIND_ALL,
     .sample = "counter"},
    {.option = {.name = "key",
                .type = OPTION_STRING,
                .flags = OPTION_INLINE | ROW_RELOADABLE,
                OF_SPACE(key),
                .min = 1,
                .max = PATTERN_TEXT_MAX,
                .help =
                    "Pattern of its keys: fixed text and {id}. A key of one slot adds .<slot>. "
                    "Default: the space's name, a colon, {id}; kind phantom: a colon and {member} "
                    "behind it."},
     .kinds = KIND_ID,
     .sample = "feed:{id}"},
    {.option = {.name = "slots",
                .type = OPTION_CUSTOM,
                .flags = ROW_MANDATORY | ROW_RELOADABLE | ROW_NEW_TABLE,
                .help =
                    "Required. The counters of an id, each with its bits, 2 to 64; at most 16 "
                    "slots and 512 "
                    "bits. Numbers of b bits up to 2^b - 3 are kept in place, larger ones, up to "
                    "2^64 - 1, cost extra memory. The order is that of a record."},
     .kinds = KIND_COUNTER,
     .sample = "{repost: 20, comment: 20, like: 20, read: 20}"},
    {.option = {.name = "ids",
                .type = OPTION_WORD,
                OF_SPACE(ids),
                .words = ids_words,
                .initial = "growing",
                .help = "growing: ids that grow with time. any: user ids, hashes; one table over "
                        "0 to max-id."},
     .kinds = KIND_ID},
    {.option = {.name = "max-id",
                .type = OPTION_NUMBER,
                .flags = ROW_ANY_ONLY,
                OF_SPACE(max_id),
                .min = 1,
                .max = PATTERN_ID_MAX,
                .initial = "1099511627776",
                .help = "The largest id, with ids: any only."},
     .kinds = KIND_ID},
    {.option = {.name = "id-spacing",
                .type = OPTION_NUMBER,
                .flags = ROW_GROWING,
                OF_SPACE(id_spacing),
                .min = 1,
                .max = PATTERN_ID_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help =
                    "How far apart ids are on average: 1 when dense, 4194304 for seconds<<22 at "
                    "one a second. Given, a record takes less memory or a look-up less time. auto: "
                    "not known."},
     .kinds = KIND_ID},
    {.option = {.name = "role",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                OF_SPACE(role),
                .words = role_words,
                .initial = "store",
                .help =
                    "store: incr creates an id that is missing. cache: it answers NOT_FOUND, and "
                    "the application fills it from its database."},
     .kinds = KIND_ID},
    {.option = {.name = "table-size",
                .type = OPTION_SIZE,
                .flags = OPTION_POWER_OF_TWO | ROW_NEXT_TABLE,
                OF_SPACE(table_bytes),
                .min = COUNTER_TABLE_BYTES_MIN,
                .max = COUNTER_TABLE_BYTES_MAX,
                .initial = "16MiB",
                .help = "Size of one table. A changed one holds from the next table on; with ids: "
                        "any after a restart."},
     .kinds = KIND_ID},
    {.option = {.name = "tables",
                .type = OPTION_NUMBER,
                .flags = ROW_GROWING | ROW_NEXT_TABLE,
                OF_SPACE(tables),
                .min = 1,
                .max = ROW_TABLES_MAX,
                .initial = "5",
                .help =
                    "Tables in memory, each for a range of ids. With oldest: dump or recycle one "
                    "of them is the spare, zeroed and ready for the next range."},
     .kinds = KIND_ID},
    {.option =
         {.name = "oldest",
          .type = OPTION_WORD,
          .flags = ROW_GROWING | ROW_NEXT_TABLE,
          OF_SPACE(oldest),
          .words = oldest_words,
          .initial = "auto",
          .help = "When the tables are used up: dump the oldest to a file, where its ids are still "
                  "read and changed (needs data); recycle it, with the ids in it; or refuse new "
                  "ids. auto: dump with data, else refuse for role store, recycle for cache. Flag "
                  "-M: refuse."},
     .kinds = KIND_ID},
    {.option = {.name = "dumps-max",
                .type = OPTION_NUMBER,
                .flags = ROW_GROWING | ROW_NEXT_TABLE,
                OF_SPACE(dumps_max),
                .max = SETTINGS_DUMPS_MAX,
                .initial = "0",
                .help = "With oldest: dump: tables on the disk, at most; then the oldest of them "
                        "is dropped, with its ids. 0: no limit."},
     .kinds = KIND_ID},
    {.option =
         {.name = "late-room",
          .type = OPTION_REAL,
          .flags = ROW_GROWING | ROW_NEXT_TABLE,
          OF_SPACE(late_room),
          .real_max = 0.9,
          .automatic = "auto",
          .initial = "auto",
          .help = "Share of a table kept for ids that arrive after the next one was opened. auto: "
                  "0.1 for counters, 0.5 for phantoms, then what earlier tables received."},
     .kinds = KIND_ID},
    {.option = {.name = "extend-memory",
                .type = OPTION_SIZE,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(extend_bytes),
                .min = 4096,
                .max = COUNTER_TABLE_BYTES_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help = "Memory of a table for ids that find no place in it. auto: 1/32 of "
                        "table-size, 1/16 when records are small."},
     .kinds = KIND_COUNTER},
    {.option = {.name = "aux-memory",
                .type = OPTION_SIZE,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(aux_bytes),
                .min = 4096,
                .max = COUNTER_TABLE_BYTES_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help = "Memory of a table for numbers too large for their slot. auto: 1/32 of "
                        "table-size."},
     .kinds = KIND_COUNTER},
    {.option = {.name = "value-flags",
                .type = OPTION_NUMBER,
                .flags = ROW_RELOADABLE,
                OF_SPACE(value_flags),
                .max = UINT32_MAX,
                .initial = "0",
                .help = "The flags values are read back with, for clients that expect some."},
     .kinds = KIND_ID},
    {.option = {.name = "false-positives",
                .type = OPTION_REAL,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(false_positives),
                .real_min = PHANTOM_FALSE_POSITIVES_MIN,
                .real_max = PHANTOM_FALSE_POSITIVES_MAX,
                .initial = "0.001",
                .help =
                    "Kind phantom: share of wrong answers for members that were never added, at "
                    "capacity."},
     .kinds = KIND_PHANTOM},
    {.option = {.name = "deletes",
                .type = OPTION_BOOL,
                .flags = ROW_RELOADABLE,
                OF_SPACE(deletes),
                .initial = "no",
                .help = "Kind phantom: keep exact exceptions, so that members can be deleted."},
     .kinds = KIND_PHANTOM},
    {.option = {.name = "exceptions-memory",
                .type = OPTION_SIZE,
                .flags = ROW_NEXT_TABLE,
                OF_SPACE(exceptions_bytes),
                .min = PHANTOM_EXCEPTIONS_BYTES_MIN,
                .max = PHANTOM_TABLE_BYTES_MAX,
                .automatic = "auto",
                .initial = "auto",
                .help =
                    "Kind phantom with deletes: memory of a table for members that are deleted, "
                    "about 30 bytes each. auto: 1/32 of table-size."},
     .kinds = KIND_PHANTOM},
    {.option = {.name = "memory",
                .type = OPTION_SIZE,
                OF_SPACE(memory_bytes),
                .min = 1 << 20,
                .max = 1ull << 46,
                .initial = "64MiB",
                .help = "Memory of the cache."},
     .kinds = KIND_PLAIN},
    {.option = {.name = "item-max",
                .type = OPTION_SIZE,
                OF_SPACE(item_bytes_max),
                .min = 1024,
                .max = 1 << 30,
                .initial = "1MiB",
                .help = "The largest value."},
     .kinds = KIND_PLAIN},
    LATER("binary-create", KIND_ID),
};

_Static_assert(LENGTH(top_rows) <= SETTINGS_ROWS_MAX, "raise SETTINGS_ROWS_MAX");
_Static_assert(LENGTH(space_rows) <= SETTINGS_ROWS_MAX, "raise SETTINGS_ROWS_MAX");
_Static_assert(LOG_LEVEL_DEBUG == LENGTH(log_level_words) - 2,
               "log_level_words: as enum log_level");
_Static_assert(JOURNAL_SYNC_ALWAYS == LENGTH(sync_words) - 2, "sync_words: as journal_sync");
_Static_assert(SPACE_OLDEST_REFUSE == LENGTH(oldest_words) - 2, "oldest_words: as space_oldest");

const struct settings_rows settings_top_rows = {top_rows, LENGTH(top_rows)};
const struct settings_rows settings_space_rows = {space_rows, LENGTH(space_rows)};

int settings_rows_find(const struct settings_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (strcmp(rows->rows[i].option.name, name) == 0)
            return (int)i;
    }
    return -1;
}

const char *settings_rows_nearest(const struct settings_rows *rows, const char *wrong)
{
    const char *names[SETTINGS_ROWS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < rows->count; i++) {
        if ((rows->rows[i].option.flags & ROW_LATER) == 0)
            names[count++] = rows->rows[i].option.name;
    }
    return options_nearest(wrong, names, count);
}

void settings_rows_initial(const struct settings_rows *rows, void *object)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct option_row *option = &rows->rows[i].option;
        struct option_value value = {0};
        char error[OPTIONS_ERROR_MAX];

        if (option->initial == NULL || option->type == OPTION_CUSTOM)
            continue;
        CHECK(options_parse(option, option->initial, &value, error));
        options_store(option, object, &value);
    }
}

bool settings_row_applies(const struct settings_row *row, const struct space_settings *space)
{
    unsigned wrong_ids = space->ids == SPACE_IDS_ANY ? ROW_GROWING : ROW_ANY_ONLY;

    return (row->kinds & 1u << space->kind) != 0 && (row->option.flags & wrong_ids) == 0;
}

bool settings_row_reloads(const struct settings_row *row, const struct space_settings *now,
                          const struct space_settings *next)
{
    unsigned flags = row->option.flags;
    bool growing = now->ids == SPACE_IDS_GROWING && next->ids == SPACE_IDS_GROWING;

    return (flags & ROW_RELOADABLE) != 0 || ((flags & ROW_NEXT_TABLE) != 0 && growing);
}

bool settings_row_shown(const struct settings_row *row)
{
    bool can_run = row->kinds == 0 || (row->kinds & KIND_ID) != 0;

    return can_run && (row->option.flags & ROW_LATER) == 0;
}

bool settings_row_valued(const struct settings_row *row)
{
    return settings_row_shown(row) && (row->option.flags & ROW_GROUP) == 0;
}

const char *settings_row_key(const struct settings_row *row)
{
    const char *dot = strchr(row->option.name, '.');

    return dot != NULL ? dot + 1 : row->option.name;
}
