/*
 * dispatch.h: from a connection's bytes to its answers: the service net calls on its workers.
 *
 *     parse    the connection's codec cuts the bytes into a batch of requests
 *     route    keys become engine operations, DISPATCH_CHUNK_KEYS at a time, and all of a chunk are
 *              prepared (hashed, prefetched) before any runs; the next chunk before this one ends
 *     execute  in the order of the connection: neighbouring reads together, changes one by one
 *     compose  in the same order, into the worker's output
 *
 * A request whose engine answers PENDING stops the batch: its other keys are still started,
 * everything before it is answered, it and all later ones stay unread, and it is run again from
 * routing when its ticket has been woken. A request whose answers may not fit the output is not
 * begun.
 *
 * With a journal a turn that changed something has its answers held until that
 * is kept; a change the journal has no room for waits for it like any other, for a second at most.
 *
 * Thread rule: each worker has a state of its own; all functions run on the worker's thread.
 */
#ifndef ROLLCALL_REQUEST_DISPATCH_H
#define ROLLCALL_REQUEST_DISPATCH_H

#include "net/net.h"

/* The functions of struct net_service (net/net.h says when each is called). */
void *dispatch_open(void *server, struct net_worker *net_worker);
void dispatch_close(void *worker_state);
void dispatch_turns_begin(void *worker_state);
void dispatch_turns_end(void *worker_state);
enum net_next dispatch_turn(void *worker_state, struct net_conn *conn, struct net_turn *turn);
enum net_commit dispatch_commit(void *worker_state, uint64_t *wait); /* dispatch_journal.c */
bool dispatch_may_leave(void *worker_state);                         /* dispatch_journal.c */
void dispatch_tick(void *worker_state);
/* Functions of a journal_listener whose context is the server. Any thread. */
void dispatch_journal_moved(void *server);
void dispatch_journal_room(void *server);
void dispatch_closed(void *worker_state, struct net_conn *conn);
void dispatch_left(void *worker_state, struct net_conn *conn, const struct net_left *left);
size_t dispatch_state_bytes(void);

#endif
