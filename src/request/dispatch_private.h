/*
 * dispatch_private.h: a worker's state, shared by dispatch*.c and stats*.c.
 *
 * Routed keys are taken in the order they were routed, which is the order of the requests: cursor
 * runs through `chunk`, and `next` is routed and prepared while `chunk` is run.
 */
#ifndef ROLLCALL_REQUEST_DISPATCH_PRIVATE_H
#define ROLLCALL_REQUEST_DISPATCH_PRIVATE_H

#include "data/journal_sink.h"
#include "net/net.h"
#include "protocol/codec.h"
#include "request/command.h"
#include "request/server.h"
#include "request/watch.h"
#include "store/cold.h"

#define DISPATCH_CHUNK_KEYS 128
/* Bytes that engines copied after which others have their turn: about 100 us. */
#define DISPATCH_COPIED_MAX (1u << 20)
/* Changes that ask for their pages together: what a turn carries out, as the rest is given back. */
#define DISPATCH_AHEAD (DISPATCH_COPIED_MAX / ENGINE_COPIED_COLD - 1)
/* A line more than a value takes: else all values would fall into a few sets of the cache. */
#define DISPATCH_VALUE_STRIDE (ENGINE_VALUE_MAX + 64)

/* The state of a connection; all zero when it opens. */
struct dispatch_conn {
    const struct codec *codec; /* NULL before the first byte */
    struct protocol_state parser;
    uint64_t
        busy_since_us; /* its request has waited for room in the journal since; 0: it has not */
    uint64_t waits_since_us; /* its request waits for something else since; 0: it does not */
    /* State of the request that is run again, until it is done: */
    union {
        uint64_t flush;       /* its flush_all was asked for: flush_ask(); 0: none was */
        uint64_t list_cursor; /* how far a list of keys is … */
    };
    union {
        uint64_t login_since_us; /* its login has waited (auth_delay.h) since; 0: it does not */
        uint64_t listed;         /* … and how many are listed */
    };
    bool skip_get; /* a get was answered with an error: nothing is said to the rest of it */
    bool authenticated;
    uint8_t auth_failures;
    uint8_t waits_for; /* enum watch_tier, with waits_since_us */
    bool cold;         /* a request of it may have been promised pages of dumped tables */
};

struct dispatch_key {
    struct engine_op op;
    const struct command *command;
    struct space *space; /* NULL: of no space */
    bool delete_after;   /* read, its exptime is past: it runs alone and is deleted afterwards */
    struct engine_extended *extended; /* plain: room for the operation's, if it has one */
};

/*
 * Invariants: 1. cursor <= count <= DISPATCH_CHUNK_KEYS. 2. Keys before read_to are changes,
 * answered without an engine, or read. 3. uniform: every key has an engine, and all the same.
 * 4. gets: no key is a change, or deleted after it was read. 5. verb: that of the requests of all
 * keys, which are bare and follow each other; VERB_ERROR: they are not, or do not.
 */
struct dispatch_chunk {
    uint32_t count;
    uint32_t cursor;
    uint32_t read_to;
    bool uniform;
    bool gets;
    enum verb verb;
    struct dispatch_key keys[DISPATCH_CHUNK_KEYS];
    struct engine_op *ops[DISPATCH_CHUNK_KEYS]; /* of keys, once and for all */
    char values[DISPATCH_CHUNK_KEYS][DISPATCH_VALUE_STRIDE];
    struct engine_extended extended[DISPATCH_CHUNK_KEYS]; /* apart: hardly ever touched */
};

/* Keys of one request found and not found in a space, counted when it is answered. */
struct dispatch_tally {
    uint32_t hits;
    uint32_t absent;
    uint32_t unset;
    uint32_t incomplete;
    uint32_t below;
    uint32_t bad;
};

/* The answers of a worker that wait for the journal. 0: the oldest is not known to wait. */
struct dispatch_wait {
    uint64_t first, first_us; /* the LSN of the oldest, or of a later one, and its time */
    uint64_t last, last_us;
};

/* Requests by their class (request/watch.h). */
struct dispatch_counts {
    uint32_t all;
    uint32_t of[WATCH_CLASSES];
};

/* A request's first key as it came: it is printed only if the request was slow. */
struct dispatch_first_key {
    uint32_t length; /* at most WATCH_KEY_MAX: a longer key is cut */
    char bytes[WATCH_KEY_MAX];
};

/* Requests whose answers are held together, until the journal has come to lsn. */
struct dispatch_held {
    struct dispatch_counts counts;
    enum watch_class first;
    uint64_t lsn, since_us, ended_us;
    struct dispatch_first_key key; /* of the first */
};

#define DISPATCH_WAITING 128 /* commits of a worker that wait at one time, and are timed */

