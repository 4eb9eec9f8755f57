#include "request/lister.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "counter/counter.h"
#include "request/server.h"

struct lister {
    struct server *server;
    pthread_mutex_t lock; /* a leaf: of all below, and of the lists' inside */
    pthread_cond_t bell;
    bool started, ending;
    pthread_t thread;
    uint64_t asked; /* so far */
    _Atomic unsigned count;
    struct lister_list *lists[LISTER_LISTS_MAX];
};

struct lister *lister_create(struct server *server)
{
    struct lister *lister = memory_zalloc(sizeof(*lister));

    lister->server = server;
    CHECK(pthread_mutex_init(&lister->lock, NULL) == 0);
    thread_cond_init(&lister->bell);
    return lister;
}

/* ---- the thread ---- */

struct collecting {
    struct lister_list *list;
    struct barrier_member *member;
};

static bool lister_enter(void *context)
{
    struct collecting *collecting = context;
    struct lister_list *list = collecting->list;

    barrier_enter(collecting->member);
    const struct space *space = spaces_find(list->server->spaces, list->space);
    bool there = space != NULL && (list->engine == NULL || space->engine == list->engine);

    if (!there) {
        barrier_leave(collecting->member);
        return false;
    }
    list->engine = space->engine;
    return true;
}

static void lister_leave(void *context)
{
    const struct collecting *collecting = context;

    barrier_leave(collecting->member);
}

static enum lister_state lister_collect(struct lister_list *list, struct barrier_member *member)
{
    struct collecting collecting = {list, member};
    struct engine_collect *to = &list->collect;

    list->engine = NULL;
    if (!lister_enter(&collecting)) {
        return LISTER_GONE;
    }
    lister_leave(&collecting);
    to->from = list->from;
    to->enter = lister_enter;
    to->leave = lister_leave;
    to->context = &collecting;
    to->stop = &list->stop;
    switch (counter_collect(list->engine, to)) {
    case ENGINE_COLLECT_DONE:
        return LISTER_READY;
    case ENGINE_COLLECT_GONE:
        return LISTER_GONE;
    default:
        return LISTER_FAILED;
    }
}

static void list_destroy(struct lister_list *list)
{
    engine_collect_fini(&list->collect);
    free(list);
}

/* Under the lock. The oldest that waits; NULL: none does. */
static struct lister_list *next_to_serve(const struct lister *lister)
{
    struct lister_list *oldest = NULL;

    for (unsigned i = 0; i < LISTER_LISTS_MAX; i++) {
        struct lister_list *list = lister->lists[i];

        if (list != NULL && list->state == LISTER_WAITS &&
            (oldest == NULL || list->asked < oldest->asked)) {
            oldest = list;
        }
    }
    return oldest;
}

/* Under the lock. */
static void lister_forget(struct lister *lister, const struct lister_list *list)
{
    for (unsigned i = 0; i < LISTER_LISTS_MAX; i++) {
        if (lister->lists[i] == list) {
            lister->lists[i] = NULL;
            atomic_fetch_sub(&lister->count, 1);
        }
    }
}

/* Under the lock, which is let go meanwhile. */
static void lister_serve(struct lister *lister, struct lister_list *list,
                         struct barrier_member *member)
{
    struct ticket ticket = list->ticket;

    pthread_mutex_unlock(&lister->lock);
    enum lister_state state = lister_collect(list, member);

    pthread_mutex_lock(&lister->lock);
    list->state = state;
    bool dropped = list->dropped;

    if (dropped) {
        lister_forget(lister, list);
    }
    bool ending = lister->ending;

    pthread_mutex_unlock(&lister->lock);
    if (dropped) {
        list_destroy(list);
    } else if (!ending) { /* then there may be no net to wake */
        ticket_wake(&ticket);
    }
    pthread_mutex_lock(&lister->lock);
}

static void *lister_run(void *context)
{
    struct lister *lister = context;
    struct barrier_member *member = barrier_join(lister->server->barrier);

    CHECK(member != NULL);
    pthread_mutex_lock(&lister->lock);
    while (!lister->ending) {
        struct lister_list *list = next_to_serve(lister);

        if (list != NULL) {
            lister_serve(lister, list, member);
        } else {
            pthread_cond_wait(&lister->bell, &lister->lock);
        }
    }
    pthread_mutex_unlock(&lister->lock);
    barrier_resign(member);
    return NULL;
}

void lister_end(struct lister *lister)
{
    pthread_mutex_lock(&lister->lock);
    bool started = lister->started;

    lister->ending = true;
    lister->started = false;
    for (unsigned i = 0; i < LISTER_LISTS_MAX; i++) {
        if (lister->lists[i] != NULL) {
            lister->lists[i]->stop = true;
        }
    }
    pthread_cond_signal(&lister->bell);
    pthread_mutex_unlock(&lister->lock);
    if (started) {
        pthread_join(lister->thread, NULL);
    }
}

