#include "tools/rollcall/bench_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "tools/rollcall/bench_conn.h"

#define EVENTS_A_TURN 64
#define NS_A_SECOND   1000000000ull
#define FILES_BESIDE  32 /* descriptors we need besides the connections */

/* A connection and its batch under way. */
struct lane {
    struct bench_conn *conn;
    uint64_t started_ns;
    bool watches_write;
    struct lane *next_idle;
};

struct run {
    const struct bench_plan *plan;
    struct bench_result *result;
    struct lane *lanes;
    int epoll;
    uint64_t busy;          /* lanes with a batch under way */
    struct lane *idle;      /* lanes for which it is not yet time */
    uint64_t interval_ns;   /* from batch to batch; 0: none */
    uint64_t due_ns;        /* the next batch */
    uint64_t requests_left; /* not yet begun */
    uint64_t begun_ns;
    uint64_t deadline_ns;
    uint64_t last_reply_ns;
    uint64_t next_tick_ns;
    uint64_t ticked_requests; /* answered at the last tick */
    bool failed;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t own_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * NS_A_SECOND + (uint64_t)used.tv_nsec;
}

static void fail(struct run *run, const char *what)
{
    if (!run->failed)
        fprintf(stderr, "rollcall bench: %s after %" PRIu64 " requests\n", what,
                run->result->tally.requests);
    run->failed = true;
}

static void fail_lost(struct run *run)
{
    if (errno == EPROTO)
        fail(run, "the server's answers are out of step");
    else if (errno == 0)
        fail(run, "the server closed a connection");
    else
        fail(run, strerror(errno));
}

static bool watch(struct run *run, struct lane *lane, int operation)
{
    bool writes = bench_conn_wants_write(lane->conn);
    struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = lane};

    lane->watches_write = writes;
    return epoll_ctl(run->epoll, operation, bench_conn_fd(lane->conn), &event) == 0;
}

static void send_more(struct run *run, struct lane *lane)
{
    if (!bench_conn_send(lane->conn, &run->result->tally)) {
        fail_lost(run);
        return;
    }
    if (bench_conn_wants_write(lane->conn) != lane->watches_write &&
        !watch(run, lane, EPOLL_CTL_MOD))
        fail(run, strerror(errno));
}

/* Is it time for another batch? Then the one behind it is due an interval later. */
static bool take_turn(struct run *run, uint64_t now)
{
    if (run->interval_ns == 0)
        return true;
    if (now < run->due_ns)
        return false;
    if (now > run->due_ns + BENCH_MISSED_NS)
        run->due_ns = now - BENCH_MISSED_NS;
    run->due_ns += run->interval_ns;
    return true;
}

/* Begins the next batch of a lane, if there is anything left to ask and it is time. */
static void begin(struct run *run, struct lane *lane, uint64_t now)
{
    uint64_t requests = run->plan->pipeline;

    if (now >= run->deadline_ns || run->requests_left == 0)
        return;
    if (!take_turn(run, now)) {
        lane->next_idle = run->idle;
        run->idle = lane;
        return;
    }
    if (requests > run->requests_left)
        requests = run->requests_left;
    if (run->requests_left != UINT64_MAX)
        run->requests_left -= requests;
    run->busy++;
    lane->started_ns = now;
    bench_conn_start(lane->conn, run->plan->workload, requests);
    send_more(run, lane);
}

