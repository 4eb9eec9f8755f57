/*
 * settings.h: the whole configuration of a daemon as one value.
 *
 * It comes from the built-in configuration, a YAML file, --set and flags, in that order. All rows
 * are declared once, in settings_table.c: name, type, unit, limits, default, reloadable, help; the
 * parser,
 * --help, conf/rollcall.yaml, `stats settings` and the manual page are made from them.
 * Every mistake of a run is collected and reported together: see settings_load().
 *
 * A settings value is immutable once loaded; a reload makes another and compares. One
 * thread at a time, except that any thread may read one it was given.
 */
#ifndef ROLLCALL_CONFIG_SETTINGS_H
#define ROLLCALL_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "counter/counter.h"
#include "engine/engine.h"
#include "key/pattern.h"
#include "net/tls.h"
#include "phantom/phantom.h"
#include "plain/plain.h"
#include "store/cold.h"
#include "store/journal.h"

#define SETTINGS_SPACES_MAX      PATTERN_SPACES_MAX
#define SETTINGS_LISTEN_MAX      64
#define SETTINGS_SLOT_BITS_MIN   2
#define SETTINGS_SLOT_BITS_MAX   64
#define SETTINGS_RECORD_BITS_MAX 512
#define SETTINGS_SEGMENT_UNIT    4096
#define SETTINGS_FOLLOW_AGENT    "agent"
#define SETTINGS_NODE_NAME_MAX   64 /* as REPL_NAME_MAX */
#define SETTINGS_FEEDS_MAX       16 /* as REPL_FEEDS_MAX */
/* What a thread that serves a follower reads into and sends from, at most; what follows (its
 * receiver and its applier) takes twice that. */
#define SETTINGS_FEED_BYTES                   ((1ull << 20) + (64u << 10) + (256u << 10))
#define SETTINGS_FOLLOW_BYTES                 (2 * SETTINGS_FEED_BYTES)
#define SETTINGS_COPIES_MAX                   16
#define SETTINGS_ACK_TIMEOUT_S_MAX            60
#define SETTINGS_STALE_AFTER_S_MAX            (30 * 86400)
#define SETTINGS_CHECKPOINT_MS_MIN            100
#define SETTINGS_CHECKPOINT_MS_MAX            (30 * 86400 * 1000ull)
#define SETTINGS_CHECKPOINT_JOURNAL_BYTES_MIN (1ull << 20)
#define SETTINGS_CHECKPOINT_JOURNAL_BYTES_MAX (1ull << 46)
#define SETTINGS_DATA_PATH_MAX                400
#define SETTINGS_COLD_BYTES_MAX               (1ull << 40)
#define SETTINGS_OVERLAY_BYTES_MIN            (1ull << 20)
#define SETTINGS_FORGET_MAX                   COUNTER_FORGET_MAX

enum space_kind { SPACE_COUNTER, SPACE_PHANTOM, SPACE_PLAIN };
enum space_ids { SPACE_IDS_GROWING, SPACE_IDS_ANY };
enum space_role { SPACE_STORE, SPACE_CACHE };
enum space_oldest {
    SPACE_OLDEST_DEFAULT,
    SPACE_OLDEST_DUMP,
    SPACE_OLDEST_RECYCLE,
    SPACE_OLDEST_REFUSE
};

enum space_empty { SPACE_EMPTY_KEEP, SPACE_EMPTY_CLEAR };
enum space_similar { SPACE_SIMILAR_REFUSE, SPACE_SIMILAR_ALLOW };
enum settings_refusals { SETTINGS_REFUSALS_CLIENT, SETTINGS_REFUSALS_SERVER };
enum settings_key_format { SETTINGS_KEY_PEM, SETTINGS_KEY_DER };
enum settings_ack { SETTINGS_ACK_NONE, SETTINGS_ACK_REPLICA };

/* As enum net_tls_verify; `once` is `require`, since no second handshake would ask again. */
enum settings_tls_verify {
    SETTINGS_VERIFY_NONE,
    SETTINGS_VERIFY_REQUEST,
    SETTINGS_VERIFY_REQUIRE,
    SETTINGS_VERIFY_ONCE
};

struct slot_settings {
    char name[ENGINE_SPACE_NAME_MAX + 1];
    unsigned bits; /* SETTINGS_SLOT_BITS_MIN .. _MAX */
};

