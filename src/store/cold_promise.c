/* cold_promise.c: reads, the tickets that wait for them, and what each was promised. */
#include <string.h>

#include "store/cold_private.h"

/* ---- places ---- */

static uint32_t promises_for(unsigned queue)
{
    return (uint32_t)queue * COLD_JOINS;
}

uint64_t cold_promise_bytes(unsigned queue)
{
    uint64_t promises = promises_for(queue);
    return queue * (TABLE_FILE_PAGE_BYTES + sizeof(struct cold_read)) + cold_map_bytes(queue) +
           promises * (sizeof(struct cold_waiter) + sizeof(struct cold_promise)) +
           2 * cold_map_bytes(promises);
}

static void setup_reads(struct cold *cold)
{
    unsigned queue = cold->config.queue;
    cold->reads = memory_zalloc(queue * sizeof(*cold->reads));
    cold_map_init(&cold->reads_by_key, queue);
    cold_list_init(&cold->free_reads);
    cold_list_init(&cold->queue);
    for (unsigned i = 0; i < queue; i++) {
        struct cold_read *read = &cold->reads[i];
        read->page = cold->pages + (size_t)i * TABLE_FILE_PAGE_BYTES;
        cold_list_init(&read->promises);
        cold_list_add(&cold->free_reads, &read->link);
    }
}

void cold_promise_setup(struct cold *cold)
{
    setup_reads(cold);
    uint32_t count = promises_for(cold->config.queue);
    cold->promises_max = count;
    cold->waiters = memory_zalloc(count * sizeof(*cold->waiters));
    cold->promises = memory_zalloc(count * sizeof(*cold->promises));
    cold_map_init(&cold->waiters_by_ticket, count);
    cold_map_init(&cold->promises_by_both, count);
    cold_list_init(&cold->free_waiters);
    cold_list_init(&cold->free_promises);
    cold_list_init(&cold->waking);
    cold_list_init(&cold->idle);
    for (uint32_t i = 0; i < count; i++) {
        cold_list_init(&cold->waiters[i].promises);
        cold_list_add(&cold->free_waiters, &cold->waiters[i].link);
        cold_list_add(&cold->free_promises, &cold->promises[i].of_read);
    }
}

void cold_promise_teardown(struct cold *cold)
{
    for (unsigned i = 0; i < cold->config.queue; i++) {
        free(cold->reads[i].error);
    }
    cold_map_fini(&cold->reads_by_key);
    cold_map_fini(&cold->waiters_by_ticket);
    cold_map_fini(&cold->promises_by_both);
    free(cold->reads);
    free(cold->waiters);
    free(cold->promises);
}

/* ---- finding ---- */

static uint64_t both_hash(const struct cold_read *read, const struct cold_waiter *waiter)
{
    return hash_u64((uint64_t)(uintptr_t)read ^ hash_u64((uint64_t)(uintptr_t)waiter));
}

struct cold_read *cold_read_find(const struct cold *cold, const struct cold_key *key)
{
    struct cold_node *node = cold_map_chain(&cold->reads_by_key, cold_key_hash(key));
    for (; node; node = node->next) {
        struct cold_read *read = COLD_OWNER(struct cold_read, by_key, node);
        if (cold_key_equal(&read->key, key)) {
            return read;
        }
    }
    return NULL;
}

struct cold_waiter *cold_waiter_find(const struct cold *cold, const struct ticket *ticket)
{
    struct cold_node *node = cold_map_chain(&cold->waiters_by_ticket, ticket_hash(ticket));
    for (; node; node = node->next) {
        struct cold_waiter *waiter = COLD_OWNER(struct cold_waiter, by_ticket, node);
        if (ticket_same(&waiter->ticket, ticket)) {
            return waiter;
        }
    }
    return NULL;
}

bool cold_promised(const struct cold *cold, const struct cold_read *read,
                   const struct cold_waiter *waiter)
{
    struct cold_node *node = cold_map_chain(&cold->promises_by_both, both_hash(read, waiter));
    for (; node; node = node->next) {
        struct cold_promise *promise = COLD_OWNER(struct cold_promise, by_both, node);
        if (promise->read == read && promise->waiter == waiter) {
            return true;
        }
    }
    return false;
}

/* ---- reads and tickets come and go ---- */

static struct cold_read *read_new(struct cold *cold, const struct cold_key *key)
{
    struct cold_read *read = COLD_OWNER(struct cold_read, link, cold->free_reads.next);
    CHECK(read->state == COLD_READ_FREE && cold_list_empty(&read->promises));
    cold_list_remove(&read->link);
    read->state = COLD_READ_QUEUED;
    read->key = *key;
    cold_map_add(&cold->reads_by_key, &read->by_key, cold_key_hash(key));
    cold_list_add(&cold->queue, &read->link);
    cold->stats.promised++;
    cold->stats.queued++;
    if (++cold->stats.depth > cold->stats.depth_highest) {
        cold->stats.depth_highest = cold->stats.depth;
    }
    return read;
}

