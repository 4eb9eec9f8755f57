/*
 * actors.h: threads of the product of which one runs at a time, chosen by a simulation: whenever
 * one waits it is parked, and goes on when it is its turn. Link actors.c in place of base/thread.c
 * and base/wait.c; what waits otherwise (a simulated network) parks by actors_park.
 *
 * Actors are the threads that are started by the names "receiver", "applier" and "feed"; all others
 * run as ever. Time is sim_clock.h's: where nobody can go on, it leaps to when somebody can. So no
 * wait takes any time, and a seed does the same again.
 *
 * Thread rule: the thread of the simulation, but for actors_park.
 */
#ifndef ROLLCALL_TESTS_SIM_ACTORS_H
#define ROLLCALL_TESTS_SIM_ACTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/random.h"

#define ACTORS_NODES 2

/* Whose threads are started from now on: a node's number. By an actor, too. */
void actors_own(unsigned node);
/* One that can go on does, until it is parked again; drawn by lot among those of the nodes in the
 * mask (bit n: node n) whose name is `only` (NULL: any). Time may leap, up to until_us. False: none
 * can. */
bool actors_step(struct test_random *random, unsigned nodes, const char *only, uint64_t until_us);
/* Something has changed that one may wait for. Any thread. */
void actors_changed(void);
/* The node's actors of that name (NULL: all) run freely, as they are to end; until actors_hold. */
void actors_free(unsigned node, const char *only);
void actors_hold(unsigned node);
/* None is left of that node. */
bool actors_none(unsigned node);

/* By an actor: until is_ready says so, or until_us. */
typedef bool actors_ready_fn(void *context);
void actors_park(actors_ready_fn *is_ready, void *context, uint64_t until_us);
/* Is this thread one? */
bool actors_is_one(void);

#endif