struct space_settings {
    char name[ENGINE_SPACE_NAME_MAX + 1];
    enum space_kind kind;
    char key[PATTERN_TEXT_MAX + 1]; /* never empty once loaded */
    struct slot_settings slots[ENGINE_SLOTS_MAX];
    size_t slot_count;
    enum space_ids ids;
    uint64_t max_id;     /* ids: any */
    uint64_t id_spacing; /* 0: not given */
    enum space_role role;
    enum space_empty empty_fields; /* role store */
    struct row_config row;         /* table_bytes, tables, dumps_max, late_room; the rest follows */
    enum space_oldest oldest;      /* never _DEFAULT once loaded */
    uint32_t value_flags;
    double false_positives;
    bool deletes;
    bool binary_create;
    uint64_t extend_bytes; /* pools of a table; 0: table_bytes / 32 */
    uint64_t aux_bytes;
    uint64_t exceptions_bytes;
    uint64_t memory_bytes;           /* plain */
    uint64_t item_bytes_max;         /* plain */
    enum space_similar similar_keys; /* plain */
    /* What a changed configuration may let go: slots, or keys of the space (data/forget.h). */
    char forget[SETTINGS_FORGET_MAX][ENGINE_SPACE_NAME_MAX + 1];
    size_t forget_count;
    uint64_t below_bytes; /* its part of cold.cache: follows from the others once loaded */
};

struct settings {
    /* host:port, [v6]:port or /path, all different; after NET_PLAIN_PREFIX: without TLS */
    char *listen[SETTINGS_LISTEN_MAX];
    size_t listen_count;
    unsigned threads; /* never 0 once loaded */
    uint64_t memory_bytes;
    char *data; /* an absolute path; NULL: memory only, and what follows means nothing */
    struct {
        enum journal_sync sync;
        uint64_t segment_bytes; /* a multiple of SETTINGS_SEGMENT_UNIT */
        uint64_t buffer_bytes;  /* a power of two */
    } journal;
    struct {
        uint64_t every_ms; /* 0: not by time */
        uint64_t journal_bytes;
    } checkpoint;
    struct { /* matters once a space dumps: settings_dumps(); the cache also with below_bytes */
        unsigned threads;
        unsigned queue; /* pages */
        uint64_t cache_bytes;
        uint64_t overlay_bytes;
        unsigned open_files; /* of dumped tables, at one time: daemon/descriptors.h. 0: a few */
    } cold;
    struct {
        char *name; /* of this node; NULL: nobody follows it, and the others mean nothing */
        char *group;
        char *follow;           /* an address as in `listen`; SETTINGS_FOLLOW_AGENT; NULL: nobody */
        char *credentials_file; /* NULL: it does not log in */
        char *login;            /* of that file, once loaded: "name password" */
        unsigned stale_after_s; /* 0: its copy is never too old to be read */
        enum settings_ack ack;
        char *ack_by; /* with SETTINGS_ACK_REPLICA never NULL, but where an agent says it */
        unsigned ack_timeout_s;
        uint64_t keep_bytes;
        unsigned copies;
        uint64_t copy_rate; /* bytes a second; 0: no limit */
    } replication;
    unsigned max_connections;
    unsigned backlog;
    unsigned requests_per_turn; /* -R */
    unsigned unix_mode;         /* -a */
    unsigned idle_timeout_s;
    unsigned request_timeout_s;
    unsigned slow_request_ms; /* 0: none is noted */
    bool flush_all;
    enum settings_refusals refusals;
    bool list_keys;
    bool shutdown_command; /* -A */
    bool lock_memory;      /* -k */
    bool core_files;       /* -r */
    bool daemonize;
    char *user;
    char *pidfile;
    unsigned log_level; /* enum log_level */
    char *version_shown;
    bool allow_open;
    char *auth_file;       /* NULL: everybody may */
    struct auth *auth;     /* of that file, once loaded */
    char *admin;           /* host:port of the status page and the metrics; NULL: there are none */
    char *admin_auth_file; /* NULL: everybody may look */
    struct auth *admin_auth; /* of that file, once loaded */
    struct {                 /* not enabled: the others mean nothing */
        bool enabled;
        char *certificate; /* files */
        char *key;
        enum settings_key_format key_format;
        char *ca; /* NULL: none */
        enum settings_tls_verify verify;
        char *ciphers;
        enum net_tls_version version_min;
        struct net_tls_context *context; /* of those files, once loaded */
    } tls;
    struct space_settings spaces[SETTINGS_SPACES_MAX];
    size_t space_count;
};

