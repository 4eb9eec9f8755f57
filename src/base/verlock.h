/*
 * verlock.h: a lock and a version in one 32-bit word: writers exclude each other, readers take
 * nothing.
 *
 * Bit 0 is the lock; the version takes the high bits of the word, so that adding to it wraps
 * without touching the rest; between them the owner of the word keeps small fields of its own (a
 * count, marks) that change only under the lock. A reader notes the word, reads, and looks whether
 * the word is still the same; a writer takes the lock by exchanging exactly the word it has read,
 * so it knows the fields it holds (were the version to go round: see counter/DESIGN.md).
 *
 * Orders: version load acquire, acquire fence in front of the second load; the exchange acquires
 * and a release fence follows it, so no data store passes in front; unlock releases. Data in
 * between: relaxed (words.h). See Boehm, "Can seqlocks get along with programming language memory
 * models?", 2012.
 */
#ifndef ROLLCALL_BASE_VERLOCK_H
#define ROLLCALL_BASE_VERLOCK_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/thread.h"

#define VERLOCK_LOCKED 1u
#define VERLOCK_SPINS  100 /* looks at a locked word before the processor is given away */

typedef uint32_t __attribute__((may_alias)) verlock;

/* ThreadSanitizer knows no fences; every access here is atomic, so it needs none. */
#if defined(__SANITIZE_THREAD__)
#define VERLOCK_FENCE(order) __atomic_signal_fence(order)
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VERLOCK_FENCE(order) __atomic_signal_fence(order)
#endif
#endif
#ifndef VERLOCK_FENCE
#define VERLOCK_FENCE(order) __atomic_thread_fence(order)
#endif

static inline void verlock_pause(unsigned *spins)
{
    if (++*spins % VERLOCK_SPINS == 0) {
        sched_yield();
        return;
    }
    thread_pause();
}

/* Returns the word, once it is unlocked. */
static inline uint32_t verlock_read(const verlock *lock)
{
    unsigned spins = 0;
    uint32_t word = __atomic_load_n(lock, __ATOMIC_ACQUIRE);
    while (UNLIKELY(word & VERLOCK_LOCKED)) {
        verlock_pause(&spins);
        word = __atomic_load_n(lock, __ATOMIC_ACQUIRE);
    }
    return word;
}

/* Returns whether nothing changed since `seen` was read: then all that was read in between belongs
 * together. */
static inline bool verlock_unchanged(const verlock *lock, uint32_t seen)
{
    VERLOCK_FENCE(__ATOMIC_ACQUIRE);
    return __atomic_load_n(lock, __ATOMIC_RELAXED) == seen;
}

/* Takes the lock if the word is still `seen`. */
static inline bool verlock_try(verlock *lock, uint32_t seen)
{
    bool taken = __atomic_compare_exchange_n(lock, &seen, seen | VERLOCK_LOCKED, false,
                                             __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    VERLOCK_FENCE(__ATOMIC_RELEASE);
    return taken;
}

/* Takes the lock, waiting for it. Returns the unlocked word. */
static inline uint32_t verlock_take(verlock *lock)
{
    for (;;) {
        uint32_t word = verlock_read(lock);
        if (verlock_try(lock, word)) {
            return word;
        }
    }
}

/* Unlocks. `word` is what the word becomes: its lock bit clear, its version raised if data changed.
 */
static inline void verlock_release(verlock *lock, uint32_t word)
{
    CHECK(!(word & VERLOCK_LOCKED));
    __atomic_store_n(lock, word, __ATOMIC_RELEASE);
}

#endif
