#include "tests/load/cold.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rollcall/bench_run.h"

#define GOAL     1.2 /* p99 with / without */
#define PERCENT  100
#define NS_A_US  1e3
#define NS_A_S   1e9
#define P99      99.0
#define P50      50.0
#define OLD_HALF 2

#define EXIT_FAILED 1
#define EXIT_USAGE  2

/* Reads of one part of the ids, and what came of the last run of them. */
struct reads {
    struct load_options options;
    uint64_t thread_first;
    const char *label;
    struct bench_result result;
    bool ok;
};

struct half {
    double p50[LOAD_ROUNDS_MAX], p99[LOAD_ROUNDS_MAX];
};

struct cold {
    const struct load_options *options;
    struct reads new, old;
    struct half without, with, disk; /* us; disk: the reads of old ids */
    uint64_t new_requests, old_requests, old_ns;
    uint64_t rounds;
};

static bool run_reads(struct reads *reads)
{
    const struct bench_options *options = &reads->options.common;
    const struct bench_plan plan = {
        .label = reads->label,
        .options = options,
        .thread_first = reads->thread_first,
    };
    bool ran = bench_run(&plan, &reads->result);
    const struct bench_tally *tally = &reads->result.tally;

    reads->ok = ran && tally->errors == 0 && tally->mismatches == 0 && tally->misses == 0;
    return reads->ok;
}

static void *run_beside(void *reads)
{
    run_reads(reads);
    return NULL;
}

static void complain(const struct reads *reads)
{
    const struct bench_tally *tally = &reads->result.tally;

    bench_bad("%s: misses %" PRIu64 ", errors %" PRIu64 ", mismatches %" PRIu64 "%s%s%s%s",
              reads->label, tally->misses, tally->errors, tally->mismatches,
              tally->errors != 0 ? "; first error " : "", tally->error_lines[0].text,
              tally->mismatches != 0 ? "; first wrong " : "", tally->first_mismatch);
}

static double percentile_us(const struct bench_result *result, double percent)
{
    return (double)histogram_percentile(result->latency_ns, percent) / NS_A_US;
}

static void note(struct half *half, uint64_t round, const struct bench_result *result)
{
    half->p50[round] = percentile_us(result, P50);
    half->p99[round] = percentile_us(result, P99);
}

static bool run_without(struct cold *cold, uint64_t round)
{
    bool ok = run_reads(&cold->new);

    if (ok) {
        note(&cold->without, round, &cold->new.result);
    } else {
        complain(&cold->new);
    }
    bench_result_fini(&cold->new.result);
    return ok;
}

static bool run_with(struct cold *cold, uint64_t round)
{
    pthread_t beside;
    int error = pthread_create(&beside, NULL, run_beside, &cold->old);

    if (error != 0) {
        return bench_bad("a thread: %s", strerror(error));
    }
    run_reads(&cold->new);
    pthread_join(beside, NULL);
    if (!cold->new.ok) {
        complain(&cold->new);
    }
    if (!cold->old.ok) {
        complain(&cold->old);
    }
    note(&cold->with, round, &cold->new.result);
    note(&cold->disk, round, &cold->old.result);
    cold->new_requests += cold->new.result.tally.requests;
    cold->old_requests += cold->old.result.tally.requests;
    cold->old_ns += cold->old.result.elapsed_ns;
    bench_result_fini(&cold->new.result);
    bench_result_fini(&cold->old.result);
    return cold->new.ok && cold->old.ok;
}

