/*
 * process.h: what the daemon does to its own process: limits, user, pidfile, background.
 *
 * Main thread. Each returns false after logging why it could not; the daemon then does not start.
 */
#ifndef ROLLCALL_DAEMON_PROCESS_H
#define ROLLCALL_DAEMON_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns whether this user may run the daemon: root needs a user to become. */
bool process_user_allowed(const char *user);

/* The limit of descriptors is raised to the hard limit up to here: that may be a billion. */
#define PROCESS_DESCRIPTORS_MOST (1u << 20)

/* Raises the limit of descriptors as far as the system lets it, root's beyond its hard limit if
 * `wanted` is higher. *allowed: what it is then, maybe less than that. */
bool process_raise_descriptors(uint64_t wanted, uint64_t *allowed);

bool process_allow_core(void);

/*
 * Keeps all memory from being swapped out; warns when it cannot. The limit of locked memory must be
 * none, for it holds again once root is given up, and then allocations would fail.
 */
void process_lock_memory(void);

/* Tells the user that process_drop_to(user) will become. False: no other user. */
bool process_becomes(const char *user, uid_t *uid, gid_t *gid);

/* Makes sure that no program which this process starts gets more rights than it has
 * (PR_SET_NO_NEW_PRIVS): it starts none, and an intruder must not either. Before other threads
 * start. */
void process_refuse_privileges(void);

/* Becomes user for good, all threads of the process. Nothing to do when not root. */
bool process_drop_to(const char *user);

/*
 * Until process_as_root() files are opened and made as this user; the process can still become root
 * again. Does nothing when not root. Before other threads start.
 */
bool process_as(const char *user);
void process_as_root(void);

bool process_write_pidfile(const char *path);
void process_remove_pidfile(const char *path); /* NULL: no-op */

/*
 * Goes on as a child of its own session; returns in the child. The parent stays until the child
 * calls process_background_ready(), then exits 0, or 1 when the child ended before. Before threads
 * start.
 */
bool process_background(int *ready_fd);
/* The daemon serves: lets the parent go, gives stdin, stdout and stderr away. -1: no-op */
void process_background_ready(int ready_fd);

#endif
