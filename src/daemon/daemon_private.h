/*
 * daemon_private.h: the process between its files. Included by daemon*.c only.
 *
 *     daemon.c         order of a start, serving, a stop; signals, reloads
 *     daemon_data.c    the data directory: loading, following, beginning anew
 */
#ifndef ROLLCALL_DAEMON_DAEMON_PRIVATE_H
#define ROLLCALL_DAEMON_DAEMON_PRIVATE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "config/settings.h"
#include "daemon/lead.h"
#include "net/net.h"
#include "request/server.h"

struct admin;
struct data;
struct repl_receiver_counts;

struct daemon {
    int argc;
    char **argv;
    struct settings *started; /* what needs a restart is compared with these */
    struct settings *now;     /* in force; the same value at first */
    struct budget budget;
    struct data *data; /* NULL: in memory only */
    struct server *server;
    struct net *net;
    struct admin *admin; /* NULL: none is configured */
    struct lead *lead;   /* NULL: nothing is loaded */
    struct repl_receiver_counts *counts;
    int signal_fd;      /* -1: signals are not held back */
    int ready_fd;       /* of process_background; -1: none */
    _Atomic bool stop;  /* loading: no more */
    int loaded_fd;      /* eventfd: loading has ended */
    bool serving;       /* clients can connect */
    bool failed;        /* the exit says so; the loader's while there is one */
    bool prepared;      /* the process is what it is to be: it begins anew */
    pthread_t reloader; /* if one was started */
    bool reloader_started;
    _Atomic unsigned reloads; /* asked for, and not done yet */

    /* What threads of src/repl ask for, under the lock: nobody stops a net that is gone. */
    pthread_mutex_t lock;
    bool net_goes;
    bool led;         /* it begins anew, and led until then: no last checkpoint */
    bool again, lost; /* to begin anew; to end, as neither a leader nor a follower is left */
    bool ends;        /* it was told to: no word has it begin anew */
    uint64_t cut_lsn; /* of the journal, when it begins anew; 0: it stays */
    char *follow;     /* the node it follows then; NULL: as before */
};

/* False: it is to stop. Main thread. */
bool daemon_on_signal(struct daemon *daemon, const struct signalfd_siginfo *signal);
bool daemon_start_keeper(const struct daemon *daemon);
void daemon_populate(const struct daemon *daemon);

/* ---- daemon_data.c ---- */

/* Takes the directory, as the user who is to have it. False: said why. */
bool daemon_open_data(struct daemon *daemon);
/* Loads, and begins what belongs to the data. False: it could not, or was asked to stop. */
bool daemon_begin_data(struct daemon *daemon);
/* Clients can connect: it begins to follow, if it does. False: as above. */
bool daemon_begin_lead(struct daemon *daemon);
/* A signal says so: no word has it begin anew. */
void daemon_end(struct daemon *daemon);
/* Has the next start, which nobody asked for, go on with the data and the part among nodes that
 * this one began with: a reload changes neither. Takes them from `started`, which is to go. */
void daemon_keep_place(struct settings *next, struct settings *started);
/* The net has ended. Returns whether it is to begin anew; else no later word has it do so. */
bool daemon_begins_anew(struct daemon *daemon);
/* Called before the net goes: nobody stops it from here on. */
void daemon_net_goes(struct daemon *daemon);

#endif
