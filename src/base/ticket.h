/*
 * ticket.h: whom to wake when what a request waits for has come. A value: copy it. Two tickets with
 * the same three fields are the same ticket: it stands for one request, or for a connection that
 * runs its requests one after another. Pure functions; any thread.
 */
#ifndef ROLLCALL_BASE_TICKET_H
#define ROLLCALL_BASE_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

/* Any thread may call it; a serial that is gone is ignored. */
typedef void ticket_wake_fn(void *target, uint64_t serial);

struct ticket {
    ticket_wake_fn *wake;
    void *target;
    uint64_t serial;
};

static inline void ticket_wake(const struct ticket *ticket)
{
    ticket->wake(ticket->target, ticket->serial);
}

static inline bool ticket_same(const struct ticket *left, const struct ticket *right)
{
    return left->serial == right->serial && left->target == right->target &&
           left->wake == right->wake;
}

static inline uint64_t ticket_hash(const struct ticket *ticket)
{
    return hash_u64((uint64_t)(uintptr_t)ticket->target ^ hash_u64(ticket->serial));
}

#endif
