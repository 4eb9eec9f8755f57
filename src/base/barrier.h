/*
 * barrier.h: stop every thread that touches tables, change something, let them go on.
 *
 * A thread that touches tables is *inside* from barrier_enter() to barrier_leave() (a turn of a
 * worker's loop) and outside otherwise; asleep counts as outside. barrier_stop() raises a flag,
 * waits until every thread is outside and returns with the world to the caller; barrier_go() lets
 * them in again. Whatever is published between the two is seen whole by every later turn, and
 * nothing that was unlinked is still held: no pointer into a table or a configuration outlives a
 * turn.
 *
 * Cost: entering is one locked instruction on a cache line of the thread's own and one load.
 * barrier_stop takes as long as the longest turn (under a millisecond). One stop at a time: a
 * second caller waits for the first.
 */
#ifndef ROLLCALL_BASE_BARRIER_H
#define ROLLCALL_BASE_BARRIER_H

#define BARRIER_MEMBERS_MAX 128

struct barrier;
struct barrier_member;

struct barrier *barrier_create(void);
void barrier_destroy(struct barrier *barrier); /* every member has resigned. NULL: no-op */

/* A thread's membership, outside at first. NULL when BARRIER_MEMBERS_MAX are members. */
struct barrier_member *barrier_join(struct barrier *barrier);
void barrier_resign(struct barrier_member *member); /* outside. NULL: no-op */

void barrier_enter(struct barrier_member *member); /* waits while the world is stopped */
void barrier_leave(struct barrier_member *member);

void barrier_stop(struct barrier *barrier); /* by a thread that is outside or no member */
void barrier_go(struct barrier *barrier);

#endif
