#include "tools/rollcall/bench_loop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "tools/rollcall/bench_conn.h"
#include "tools/rollcall/bench_workload.h"

#define LOOP_MARK     0x4c6f6f70u
#define EVENTS_A_TURN 64
#define NS_A_SECOND   1000000000ull
#define REASON_MAX    (BENCH_CONN_ERROR_MAX + 64)

/* A connection and its batch under way. */
struct lane {
    struct bench_conn *conn;
    uint64_t started_ns;
    bool watches_write;
    struct lane *next_idle;
};

/* The same as struct bench_figures, for readers of other threads. */
struct published {
    _Atomic uint64_t requests;
    _Atomic uint64_t misses;
    _Atomic uint64_t errors;
    _Atomic uint64_t mismatches;
};

struct bench_loop {
    uint32_t mark;
    const struct bench_plan *plan;
    uint64_t thread;
    atomic_bool *stop;
    char reason[REASON_MAX];
    struct bench_workload *workload;
    struct bench_tally tally;
    struct histogram *latency_ns;
    struct lane *lanes;
    uint64_t lane_first; /* among all of the run */
    uint64_t lane_count;
    int epoll;
    uint64_t busy;          /* lanes with a batch under way */
    struct lane *idle;      /* lanes for which it is not yet time */
    uint64_t interval_ns;   /* from batch to batch; 0: none */
    uint64_t due_ns;        /* the next batch */
    uint64_t requests_left; /* not yet begun */
    uint64_t begun_ns;      /* 0: not yet */
    uint64_t deadline_ns;
    uint64_t last_reply_ns;
    uint64_t quiet_since_ns; /* while busy: the last reply, or what was asked then */
    uint64_t next_tick_ns;
    bench_loop_second *each_second;
    void *context;
    struct published published;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

static bool stopped(const struct bench_loop *loop)
{
    return atomic_load_explicit(loop->stop, memory_order_relaxed);
}

void bench_loop_fail(struct bench_loop *loop, const char *what)
{
    if (!atomic_exchange(loop->stop, true)) {
        snprintf(loop->reason, sizeof(loop->reason), "%s", what);
    }
}

static void fail_lost(struct bench_loop *loop)
{
    if (errno == EPROTO) {
        bench_loop_fail(loop, "the server's answers are out of step");
    } else if (errno == 0) {
        bench_loop_fail(loop, "the server closed a connection");
    } else {
        bench_loop_fail(loop, strerror(errno));
    }
}

static bool watch(struct bench_loop *loop, struct lane *lane, int operation)
{
    bool writes = bench_conn_wants_write(lane->conn);
    struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = lane};

    lane->watches_write = writes;
    return epoll_ctl(loop->epoll, operation, bench_conn_fd(lane->conn), &event) == 0;
}

static void send_more(struct bench_loop *loop, struct lane *lane)
{
    if (!bench_conn_send(lane->conn, &loop->tally)) {
        fail_lost(loop);
        return;
    }
    if (bench_conn_wants_write(lane->conn) != lane->watches_write &&
        !watch(loop, lane, EPOLL_CTL_MOD)) {
        bench_loop_fail(loop, strerror(errno));
    }
}

/* Is it time for another batch? Then the one behind it is due an interval later. */
static bool take_turn(struct bench_loop *loop, uint64_t now)
{
    if (loop->interval_ns == 0) {
        return true;
    }
    if (now < loop->due_ns) {
        return false;
    }
    if (now > loop->due_ns + BENCH_MISSED_NS) {
        loop->due_ns = now - BENCH_MISSED_NS;
    }
    loop->due_ns += loop->interval_ns;
    return true;
}

/* Begins the next batch of a lane, if there is anything left to ask and it is time. */
static void begin(struct bench_loop *loop, struct lane *lane, uint64_t now)
{
    uint64_t requests = loop->plan->pipeline;

    if (now >= loop->deadline_ns || loop->requests_left == 0) {
        return;
    }
    if (!take_turn(loop, now)) {
        lane->next_idle = loop->idle;
        loop->idle = lane;
        return;
    }
    if (requests > loop->requests_left) {
        requests = loop->requests_left;
    }
    if (loop->requests_left != UINT64_MAX) {
        loop->requests_left -= requests;
    }
    if (loop->busy++ == 0) {
        loop->quiet_since_ns = now; /* a slow rate leaves the server nothing to answer for long */
    }
    lane->started_ns = now;
    bench_conn_start(lane->conn, loop->workload, requests);
    send_more(loop, lane);
}

