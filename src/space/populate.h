/*
 * populate.h: makes the spaces' memory resident in the background, so that first uses do not fault.
 *
 * One thread that walks the engines of a set. It is no member of the barrier (a step of it may take
 * long), so what replaces the contents of an engine, or the set, brackets that with populate_stop()
 * and populate_go(): between the two no thread is populating, and nobody else is in such a bracket.
 * The world is stopped inside the bracket, never around it.
 */
#ifndef ROLLCALL_SPACE_POPULATE_H
#define ROLLCALL_SPACE_POPULATE_H

#include "space/spaces.h"

struct populate;

struct populate *populate_create(void);           /* idle. Never NULL */
void populate_destroy(struct populate *populate); /* stops it. NULL: no-op */

/* Ends the thread, waiting for one step of an engine. Any thread outside the barrier. */
void populate_stop(struct populate *populate);
/* Begins again with the spaces of a set; NULL: not. By the thread that stopped it. */
void populate_go(struct populate *populate, const struct spaces *spaces);
/* Waits until all is resident, but no longer than this. By the thread that began it, at start. */
void populate_wait(struct populate *populate, unsigned milliseconds);

#endif