/* What dispatch_watch.c has of a worker. */
struct dispatch_watch {
    struct dispatch_counts turn; /* answered in it */
    enum watch_class first;      /* of the turn */
    uint64_t waited_us;          /* since when the first has waited; 0: it has not */
    enum watch_tier waited_for;
    uint32_t sample_in; /* the so-manieth key from here is sampled */
    uint32_t random;
    struct dispatch_held held; /* since the last commit */
    uint32_t waiting_first, waiting_count;
    struct dispatch_held *waiting; /* [DISPATCH_WAITING] */
};

struct dispatch_worker {
    struct server *server;
    struct net_worker *net;
    struct barrier_member *member;
    unsigned index;
    struct command_metrics *metrics;
    struct watch *watch;       /* its own of the server's */
    struct dispatch_watch own; /* what goes there */
    bool opened;               /* it has had a turn */
    bool changed;              /* of the turn: an engine changed something, or looked in order to */
    struct change_sink *sink;  /* the journal's, or one that keeps nothing */
    struct journal *journal;   /* NULL: nothing is kept */
    bool journal_failed;       /* it was found so: no change is taken before a restart */
    struct journal_sink journal_sink;
    struct dispatch_wait wait;
    bool no_replica; /* as the turns began: a change would not be acknowledged, so none is taken */
    bool hanging;    /* as the turns began: the journal hangs, and takes no change */
    bool follows;    /* as the turns began: the records are another node's, or it is fenced: no
                      * change is taken */
    bool stale;      /* likewise: nor is anything read */
    bool has_cold;   /* tables may be dumped */
    bool held_cold;  /* of the turn: the connection's `cold` as it began */
    bool busy;  /* since the last tick a request began to wait for the next one: for room in the
                 * journal, or with a login */
    bool waits; /* some request may be waiting for something else */
    /* inside the barrier */
    const struct settings *settings;
    const struct spaces *spaces;
    /* of the turn */
    struct dispatch_conn *conn;
    const struct net_conn *net_conn;
    const struct net_turn *turn;
    uint64_t serial;
    const struct codec *codec;
    struct buf *out;
    /* of the batch */
    const char *parsed;     /* the bytes it was parsed from */
    uint32_t route_request; /* the first request with keys that are not routed … */
    uint32_t route_key;     /* … and how many of its keys are */
    struct dispatch_chunk *chunk;
    struct dispatch_chunk *next;
    uint64_t copied_bytes; /* of the turn: by engines of long values, in order to change some */
    uint32_t with_it;      /* requests after the one just run that were run with it */
    uint32_t cut;          /* DISPATCH_CUT: keys of the request that are answered */
    uint64_t tallied;      /* bit a space with something in its tally */
    struct dispatch_tally tally[SETTINGS_SPACES_MAX];
    struct command_result result;
    struct pattern_match match;
    struct found found[DISPATCH_CHUNK_KEYS];
    uint64_t numbers[DISPATCH_CHUNK_KEYS]; /* of increments, … */
    uint64_t tokens[DISPATCH_CHUNK_KEYS];  /* … and their tokens, where asked for */
    struct hit hit; /* of an id's key: all have it so, but for value, token and flags */
    struct engine_op *gathered[DISPATCH_CHUNK_KEYS];
    struct dispatch_key alone; /* a key that is routed a second time */
    char alone_value[DISPATCH_VALUE_STRIDE];
    struct engine_extended alone_extended;
    struct request_batch batch;
};

/* How a request, or a batch, ended. */
enum dispatch_end {
    DISPATCH_DONE,
    DISPATCH_LAST,    /* done; what was routed later is void: parse again */
    DISPATCH_FULL,    /* not begun: no room for its answers */
    DISPATCH_CUT,     /* a get, done up to worker->cut: no room for the rest of its answers */
    DISPATCH_PENDING, /* not done, not answered: run again when woken */
    DISPATCH_AGAIN,   /* not done: it is run again in the next turn */
    DISPATCH_CLOSE,   /* done; close the connection */
    DISPATCH_LEAVE,   /* not done: the connection goes on elsewhere, with this request */
};

/* dispatch_chunk.c */
void dispatch_chunk_init(struct dispatch_chunk *chunk, struct net_worker *net);
void dispatch_alone_init(struct dispatch_worker *worker);
/* Prepares the first `count` keys of a chunk, which are routed: it is ready to run. */
void dispatch_chunk_prepare(struct dispatch_worker *worker, struct dispatch_chunk *chunk,
                            uint32_t count);
/* Reads the key of that number, and those after it that may be read with it. */
void dispatch_read_run(struct dispatch_worker *worker, uint32_t from);

/* dispatch_route.c */
void dispatch_route_begin(
    struct dispatch_worker *worker); /* a new batch: routes its first chunks */
