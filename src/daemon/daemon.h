/*
 * daemon.h: the life of the process: options, limits, spaces, listeners, user, signals, end.
 *
 *     SIGTERM, SIGINT, SIGUSR1  stop cleanly, exit 0
 *     SIGHUP                    reload (reload.h)
 *     SIGUSR2                   a checkpoint, if there is a data directory
 * Listeners are bound before the user is dropped; connections are taken after it, when everything
 * stands.
 *
 * With a data directory: it is taken before the port, as the user. While a thread of its own loads,
 * signals are heard and the status page tells how far it is, but nobody can connect to the port,
 * there is no reload, and a stop changes nothing on the disk. Then the main thread makes the server
 * whole (keeper, populate, checkpoints), listens, and says READY. At the end: the workers, a last
 * checkpoint, the journal, the manifest's word that all is there. Main thread.
 */
#ifndef ROLLCALL_DAEMON_DAEMON_H
#define ROLLCALL_DAEMON_DAEMON_H

/* Runs a daemon from its command line to its end. Returns the exit status. */
int daemon_run(int argc, char **argv);

#endif
