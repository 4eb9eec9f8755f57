/*
 * agent_decide.h: what the agent of a node does next, by what it knows. Pure functions: no clock,
 * no socket. The rules are those of tests/model/three_keys.py, which searches through all their
 * orders.
 *
 * Two keys of a group decide: `state` (epoch, leader, sync follower; changed only where nobody
 * changed it since it was read) and `alive` (the leader's name, while its agent renews a lease).
 * Who is to lead puts a claim into `state`, beside who reigned before, promotes its daemon, and
 * then has `state` name it: one whose daemon refuses, or is gone, has taken nobody's place. No
 * claim is taken out: a reign may have begun, so the next one is of a higher epoch. node/NAME
 * informs. The agent acts on one action after another until there is none; after each it notes what
 * came of it in the view, and after one that failed it looks again first.
 */
#ifndef ROLLCALL_TOOLS_AGENT_DECIDE_H
#define ROLLCALL_TOOLS_AGENT_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_NAME_MAX      64
#define AGENT_ADDRESS_MAX   255
#define AGENT_BOOT_MAX      36 /* of /proc/sys/kernel/random/boot_id */
#define AGENT_IDENTITY_MAX  16
#define AGENT_NODES_MAX     32
#define AGENT_FOLLOWERS_MAX 16
#define AGENT_TEXT_MAX      512        /* of a key's value */
#define AGENT_TOLD_UNKNOWN  UINT64_MAX /* … this: another process said it */
#define AGENT_WORD_MAX      15
#define AGENT_REFUSALS_MAX  3 /* of a promotion: then somebody else is to lead */

/* Who is to lead next, if its daemon does, and on which run of its machine. */
struct agent_claim {
    uint64_t epoch; /* not above that of state: there is none */
    char name[AGENT_NAME_MAX + 1];
    char boot[AGENT_BOOT_MAX + 1];
};

/* The key `state`. sync "": nobody but the leader may lead. from: where the leader's journal ended
 * when its reign was decided. boot: of the machine that it leads on. */
struct agent_state {
    uint64_t epoch, from;
    char leader[AGENT_NAME_MAX + 1], sync[AGENT_NAME_MAX + 1];
    char boot[AGENT_BOOT_MAX + 1];
    struct agent_claim claim;
};

/* A key node/NAME. */
struct agent_node {
    char name[AGENT_NAME_MAX + 1];
    char address[AGENT_ADDRESS_MAX + 1]; /* where it is followed */
    uint64_t epoch, written;
    bool may_lead;                         /* and be the sync follower */
    bool in_sync;                          /* it once had all that the leader had, and can lead */
    bool full;                             /* its disk has no room for what comes */
    char word[AGENT_WORD_MAX + 1];         /* which says so; other words: it is not in sync */
    char identity[AGENT_IDENTITY_MAX + 1]; /* data_identity of its daemon; "": not known */
    uint64_t scope;                        /* agent_lock_scope of its agent; 0: not known */
};

struct agent_self {
    const char *name, *address, *boot; /* address NULL: it only asks */
    const char *identity;              /* as in agent_node */
    bool may_lead;
    bool alone; /* may it lead when no follower is waited for */
};

/* What etcd says. known: it was asked in this round, and nothing failed since. */
struct agent_keys {
    bool known;
    bool has_state;
    struct agent_state state;
    int64_t state_revision;
    char alive[AGENT_NAME_MAX + 1]; /* "": nobody */
    int64_t alive_revision, alive_lease;
    bool alive_mine; /* it is this agent's lease */
    size_t node_count;
    struct agent_node nodes[AGENT_NODES_MAX];
};