/* Nobody wants it any more: unless a thread is reading it, it goes. */
static void read_unwanted(struct cold *cold, struct cold_read *read)
{
    CHECK(cold_list_empty(&read->promises));
    if (read->state == COLD_READING) {
        return;
    }
    if (read->state == COLD_READ_QUEUED) {
        cold_list_remove(&read->link);
        cold->stats.depth--;
        cold->stats.dropped++;
    }
    free(read->error);
    read->error = NULL;
    read->state = COLD_READ_FREE;
    read->forgotten = false;
    cold_map_remove(&cold->reads_by_key, &read->by_key);
    cold_list_add(&cold->free_reads, &read->link);
    cold->stats.promised--;
}

static struct cold_waiter *waiter_new(struct cold *cold, const struct ticket *ticket)
{
    struct cold_waiter *waiter = COLD_OWNER(struct cold_waiter, link, cold->free_waiters.next);
    CHECK(waiter->waiting == 0 && cold_list_empty(&waiter->promises));
    cold_list_remove(&waiter->link);
    waiter->state = COLD_WAITING;
    waiter->ticket = *ticket;
    cold_map_add(&cold->waiters_by_ticket, &waiter->by_ticket, ticket_hash(ticket));
    return waiter;
}

static void waiter_free(struct cold *cold, struct cold_waiter *waiter)
{
    CHECK(waiter->waiting == 0 && cold_list_empty(&waiter->promises));
    if (waiter->state != COLD_WAITING) {
        cold_list_remove(&waiter->link);
    }
    cold_map_remove(&cold->waiters_by_ticket, &waiter->by_ticket);
    cold_list_add(&cold->free_waiters, &waiter->link);
}

/* One page less to wait for. */
static void cold_promise_settle(struct cold *cold, struct cold_waiter *waiter)
{
    CHECK(waiter->state == COLD_WAITING && waiter->waiting > 0);
    if (--waiter->waiting == 0) {
        waiter->state = COLD_WAKING;
        cold_list_add(&cold->waking, &waiter->link);
    }
}

static void promise_free(struct cold *cold, struct cold_promise *promise)
{
    cold_map_remove(&cold->promises_by_both, &promise->by_both);
    cold_list_remove(&promise->of_read);
    cold_list_remove(&promise->of_waiter);
    cold_list_add(&cold->free_promises, &promise->of_read);
}

/* ---- giving up ---- */

void cold_waiter_drop(struct cold *cold, struct cold_waiter *waiter)
{
    while (!cold_list_empty(&waiter->promises)) {
        struct cold_promise *promise =
            COLD_OWNER(struct cold_promise, of_waiter, waiter->promises.next);
        struct cold_read *read = promise->read;
        waiter->waiting -= cold_read_pending(read);
        promise_free(cold, promise);
        if (cold_list_empty(&read->promises)) {
            read_unwanted(cold, read);
        }
    }
    waiter_free(cold, waiter);
}

void cold_read_drop(struct cold *cold, struct cold_read *read)
{
    CHECK(read->state != COLD_READING);
    while (!cold_list_empty(&read->promises)) {
        struct cold_promise *promise =
            COLD_OWNER(struct cold_promise, of_read, read->promises.next);
        struct cold_waiter *waiter = promise->waiter;
        if (cold_read_pending(read)) {
            cold_promise_settle(cold, waiter);
        }
        promise_free(cold, promise);
        /* One that is to be woken stays until it is. */
        if (cold_list_empty(&waiter->promises) && waiter->state == COLD_IDLE) {
            waiter_free(cold, waiter);
        }
    }
    read_unwanted(cold, read);
}

/* Room for one promise, and for a read too if wanted, from tickets that are lost if need be. */
static bool cold_promise_make_room(struct cold *cold, bool read_wanted)
{
    while (cold_list_empty(&cold->free_promises) || cold_list_empty(&cold->free_waiters) ||
           (read_wanted && cold_list_empty(&cold->free_reads))) {
        struct cold_waiter *longest = COLD_OWNER(struct cold_waiter, link, cold->idle.next);
        if (cold_list_empty(&cold->idle) || cold_now(cold) - longest->seen_us < COLD_HOLD_US) {
            return false;
        }
        cold_waiter_drop(cold, longest);
        cold->stats.robbed++;
    }
    return true;
}

/* ---- promising ---- */

void cold_waiter_seen(struct cold *cold, struct cold_waiter *waiter)
{
    if (waiter->state == COLD_IDLE) {
        waiter->seen_us = cold_now(cold);
        cold_list_remove(&waiter->link);
        cold_list_add(&cold->idle, &waiter->link);
    }
}

