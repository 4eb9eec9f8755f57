/*
 * reload.h: SIGHUP: the configuration is read again and what can change while running changes.
 *
 * All or nothing: everything that can fail is built before the world is stopped; with the world
 * stopped the spaces that stay take what can change, one after another, and are given back what
 * they had should one refuse. Then the new set and settings are published, and only when workers
 * run with them are the old ones freed. Every mistake is logged and leaves all as it was; so is
 * every change, and since when it holds: at once, or from the next table on. Meanwhile nothing is
 * maintained or populated (keeper.h, populate.h).
 *
 * What needs a restart is compared with what the daemon was started with, and named on the log.
 * One at a time, by any thread outside the barrier that may wait: for brackets of others
 * (keeper.h) and, where a space is new, for the disk.
 */
#ifndef ROLLCALL_DAEMON_RELOAD_H
#define ROLLCALL_DAEMON_RELOAD_H

#include <stdbool.h>

#include "request/server.h"

/*
 * Has a server go on with `next`, which is the caller's as before, like the settings in force until
 * now: the caller frees those when this returns true. False: nothing changed, said on the log.
 * `create` makes the engines of added spaces; those of removed ones are destroyed. Memory is then
 * populated (populate.h) from the start: what is resident already costs little.
 */
bool reload_apply(struct server *server, const struct settings *next, space_engine_fn *create);

/* Logs each option outside the spaces that is in force now and was another in `before`, and each of
 * `next` that differs from `started` and needs a restart. */
void reload_log_changes(const struct settings *started, const struct settings *before,
                        const struct settings *next);

#endif
