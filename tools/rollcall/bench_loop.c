#include "tools/rollcall/bench_loop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "tools/rollcall/bench_item.h"
#include "tools/rollcall/bench_workload.h"

#define INPUT_BYTES      (4 * BENCH_ITEM_MAX)
#define EVENTS_A_TURN    64
#define NS_A_SECOND      1000000000ull
#define NS_A_US          1e3
#define CONNECT_MS       10000
#define LOAD_PIPELINE    200u /* sets sent together; rising order allows one connection only */
#define LOAD_CONNECTIONS 1u

/* A connection and its batch under way. */
struct bench_lane {
    int fd;              /* -1: none */
    uint64_t number;     /* among the connections of the run */
    uint64_t started_ns; /* the batch */
    uint64_t batch;      /* requests composed */
    uint64_t answered;   /* of those */
    struct bench_reply reply;
    uint64_t *words;
    char *output;
    size_t output_length;
    size_t output_sent;
    size_t input_length;
    bool watches_write;
    struct bench_lane *next_idle;
    char input[INPUT_BYTES];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

static bool bench_loop_stopped(const struct bench_loop *loop)
{
    return atomic_load_explicit(loop->stop, memory_order_relaxed);
}

void bench_loop_fail(struct bench_loop *loop, const char *what)
{
    if (!atomic_exchange(loop->stop, true)) {
        snprintf(loop->reason, sizeof(loop->reason), "%s", what);
    }
}

/* There is no connection, or no answer. */
static void bench_loop_fail_silent(struct bench_loop *loop, const char *what)
{
    loop->unanswered = true;
    bench_loop_fail(loop, what);
}

static bool wants_write(const struct bench_lane *lane)
{
    return lane->output_sent < lane->output_length;
}

static bool watch(struct bench_loop *loop, struct bench_lane *lane, int operation)
{
    bool writes = wants_write(lane);
    struct epoll_event event = {.events = EPOLLIN | (writes ? EPOLLOUT : 0), .data.ptr = lane};

    lane->watches_write = writes;
    return epoll_ctl(loop->epoll, operation, lane->fd, &event) == 0;
}

/* Sends what is unsent of the batch, as far as it goes. */
static void send_more(struct bench_loop *loop, struct bench_lane *lane)
{
    while (wants_write(lane)) {
        ssize_t sent = send(lane->fd, lane->output + lane->output_sent,
                            lane->output_length - lane->output_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && errno != EAGAIN) {
            bench_loop_fail_silent(loop, strerror(errno));
            return;
        }
        if (sent < 0) {
            break;
        }
        lane->output_sent += (size_t)sent;
        loop->tally.bytes_sent += (uint64_t)sent;
    }
    if (wants_write(lane) != lane->watches_write && !watch(loop, lane, EPOLL_CTL_MOD)) {
        bench_loop_fail(loop, strerror(errno));
    }
}

/* Composes the next batch and sends it. */
static void bench_loop_ask(struct bench_loop *loop, struct bench_lane *lane, uint64_t requests)
{
    CHECK(lane->answered == lane->batch && requests >= 1 && requests <= loop->pipeline);
    lane->batch = requests;
    lane->answered = 0;
    lane->output_length = 0;
    lane->output_sent = 0;
    for (uint64_t i = 0; i < requests; i++) {
        lane->output_length +=
            bench_workload_compose(loop->workload, lane->number, lane->output + lane->output_length,
                                   lane->words + i * loop->words_a_request);
    }
    send_more(loop, lane);
}

/* Judges all complete items of the input. False: it is no reply. */
static bool judge_input(struct bench_loop *loop, struct bench_lane *lane)
{
    size_t at = 0;

    while (at < lane->input_length && lane->answered < lane->batch) {
        size_t taken = bench_workload_judge(
            loop->workload, lane->words + lane->answered * loop->words_a_request, lane->input + at,
            lane->input_length - at, &lane->reply, &loop->tally);
        if (lane->reply.broken) {
            return false;
        }
        if (taken == 0) {
            break;
        }
        at += taken;
        if (lane->reply.done) {
            lane->reply = (struct bench_reply){0};
            lane->answered++;
        }
    }
    lane->input_length -= at;
    memmove(lane->input, lane->input + at, lane->input_length);
    return true;
}

/* Reads once what is there and judges it. False: that was all, or the run has failed. */
static bool bench_loop_receive(struct bench_loop *loop, struct bench_lane *lane)
{
    size_t room = sizeof(lane->input) - lane->input_length;
    ssize_t got = recv(lane->fd, lane->input + lane->input_length, room, 0);

    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return errno == EINTR;
    }
    if (got <= 0) {
        bench_loop_fail_silent(loop, got == 0 ? "the server closed a connection" : strerror(errno));
        return false;
    }
    loop->tally.bytes_received += (uint64_t)got;
    lane->input_length += (size_t)got;
    bool replies = judge_input(loop, lane);
    if (replies && lane->answered == lane->batch && lane->input_length > 0) {
        bench_tally_mismatch(&loop->tally, "bytes nobody asked for", NULL, 0);
        replies = false;
    }
    if (!replies) {
        bench_loop_fail(loop, "the server's answers are out of step");
    }
    return replies && lane->answered < lane->batch && (size_t)got == room;
}

