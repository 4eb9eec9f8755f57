/*
 * wires.h: connections between two simulated nodes, in memory, with a network between that holds
 * bytes back, loses them with the connection, and turns one. Link wires.c in place of
 * repl/link_socket.c. Side 0 is who connected, side 1 who was connected to.
 *
 * Thread rule: the thread of the simulation, or an actor (actors.h).
 */
#ifndef ROLLCALL_TESTS_SIM_WIRES_H
#define ROLLCALL_TESTS_SIM_WIRES_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/random.h"

/* What a network does; of connections to come, too. */
struct wires_weather {
    bool holds[2];    /* what that side says stays under way */
    uint64_t turn_in; /* of side 1: the byte after so many is turned; 0: none */
};

void wires_begin(void);      /* there are none, and the network is good */
void wires_end(void);        /* all are closed: frees what is left */
void wires_dial(int fds[2]); /* one more */
struct wires_weather *wires_weather(void);
void wires_flow(void); /* holds no more: what is under way arrives */
/* All end. quiet: one side is not told (half open), drawn; else both. What is under way is lost. */
void wires_cut(struct test_random *random, bool quiet);
uint64_t wires_turned(void); /* bytes turned, of all */
unsigned wires_open(void);   /* that are not cut, nor closed by a side */

#endif
