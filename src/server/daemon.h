/*
 * daemon.h: the life of the process: options, limits, spaces, listeners, user, signals, end.
 *
 *     SIGTERM, SIGINT, SIGUSR1  stop cleanly, exit 0
 *     SIGHUP                    reload (reload.h)
 *     SIGUSR2                   a checkpoint, once there is a data directory
 * Listeners are bound before the user is dropped; connections are taken after it, when everything
 * stands. Main thread.
 */
#ifndef ROLLCALL_SERVER_DAEMON_H
#define ROLLCALL_SERVER_DAEMON_H

/* Runs a daemon from its command line to its end. Returns the exit status. */
int daemon_run(int argc, char **argv);

#endif
