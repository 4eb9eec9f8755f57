/* settings_table_top.c: every option of the daemon as a whole, once. */
#include "config/settings_draft.h"

#include "base/log.h"

#define AT(member)                                                                                 \
    .offset = offsetof(struct settings, member), .bytes = sizeof(((struct settings *)0)->member)
#define NUMBER(member, least, most) .type = OPTION_NUMBER, AT(member), .min = (least), .max = (most)
#define SIZE(member, least, most)   .type = OPTION_SIZE, AT(member), .min = (least), .max = (most)
#define TEXT(member, least, most)   .type = OPTION_STRING, AT(member), .min = (least), .max = (most)
#define WORD(member, list)          .type = OPTION_WORD, AT(member), .words = (list)
#define YES_NO(member)              .type = OPTION_BOOL, AT(member)
#define TIME(member, least, most, unit)                                                            \
    .type = OPTION_DURATION, AT(member), .min = (least), .max = (most), .unit_ms = (unit)
#define SECONDS(member, least, most)      TIME(member, least, most, 1000)
#define MILLISECONDS(member, least, most) TIME(member, least, most, 1)
#define LENGTH(array)                     (sizeof(array) / sizeof((array)[0]))

static const char *const sync_words[] = {"never", "everysec", "always", NULL};
static const char *const ack_words[] = {"none", "replica", NULL};
static const char *const key_format_words[] = {"pem", "der", NULL};
static const char *const verify_words[] = {"none", "request", "require", "once", NULL};
static const char *const tls_version_words[] = {"1.2", "1.3", NULL};
static const char *const refusals_words[] = {"client", "server", NULL};
static const char *const log_level_words[] = {"error",    "warning", "info", "debug",
                                              "commands", "states",  NULL};