void dispatch_chunk_next(struct dispatch_worker *worker);

/* The chunk of the next routed key. */
static inline struct dispatch_chunk *dispatch_chunk_now(struct dispatch_worker *worker)
{
    if (UNLIKELY(worker->chunk->cursor == worker->chunk->count)) {
        dispatch_chunk_next(worker);
    }
    return worker->chunk;
}

/* The next routed key. */
static inline struct dispatch_key *dispatch_key_next(struct dispatch_worker *worker)
{
    struct dispatch_chunk *chunk = dispatch_chunk_now(worker);
    struct dispatch_key *key = &chunk->keys[chunk->cursor++];
    __asm__("" : "+r"(key)); /* else GCC adds its parts up again for each field */
    return key;
}

/* Reads the key just taken, and its neighbours, unless that was done. */
static inline void dispatch_read(struct dispatch_worker *worker)
{
    if (worker->chunk->cursor > worker->chunk->read_to) {
        dispatch_read_run(worker, worker->chunk->cursor - 1);
    }
}

/* The worker's figures of a space; NULL: there is none. */
static inline struct space_metrics *dispatch_figures_of(const struct dispatch_worker *worker,
                                                        const struct space *space)
{
    return space != NULL ? &space->metrics[worker->index] : NULL;
}

/* Where the keys of the request in a space are counted, until it is answered. */
static inline struct dispatch_tally *dispatch_tally_of(struct dispatch_worker *worker,
                                                       const struct space *space)
{
    worker->tallied |= 1ull << space->index;
    return &worker->tally[space->index];
}

/* A key of the request once more, apart from the chunks and prepared; valid until the next. */
struct dispatch_key *dispatch_route_alone(struct dispatch_worker *worker,
                                          const struct request *request,
                                          const struct request_key *bytes);

/* dispatch_cold.c */
/* The change of this key waits, and the turn ends: those after it ask for their pages, too. */
void dispatch_cold_ahead(struct dispatch_worker *worker, const struct request *request,
                         const struct dispatch_key *key);
/* With dumped tables: notes if one of the operations, just run, waits. */
void dispatch_cold_look(struct dispatch_worker *worker, struct engine_op *const *ops, size_t n);
/* The turn's end. answered: some of its requests were. Returns how it goes on. */
enum net_next dispatch_cold_end(struct dispatch_worker *worker, enum net_next next, bool answered);
void dispatch_cold_closed(struct dispatch_worker *worker, struct net_conn *conn);

/* dispatch_run.c: a get, or a block of one. */
enum dispatch_end dispatch_run_get(struct dispatch_worker *worker, const struct request *request);
void dispatch_tally_miss(struct dispatch_worker *worker, const struct dispatch_key *key);
/* A request that is run again is counted once: so its keys are counted at its end, or dropped. */
void dispatch_tally_end(struct dispatch_worker *worker, bool answered);

/* dispatch_change.c: any other request of one key. */
enum dispatch_end dispatch_run_one(struct dispatch_worker *worker, const struct request *request);
/* The same of INCR or DECR, with worker->with_it of those after it. */
enum dispatch_end dispatch_run_add(struct dispatch_worker *worker, const struct request *request);
/* Deletes a routed key. PENDING: to be run again, it has not waited long enough. */
enum engine_status dispatch_delete(struct dispatch_worker *worker, const struct request *request,
                                   struct dispatch_key *key);
/* Drops the older value of a key of kind plain, after a set that was refused for its length alone.
 */
void dispatch_forget(struct dispatch_worker *worker, const struct request *request);

/* dispatch_trace.c */
/* Logs that the connection is to be closed, and why. */
void dispatch_log_closed(const struct net_conn *conn, const char *why);
/* Logs who sent a command that concerns all clients. */
void dispatch_log_deed(const struct dispatch_worker *worker, const char *command);
/* Each of these does nothing below its level of the log. */
/* A request that was run; its answer begins there in the output. */
void dispatch_trace_request(struct dispatch_worker *worker, const struct request *request,
                            size_t answer);
void dispatch_trace_open(const struct dispatch_worker *worker);
void dispatch_trace_close(const struct net_conn *conn);
void dispatch_trace_turn(const struct dispatch_worker *worker, const struct net_turn *turn,
                         enum net_next next);

/* dispatch_wait.c */
/* Returns whether it is the request that the connection waited for when the turn began. */
bool dispatch_is_first(const struct dispatch_worker *worker, const struct request *request);
/* The request has to wait, on. False: it has waited as long as one may, and is to be refused. */
bool dispatch_wait(struct dispatch_worker *worker, const struct request *request);
/* The same for one of its operations, which is PENDING. False: that has ended in ERROR. */
bool dispatch_wait_op(struct dispatch_worker *worker, const struct request *request,
                      struct engine *engine, struct engine_op *op);