/* Returns whether it is time for another batch. The next one is then due an interval later. */
static bool bench_loop_take_turn(struct bench_loop *loop, uint64_t now)
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
static void bench_loop_begin(struct bench_loop *loop, struct bench_lane *lane, uint64_t now)
{
    uint64_t requests = loop->pipeline;

    if (now >= loop->deadline_ns || loop->requests_left == 0) {
        return;
    }
    if (!bench_loop_take_turn(loop, now)) {
        lane->next_idle = loop->idle;
        loop->idle = lane;
        return;
    }
    if (requests > loop->requests_left) {
        requests = loop->requests_left;
    }
    loop->requests_left -= requests;
    if (loop->busy++ == 0) {
        loop->quiet_since_ns = now; /* a slow rate leaves the server nothing to answer for long */
    }
    lane->started_ns = now;
    bench_loop_ask(loop, lane, requests);
}

static void serve(struct bench_loop *loop, struct bench_lane *lane, uint32_t events)
{
    if (events & EPOLLOUT) {
        send_more(loop, lane);
    }
    if (bench_loop_stopped(loop) || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
        return;
    }
    while (bench_loop_receive(loop, lane)) {
    }
    if (bench_loop_stopped(loop) || lane->answered < lane->batch) {
        return;
    }
    uint64_t now = now_ns();
    histogram_record(loop->latency_ns, now - lane->started_ns);
    loop->last_reply_ns = now;
    loop->quiet_since_ns = now;
    loop->busy--;
    bench_loop_begin(loop, lane, now);
}

/* Once a second. */
static void tick(struct bench_loop *loop, bool shows)
{
    const struct bench_tally *tally = &loop->tally;
    uint64_t now = now_ns(), seconds = (now - loop->begun_ns) / NS_A_SECOND;

    if (now < loop->next_tick_ns) {
        return;
    }
    loop->next_tick_ns += NS_A_SECOND;
    if (shows) {
        fprintf(stderr,
                "%s %4" PRIu64 " s  %12" PRIu64 " requests of 1 of %" PRIu64 " threads  p99 %.1f us"
                "  misses %" PRIu64 "  errors %" PRIu64 "  mismatches %" PRIu64 "\n",
                loop->plan->label, seconds, tally->requests, loop->plan->options->threads,
                (double)histogram_percentile(loop->latency_ns, 99) / NS_A_US, tally->misses,
                tally->errors, tally->mismatches);
    }
    if (loop->busy > 0 && now > loop->quiet_since_ns + BENCH_STALL_SECONDS * NS_A_SECOND) {
        bench_loop_fail_silent(loop, "no reply for 10 seconds");
    }
}

/* Begins on idle lanes what is due. */
static void begin_due(struct bench_loop *loop)
{
    uint64_t now = loop->idle != NULL ? now_ns() : 0;

    if (now >= loop->deadline_ns || loop->requests_left == 0) {
        loop->idle = NULL;
    }
    while (loop->idle != NULL && now >= loop->due_ns && !bench_loop_stopped(loop)) {
        struct bench_lane *lane = loop->idle;
        loop->idle = lane->next_idle;
        bench_loop_begin(loop, lane, now);
    }
}

/* Waits until something comes, a batch is due, or a second has passed. */
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
    for (int i = 0; i < n && !bench_loop_stopped(loop); i++) {
        serve(loop, events[i].data.ptr, events[i].events);
    }
    begin_due(loop);
}

/* Returns where a part begins, if `all` is cut in parts that differ by one at most. */
static uint64_t bench_loop_cut(uint64_t all, uint64_t part, uint64_t parts)
{
    return (uint64_t)((unsigned __int128)all * part / parts);
}

