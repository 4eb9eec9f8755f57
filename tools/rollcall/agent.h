/*
 * agent.h: rollcall agent, a process beside each daemon of a group. In each round it looks at its
 * daemon and at etcd, and does what agent_decide.h says.
 *
 *     agent.c         options, rounds, what it does
 *     agent_keys.c    what etcd holds
 *     agent_ask.c     its daemon
 *     agent_lock.c    no second agent beside the daemon
 *     agent_hook.c    the program that is run when another node leads
 *     agent_status.c  status, --init, --force
 *
 * It holds nothing that matters: killed and started again it goes on, with the lease that it had.
 * Its word to the daemon ends with that lease, less a part, by the machine's own clock, so a daemon
 * whose agent is dead, sleeps or cannot reach etcd takes no more changes when another may. One
 * thread.
 */
#ifndef ROLLCALL_TOOLS_AGENT_H
#define ROLLCALL_TOOLS_AGENT_H

#include <sys/types.h>

#include "tools/rollcall/agent_decide.h"
#include "tools/rollcall/agent_etcd.h"
#include "tools/rollcall/online.h"

#define AGENT_ROUNDS 6 /* of a lease: a round each such part, and the word ends so much sooner */

/* The key node/NAME of this node, as it was read. */
struct agent_own_node {
    int64_t revision, lease; /* 0: there is none */
    struct agent_node node;  /* address "": none, or it is not known */
};

/* What is told to the program. */
struct agent_hook {
    pid_t pid; /* 0: it does not run */
    uint64_t until_ms;
    char told[AGENT_TEXT_MAX];
};

/* That no other agent speaks for the daemon. */
struct agent_lock {
    int fd;       /* -1: it is not had */
    bool held;    /* another agent has it … */
    pid_t holder; /* … which was this process, as found the first time; 0: not known */
    char identity[AGENT_IDENTITY_MAX + 1];
};

struct agent {
    const struct online_options *options;
    struct agent_etcd *etcd;
    struct agent_view view;
    struct agent_memory memory;
    char name[AGENT_NAME_MAX + 1], group[AGENT_NAME_MAX + 1]; /* "": the daemon never said */
    char boot[AGENT_BOOT_MAX + 1], identity[AGENT_IDENTITY_MAX + 1];
    int64_t lease; /* 0: none */
    uint64_t ttl_ms;
    uint64_t word_ms; /* until when its daemon may lead: clock_boot_us, in milliseconds */
    struct agent_own_node own;
    char node_text[AGENT_TEXT_MAX]; /* as last put */
    uint64_t node_put_ms;
    struct agent_hook hook;
    struct agent_lock lock;
    uint64_t scope;         /* agent_lock_scope */
    enum exit_status asked; /* how the last question to the daemon ended */
    /* As last logged. */
    char etcd_trouble[AGENT_ETCD_ERROR_MAX], daemon_trouble[ONLINE_ERROR_MAX];
    char name_trouble[AGENT_TEXT_MAX];
};

/* ---- agent_keys.c ---- */

/* Notes why etcd's last call failed; false, for a caller to return. */
bool agent_etcd_failed(struct agent *agent);
/* /rollcall/GROUP/NAME */
void agent_key(const struct agent *agent, const char *name, char key[AGENT_ETCD_KEY_MAX]);
/* Reads all keys of its group to view.keys. False: they are not known. */
bool agent_read_keys(struct agent *agent);
/* Another daemon, whose agent lives, has this one's name: two would answer for one. Says which. */
bool agent_has_namesake(const struct agent *agent, char text[AGENT_TEXT_MAX]);
/* Reads them, for a round: if the name is another's, says so, and they are not known. May go on
 * with the lease of the agent before this process. */
bool agent_look(struct agent *agent);

/* ---- agent_ask.c: false, the reason in daemon_trouble: it refuses, or does not answer ---- */

bool agent_ask_state(struct agent *agent);
bool agent_ask_promote(struct agent *agent, uint64_t epoch);
bool agent_ask_follow(struct agent *agent, const char *address);
/* *written: how far its journal is; *acked: the last one of `waits` has that. */
bool agent_ask_hold(struct agent *agent, const char *waits, uint64_t *written, uint64_t *acked);

/* ---- agent_lock.c ---- */

/* Where the lock is seen: a network namespace, by its number on this run of the machine. 0: not
 * known. */
uint64_t agent_lock_scope(void);
enum agent_lock_result {
    AGENT_LOCK_HAD,
    AGENT_LOCK_HELD, /* by another agent of this scope: of the same user, or root's (holder) */
    AGENT_LOCK_NONE, /* there is none to be had, so nothing is known: any user may have its name */
};

/* Takes the lock of a daemon with that identity, or has it. */
enum agent_lock_result agent_lock_take(struct agent_lock *lock, const char *identity);
/* Gives it back, if it is had. */
void agent_lock_end(struct agent_lock *lock);

/* ---- agent_hook.c ---- */

/* Runs the program if who leads, or what this node is, has changed since it ran. */
void agent_hook_look(struct agent *agent);

/* ---- agent_status.c: the exit status ---- */

int agent_show(struct agent *agent);
int agent_init(struct agent *agent);
int agent_force(struct agent *agent);

#endif