/* What the command line asked for besides running. */
enum settings_action {
    SETTINGS_RUN,
    SETTINGS_EXIT_OK,    /* --help, -V, --check-config, --print-config: done and printed */
    SETTINGS_EXIT_ERROR, /* all mistakes were printed */
};

/*
 * Reads argv (which getopt may reorder), then the file it names (or the built-in configuration),
 * then applies --set and flags. Prints what was asked for to `out` and every mistake to `err`, as
 * `file:line:col: error: …` with the line and a caret, or `rollcalld: -p: …` for flags. On
 * SETTINGS_RUN, *settings is the caller's to settings_destroy().
 */
enum settings_action settings_load(int argc, char **argv, FILE *out, FILE *err,
                                   struct settings **settings);
/*
 * The same without actions: for SIGHUP. NULL if there was any mistake. `err` as above.
 */
struct settings *settings_reload(int argc, char **argv, FILE *err);
void settings_destroy(struct settings *settings); /* NULL: no-op */
/* Returns whether rollcall agent says which node this one follows, and when it leads. */
bool settings_follows_agent(const struct settings *settings);

/* Every setting as name and text, for `stats settings`: memcached's names among them (maxconns …).
 */
void settings_each(const struct settings *settings, engine_stat_fn *emit, void *context);

/* Every option by its key in a file, those of a space as spaces.NAME.KEY, with the text that
 * `stats settings` has. */
void settings_each_key(const struct settings *settings, engine_stat_fn *emit, void *context);
/* The name that `stats settings` has for the key. */
#define SETTINGS_STAT_NAME_MAX 128
void settings_stat_name(const char *key, char name[SETTINGS_STAT_NAME_MAX]);

/*
 * Compares old with new: calls emit(context, name, "old=A new=B") for each setting that differs and
 * cannot change while running ("needs a restart"). Returns how many. The rest of a space's
 * differences is settings_space_changes()'s, what else changes while running settings_changes()'s.
 */
size_t settings_need_restart(const struct settings *now, const struct settings *next,
                             engine_stat_fn *emit, void *context);

size_t settings_changes(const struct settings *now, const struct settings *next,
                        engine_stat_fn *emit, void *context);

/*
 * Fills `taken` with what a space that runs with `now` makes of `next`, which has its name: every
 * key that can change while running is as in `next`, the others are as in `now`. A key of a table
 * changes with the next table, where ids grow; with ids: any there is no next table.
 */
void settings_space_next(const struct space_settings *now, const struct space_settings *next,
                         struct space_settings *taken);
/*
 * Calls emit(context, name, "old=A new=B", and "since=next_table" or
 * "since=new_table" if that is not now) for each key that differs and can change
 * while running. Returns how many. emit may be NULL.
 */
size_t settings_space_changes(const struct space_settings *now, const struct space_settings *next,
                              engine_stat_fn *emit, void *context);

/* Returns the bytes that the private buffers of all connections together may hold: 1/16 of memory,
 * at least 16 MiB. */
uint64_t settings_buffer_bytes(const struct settings *settings);

/*
 * The bytes of memory this configuration holds at most, with a line a part and the sum to `out`
 * (NULL: nothing printed). settings_load() has refused one that exceeds memory_bytes.
 */
uint64_t settings_memory_sum(const struct settings *settings, FILE *out);

/* Returns whether any space has tables that are dumped. */
bool settings_dumps(const struct settings *settings);
/* What store/cold.h is told: but for its file system and callback. */
void settings_cold_config(const struct settings *settings, struct cold_config *config);
/* Returns the part of the sum for cold reads and overlays, which these spaces share. 0: no space
 * dumps. */
uint64_t settings_cold_bytes(const struct settings *settings);

/* Returns the part of the sum of one space: its tables, their pools, and its below_bytes. */
uint64_t settings_space_bytes(const struct space_settings *space);

/* The words of enum space_kind, in its order; NULL ends them. */
extern const char *const settings_kind_words[];

/* Fills what the counter engine needs of space number `space`, which is of kind counter. */
void settings_counter_config(const struct space_settings *from, uint32_t space,
                             struct counter_config *config);
/* The same for the phantom engine and a space of kind phantom. */
void settings_phantom_config(const struct space_settings *from, uint32_t space,
                             struct phantom_config *config);

#endif
