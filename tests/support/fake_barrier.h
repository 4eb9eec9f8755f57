/*
 * fake_barrier.h: the barrier's functions for a test of one thread that wants to do something each
 * time a member comes out: link it instead of base/barrier.c. Entering and stopping wait for
 * nobody. Thread rule: one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_FAKE_BARRIER_H
#define ROLLCALL_TESTS_SUPPORT_FAKE_BARRIER_H

#include <stdbool.h>

#include "base/barrier.h"

struct barrier_member {
    void (*left)(void *context); /* called with the member outside; may be NULL */
    void *context;
    bool inside;
};

bool fake_barrier_is_stopped(const struct barrier *barrier);

#endif
