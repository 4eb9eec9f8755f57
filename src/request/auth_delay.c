#include "request/auth_delay.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

#define SECOND_US 1000000ull
#define HELD_US   (AUTH_DELAY_HELD_S * SECOND_US)

struct slot {
    uint64_t free_us;   /* from here on a password is looked at */
    uint64_t failed_us; /* the last wrong one */
    uint64_t failures;  /* in a row */
    uint64_t first_us;  /* since when the first in line waits, of all that asked since; 0: none */
};

struct auth_delay {
    pthread_mutex_t lock; /* from begin to end */
    uint64_t seed;
    struct slot slots[AUTH_DELAY_SLOTS];
};

struct auth_delay *auth_delay_create(void)
{
    struct auth_delay *delay = memory_zalloc(sizeof(*delay));

    CHECK(pthread_mutex_init(&delay->lock, NULL) == 0);
    delay->seed = clock_random();
    return delay;
}

void auth_delay_destroy(struct auth_delay *delay)
{
    pthread_mutex_destroy(&delay->lock);
    free(delay);
}

static struct slot *slot_of(struct auth_delay *delay, uint64_t origin)
{
    uint64_t hash = hash_bytes(&origin, sizeof(origin), delay->seed);

    return &delay->slots[hash & (AUTH_DELAY_SLOTS - 1)];
}

static uint64_t wait_after(uint64_t failures)
{
    uint64_t seconds = AUTH_DELAY_FIRST_S;

    if (failures <= AUTH_DELAY_FREE) {
        return 0;
    }
    for (uint64_t i = AUTH_DELAY_FREE + 1; i < failures && seconds < AUTH_DELAY_MAX_S; i++) {
        seconds *= 2;
    }
    return (seconds < AUTH_DELAY_MAX_S ? seconds : AUTH_DELAY_MAX_S) * SECOND_US;
}

static bool is_turn(const struct slot *slot, uint64_t since_us, uint64_t now_us)
{
    return slot->first_us == 0 || (since_us != 0 && since_us <= slot->first_us) ||
           now_us >= slot->free_us + HELD_US;
}

bool auth_delay_begin(struct auth_delay *delay, uint64_t origin, uint64_t since_us, uint64_t now_us)
{
    pthread_mutex_lock(&delay->lock);
    struct slot *slot = slot_of(delay, origin);

    if (now_us >= slot->free_us && is_turn(slot, since_us, now_us)) {
        return true;
    }
    if (since_us != 0 && (slot->first_us == 0 || since_us < slot->first_us)) {
        slot->first_us = since_us;
    }
    pthread_mutex_unlock(&delay->lock);
    return false;
}

void auth_delay_leave(struct auth_delay *delay, uint64_t origin, uint64_t since_us)
{
    pthread_mutex_lock(&delay->lock);
    struct slot *slot = slot_of(delay, origin);

    if (slot->first_us == since_us) {
        slot->first_us = 0; /* the others ask again */
    }
    pthread_mutex_unlock(&delay->lock);
}

void auth_delay_end(struct auth_delay *delay, uint64_t origin, uint64_t now_us, bool right)
{
    struct slot *slot = slot_of(delay, origin);

    if (right) {
        *slot = (struct slot){0};
    } else {
        /* A worker's time may be a little older than that of the worker before it. */
        if (now_us > slot->failed_us + AUTH_DELAY_FORGET_S * SECOND_US) {
            slot->failures = 0;
        }
        uint64_t wait_us = wait_after(++slot->failures);

        slot->failed_us = now_us;
        slot->free_us = wait_us > 0 ? now_us + wait_us : 0;
        slot->first_us = 0; /* the others ask again */
    }
    pthread_mutex_unlock(&delay->lock);
}
