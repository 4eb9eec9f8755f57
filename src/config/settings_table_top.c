/* settings_table_top.c: every option of the daemon as a whole, once. */
#include "config/settings_draft.h"

#include "base/log.h"

#define TOP(member)                                                                                \
    .offset = offsetof(struct settings, member), .bytes = sizeof(((struct settings *)0)->member)
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char *const sync_words[] = {"never", "everysec", "always", NULL};
static const char *const ack_words[] = {"none", "replica", NULL};
static const char *const key_format_words[] = {"pem", "der", NULL};
static const char *const verify_words[] = {"none", "request", "require", "once", NULL};
static const char *const tls_version_words[] = {"1.2", "1.3", NULL};
static const char *const refusals_words[] = {"client", "server", NULL};
static const char *const log_level_words[] = {"error",    "warning", "info", "debug",
                                              "commands", "states",  NULL};

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
                .help = "Connections open at one time. Lowered, with a warning, to what the "
                        "system's limit of open files leaves beside the daemon's own. Flag -c."}},
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
    {.option = {.name = "slow-request",
                .type = OPTION_DURATION,
                .flags = ROW_RELOADABLE,
                TOP(slow_request_ms),
                .max = 3600000,
                .unit_ms = 1,
                .initial = "10ms",
                .help = "Time from which a request is slow: `stats slow` has the last 128 of "
                        "each worker, with what they waited for; 0: none."}},
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
                .help = "Permissions of unix sockets, in octal. They belong to the user the daemon "
                        "becomes. Flag -a."}},
    {.option = {.name = "allow-open",
                .type = OPTION_BOOL,
                TOP(allow_open),
                .initial = "no",
                .help =
                    "Listen beyond this machine without auth-file and without TLS that verifies "
                    "clients: whoever reaches the port can then read and change everything."}},
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
    {.option = {.name = "refusals",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                TOP(refusals),
                .words = refusals_words,
                .initial = "client",
                .help = "What refusals begin with in the text protocol: client: CLIENT_ERROR, "
                        "server: SERVER_ERROR, for memcached's proxy, which closes a connection "
                        "that many clients share on each CLIENT_ERROR."}},
    {.option = {.name = "list-keys",
                .type = OPTION_BOOL,
                .flags = ROW_RELOADABLE,
                TOP(list_keys),
                .initial = "yes",
                .help = "Obey lru_crawler metadump, mgdump and export, and stats cachedump, which "
                        "list keys and records. Flag -X forbids them."}},
    {.option = {.name = "version-shown",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(version_shown),
                .min = 5,
                .max = 31,
                .initial = "1.6.45",
                .help =
                    "The memcached version clients are told: three numbers with dots, the first "
                    "not 0, and nothing after them, or libraries refuse to work."}},
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
                .help = "How tables that left memory are read (data, oldest: dump), and what is "
                        "kept of ids whose tables were dropped."}},
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
                .help = "Memory for pages that were read. Of it each counter space of role cache "
                        "that drops its oldest tables has an equal share, but no more than one of "
                        "its tables takes, for records written back below its oldest table. 0: "
                        "none are kept."}},
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
                .help = "Memory for what has changed of tables that left it, and of those that "
                        "leave just now: a quarter is for these alone. When half of it is used "
                        "files are written anew."}},
    {.option = {.name = "replication",
                .type = OPTION_CUSTOM,
                .flags = ROW_GROUP,
                .help = "With data and a name: other nodes may follow this one, on the addresses "
                        "of clients and as one of their users; and it may follow one."}},
    {.option = {.name = "replication.name",
                .type = OPTION_STRING,
                TOP(replication.name),
                .min = 1,
                .max = SETTINGS_NODE_NAME_MAX,
                .help = "This node's name, unlike all others of its group: a-z 0-9 _ - and ., a "
                        "letter or digit first. Default: none, nobody can follow it."},
     .sample = "feed-1"},
    {.option = {.name = "replication.group",
                .type = OPTION_STRING,
                TOP(replication.group),
                .min = 1,
                .max = SETTINGS_NODE_NAME_MAX,
                .initial = "rollcall",
                .help = "The group's name, likewise: of all nodes that hold the same data. A "
                        "follower that names another is refused."}},
    {.option =
         {.name = "replication.follow",
          .type = OPTION_STRING,
          TOP(replication.follow),
          .min = 1,
          .max = SETTINGS_DATA_PATH_MAX,
          .help = "The node whose data this one copies, and whose changes it then takes: one of "
                  "its addresses, as in listen. With tls.enabled over TLS, with a certificate that "
                  "tls.ca signed; notls: in front: without TLS. agent: the node that rollcall "
                  "agent names, which may also make this one lead. Default: none, it leads."},
     .sample = "10.0.0.1:11211"},
    {.option =
         {.name = "replication.credentials",
          .type = OPTION_STRING,
          .flags = ROW_RELOADABLE,
          TOP(replication.credentials_file),
          .min = 1,
          .max = 255,
          .help = "File with the user, a line name:password, as whom this node logs in at the one "
                  "it follows; nobody else may be able to read it. Default: none, it does not "
                  "log in."},
     .sample = "/etc/rollcall.follow"},
    {.option = {.name = "replication.stale-after",
                .type = OPTION_DURATION,
                .flags = ROW_RELOADABLE,
                TOP(replication.stale_after_s),
                .max = SETTINGS_STALE_AFTER_S_MAX,
                .unit_ms = 1000,
                .initial = "0",
                .help = "Reads are refused when this node has not been level with the one it "
                        "follows, or has had no word from its agent that it leads, for so many "
                        "seconds; 0: never."}},
    {.option = {.name = "replication.ack",
                .type = OPTION_WORD,
                TOP(replication.ack),
                .words = ack_words,
                .initial = "none",
                .help = "When the answer to a write leaves. none: when it is stored here, as "
                        "journal.sync has it. replica: when the follower of ack-by has stored it "
                        "so, too; while that one is away, or behind, writes are refused."}},
    {.option = {.name = "replication.ack-by",
                .type = OPTION_STRING,
                TOP(replication.ack_by),
                .min = 1,
                .max = SETTINGS_NODE_NAME_MAX,
                .help = "With ack: replica: the replication.name of the follower that is waited "
                        "for. Default: none."},
     .sample = "feed-2"},
    {.option = {.name = "replication.ack-timeout",
                .type = OPTION_DURATION,
                TOP(replication.ack_timeout_s),
                .min = 1,
                .max = SETTINGS_ACK_TIMEOUT_S_MAX,
                .unit_ms = 1000,
                .initial = "1s",
                .help = "With ack: replica: seconds after which the connection of a write that "
                        "waits is closed without an answer: nobody knows then what became of "
                        "it."}},
    {.option = {.name = "replication.keep",
                .type = OPTION_SIZE,
                .flags = ROW_RELOADABLE,
                TOP(replication.keep_bytes),
                .max = SETTINGS_CHECKPOINT_JOURNAL_BYTES_MAX,
                .automatic = "0",
                .initial = "4GiB",
                .help = "Bytes of journal from before the last checkpoint that stay, for followers "
                        "that were away or are being filled: beyond them they need a copy. Given "
                        "up when the disk is full, before writes are refused."}},
    {.option = {.name = "replication.copies",
                .type = OPTION_NUMBER,
                .flags = ROW_RELOADABLE,
                TOP(replication.copies),
                .max = SETTINGS_COPIES_MAX,
                .initial = "1",
                .help = "Followers that get a copy at one time; others are told to come again. 0: "
                        "none does."}},
    {.option = {.name = "replication.copy-rate",
                .type = OPTION_SIZE,
                .flags = ROW_RELOADABLE,
                TOP(replication.copy_rate),
                .max = SETTINGS_COLD_BYTES_MAX,
                .automatic = "0",
                .initial = "0",
                .help = "Bytes a second of each copy; 0: as fast as it goes."}},
    {.option = {.name = "auth-file",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(auth_file),
                .min = 1,
                .max = 255,
                .help =
                    "File of users, a line name:password each: a client must first log in as one "
                    "of them, in text by a set of any key with the data \"name password\", in "
                    "binary by SASL PLAIN. After wrong passwords its address has to wait. "
                    "Nobody else should be able to read the file. Default: none, everybody "
                    "may. Flag -Y."},
     .sample = "/etc/rollcall.users"},
    {.option = {.name = "admin",
                .type = OPTION_STRING,
                TOP(admin),
                .min = 1,
                .max = 255,
                .help = "Address of the status page, /metrics, /status.json, /healthz, /leader and "
                        "/follower (HTTP): host:port or [v6]:port, without a port 11280. All of it "
                        "only tells. Default: none."},
     .sample = "127.0.0.1:11280"},
    {.option = {.name = "admin-auth",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(admin_auth_file),
                .min = 1,
                .max = 255,
                .help = "File of users, as auth-file: who looks at the page, the metrics or "
                        "status.json must be one of them (HTTP Basic). /healthz, /leader and "
                        "/follower answer everybody. Default: none, everybody may look."},
     .sample = "/etc/rollcall.admins"},
    {.option = {.name = "tls",
                .type = OPTION_CUSTOM,
                .flags = ROW_GROUP,
                .help = "TLS on every TCP address but those written notls:host:port. Its files are "
                        "read again on SIGHUP, for the connections to come."}},
    {.option = {.name = "tls.enabled",
                .type = OPTION_BOOL,
                TOP(tls.enabled),
                .initial = "no",
                .help = "Whether there is TLS; certificate and key are then needed. Flag -Z."}},
    {.option = {.name = "tls.certificate",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(tls.certificate),
                .min = 1,
                .max = 255,
                .help = "File of the server's certificate (PEM), its chain after it. Flag -o "
                        "ssl_chain_cert."},
     .sample = "/etc/rollcall/server.crt"},
    {.option = {.name = "tls.key",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(tls.key),
                .min = 1,
                .max = 255,
                .help = "File of its private key, without a passphrase. With user it must be "
                        "readable by that user, or a reload fails. Flag -o ssl_key."},
     .sample = "/etc/rollcall/server.key"},
    {.option = {.name = "tls.key-format",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                TOP(tls.key_format),
                .words = key_format_words,
                .initial = "pem",
                .help = "What the key's file holds. Flag -o ssl_keyformat=1 (pem) or 2 (der)."}},
    {.option = {.name = "tls.ca",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(tls.ca),
                .min = 1,
                .max = 255,
                .help = "File of the authorities (PEM) that sign clients' certificates. Default: "
                        "none. Flag -o ssl_ca_cert."},
     .sample = "/etc/rollcall/clients.crt"},
    {.option = {.name = "tls.verify",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                TOP(tls.verify),
                .words = verify_words,
                .initial = "none",
                .help = "Clients' certificates. none: not asked for. request: a client that shows "
                        "one must show a good one. require: all must; once is the same. Flag -o "
                        "ssl_verify_mode=0 to 3."}},
    {.option = {.name = "tls.ciphers",
                .type = OPTION_STRING,
                .flags = ROW_RELOADABLE,
                TOP(tls.ciphers),
                .min = 1,
                .max = 255,
                .help = "Ciphers of TLS 1.2 as OpenSSL writes them. Default: those of OpenSSL. "
                        "Flag -o ssl_ciphers."},
     .sample = "ECDHE+AESGCM"},
    {.option = {.name = "tls.min-version",
                .type = OPTION_WORD,
                .flags = ROW_RELOADABLE,
                TOP(tls.version_min),
                .words = tls_version_words,
                .initial = "1.2",
                .help = "The oldest TLS that is spoken. Flag -o ssl_min_version=2 (1.2) or 3 "
                        "(1.3)."}},
    {.option = {.name = "spaces",
                .type = OPTION_CUSTOM,
                .flags = ROW_RELOADABLE | ROW_MANDATORY,
                .help = "The spaces, by name: a-z 0-9 _ and -, at most 32 letters; at most 64 "
                        "spaces."}},
};

_Static_assert(LENGTH(top_rows) <= SETTINGS_ROWS_MAX, "raise SETTINGS_ROWS_MAX");
_Static_assert(LOG_LEVEL_STATES == LENGTH(log_level_words) - 2,
               "log_level_words: as enum log_level");
_Static_assert(SETTINGS_REFUSALS_SERVER == LENGTH(refusals_words) - 2, "as settings_refusals");
_Static_assert(SETTINGS_ACK_REPLICA == LENGTH(ack_words) - 2, "as settings_ack");
_Static_assert(SETTINGS_VERIFY_ONCE == LENGTH(verify_words) - 2, "as settings_tls_verify");
_Static_assert(NET_TLS_1_3 == LENGTH(tls_version_words) - 2, "as net_tls_version");
_Static_assert(JOURNAL_SYNC_ALWAYS == LENGTH(sync_words) - 2, "sync_words: as journal_sync");

const struct settings_rows settings_top_rows = {top_rows, LENGTH(top_rows)};
