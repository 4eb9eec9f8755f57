#include "tools/rollcall/bench_run.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/check.h"
#include "base/memory.h"
#include "tools/rollcall/bench_loop.h"

#define NS_A_SECOND  1000000000ull
#define FILES_BESIDE 32 /* descriptors we need besides those of connections and threads */

struct run;

/* A thread of the run; the first is the calling one. */
struct member {
    struct run *run;
    uint64_t number;
    pthread_t thread;
    struct bench_loop *loop;
};

struct run {
    const struct bench_plan *plan;
    struct member *members;
    atomic_bool stop;
    pthread_mutex_t start;  /* held until it is known whether all threads are there */
    bool complete;          /* they are, so none waits in vain for another */
    pthread_barrier_t line; /* where they wait for each other, once connected */
    struct proc_cpu server_before;
    uint64_t own_before_ns;
    uint64_t ticked_requests; /* answered at the last tick */
};

static uint64_t own_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * NS_A_SECOND + (uint64_t)used.tv_nsec;
}

/* As many descriptors as the system lets us have. */
static void raise_file_limit(const struct bench_plan *plan)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)(plan->connections + plan->threads) + FILES_BESIDE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool server_cpu(const struct bench_plan *plan, struct proc_cpu *cpu)
{
    if (plan->pid == 0) {
        return true;
    }
    if (proc_cpu_read(plan->pid, cpu)) {
        return true;
    }
    return bench_bad("--pid %" PRIu64 ": %s", plan->pid, strerror(errno));
}

/* Of all threads together. */
static void show_progress(void *context, uint64_t seconds)
{
    struct run *run = context;
    struct histogram *latency_ns = histogram_create();
    struct bench_figures all = {0};

    for (uint64_t i = 0; i < run->plan->threads; i++) {
        bench_loop_add_figures(run->members[i].loop, &all);
        histogram_merge(latency_ns, bench_loop_latency(run->members[i].loop));
    }
    fprintf(stderr,
            "%s %4" PRIu64 " s  %10" PRIu64 " requests/s  %12" PRIu64 " in all  p99 %.1f us"
            "  misses %" PRIu64 "  errors %" PRIu64 "  mismatches %" PRIu64 "\n",
            run->plan->label, seconds, all.requests - run->ticked_requests, all.requests,
            (double)histogram_percentile(latency_ns, 99) / 1000, all.misses, all.errors,
            all.mismatches);
    run->ticked_requests = all.requests;
    histogram_destroy(latency_ns);
}

/* All are connected, none has begun. */
static void note_before(struct run *run)
{
    if (!atomic_load(&run->stop) && !server_cpu(run->plan, &run->server_before)) {
        atomic_store(&run->stop, true);
    }
    run->own_before_ns = own_cpu_ns();
}

static void take_part(struct member *member)
{
    struct run *run = member->run;
    bool first = member->number == 0;
    const struct bench_options *options = run->plan->options;
    int error = options->kit->begin_thread != NULL
                    ? options->kit->begin_thread(options, run->plan->thread_first + member->number)
                    : 0;

    if (error != 0) {
        bench_loop_fail(member->loop, strerror(error));
    }
    bench_loop_connect(member->loop);
    pthread_barrier_wait(&run->line);
    if (first) {
        note_before(run);
    }
    pthread_barrier_wait(&run->line);
    if (!atomic_load(&run->stop)) {
        bench_loop_run(member->loop, first && run->plan->progress ? show_progress : NULL, run);
    }
}

static void *thread_main(void *context)
{
    struct member *member = context;
    struct run *run = member->run;

    pthread_mutex_lock(&run->start);
    bool complete = run->complete;
    pthread_mutex_unlock(&run->start);
    if (complete) {
        take_part(member);
    }
    return NULL;
}

/* Creates the other threads. Returns how many there are; if one cannot be created none takes part.
 */
