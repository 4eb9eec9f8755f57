/*
 * lookup.h: a host's addresses, by a thread that nobody has to wait for: the system's look-up knows
 * no bound, and cannot be ended.
 *
 * Thread rule: a look-up belongs to one thread.
 */
#ifndef ROLLCALL_REPL_LOOKUP_H
#define ROLLCALL_REPL_LOOKUP_H

#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct repl_lookup;

/* Begins one. NULL: no thread can be had. */
struct repl_lookup *repl_lookup_start(const char *host, const char *port);
/* Waits for its end, until until_us, and no longer than some 50 ms once *stop is true. */
bool repl_lookup_ended(struct repl_lookup *lookup, uint64_t until_us, const _Atomic bool *stop);
/* Of one that has ended: 0 and its addresses, as long as it is there; or an EAI_ code. */
int repl_lookup_found(const struct repl_lookup *lookup, const struct addrinfo **found);
/* Nobody asks for it any more: its thread is left to end by itself. NULL: no-op. */
void repl_lookup_drop(struct repl_lookup *lookup);

#endif