bool cold_promise(struct cold *cold, struct cold_read *read, const struct cold_key *key,
                  const struct ticket *ticket)
{
    CHECK(!read || cold_read_pending(read));
    /* Takes nothing away from `read` or from a ticket just seen: they are not lost. */
    if (!cold_promise_make_room(cold, read == NULL)) {
        return false;
    }
    struct cold_waiter *waiter = cold_waiter_find(cold, ticket);
    if (!waiter) {
        waiter = waiter_new(cold, ticket);
    } else if (waiter->state != COLD_WAITING) {
        /* Also WAKING: it has more to wait for, and is woken when that is there. */
        cold_list_remove(&waiter->link);
        waiter->state = COLD_WAITING;
    }
    if (!read) {
        read = read_new(cold, key);
    }
    struct cold_promise *promise =
        COLD_OWNER(struct cold_promise, of_read, cold->free_promises.next);
    cold_list_remove(&promise->of_read);
    promise->read = read;
    promise->waiter = waiter;
    cold_list_add(&read->promises, &promise->of_read);
    cold_list_add(&waiter->promises, &promise->of_waiter);
    cold_map_add(&cold->promises_by_both, &promise->by_both, both_hash(read, waiter));
    waiter->waiting++;
    return true;
}

void cold_read_end(struct cold *cold, struct cold_read *read, enum cold_read_state state)
{
    CHECK(read->state == COLD_READING);
    read->state = state;
    cold->stats.depth--;
    struct cold_link *link = read->promises.next;
    for (; link != &read->promises; link = link->next) {
        cold_promise_settle(cold, COLD_OWNER(struct cold_promise, of_read, link)->waiter);
    }
    if (read->forgotten || cold_list_empty(&read->promises)) {
        cold_read_drop(cold, read);
    }
}

size_t cold_take_waking(struct cold *cold, struct ticket *tickets, size_t count)
{
    size_t taken = 0;
    uint64_t now = cold_list_empty(&cold->waking) ? 0 : cold_now(cold);
    while (taken < count && !cold_list_empty(&cold->waking)) {
        struct cold_waiter *waiter = COLD_OWNER(struct cold_waiter, link, cold->waking.next);
        tickets[taken++] = waiter->ticket;
        cold_list_remove(&waiter->link);
        cold_list_add(&cold->idle, &waiter->link);
        waiter->state = COLD_IDLE;
        waiter->seen_us = now;
        if (cold_list_empty(&waiter->promises)) { /* its pages' files were forgotten */
            waiter_free(cold, waiter);
        }
    }
    return taken;
}

/* ---- invariants ---- */

static uint64_t list_length(const struct cold_link *list)
{
    uint64_t length = 0;
    for (const struct cold_link *link = list->next; link != list; link = link->next) {
        CHECK(link->next->before == link);
        length++;
    }
    return length;
}

static uint64_t check_read(struct cold *cold, struct cold_read *read)
{
    uint64_t promises = list_length(&read->promises);
    if (read->state == COLD_READ_FREE) {
        CHECK(promises == 0 && !read->error);
        return 0;
    }
    CHECK(cold_read_find(cold, &read->key) == read);
    CHECK(promises > 0 || read->state == COLD_READING);
    CHECK((read->link.next != NULL) == (read->state == COLD_READ_QUEUED));
    CHECK(read->state == COLD_READING || (read->error != NULL) == (read->state == COLD_BAD));
    struct cold_link *link = read->promises.next;
    for (; link != &read->promises; link = link->next) {
        struct cold_promise *promise = COLD_OWNER(struct cold_promise, of_read, link);
        CHECK(promise->read == read && cold_promised(cold, read, promise->waiter));
    }
    return promises;
}

static uint64_t check_waiter(struct cold *cold, struct cold_waiter *waiter)
{
    uint64_t promises = 0, waiting = 0;
    CHECK(cold_waiter_find(cold, &waiter->ticket) == waiter);
    struct cold_link *link = waiter->promises.next;
    for (; link != &waiter->promises; link = link->next) {
        struct cold_promise *promise = COLD_OWNER(struct cold_promise, of_waiter, link);
        CHECK(promise->waiter == waiter);
        waiting += cold_read_pending(promise->read);
        promises++;
    }
    CHECK(waiting == waiter->waiting);
    CHECK((waiting > 0) == (waiter->state == COLD_WAITING));
    CHECK(promises > 0 || waiter->state == COLD_WAKING);
    return promises;
}

static uint64_t check_waiters(struct cold *cold, uint64_t *live)
{
    uint64_t promises = 0;
    for (uint64_t i = 0; i <= cold->waiters_by_ticket.mask; i++) {
        struct cold_node *node = cold->waiters_by_ticket.chains[i];
        for (; node; node = node->next, ++*live) {
            promises += check_waiter(cold, COLD_OWNER(struct cold_waiter, by_ticket, node));
        }
    }
    return promises;
}

void cold_promise_check(struct cold *cold)
{
    uint64_t pending = 0, promised = 0, promises = 0, live = 0;
    for (unsigned i = 0; i < cold->config.queue; i++) {
        promises += check_read(cold, &cold->reads[i]);
        pending += cold_read_pending(&cold->reads[i]);
        promised += cold->reads[i].state != COLD_READ_FREE;
    }
    CHECK(pending == cold->stats.depth && promised == cold->stats.promised);
    CHECK(list_length(&cold->free_reads) == cold->config.queue - promised);
    CHECK(check_waiters(cold, &live) == promises);
    CHECK(list_length(&cold->free_promises) == cold->promises_max - promises);
    CHECK(list_length(&cold->free_waiters) == cold->promises_max - live);
}