static uint64_t start_threads(struct run *run)
{
    uint64_t made = 1;

    pthread_mutex_lock(&run->start);
    for (; made < run->plan->threads; made++) {
        struct member *member = &run->members[made];
        int error = pthread_create(&member->thread, NULL, thread_main, member);
        if (error == 0) {
            continue;
        }
        bench_bad("thread %" PRIu64 " of %" PRIu64 ": %s", made + 1, run->plan->threads,
                  strerror(error));
        atomic_store(&run->stop, true);
        break;
    }
    run->complete = made == run->plan->threads;
    pthread_mutex_unlock(&run->start);
    return made;
}

static void run_threads(struct run *run)
{
    uint64_t made = start_threads(run);

    if (run->complete) {
        take_part(&run->members[0]);
    }
    for (uint64_t i = 1; i < made; i++) {
        pthread_join(run->members[i].thread, NULL);
    }
}

static void add_up(const struct run *run, struct bench_result *result)
{
    uint64_t begun_ns = UINT64_MAX, last_ns = 0;

    for (uint64_t i = 0; i < run->plan->threads; i++) {
        const struct bench_loop *loop = run->members[i].loop;
        uint64_t begun = 0, last = 0;

        bench_tally_add(&result->tally, bench_loop_tally(loop));
        histogram_merge(result->latency_ns, bench_loop_latency(loop));
        if (!bench_loop_span(loop, &begun, &last)) {
            continue;
        }
        begun_ns = begun < begun_ns ? begun : begun_ns;
        last_ns = last > last_ns ? last : last_ns;
    }
    result->elapsed_ns = last_ns > begun_ns ? last_ns - begun_ns : 0;
}

static void say_reason(const struct run *run, const struct bench_result *result)
{
    for (uint64_t i = 0; i < run->plan->threads; i++) {
        const struct bench_loop *loop = run->members[i].loop;
        const char *reason = bench_loop_reason(loop);
        uint64_t begun = 0, last = 0;

        if (reason == NULL) {
            continue;
        }
        if (bench_loop_span(loop, &begun, &last)) {
            bench_bad("%s after %" PRIu64 " requests", reason, result->tally.requests);
        } else {
            bench_bad("%s", reason);
        }
    }
}

/* What of the run is to be known only when all threads have ended. */
static void conclude(struct run *run, struct bench_result *result)
{
    struct proc_cpu after = {0};

    result->client_cpu_ns = own_cpu_ns() - run->own_before_ns;
    if (!atomic_load(&run->stop) && !server_cpu(run->plan, &after)) {
        atomic_store(&run->stop, true);
    }
    result->server_known = run->plan->pid != 0 && !atomic_load(&run->stop);
    result->server = proc_cpu_between(&run->server_before, &after);
    add_up(run, result);
    say_reason(run, result);
}

bool bench_run(const struct bench_plan *plan, struct bench_result *result)
{
    struct run run = {.plan = plan};

    CHECK(plan->connections >= plan->threads && plan->threads >= 1 && plan->pipeline >= 1);
    CHECK(plan->requests != UINT64_MAX || plan->seconds != 0);
    *result = (struct bench_result){.latency_ns = histogram_create()};
    raise_file_limit(plan);
    pthread_mutex_init(&run.start, NULL);
    pthread_barrier_init(&run.line, NULL, (unsigned)plan->threads);
    run.members = memory_zalloc(plan->threads * sizeof(*run.members));
    for (uint64_t i = 0; i < plan->threads; i++) {
        run.members[i] = (struct member){.run = &run, .number = i};
        run.members[i].loop = bench_loop_create(plan, i, &run.stop);
    }
    run_threads(&run);
    conclude(&run, result);
    for (uint64_t i = 0; i < plan->threads; i++) {
        bench_loop_destroy(run.members[i].loop);
    }
    free(run.members);
    pthread_barrier_destroy(&run.line);
    pthread_mutex_destroy(&run.start);
    return !atomic_load(&run.stop);
}

void bench_result_fini(struct bench_result *result)
{
    histogram_destroy(result->latency_ns);
    result->latency_ns = NULL;
}