void lister_destroy(struct lister *lister)
{
    if (lister == NULL) {
        return;
    }
    lister_end(lister);
    for (unsigned i = 0; i < LISTER_LISTS_MAX; i++) {
        if (lister->lists[i] != NULL) {
            list_destroy(lister->lists[i]);
        }
    }
    pthread_cond_destroy(&lister->bell);
    pthread_mutex_destroy(&lister->lock);
    free(lister);
}

/* ---- workers ---- */

/* Under the lock. */
static struct lister_list *lister_find_locked(const struct lister *lister,
                                              const struct ticket *ticket)
{
    for (unsigned i = 0; i < LISTER_LISTS_MAX; i++) {
        struct lister_list *list = lister->lists[i];

        if (list != NULL && !list->dropped && ticket_same(&list->ticket, ticket)) {
            return list;
        }
    }
    return NULL;
}

struct lister_list *lister_find(struct lister *lister, const struct ticket *ticket)
{
    if (atomic_load_explicit(&lister->count, memory_order_relaxed) == 0) {
        return NULL;
    }
    pthread_mutex_lock(&lister->lock);
    struct lister_list *list = lister_find_locked(lister, ticket);

    pthread_mutex_unlock(&lister->lock);
    return list;
}

static size_t batch_ids(const struct server *server)
{
    uint64_t bytes = server->memory_bytes / LISTER_SHARE;

    bytes = bytes < LISTER_BYTES_MIN ? LISTER_BYTES_MIN : bytes;
    bytes = bytes > LISTER_BYTES_MAX ? LISTER_BYTES_MAX : bytes;
    return (size_t)(bytes / ENGINE_COLLECT_COSTS);
}

static struct lister_list *list_create(struct server *server, const struct ticket *ticket)
{
    struct lister_list *list = memory_zalloc(sizeof(*list));

    list->ticket = *ticket;
    list->server = server;
    engine_collect_init(&list->collect, batch_ids(server));
    for (unsigned i = 0; i < LISTER_OPS; i++) {
        list->ops[i].value = list->values[i];
    }
    return list;
}

/* Under the lock. */
static bool is_running(struct lister *lister)
{
    if (!lister->started && !lister->ending) {
        lister->started = thread_start(&lister->thread, lister_run, lister, "lister");
        if (!lister->started) {
            log_error("cannot start a thread for lists");
        }
    }
    return lister->started;
}

struct lister_list *lister_begin(struct lister *lister, const struct ticket *ticket)
{
    struct lister_list *list = NULL;

    pthread_mutex_lock(&lister->lock);
    for (unsigned i = 0; i < LISTER_LISTS_MAX && list == NULL && is_running(lister); i++) {
        if (lister->lists[i] == NULL) {
            list = lister->lists[i] = list_create(lister->server, ticket);
            atomic_fetch_add(&lister->count, 1);
        }
    }
    pthread_mutex_unlock(&lister->lock);
    return list;
}

void lister_ask(struct lister *lister, struct lister_list *list)
{
    pthread_mutex_lock(&lister->lock);
    CHECK(list->state != LISTER_WAITS);
    list->state = LISTER_WAITS;
    list->asked = lister->asked++;
    list->at = list->read_from = list->read_to = 0;
    list->fresh = true;
    pthread_cond_signal(&lister->bell);
    pthread_mutex_unlock(&lister->lock);
}

enum lister_state lister_look(struct lister *lister, struct lister_list *list)
{
    pthread_mutex_lock(&lister->lock);
    enum lister_state state = list->state;

    pthread_mutex_unlock(&lister->lock);
    return state;
}

uint64_t lister_steps(struct lister *lister)
{
    uint64_t steps = 0;

    pthread_mutex_lock(&lister->lock);
    for (unsigned i = 0; i < LISTER_LISTS_MAX; i++) {
        steps += lister->lists[i] != NULL ? atomic_load(&lister->lists[i]->collect.steps) : 0;
    }
    pthread_mutex_unlock(&lister->lock);
    return steps;
}

void lister_used(struct lister *lister, struct lister_list *list)
{
    pthread_mutex_lock(&lister->lock);
    CHECK(list->state != LISTER_WAITS);
    list->state = LISTER_IDLE;
    pthread_mutex_unlock(&lister->lock);
}

void lister_drop(struct lister *lister, const struct ticket *ticket)
{
    if (LIKELY(atomic_load_explicit(&lister->count, memory_order_relaxed) == 0)) {
        return;
    }
    pthread_mutex_lock(&lister->lock);
    struct lister_list *list = lister_find_locked(lister, ticket);
    bool waits = list != NULL && list->state == LISTER_WAITS;

    if (waits) { /* it may be in the midst of it: it is destroyed by the thread */
        list->stop = list->dropped = true;
    } else if (list != NULL) {
        lister_forget(lister, list);
    }
    pthread_mutex_unlock(&lister->lock);
    if (list != NULL && !waits) {
        list_destroy(list);
    }
}
