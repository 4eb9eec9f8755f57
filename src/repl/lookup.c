/* lookup.c: getaddrinfo on a thread of its own. */
#include "repl/lookup.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/wait.h"

#define LOOK_US 50000u /* from one look at *stop to the next */

/* Of two, the thread and who asked: who leaves last frees it. */
struct repl_lookup {
    char *host, *port;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t cond;
    bool ended, dropped;
    int code;
    struct addrinfo *found;
};

static void lookup_free(struct repl_lookup *lookup)
{
    if (lookup->found != NULL) {
        freeaddrinfo(lookup->found);
    }
    pthread_cond_destroy(&lookup->cond);
    pthread_mutex_destroy(&lookup->lock);
    free(lookup->host);
    free(lookup->port);
    free(lookup);
}

static void *lookup_main(void *context)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct repl_lookup *lookup = context;
    struct addrinfo *found = NULL;
    int code = getaddrinfo(lookup->host, lookup->port, &wanted, &found);

    pthread_mutex_lock(&lookup->lock);
    lookup->code = code;
    lookup->found = code == 0 ? found : NULL;
    lookup->ended = true;
    bool dropped = lookup->dropped;

    pthread_cond_signal(&lookup->cond);
    pthread_mutex_unlock(&lookup->lock);
    if (dropped) {
        lookup_free(lookup);
    }
    return NULL;
}

struct repl_lookup *repl_lookup_start(const char *host, const char *port)
{
    struct repl_lookup *lookup = memory_zalloc(sizeof(*lookup));
    pthread_t thread;

    lookup->host = memory_strdup(host);
    lookup->port = memory_strdup(port);
    CHECK(pthread_mutex_init(&lookup->lock, NULL) == 0);
    thread_cond_init(&lookup->cond);
    if (!thread_start(&thread, lookup_main, lookup, "lookup")) {
        lookup_free(lookup);
        return NULL;
    }
    CHECK(pthread_detach(thread) == 0);
    return lookup;
}

bool repl_lookup_ended(struct repl_lookup *lookup, uint64_t until_us, const _Atomic bool *stop)
{
    uint64_t now_us = clock_monotonic_us();

    pthread_mutex_lock(&lookup->lock);
    while (!lookup->ended && !atomic_load(stop) && now_us < until_us) {
        uint64_t look_us = now_us + LOOK_US;

        (void)wait_until(&lookup->cond, &lookup->lock, look_us < until_us ? look_us : until_us);
        now_us = clock_monotonic_us();
    }
    bool ended = lookup->ended;

    pthread_mutex_unlock(&lookup->lock);
    return ended;
}

int repl_lookup_found(const struct repl_lookup *lookup, const struct addrinfo **found)
{
    *found = lookup->found;
    return lookup->code;
}

void repl_lookup_drop(struct repl_lookup *lookup)
{
    if (lookup == NULL) {
        return;
    }
    pthread_mutex_lock(&lookup->lock);
    lookup->dropped = true;
    bool ended = lookup->ended;

    pthread_mutex_unlock(&lookup->lock);
    if (ended) {
        lookup_free(lookup);
    }
}
