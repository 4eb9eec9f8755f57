/* step.c: see step.h. */
#include "tests/support/step.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "base/check.h"

#if defined(__SANITIZE_THREAD__)
#define STEPS 0
#elif defined(__x86_64__) && defined(__linux__)
#define STEPS 1
#else
#define STEPS 0
#endif

#if STEPS

#include <ucontext.h>
#include <x86intrin.h>

#define TRAP_FLAG 0x100u

static struct {
    step_fn *meanwhile; /* NULL: it was run, or nothing steps */
    void *context;
    uint64_t left;
} stepping;

/* The compiler knows nothing of the handler: what it looks at is in memory here. */
static void set_trap(bool on)
{
    unsigned long long flags = __readeflags() & ~(unsigned long long)TRAP_FLAG;
    __asm__ volatile("" ::: "memory");
    __writeeflags(flags | (on ? TRAP_FLAG : 0));
    __asm__ volatile("" ::: "memory");
}

static void on_trap(int number, siginfo_t *info, void *interrupted)
{
    ucontext_t *state = interrupted;
    step_fn *meanwhile = stepping.meanwhile;
    (void)number;
    (void)info;
    if (meanwhile != NULL && stepping.left-- > 0) {
        return;
    }
    state->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    stepping.meanwhile = NULL;
    if (meanwhile != NULL) {
        meanwhile(stepping.context);
    }
}

bool step_works(void)
{
    return true;
}

void step_begin(uint64_t n, step_fn *meanwhile, void *context)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigset_t trap;
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP); /* a worker blocks all signals: this one would end the process */
    CHECK(pthread_sigmask(SIG_UNBLOCK, &trap, NULL) == 0);
    stepping.context = context;
    stepping.left = n;
    stepping.meanwhile = meanwhile;
    set_trap(true);
}

bool step_end(void)
{
    set_trap(false);
    bool before = stepping.meanwhile == NULL;
    stepping.meanwhile = NULL;
    return before;
}

#else

bool step_works(void)
{
    return false;
}

void step_begin(uint64_t n, step_fn *meanwhile, void *context)
{
    (void)n, (void)meanwhile, (void)context;
}

bool step_end(void)
{
    return false;
}

#endif

bool step_run(uint64_t n, step_fn *work, step_fn *meanwhile, void *context)
{
    step_begin(n, meanwhile, context);
    work(context);
    return step_end();
}
