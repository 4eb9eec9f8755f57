/*
 * daemon.h: the life of the process: options, limits, spaces, listeners, user, signals, end.
 *
 *     SIGTERM, SIGINT, SIGUSR1  stop cleanly, exit 0
 *     SIGHUP                    reload (reload.h)
 *     SIGUSR2                   a checkpoint, if there is a data directory
 * Listeners are bound before the user is dropped; connections are taken after it, when everything
 * stands.
 *
 * With a data directory: it is taken before the port, as the user. The port then answers `version`
 * and `stats` while a thread of its own loads; that thread makes the server whole (keeper,
 * populate, checkpoints) and says READY. Until then there is no reload, and a stop changes nothing
 * on the disk. At the end: the workers, a last checkpoint, the journal, the manifest's word that
 * all is there. Main thread.
 */
#ifndef ROLLCALL_DAEMON_DAEMON_H
#define ROLLCALL_DAEMON_DAEMON_H

/* Runs a daemon from its command line to its end. Returns the exit status. */
int daemon_run(int argc, char **argv);

#endif