static void serve(struct run *run, struct lane *lane, uint32_t events)
{
    if (events & EPOLLOUT)
        send_more(run, lane);
    if (run->failed || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    enum bench_conn_result got =
        bench_conn_receive(lane->conn, run->plan->workload, &run->result->tally);
    if (got == BENCH_CONN_WAIT)
        return;
    if (got == BENCH_CONN_LOST) {
        fail_lost(run);
        return;
    }
    uint64_t now = now_ns();
    histogram_record(run->result->latency_ns, now - lane->started_ns);
    run->last_reply_ns = now;
    run->busy--;
    begin(run, lane, now);
}

static void show_progress(struct run *run, uint64_t now)
{
    const struct bench_tally *tally = &run->result->tally;
    uint64_t passed = (now - run->begun_ns + NS_A_SECOND / 2) / NS_A_SECOND;
    uint64_t p99 = histogram_percentile(run->result->latency_ns, 99);

    fprintf(stderr,
            "%s %4" PRIu64 " s  %10" PRIu64 " requests/s  %12" PRIu64 " in all  p99 %.1f us"
            "  misses %" PRIu64 "  errors %" PRIu64 "  mismatches %" PRIu64 "\n",
            run->plan->label, passed, tally->requests - run->ticked_requests, tally->requests,
            (double)p99 / 1000, tally->misses, tally->errors, tally->mismatches);
    run->ticked_requests = tally->requests;
}

static void tick(struct run *run)
{
    uint64_t now = now_ns();

    if (now < run->next_tick_ns)
        return;
    run->next_tick_ns += NS_A_SECOND;
    if (run->plan->progress)
        show_progress(run, now);
    if (now > run->last_reply_ns + BENCH_STALL_SECONDS * NS_A_SECOND)
        fail(run, "no reply for 10 seconds");
}

/* Begins on idle lanes what is due. */
static void begin_due(struct run *run)
{
    uint64_t now = run->idle != NULL ? now_ns() : 0;

    if (now >= run->deadline_ns || run->requests_left == 0)
        run->idle = NULL;
    while (run->idle != NULL && now >= run->due_ns && !run->failed) {
        struct lane *lane = run->idle;
        run->idle = lane->next_idle;
        begin(run, lane, now);
    }
}

/* Until something comes, a batch is due, or a second has passed. */
static int wait_events(const struct run *run, struct epoll_event *events)
{
    uint64_t now = run->idle != NULL ? now_ns() : 0;
    uint64_t wait = NS_A_SECOND - 1;

    if (run->idle != NULL && run->due_ns < now + wait)
        wait = run->due_ns > now ? run->due_ns - now : 0;
    struct timespec most = {.tv_nsec = (long)wait};
    return epoll_pwait2(run->epoll, events, EVENTS_A_TURN, &most, NULL);
}

static void loop(struct run *run)
{
    struct epoll_event events[EVENTS_A_TURN];

    while ((run->busy > 0 || run->idle != NULL) && !run->failed) {
        int n = wait_events(run, events);
        if (n < 0 && errno != EINTR)
            fail(run, strerror(errno));
        for (int i = 0; i < n && !run->failed; i++)
            serve(run, events[i].data.ptr, events[i].events);
        begin_due(run);
        tick(run);
    }
}

/* As many descriptors as the system lets us have. */
static void raise_file_limit(uint64_t connections)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)connections + FILES_BESIDE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool connect_all(struct run *run)
{
    char error[BENCH_CONN_ERROR_MAX];
    const struct bench_plan *plan = run->plan;

    raise_file_limit(plan->connections);
    for (uint64_t i = 0; i < plan->connections; i++) {
        struct lane *lane = &run->lanes[i];
        lane->conn = bench_conn_create(plan->address, plan->workload, i, plan->pipeline, error);
        if (lane->conn == NULL) {
            fprintf(stderr, "rollcall bench: connection %" PRIu64 " of %" PRIu64 ": %s\n", i + 1,
                    plan->connections, error);
            return false;
        }
        if (!watch(run, lane, EPOLL_CTL_ADD)) {
            fail(run, strerror(errno));
            return false;
        }
    }
    return true;
}

static bool server_cpu(const struct run *run, struct proc_cpu *cpu)
{
    if (run->plan->pid == 0)
        return true;
    if (proc_cpu_read(run->plan->pid, cpu))
        return true;
    fprintf(stderr, "rollcall bench: --pid %" PRIu64 ": %s\n", run->plan->pid, strerror(errno));
    return false;
}

static void measure(struct run *run)
{
    const struct bench_plan *plan = run->plan;
    struct bench_result *result = run->result;
    struct proc_cpu before = {0}, after = {0};

    if (!server_cpu(run, &before)) {
        run->failed = true;
        return;
    }
    uint64_t own_before = own_cpu_ns();
    run->begun_ns = now_ns();
    run->last_reply_ns = run->begun_ns;
    run->next_tick_ns = run->begun_ns + NS_A_SECOND;
    run->deadline_ns =
        plan->seconds != 0 ? run->begun_ns + plan->seconds * NS_A_SECOND : UINT64_MAX;
    run->requests_left = plan->requests;
    run->interval_ns = plan->rate != 0 ? NS_A_SECOND * plan->pipeline / plan->rate : 0;
    run->due_ns = run->begun_ns;
    for (uint64_t i = 0; i < plan->connections && !run->failed; i++)
        begin(run, &run->lanes[i], now_ns());
    loop(run);
    result->elapsed_ns = run->last_reply_ns - run->begun_ns;
    result->client_cpu_ns = own_cpu_ns() - own_before;
    if (!server_cpu(run, &after))
        run->failed = true;
    result->server_known = plan->pid != 0 && !run->failed;
    result->server = proc_cpu_between(&before, &after);
}

bool bench_run(const struct bench_plan *plan, struct bench_result *result)
{
    struct run run = {.plan = plan, .result = result};

    CHECK(plan->connections >= 1 && plan->pipeline >= 1);
    CHECK(plan->requests != UINT64_MAX || plan->seconds != 0);
    *result = (struct bench_result){.latency_ns = histogram_create()};
    run.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (run.epoll < 0) {
        fprintf(stderr, "rollcall bench: epoll: %s\n", strerror(errno));
        return false;
    }
    run.lanes = memory_zalloc(plan->connections * sizeof(*run.lanes));
    if (connect_all(&run))
        measure(&run);
    else
        run.failed = true;
    for (uint64_t i = 0; i < plan->connections; i++)
        bench_conn_destroy(run.lanes[i].conn);
    free(run.lanes);
    close(run.epoll);
    return !run.failed;
}

void bench_result_fini(struct bench_result *result)
{
    histogram_destroy(result->latency_ns);
    result->latency_ns = NULL;
}