static int compare(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Sorts them. */
static double median(double *values, uint64_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void report_rounds(const struct cold *cold)
{
    printf("rounds        %" PRIu64 " of twice %" PRIu64 " s; connections %" PRIu64 " and %" PRIu64
           "; %" PRIu64 " requests/s\n",
           cold->rounds, cold->options->common.seconds, cold->new.options.common.connections,
           cold->old.options.common.connections, cold->options->common.rate);
    for (uint64_t i = 0; i < cold->rounds; i++) {
        printf("  %3" PRIu64 "         new ids: p99 %.1f us without, %.1f us with old ones beside; "
               "those p50 %.0f us\n",
               i + 1, cold->without.p99[i], cold->with.p99[i], cold->disk.p50[i]);
    }
}

static double ratio_of(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void report(struct cold *cold)
{
    uint64_t rounds = cold->rounds;
    uint64_t all = cold->new_requests + cold->old_requests;
    bool json = cold->options->common.json;

    if (!json) {
        report_rounds(cold); /* before they are sorted */
    }
    const struct {
        const char *text, *json;
        double value;
    } figures[] = {
        {"old ids, of the requests, %", "old_percent",
         ratio_of(PERCENT * (double)cold->old_requests, (double)all)},
        {"old ids, requests/s", "old_per_s",
         ratio_of(NS_A_S * (double)cold->old_requests, (double)cold->old_ns)},
        {"old ids, p50 us", "old_p50_us", median(cold->disk.p50, rounds)},
        {"old ids, p99 us", "old_p99_us", median(cold->disk.p99, rounds)},
        {"new ids, p50 us, without", "p50_without_us", median(cold->without.p50, rounds)},
        {"new ids, p50 us, with", "p50_with_us", median(cold->with.p50, rounds)},
        {"new ids, p99 us, without", "p99_without_us", median(cold->without.p99, rounds)},
        {"new ids, p99 us, with", "p99_with_us", median(cold->with.p99, rounds)},
        {"ratio of the two", "ratio",
         ratio_of(median(cold->with.p99, rounds), median(cold->without.p99, rounds))},
        {"goal: at most", "goal", GOAL},
    };
    printf("%s", json ? "{\"workload\":\"cold\"" : "");
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (json) {
            printf(",\"%s\":%.3f", figures[i].json, figures[i].value);
        } else {
            printf("%-28s  %.3f\n", figures[i].text, figures[i].value);
        }
    }
    printf("%s", json ? "}\n" : "");
}

/* The options of a run of the workload record over some of the ids. */
static struct reads reads_of(const struct load_options *options, const char *label, uint64_t first,
                             uint64_t ids, uint64_t rate)
{
    struct reads reads = {.options = *options, .label = label};

    reads.options.common.workload = BENCH_RECORD;
    reads.options.common.first = first;
    reads.options.common.ids = ids;
    reads.options.common.rate = rate > 0 ? rate : 1;
    return reads;
}

static bool run_rounds(const struct load_options *options)
{
    const struct bench_options *common = &options->common;
    struct cold cold = {.options = options};
    uint64_t old_rate = common->rate * common->old / PERCENT;
    bool ok = true;

    cold.new = reads_of(options, "new ids", common->first + common->ids - common->window,
                        common->window, common->rate - old_rate);
    cold.old = reads_of(options, "old ids", common->first, common->ids / OLD_HALF, old_rate);
    cold.old.thread_first = 1;
    for (uint64_t i = 0; ok && i < options->rounds; i++) {
        /* Not what the last round left in a cache. */
        cold.old.options.common.seed = common->seed + i;
        ok = run_without(&cold, i) && run_with(&cold, i);
        cold.rounds += ok;
    }
    if (cold.rounds != 0) {
        report(&cold);
    }
    return ok;
}

/* Ids and connections are cold's own, and so are the requests. */
static bool fits(const struct load_options *options)
{
    const struct bench_options *common = &options->common;
    uint64_t rarer = common->old < PERCENT - common->old ? common->old : PERCENT - common->old;

    if (common->load || common->requests != UINT64_MAX) {
        return bench_bad("--load, --requests: cold only reads, for --seconds");
    }
    if (common->protocol != BENCH_TEXT || options->layout != LOAD_RECORDS) {
        return bench_bad("--protocol, --layout: cold is for text and records only");
    }
    if (options->zipf != 0) {
        return bench_bad("--zipf: cold draws ids in its own way");
    }
    if (common->threads != 1) {
        return bench_bad("--threads: cold has one for each kind");
    }
    if (common->shape != BENCH_DENSE) {
        return bench_bad("--shape: the ids of cold are dense");
    }
    if (common->old == 0 || common->old == PERCENT) {
        return bench_bad("--old: cold has both, from 1 to 99 per cent");
    }
    if (common->window > common->ids / OLD_HALF) {
        return bench_bad("--window: not more than half of --ids, for the older half is read, too");
    }
    if (common->rate * rarer / PERCENT < common->pipeline) {
        return bench_bad("--rate: less than one batch a second of each kind");
    }
    return true;
}

bool load_cold_parse(int argc, char **argv, struct load_options *options)
{
    if (!bench_options_parse(&load_kit, argc, argv, &options->common)) {
        return false;
    }
    if (options->common.rate == 0) {
        options->common.rate = LOAD_COLD_RATE;
    }
    if (options->rounds == 0) {
        options->rounds = LOAD_COLD_ROUNDS;
    }
    return options->common.help || fits(options);
}

int load_cold_main(int argc, char **argv)
{
    struct load_options options;

    if (!load_cold_parse(argc, argv, &options)) {
        return EXIT_USAGE;
    }
    return options.common.help || run_rounds(&options) ? 0 : EXIT_FAILED;
}
