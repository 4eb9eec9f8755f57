/*
 * auth_delay.h: how long an address waits after wrong passwords, on whatever connection they came.
 *
 * The first AUTH_DELAY_FREE wrong passwords in a row cost nothing: people mistype. After each
 * further one no password of that address is looked at for AUTH_DELAY_FIRST_S, then twice as long
 * each time, up to AUTH_DELAY_MAX_S. A right one forgives all; so does AUTH_DELAY_FORGET_S without
 * a wrong one.
 *
 * The delay comes before a password is looked at, and passwords are looked at one after another:
 * neither a new connection nor a thousand at once make guessing faster. An address that waits
 * learns nothing, whatever it sent.
 *
 * So a right password waits, too, as only the look could tell it: while a neighbour guesses behind
 * the same proxy, an application's next login has its turn in the line of those that wait. Whoever
 * came first is first, if each asks again once a second. One whose client has gone is not looked at
 * any more and leaves the line; one who just asks no more, as after a reset, holds the others up
 * for AUTH_DELAY_HELD_S. One who waits after one other has its turn within two delays; who guesses
 * on two connections at once or more can keep all others of its address out. Nothing can be done
 * about it here: any rule that looks at the right one in time looks at as many guesses in that
 * time. Connections that are in stay in.
 *
 * What is kept does not grow: AUTH_DELAY_SLOTS slots, chosen by a hash of the origin (net.h:
 * net_conn_origin) with a seed nobody knows. Origins in one slot share its delay. Nothing is ever
 * evicted, so all addresses of the world together get AUTH_DELAY_SLOTS guesses in AUTH_DELAY_MAX_S.
 *
 * Thread rule: create and destroy by the owner; the others by any thread.
 */
#ifndef ROLLCALL_REQUEST_AUTH_DELAY_H
#define ROLLCALL_REQUEST_AUTH_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#define AUTH_DELAY_FREE     2
#define AUTH_DELAY_FIRST_S  1
#define AUTH_DELAY_MAX_S    8
#define AUTH_DELAY_HELD_S   2
#define AUTH_DELAY_FORGET_S 600
#define AUTH_DELAY_SLOTS    16384 /* a power of two; 32 bytes each */

struct auth_delay;

struct auth_delay *auth_delay_create(void); /* never NULL */
void auth_delay_destroy(struct auth_delay *delay);

/*
 * May a password of this origin be looked at now (now_us: clock_monotonic_us)? True: nobody else's
 * is until auth_delay_end(), which must follow at once with whether it was right. False: later.
 * since_us: it has been waiting since then, or begins to; 0: it does not wait, and is last in line.
 */
bool auth_delay_begin(struct auth_delay *delay, uint64_t origin, uint64_t since_us,
                      uint64_t now_us);
void auth_delay_end(struct auth_delay *delay, uint64_t origin, uint64_t now_us, bool right);
/* One that has waited since then asks no more: whoever asks next may be first. */
void auth_delay_leave(struct auth_delay *delay, uint64_t origin, uint64_t since_us);

#endif