void dispatch_wait_tick(struct dispatch_worker *worker);

/* dispatch_watch.c */
void dispatch_watch_open(struct dispatch_worker *worker);
void dispatch_watch_close(struct dispatch_worker *worker);
/* Around a turn, which has answered something or not. held: its answers are. */
void dispatch_watch_begin(struct dispatch_worker *worker);
void dispatch_watch_end(struct dispatch_worker *worker, bool held);
/* A request was answered, and so many of its verb that were run with it. */
void dispatch_watch_count(struct dispatch_worker *worker, const struct request *request,
                          uint32_t with_it);
/* A chunk was routed that holds a key to be sampled. */
void dispatch_watch_keys(struct dispatch_worker *worker, const struct dispatch_chunk *chunk);
void dispatch_watch_commit(struct dispatch_worker *worker, enum net_commit verdict, uint64_t lsn);
/* Answers that waited may have left since the last call. */
void dispatch_watch_released(struct dispatch_worker *worker);

/* dispatch_auth.c */
/* With users: runs the turn of a connection that is not authenticated. NET_AGAIN: it is
 * authenticated now. */
enum net_next dispatch_auth(struct dispatch_worker *worker, struct net_conn *conn,
                            struct net_turn *turn);
enum dispatch_end dispatch_run_sasl(struct dispatch_worker *worker, const struct request *request);

/* dispatch_list.c */
enum dispatch_end dispatch_list_crawler(struct dispatch_worker *worker,
                                        const struct request *request);
enum dispatch_end dispatch_list_items(struct dispatch_worker *worker,
                                      const struct request *request); /* stats cachedump */

/* dispatch_records.c: records of spaces of ids, in the order of their ids. */
/* The keys of all such spaces. */
enum dispatch_end dispatch_records_all(struct dispatch_worker *worker,
                                       const struct request *request, enum listing listing);
/* The records of one space from an id on: a line that names it and its slots, then ids. */
enum dispatch_end dispatch_records_export(struct dispatch_worker *worker,
                                          const struct request *request, const char *space,
                                          uint64_t from);
void dispatch_records_closed(struct dispatch_worker *worker, const struct net_conn *conn);
/* Is it in the midst of a list? */
bool dispatch_records_lists(const struct dispatch_worker *worker, const struct net_conn *conn);

/* dispatch_follow.c: the answers of a node that follows another */
void dispatch_follow_look(struct dispatch_worker *worker); /* as its turns begin */
enum dispatch_end dispatch_follow_refuse_change(struct dispatch_worker *worker,
                                                const struct request *request);
enum dispatch_end dispatch_follow_refuse_gat(struct dispatch_worker *worker,
                                             const struct request *request);
enum dispatch_end dispatch_follow_refuse_read(struct dispatch_worker *worker,
                                              const struct request *request);

/* dispatch_feed.c: follow and copy: the connection becomes a feed's. */
enum dispatch_end dispatch_run_feed(struct dispatch_worker *worker, const struct request *request);

/* dispatch_admin.c: one without. */
enum dispatch_end dispatch_run_admin(struct dispatch_worker *worker, const struct request *request);

/* dispatch_journal.c */
/* The first turns: takes a sink of the journal, if there is one. */
void dispatch_journal_open(struct dispatch_worker *worker);
void dispatch_journal_close(struct dispatch_worker *worker);
/* With a journal, as the turns begin: looks whether it takes changes. */
void dispatch_journal_look(struct dispatch_worker *worker);
/* With a journal: before it sleeps, or ends, a worker gives back room that it put nothing into:
 * others may need it to go on. */
void dispatch_journal_rest(struct dispatch_worker *worker);
/* With a journal: returns whether the answers of this turn must be held. */
bool dispatch_journal_holds(const struct dispatch_worker *worker);
/*
 * The sink had no room for op: it becomes PENDING and is woken when there is some, or its error
 * says better why there is none.
 */
void dispatch_journal_busy(struct dispatch_worker *worker, struct engine_op *op);
void dispatch_journal_tick(struct dispatch_worker *worker);

/* A CLIENT_ERROR, or what `refusals` makes of it. */
void dispatch_refuse(struct dispatch_worker *worker, const struct request *request,
                     const struct reply *reply); /* dispatch_admin.c */

/* Composes a reply; the codec knows what quiet requests are to hear. */
static inline void dispatch_reply(struct dispatch_worker *worker, const struct request *request,
                                  const struct reply *reply)
{
    if (UNLIKELY(reply->status == REPLY_CLIENT_ERROR)) {
        dispatch_refuse(worker, request, reply);
        return;
    }
    worker->codec->compose(worker->out, request, reply);
}

#endif