static void serve(struct bench_loop *loop, struct lane *lane, uint32_t events)
{
    if (events & EPOLLOUT) {
        send_more(loop, lane);
    }
    if (stopped(loop) || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        return;
    }
    enum bench_conn_result got = bench_conn_receive(lane->conn, loop->workload, &loop->tally);
    if (got == BENCH_CONN_WAIT) {
        return;
    }
    if (got == BENCH_CONN_LOST) {
        fail_lost(loop);
        return;
    }
    uint64_t now = now_ns();
    histogram_record(loop->latency_ns, now - lane->started_ns);
    loop->last_reply_ns = now;
    loop->quiet_since_ns = now;
    loop->busy--;
    begin(loop, lane, now);
}

static void publish(struct bench_loop *loop)
{
    const struct bench_tally *tally = &loop->tally;
    struct published *published = &loop->published;

    atomic_store_explicit(&published->requests, tally->requests, memory_order_relaxed);
    atomic_store_explicit(&published->misses, tally->misses, memory_order_relaxed);
    atomic_store_explicit(&published->errors, tally->errors, memory_order_relaxed);
    atomic_store_explicit(&published->mismatches, tally->mismatches, memory_order_relaxed);
}

static void tick(struct bench_loop *loop)
{
    uint64_t now = now_ns();

    if (now < loop->next_tick_ns) {
        return;
    }
    loop->next_tick_ns += NS_A_SECOND;
    if (loop->each_second != NULL) {
        loop->each_second(loop->context, (now - loop->begun_ns + NS_A_SECOND / 2) / NS_A_SECOND);
    }
    if (loop->busy > 0 && now > loop->quiet_since_ns + BENCH_STALL_SECONDS * NS_A_SECOND) {
        bench_loop_fail(loop, "no reply for 10 seconds");
    }
}

/* Begins on idle lanes what is due. */
static void begin_due(struct bench_loop *loop)
{
    uint64_t now = loop->idle != NULL ? now_ns() : 0;

    if (now >= loop->deadline_ns || loop->requests_left == 0) {
        loop->idle = NULL;
    }
    while (loop->idle != NULL && now >= loop->due_ns && !stopped(loop)) {
        struct lane *lane = loop->idle;
        loop->idle = lane->next_idle;
        begin(loop, lane, now);
    }
}

/* Until something comes, a batch is due, or a second has passed. */
static int wait_events(const struct bench_loop *loop, struct epoll_event *events)
{
    uint64_t now = loop->idle != NULL ? now_ns() : 0;
    uint64_t wait = NS_A_SECOND - 1;

    if (loop->idle != NULL && loop->due_ns < now + wait) {
        wait = loop->due_ns > now ? loop->due_ns - now : 0;
    }
    struct timespec most = {.tv_nsec = (long)wait};
    return epoll_pwait2(loop->epoll, events, EVENTS_A_TURN, &most, NULL);
}

static void turn(struct bench_loop *loop)
{
    struct epoll_event events[EVENTS_A_TURN];
    int n = wait_events(loop, events);

    if (n < 0 && errno != EINTR) {
        bench_loop_fail(loop, strerror(errno));
    }
    for (int i = 0; i < n && !stopped(loop); i++) {
        serve(loop, events[i].data.ptr, events[i].events);
    }
    begin_due(loop);
    publish(loop);
    tick(loop);
}

/* Where part `part` of `parts` begins, if `all` is cut in parts that differ by one at most. */
static uint64_t cut(uint64_t all, uint64_t part, uint64_t parts)
{
    return (uint64_t)((unsigned __int128)all * part / parts);
}

struct bench_loop *bench_loop_create(const struct bench_plan *plan, uint64_t thread,
                                     atomic_bool *stop)
{
    struct bench_loop *loop = memory_zalloc(sizeof(*loop));

    CHECK(thread < plan->threads);
    loop->mark = LOOP_MARK;
    loop->plan = plan;
    loop->thread = thread;
    loop->stop = stop;
    loop->epoll = -1;
    loop->lane_first = cut(plan->connections, thread, plan->threads);
    loop->lane_count = cut(plan->connections, thread + 1, plan->threads) - loop->lane_first;
    loop->latency_ns = histogram_create();
    return loop;
}

void bench_loop_destroy(struct bench_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    CHECK(loop->mark == LOOP_MARK);
    for (uint64_t i = 0; i < loop->lane_count && loop->lanes != NULL; i++) {
        bench_conn_destroy(loop->lanes[i].conn);
    }
    if (loop->epoll >= 0) {
        close(loop->epoll);
    }
    bench_workload_destroy(loop->workload);
    histogram_destroy(loop->latency_ns);
    free(loop->lanes);
    free(loop);
}

