#include "tools/rollcall/bench_run.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
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

/* A thread of the run; the first is the calling one. */
struct member {
    struct run *run;
    pthread_t thread;
    struct bench_loop loop;
};

struct run {
    const struct bench_plan *plan;
    struct member *members;
    uint64_t threads;
    atomic_bool stop;
};

bool bench_process_cpu_ns(pid_t pid, uint64_t *ns)
{
    struct timespec used;
    clockid_t clock;

    errno = clock_getcpuclockid(pid, &clock);
    if (errno != 0 || clock_gettime(clock, &used) != 0) {
        return false;
    }
    *ns = (uint64_t)used.tv_sec * NS_A_SECOND + (uint64_t)used.tv_nsec;
    return true;
}

/* Raises the limit of descriptors as far as the system lets us. */
static void raise_file_limit(const struct bench_options *options)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)(options->connections + options->threads) + FILES_BESIDE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* The processor times of the server, if its process is known, and of our own. */
static void note_cpu(struct run *run, uint64_t *server_ns, uint64_t *own_ns)
{
    uint64_t pid = run->plan->options->pid;

    if (pid != 0 && !bench_process_cpu_ns((pid_t)pid, server_ns)) {
        atomic_store(&run->stop, true);
        bench_bad("--pid %" PRIu64 ": %s", pid, strerror(errno));
    }
    bench_process_cpu_ns(0, own_ns);
}

static void *bench_run_take_part(void *context)
{
    struct member *member = context;
    struct run *run = member->run;
    const struct bench_options *options = run->plan->options;
    uint64_t number = (uint64_t)(member - run->members);
    int error = options->kit->begin_thread == NULL
                    ? 0
                    : options->kit->begin_thread(options, run->plan->thread_first + number);

    if (error != 0) {
        bench_loop_fail(&member->loop, strerror(error));
    }
    bench_loop_run(&member->loop, number == 0 && options->progress);
    return NULL;
}

static void run_threads(struct run *run)
{
    uint64_t made = 1;

    for (; made < run->threads && !atomic_load(&run->stop); made++) {
        struct member *member = &run->members[made];
        int error = pthread_create(&member->thread, NULL, bench_run_take_part, member);
        if (error != 0) {
            bench_loop_fail(&member->loop, strerror(error));
            break;
        }
    }
    bench_run_take_part(&run->members[0]);
    while (--made > 0) {
        pthread_join(run->members[made].thread, NULL);
    }
}

static void bench_run_add_up(const struct run *run, struct bench_result *result)
{
    uint64_t begun_ns = UINT64_MAX, last_ns = 0;
    const struct bench_loop *failed = NULL;

    for (uint64_t i = 0; i < run->threads; i++) {
        const struct bench_loop *loop = &run->members[i].loop;

        bench_tally_add(&result->tally, &loop->tally);
        histogram_merge(result->latency_ns, loop->latency_ns);
        if (loop->begun_ns != 0) {
            begun_ns = loop->begun_ns < begun_ns ? loop->begun_ns : begun_ns;
            last_ns = loop->last_reply_ns > last_ns ? loop->last_reply_ns : last_ns;
        }
        failed = loop->reason[0] != '\0' ? loop : failed;
    }
    result->elapsed_ns = last_ns > begun_ns ? last_ns - begun_ns : 0;
    if (failed != NULL) {
        result->unanswered = failed->unanswered;
        bench_bad("%s after %" PRIu64 " requests", failed->reason, result->tally.requests);
    }
}

bool bench_run(const struct bench_plan *plan, struct bench_result *result)
{
    struct run run = {.plan = plan, .threads = plan->load ? 1 : plan->options->threads};
    uint64_t server_before = 0, server_after = 0, own_before = 0, own_after = 0;

    CHECK(plan->options->connections >= run.threads && run.threads >= 1);
    *result = (struct bench_result){.latency_ns = histogram_create()};
    raise_file_limit(plan->options);
    run.members = memory_zalloc(run.threads * sizeof(*run.members));
    for (uint64_t i = 0; i < run.threads; i++) {
        run.members[i].run = &run;
        bench_loop_init(&run.members[i].loop, plan, i, &run.stop);
    }
    note_cpu(&run, &server_before, &own_before);
    if (!atomic_load(&run.stop)) {
        run_threads(&run);
    }
    bool lost = atomic_load(&run.stop);
    if (!lost) {
        note_cpu(&run, &server_after, &own_after);
    }
    result->server_known = plan->options->pid != 0 && !atomic_load(&run.stop);
    result->server_cpu_ns = server_after - server_before;
    result->client_cpu_ns = own_after - own_before;
    bench_run_add_up(&run, result);
    for (uint64_t i = 0; i < run.threads; i++) {
        bench_loop_fini(&run.members[i].loop);
    }
    free(run.members);
    return !atomic_load(&run.stop);
}

void bench_result_fini(struct bench_result *result)
{
    histogram_destroy(result->latency_ns);
    result->latency_ns = NULL;
}
