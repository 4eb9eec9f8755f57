/*
 * bench_run.h: one measured run: connections that each keep one batch of requests under way until
 * the count or the time is reached.
 *
 * Connections, requests and rate are cut in as many equal parts as there are threads; each has its
 * own loop (bench_loop.h). All connect first; the first failure ends the run within a second. With
 * a rate, batches begin at equal distances, each on a connection that has none under way; what was
 * missed is made up for only as far as BENCH_MISSED_NS goes. Latency is that of a batch: from its
 * first byte sent until its last reply is judged.
 */
#ifndef ROLLCALL_TOOLS_BENCH_RUN_H
#define ROLLCALL_TOOLS_BENCH_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/rollcall/bench_options.h"
#include "tools/rollcall/histogram.h"

#define BENCH_MISSED_NS     100000000ull
#define BENCH_STALL_SECONDS 10u /* without any reply: the server hangs */

struct bench_plan {
    const char *label; /* of progress lines */
    const struct bench_options *options;
    uint64_t thread_first; /* number of the first thread, as the kit is told */
    bool load;             /* the workload that loads; one thread, one connection */
};

struct bench_result {
    struct bench_tally tally;
    struct histogram *latency_ns; /* of batches; bench_result_fini() frees it */
    uint64_t elapsed_ns;          /* from the first thread's begin to the last one's last reply */
    uint64_t client_cpu_ns;       /* our own processor time, of all threads */
    bool unanswered;              /* the run failed for want of a connection or of an answer */
    bool server_known;
    uint64_t server_cpu_ns;
};

/*
 * Runs the plan. On false the reason has been said on stderr; the result holds what was counted
 * until then. The caller calls bench_result_fini() in both cases.
 */
bool bench_run(const struct bench_plan *plan, struct bench_result *result);

void bench_result_fini(struct bench_result *result);

/*
 * Prints what was asked for and the results as a JSON object on stdout: indented, or with the
 * option json in one line. A result without an answer is left out, and so is what is not known.
 */
void bench_report(const struct bench_options *options, const struct bench_result *load,
                  const struct bench_result *run);

/* The processor time of a process since it began; 0: this one. False with errno: there is none. */
bool bench_process_cpu_ns(pid_t pid, uint64_t *ns);

#endif