static void connect_lane(struct bench_loop *loop, uint64_t i)
{
    const struct bench_plan *plan = loop->plan;
    char error[BENCH_CONN_ERROR_MAX], text[REASON_MAX];
    struct lane *lane = &loop->lanes[i];

    lane->conn = bench_conn_create(plan->options->address, loop->workload, loop->lane_first + i,
                                   plan->pipeline, error);
    if (lane->conn == NULL) {
        snprintf(text, sizeof(text), "connection %" PRIu64 " of %" PRIu64 ": %s",
                 loop->lane_first + i + 1, plan->connections, error);
        bench_loop_fail(loop, text);
    } else if (!watch(loop, lane, EPOLL_CTL_ADD)) {
        bench_loop_fail(loop, strerror(errno));
    }
}

void bench_loop_connect(struct bench_loop *loop)
{
    const struct bench_plan *plan = loop->plan;

    CHECK(loop->mark == LOOP_MARK && loop->workload == NULL);
    loop->workload = bench_workload_create(plan->options, plan->load);
    if (loop->thread != 0) {
        bench_workload_stream(loop->workload, loop->thread);
    }
    loop->lanes = memory_zalloc(loop->lane_count * sizeof(*loop->lanes));
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0) {
        bench_loop_fail(loop, strerror(errno));
    }
    for (uint64_t i = 0; i < loop->lane_count && !stopped(loop); i++) {
        connect_lane(loop, i);
    }
}

/*
 * This thread's part of the requests and of the rate. Batches of all threads are due at equal
 * distances: those of the second an n-th of the interval behind those of the first.
 */
static void share_out(struct bench_loop *loop)
{
    const struct bench_plan *plan = loop->plan;
    uint64_t threads = plan->threads;

    loop->requests_left = plan->requests;
    if (plan->requests != UINT64_MAX) {
        loop->requests_left = cut(plan->requests, loop->thread + 1, threads) -
                              cut(plan->requests, loop->thread, threads);
    }
    loop->interval_ns = plan->rate != 0 ? NS_A_SECOND * plan->pipeline * threads / plan->rate : 0;
    loop->due_ns = loop->begun_ns + cut(loop->interval_ns, loop->thread, threads);
}

void bench_loop_run(struct bench_loop *loop, bench_loop_second *each_second, void *context)
{
    const struct bench_plan *plan = loop->plan;

    CHECK(loop->mark == LOOP_MARK && loop->workload != NULL && loop->begun_ns == 0);
    loop->each_second = each_second;
    loop->context = context;
    loop->begun_ns = now_ns();
    loop->last_reply_ns = loop->begun_ns;
    loop->next_tick_ns = loop->begun_ns + NS_A_SECOND;
    loop->deadline_ns =
        plan->seconds != 0 ? loop->begun_ns + plan->seconds * NS_A_SECOND : UINT64_MAX;
    share_out(loop);
    for (uint64_t i = 0; i < loop->lane_count && !stopped(loop); i++) {
        begin(loop, &loop->lanes[i], now_ns());
    }
    while ((loop->busy > 0 || loop->idle != NULL) && !stopped(loop)) {
        turn(loop);
    }
}

const char *bench_loop_reason(const struct bench_loop *loop)
{
    return loop->reason[0] != '\0' ? loop->reason : NULL;
}

void bench_loop_add_figures(const struct bench_loop *loop, struct bench_figures *figures)
{
    const struct published *published = &loop->published;

    figures->requests += atomic_load_explicit(&published->requests, memory_order_relaxed);
    figures->misses += atomic_load_explicit(&published->misses, memory_order_relaxed);
    figures->errors += atomic_load_explicit(&published->errors, memory_order_relaxed);
    figures->mismatches += atomic_load_explicit(&published->mismatches, memory_order_relaxed);
}

const struct histogram *bench_loop_latency(const struct bench_loop *loop)
{
    return loop->latency_ns;
}

const struct bench_tally *bench_loop_tally(const struct bench_loop *loop)
{
    return &loop->tally;
}

bool bench_loop_span(const struct bench_loop *loop, uint64_t *begun_ns, uint64_t *last_ns)
{
    *begun_ns = loop->begun_ns;
    *last_ns = loop->last_reply_ns;
    return loop->begun_ns != 0;
}