/* What the daemon says, likewise. */
struct agent_daemon_view {
    bool known;
    bool absent; /* there is no such process */
    bool leads;
    uint64_t epoch;                     /* of its journal's last reign */
    uint64_t written;                   /* 0: it holds nothing */
    char leader[AGENT_ADDRESS_MAX + 1]; /* whom it follows; "": nobody */
    bool caught_up, can_lead, full;
    size_t follower_count;
    char followers[AGENT_FOLLOWERS_MAX][AGENT_NAME_MAX + 1]; /* that stream and have caught up … */
    uint64_t followers_written[AGENT_FOLLOWERS_MAX]; /* … and what each said that it has */
};

/* What it keeps from round to round. */
struct agent_memory {
    uint64_t patience_ms;
    uint64_t told_ms; /* until when the daemon may take changes, by the last word to it, or … */
    /* Since when; 0: it is there. weak: it is there, but could not lead, or has no room. */
    uint64_t daemon_gone_ms, sync_gone_ms, sync_weak_ms;
    uint64_t full_ms;  /* since when the leader's disk is full, and the sync follower could lead */
    unsigned refusals; /* of the daemon, to be promoted by the present claim */
    uint64_t gives_way_ms;           /* until then others may claim, as it was refused */
    char adding[AGENT_NAME_MAX + 1]; /* who is to be the sync follower; "": nobody */
    int64_t adding_revision;         /* of state, when that began */
    bool marked;                     /* the daemon waits for it … */
    uint64_t mark, acked;            /* … from there on, and it has this */
};

struct agent_view {
    uint64_t now_ms;
    struct agent_self self;
    struct agent_keys keys;
    struct agent_daemon_view daemon;
    bool held; /* the daemon was told in this round, and for whom it waits stands */
};

enum agent_act {
    AGENT_REST,    /* nothing more in this round */
    AGENT_TAKE,    /* txn: nobody is alive, or this agent; state as read: alive, and `state`, with
                      a claim or as it was */
    AGENT_CHANGE,  /* txn: this agent is alive, state as read: `state` */
    AGENT_PROMOTE, /* the daemon, to the claim's epoch */
    AGENT_HOLD,    /* the daemon: it leads for as long as the lease lasts, and waits */
    AGENT_FOLLOW,  /* the daemon: `address`, "-": nobody; from leading too */
    AGENT_RESIGN,  /* gives the lease back, so that another may lead */
};

struct agent_action {
    enum agent_act act;
    struct agent_state state;
    char address[AGENT_ADDRESS_MAX + 1];
    char waits[2 * (AGENT_NAME_MAX + 1)]; /* as of `lead` (repl/control.h) */
    const char *why;                      /* for the log; NULL: it is usual */
};

/* The next action. Changes what it keeps: what was begun, since when something is away. */
struct agent_action agent_decide(const struct agent_view *view, struct agent_memory *memory);

/* What node/NAME says of a daemon in a word: "in-sync", "behind", "cannot-lead", "full". */
const char *agent_word(const struct agent_daemon_view *daemon);

/* May that node come to lead, by what it says of itself? */
bool agent_may_lead(const struct agent_view *view);

/* Is `alive` of an earlier agent of this node, so that its lease may be gone on with? A node of the
 * same name on another machine, or in an earlier run of this one, is not this node. */
bool agent_may_adopt(const struct agent_view *view);

/* The key node/NAME; NULL: its agent is not there. */
const struct agent_node *agent_node_of(const struct agent_keys *keys, const char *name);

/* Does who is alive lead? Not between a claim and the reign that begins. */
bool agent_is_settled(const struct agent_keys *keys);

/* Is `own`, the key of this node's name, of another daemon: of another machine, or data directory?
 */
bool agent_is_namesake(const struct agent_node *own, const struct agent_self *self);

/* ---- the keys' text ---- */

void agent_state_print(const struct agent_state *state, char text[AGENT_TEXT_MAX]);
bool agent_state_parse(const char *text, struct agent_state *state);
void agent_node_print(const struct agent_node *node, char text[AGENT_TEXT_MAX]);
/* Its name is the key's, and stays. */
bool agent_node_parse(const char *text, struct agent_node *node);

#endif