static void connect_lane(struct bench_loop *loop, struct bench_lane *lane)
{
    const struct bench_options *options = loop->plan->options;
    char error[DIAL_ERROR_MAX], text[sizeof(loop->reason)];

    lane->words = memory_zalloc(loop->words_a_request * loop->pipeline * sizeof(*lane->words));
    lane->output = memory_zalloc(bench_workload_bytes_max(loop->workload) * loop->pipeline);
    lane->fd = dial_server(options->address, DIAL_PORT, CONNECT_MS, error);
    if (lane->fd < 0) {
        snprintf(text, sizeof(text), "connection %" PRIu64 " of %" PRIu64 ": %s", lane->number + 1,
                 options->connections, error);
        bench_loop_fail_silent(loop, text);
    } else if (!watch(loop, lane, EPOLL_CTL_ADD)) {
        bench_loop_fail(loop, strerror(errno));
    }
}

/*
 * This thread's part of the requests and of the rate. Batches of all threads are due at equal
 * distances: those of the second an n-th of the interval after those of the first.
 */
static void share_out(struct bench_loop *loop, uint64_t thread)
{
    const struct bench_options *options = loop->plan->options;
    uint64_t threads = options->threads;

    loop->pipeline = options->pipeline;
    loop->requests_left = bench_loop_cut(options->requests, thread + 1, threads) -
                          bench_loop_cut(options->requests, thread, threads);
    if (options->rate != 0) {
        loop->interval_ns = NS_A_SECOND * options->pipeline * threads / options->rate;
    }
    loop->due_after_ns = bench_loop_cut(loop->interval_ns, thread, threads);
}

void bench_loop_init(struct bench_loop *loop, const struct bench_plan *plan, uint64_t thread,
                     atomic_bool *stop)
{
    const struct bench_options *options = plan->options;
    uint64_t lane_first = bench_loop_cut(options->connections, thread, options->threads);

    *loop = (struct bench_loop){.plan = plan, .stop = stop};
    loop->lane_count =
        bench_loop_cut(options->connections, thread + 1, options->threads) - lane_first;
    if (plan->load) {
        loop->lane_count = LOAD_CONNECTIONS;
        loop->pipeline = LOAD_PIPELINE;
    } else {
        share_out(loop, thread);
    }
    loop->latency_ns = histogram_create();
    loop->workload = bench_workload_create(options, plan->load);
    if (plan->load) {
        loop->requests_left = bench_workload_load_requests(loop->workload);
    }
    if (thread != 0) {
        bench_workload_stream(loop->workload, thread);
    }
    loop->words_a_request = bench_workload_words(loop->workload);
    loop->lanes = memory_zalloc(loop->lane_count * sizeof(*loop->lanes));
    for (uint64_t i = 0; i < loop->lane_count; i++) {
        loop->lanes[i].fd = -1;
        loop->lanes[i].number = lane_first + i;
    }
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll < 0) {
        bench_loop_fail(loop, strerror(errno));
    }
    for (uint64_t i = 0; i < loop->lane_count && !bench_loop_stopped(loop); i++) {
        connect_lane(loop, &loop->lanes[i]);
    }
}

void bench_loop_fini(struct bench_loop *loop)
{
    for (uint64_t i = 0; i < loop->lane_count; i++) {
        struct bench_lane *lane = &loop->lanes[i];
        if (lane->fd >= 0) {
            close(lane->fd);
        }
        free(lane->words);
        free(lane->output);
    }
    if (loop->epoll >= 0) {
        close(loop->epoll);
    }
    bench_workload_destroy(loop->workload);
    histogram_destroy(loop->latency_ns);
    free(loop->lanes);
}

void bench_loop_run(struct bench_loop *loop, bool shows)
{
    const struct bench_plan *plan = loop->plan;
    uint64_t seconds = plan->load ? 0 : plan->options->seconds;

    CHECK(loop->begun_ns == 0);
    if (bench_loop_stopped(loop)) {
        return;
    }
    loop->begun_ns = now_ns();
    loop->last_reply_ns = loop->begun_ns;
    loop->due_ns = loop->begun_ns + loop->due_after_ns;
    loop->next_tick_ns = loop->begun_ns + NS_A_SECOND;
    loop->deadline_ns = seconds != 0 ? loop->begun_ns + seconds * NS_A_SECOND : UINT64_MAX;
    for (uint64_t i = 0; i < loop->lane_count && !bench_loop_stopped(loop); i++) {
        bench_loop_begin(loop, &loop->lanes[i], now_ns());
    }
    while ((loop->busy > 0 || loop->idle != NULL) && !bench_loop_stopped(loop)) {
        turn(loop);
        tick(loop, shows);
    }
}
