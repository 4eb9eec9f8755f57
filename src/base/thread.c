#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "base/check.h"

void thread_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    CHECK(pthread_cond_init(cond, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
}

bool thread_start(pthread_t *thread, void *(*run)(void *context), void *context, const char *name)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int problem = pthread_create(thread, NULL, run, context);

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem == 0) {
        (void)pthread_setname_np(*thread, name);
    }
    errno = problem;
    return problem == 0;
}