static const struct settings_row top_rows[] = {
    {.option = {"listen", .type = OPTION_CUSTOM, .initial = "[127.0.0.1:11211]",
                .help =
                    "Addresses to listen on: host:port, [v6]:port or /path.sock. Without a port it "
                    "is 11211 or that of -p; port 0 takes any free one. Flags -l, -p, -s."}},
    {.option = {"threads", NUMBER(threads, 1, SETTINGS_THREADS_MAX), .automatic = "auto",
                .initial = "auto",
                .help = "Worker threads. auto: one a processor this process may run on, but no "
                        "more than one for each 4 MiB of memory. Flag -t."}},
    {.option = {"memory", SIZE(memory_bytes, 1ull << 20, 1ull << 46), .initial = "4GiB",
                .help = "Hard limit of everything: tables, buffers, workers. What does not fit is "
                        "refused at start with the sum. Flag -m, in MiB."}},
    {.option = {"max-connections", NUMBER(max_connections, 1, 1000000), .flags = ROW_RELOADABLE,
                .initial = "1024",
                .help = "Connections open at one time. Lowered, with a warning, to what the "
                        "hard limit of open files (the soft one is raised to it) leaves beside "
                        "the daemon's own. Flag -c."}},
    {.option = {"idle-timeout", SECONDS(idle_timeout_s, 0, 30 * 86400), .flags = ROW_RELOADABLE,
                .initial = "0",
                .help = "Seconds after which a silent connection is closed; 0: never."}},
    {.option = {"request-timeout", SECONDS(request_timeout_s, 0, 86400), .flags = ROW_RELOADABLE,
                .initial = "30", .help = "Seconds a half-sent request may take; 0: for ever."}},
    {.option = {"slow-request", MILLISECONDS(slow_request_ms, 0, 3600000), .flags = ROW_RELOADABLE,
                .initial = "10ms",
                .help = "Time from which a request is slow: `stats slow` has the last 128 of each "
                        "worker, with what they waited for; 0: none."}},
    {.option = {"requests-per-turn", NUMBER(requests_per_turn, 1, 65536), .initial = "256",
                .help =
                    "Requests of one connection after which the others get their turn. Flag -R."}},
    {.option = {"backlog", NUMBER(backlog, 1, 1 << 20), .initial = "1024",
                .help = "Connections that may wait to be accepted. Flag -b."}},
    {.option = {"unix-mode", .type = OPTION_OCTAL, AT(unix_mode), .max = 0777, .initial = "0700",
                .help = "Permissions of unix sockets, in octal. They belong to the user the daemon "
                        "becomes. Flag -a."}},
    {.option = {"allow-open", YES_NO(allow_open), .initial = "no",
                .help =
                    "Listen beyond this machine without auth-file and without TLS that verifies "
                    "clients: whoever reaches the port can then read and change everything."}},
    {.option = {"flush-all", YES_NO(flush_all), .flags = ROW_RELOADABLE, .initial = "no",
                .help =
                    "Obey the command flush_all, which empties every space. Flag -F forbids it."}},
    {.option = {"shutdown-command", YES_NO(shutdown_command), .initial = "no",
                .help = "Obey the command shutdown. Flag -A."}},
    {.option = {"refusals", WORD(refusals, refusals_words), .flags = ROW_RELOADABLE,
                .initial = "client",
                .help = "What refusals begin with in the text protocol: client: CLIENT_ERROR, "
                        "server: SERVER_ERROR, for memcached's proxy, which closes a connection "
                        "that many clients share on each CLIENT_ERROR."}},
    {.option = {"list-keys", YES_NO(list_keys), .flags = ROW_RELOADABLE, .initial = "yes",
                .help = "Obey lru_crawler metadump, mgdump and export, and stats cachedump, which "
                        "list keys and records. Flag -X forbids them."}},
    {.option = {"version-shown", TEXT(version_shown, 5, 31), .flags = ROW_RELOADABLE,
                .initial = "1.6.45",
                .help = "The memcached version clients are told: three numbers with dots, the "
                        "first not 0, and nothing after them, or libraries refuse to work."}},
    {.option = {"user", TEXT(user, 1, 64),
                .help = "User to become when started as root. Default: none. Flag -u."},
     .sample = "nobody"},
    {.option = {"pidfile", TEXT(pidfile, 1, 255),
                .help = "File to write the process id to. Default: none. Flag -P."},
     .sample = "/run/rollcalld.pid"},
    {.option = {"daemonize", YES_NO(daemonize), .initial = "no",
                .help = "Go to the background; the log then goes to syslog. Flag -d."}},
    {.option = {"log-level", WORD(log_level, log_level_words), .flags = ROW_RELOADABLE,
                .initial = "info", .help = "The least important lines to log. Flag -v: debug."}},
    {.option = {"lock-memory", YES_NO(lock_memory), .initial = "no",
                .help = "Lock all memory, so that nothing is swapped out. Flag -k."}},
    {.option = {"core-files", YES_NO(core_files), .initial = "no",
                .help = "Raise the limit of core files to what is allowed. Flag -r."}},
    {.option = {"data", TEXT(data, 1, SETTINGS_DATA_PATH_MAX),
                .help =
                    "Directory of one daemon's data, made if it is not there: what is acknowledged "
                    "survives a kill and a restart. Default: none, all is in memory only."},
     .sample = "/var/lib/rollcall"},
    {.option = {"journal", .type = OPTION_CUSTOM, .flags = ROW_GROUP,
                .help = "With data: the journal, to which every change is written before it is "
                        "acknowledged."}},
    {.option = {"journal.sync", WORD(journal.sync, sync_words), .initial = "everysec",
                .help =
                    "What a power cut may cost; a killed daemon never loses what was acknowledged. "
                    "never: what the system had not written yet. everysec: about the last second. "
                    "always: nothing, and answers to writes wait for the disk."}},
    {.option = {"journal.segment",
                SIZE(journal.segment_bytes, JOURNAL_SEGMENT_BYTES_MIN, JOURNAL_SEGMENT_BYTES_MAX),
                .initial = "256MiB",
                .help =
                    "Size of one of its files, a multiple of 4KiB. Two are on the disk at least."}},
    {.option = {"journal.buffer",
                SIZE(journal.buffer_bytes, JOURNAL_BUFFER_BYTES_MIN, JOURNAL_BUFFER_BYTES_MAX),
                .flags = OPTION_POWER_OF_TWO, .initial = "64MiB",
                .help = "Memory for changes that are not on the disk yet. When it is full, writes "
                        "wait up to a second, then they are refused."}},
    {.option =
         {"checkpoint", .type = OPTION_CUSTOM, .flags = ROW_GROUP,
          .help = "With data: when tables that changed are written to files, so that older journal "
                  "is not needed any more. One is made at the end, too, and on SIGUSR2."}},
    {.option = {"checkpoint.every",
                MILLISECONDS(checkpoint.every_ms, SETTINGS_CHECKPOINT_MS_MIN,
                             SETTINGS_CHECKPOINT_MS_MAX),
                .flags = ROW_RELOADABLE, .automatic = "0", .initial = "10min",
                .help = "Time between two, if anything changed; 0: not by time."}},
    {.option = {"checkpoint.journal",
                SIZE(checkpoint.journal_bytes, SETTINGS_CHECKPOINT_JOURNAL_BYTES_MIN,
                     SETTINGS_CHECKPOINT_JOURNAL_BYTES_MAX),
                .flags = ROW_RELOADABLE, .initial = "1GiB",
                .help = "Journal after which one is made: a restart reads about so much, and what "
                        "was written meanwhile."}},
    {.option = {"cold", .type = OPTION_CUSTOM, .flags = ROW_GROUP,
                .help = "How tables that left memory are read (data, oldest: dump), and what is "
                        "kept of ids whose tables were dropped."}},
    {.option = {"cold.threads", NUMBER(cold.threads, 1, COLD_THREADS_MAX), .initial = "8",
                .help = "Threads that read the disk, a page of 4KiB at a time each."}},
    {.option =
         {"cold.cache", SIZE(cold.cache_bytes, 0, SETTINGS_COLD_BYTES_MAX), .automatic = "0",
          .initial = "64MiB",
          .help = "Memory for pages that were read. Of it each counter space of role cache that "
                  "drops its oldest tables has an equal share, but no more than one of its tables "
                  "takes, for records written back below its oldest table. 0: none are kept."}},
    /* A get of 1,024 keys may need two pages of each, or one of each layer, and a request that needs
     * more than fit here, none of them in the cache, is busy each time. */
    {.option = {"cold.queue", NUMBER(cold.queue, 1, COLD_QUEUE_MAX), .initial = "4096",
                .help = "Pages that requests may wait for at one time; beyond that they are "
                        "refused. A get of 1,024 keys may need two pages of each key, of existence "
                        "keys one for each layer of their tables, 16 at most: with fewer it may be "
                        "refused each time."}},
    {.option = {"cold.overlay",
                SIZE(cold.overlay_bytes, SETTINGS_OVERLAY_BYTES_MIN, SETTINGS_COLD_BYTES_MAX),
                .initial = "64MiB",
                .help = "Memory for what has changed of tables that left it, and of those that "
                        "leave just now: a quarter is for these alone. When half of it is used "
                        "files are written anew."}},
    {.option = {"replication", .type = OPTION_CUSTOM, .flags = ROW_GROUP,
                .help = "With data and a name: other nodes may follow this one, on the addresses "
                        "of clients and as one of their users; and it may follow one."}},
    {.option = {"replication.name", TEXT(replication.name, 1, SETTINGS_NODE_NAME_MAX),
                .help = "This node's name, unlike all others of its group: a-z 0-9 _ - and ., a "
                        "letter or digit first. Default: none, nobody can follow it."},
     .sample = "feed-1"},
    {.option = {"replication.group", TEXT(replication.group, 1, SETTINGS_NODE_NAME_MAX),
                .initial = "rollcall",
                .help = "The group's name, likewise: of all nodes that hold the same data. A "
                        "follower that names another is refused."}},
    {.option =
         {"replication.follow", TEXT(replication.follow, 1, SETTINGS_DATA_PATH_MAX),
          .help = "The node whose data this one copies, and whose changes it then takes: one of "
                  "its addresses, as in listen. With tls.enabled over TLS, with a certificate that "
                  "tls.ca signed; notls: in front: without TLS. agent: the node that rollcall "
                  "agent names, which may also make this one lead. Default: none, it leads."},
     .sample = "10.0.0.1:11211"},
    {.option =
         {"replication.credentials", TEXT(replication.credentials_file, 1, 255),
          .flags = ROW_RELOADABLE,
          .help =
              "File with the user, a line name:password, as whom this node logs in at the one it "
              "follows; nobody else may be able to read it. Default: none, it does not log in."},
     .sample = "/etc/rollcall.follow"},
    {.option =
         {"replication.stale-after",
          SECONDS(replication.stale_after_s, 0, SETTINGS_STALE_AFTER_S_MAX),
          .flags = ROW_RELOADABLE, .initial = "0",
          .help = "Reads are refused when this node has not been level with the one it follows, or "
                  "has had no word from its agent that it leads, for so many seconds; 0: never."}},
    {.option = {"replication.ack", WORD(replication.ack, ack_words), .initial = "none",
                .help = "When the answer to a write leaves. none: when it is stored here, as "
                        "journal.sync has it. replica: when the follower of ack-by has stored it "
                        "so, too; while that one is away, or behind, writes are refused."}},
    {.option = {"replication.ack-by", TEXT(replication.ack_by, 1, SETTINGS_NODE_NAME_MAX),
                .help = "With ack: replica: the replication.name of the follower that is waited "
                        "for. Default: none."},
     .sample = "feed-2"},
    {.option = {"replication.ack-timeout",
                SECONDS(replication.ack_timeout_s, 1, SETTINGS_ACK_TIMEOUT_S_MAX), .initial = "1s",
                .help = "With ack: replica: seconds after which the connection of a write that "
                        "waits is closed without an answer: nobody knows then what became of it."}},
    {.option = {"replication.keep",
                SIZE(replication.keep_bytes, 0, SETTINGS_CHECKPOINT_JOURNAL_BYTES_MAX),
                .flags = ROW_RELOADABLE, .automatic = "0", .initial = "4GiB",
                .help = "Bytes of journal from before the last checkpoint that stay, for followers "
                        "that were away or are being filled: beyond them they need a copy. Given "
                        "up when the disk is full, before writes are refused."}},
    {.option = {"replication.copies", NUMBER(replication.copies, 0, SETTINGS_COPIES_MAX),
                .flags = ROW_RELOADABLE, .initial = "1",
                .help = "Followers that get a copy at one time; others are told to come again. 0: "
                        "none does."}},
    {.option = {"replication.copy-rate", SIZE(replication.copy_rate, 0, SETTINGS_COLD_BYTES_MAX),
                .flags = ROW_RELOADABLE, .automatic = "0", .initial = "0",
                .help = "Bytes a second of each copy; 0: as fast as it goes."}},
    {.option = {"auth-file", TEXT(auth_file, 1, 255), .flags = ROW_RELOADABLE,
                .help =
                    "File of users, a line name:password each: a client must first log in as one "
                    "of them, in text by a set of any key with the data \"name password\", in "
                    "binary by SASL PLAIN. After wrong passwords all logins of the address wait in "
                    "line, right ones too, 20 s at most. Nobody else should be able to read the "
                    "file. Default: none, everybody may. Flag -Y."},
     .sample = "/etc/rollcall.users"},
    {.option = {"admin", TEXT(admin, 1, 255),
                .help = "Address of the status page, /metrics, /status.json, /healthz, /leader and "
                        "/follower (HTTP): host:port or [v6]:port, without a port 11280. All of it "
                        "only tells. Default: none."},
     .sample = "127.0.0.1:11280"},
    {.option = {"admin-auth", TEXT(admin_auth_file, 1, 255), .flags = ROW_RELOADABLE,
                .help = "File of users, as auth-file: who looks at the page, the metrics or "
                        "status.json must be one of them (HTTP Basic). /healthz, /leader and "
                        "/follower answer everybody. Default: none, everybody may look."},
     .sample = "/etc/rollcall.admins"},
    {.option = {"tls", .type = OPTION_CUSTOM, .flags = ROW_GROUP,
                .help = "TLS on every TCP address but those written notls:host:port. Its files are "
                        "read again on SIGHUP, for the connections to come."}},
    {.option = {"tls.enabled", YES_NO(tls.enabled), .initial = "no",
                .help = "Whether there is TLS; certificate and key are then needed. Flag -Z."}},
    {.option = {"tls.certificate", TEXT(tls.certificate, 1, 255), .flags = ROW_RELOADABLE,
                .help = "File of the server's certificate (PEM), its chain after it. Flag -o "
                        "ssl_chain_cert."},
     .sample = "/etc/rollcall/server.crt"},
    {.option = {"tls.key", TEXT(tls.key, 1, 255), .flags = ROW_RELOADABLE,
                .help = "File of its private key, without a passphrase. With user it must be "
                        "readable by that user, or a reload fails. Flag -o ssl_key."},
     .sample = "/etc/rollcall/server.key"},
    {.option = {"tls.key-format", WORD(tls.key_format, key_format_words), .flags = ROW_RELOADABLE,
                .initial = "pem",
                .help = "What the key's file holds. Flag -o ssl_keyformat=1 (pem) or 2 (der)."}},
    {.option = {"tls.ca", TEXT(tls.ca, 1, 255), .flags = ROW_RELOADABLE,
                .help = "File of the authorities (PEM) that sign clients' certificates. Default: "
                        "none. Flag -o ssl_ca_cert."},
     .sample = "/etc/rollcall/clients.crt"},
    {.option = {"tls.verify", WORD(tls.verify, verify_words), .flags = ROW_RELOADABLE,
                .initial = "none",
                .help = "Clients' certificates. none: not asked for. request: a client that shows "
                        "one must show a good one. require: all must; once is the same. Flag -o "
                        "ssl_verify_mode=0 to 3."}},
    {.option = {"tls.ciphers", TEXT(tls.ciphers, 1, 255), .flags = ROW_RELOADABLE,
                .help = "Ciphers of TLS 1.2 as OpenSSL writes them. Default: those of OpenSSL. "
                        "Flag -o ssl_ciphers."},
     .sample = "ECDHE+AESGCM"},
    {.option = {"tls.min-version", WORD(tls.version_min, tls_version_words),
                .flags = ROW_RELOADABLE, .initial = "1.2",
                .help =
                    "The oldest TLS that is spoken. Flag -o ssl_min_version=2 (1.2) or 3 (1.3)."}},
    {.option =
         {"spaces", .type = OPTION_CUSTOM, .flags = ROW_RELOADABLE | ROW_MANDATORY,
          .help = "The spaces, by name: a-z 0-9 _ and -, at most 32 letters; at most 64 spaces."}},
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
