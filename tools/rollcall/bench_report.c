#include "tools/rollcall/bench_report.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_A_SECOND 1e9
#define NS_A_US     1e3

static const struct {
    const char *text;
    const char *json;
    double percent;
} percentiles[] = {{"p50", "p50", 50}, {"p99", "p99", 99}, {"p99.9", "p99_9", 99.9}};
#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

/* Where the counts of the histogram are cut. */
static const uint64_t steps_us[] = {10,     20,     50,     100,     200,     500,
                                    1000,   2000,   5000,   10000,   20000,   50000,
                                    100000, 200000, 500000, 1000000, 10000000};
#define STEPS (sizeof(steps_us) / sizeof(steps_us[0]))

static double rate(uint64_t things, uint64_t ns)
{
    return ns == 0 ? 0 : (double)things * NS_A_SECOND / (double)ns;
}

/* Microseconds a request. */
static double us_each(uint64_t ns, uint64_t requests)
{
    return requests == 0 ? 0 : (double)ns / NS_A_US / (double)requests;
}

static void text_latency(const struct histogram *latency)
{
    printf("latency       ");
    for (size_t i = 0; i < PERCENTILES; i++) {
        printf("%s %.1f us   ", percentiles[i].text,
               (double)histogram_percentile(latency, percentiles[i].percent) / NS_A_US);
    }
    printf("max %.1f us\n", (double)histogram_max(latency) / NS_A_US);
}

/* Batches that took longer than the step before and at most this one. */
static uint64_t between_steps(const struct histogram *latency, size_t step)
{
    uint64_t below = step == 0 ? 0 : histogram_at_most(latency, steps_us[step - 1] * 1000);
    return histogram_at_most(latency, steps_us[step] * 1000) - below;
}

static void text_histogram(const struct histogram *latency)
{
    uint64_t counted = 0;

    for (size_t i = 0; i < STEPS; i++) {
        uint64_t count = between_steps(latency, i);
        counted += count;
        if (count != 0) {
            printf("  to %8" PRIu64 " us %12" PRIu64 "\n", steps_us[i], count);
        }
    }
    if (counted < histogram_count(latency)) {
        printf("  longer         %12" PRIu64 "\n", histogram_count(latency) - counted);
    }
}

/* What each kind of request of the workload mix came to. */
static void text_kinds(const struct bench_tally *tally)
{
    printf("kind          %12s %12s %12s %12s %12s\n", "requests", "operations", "hits", "misses",
           "errors");
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        const struct bench_kind_tally *kind = &tally->kinds[i];
        if (kind->requests != 0) {
            printf("  %-11s %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64 " %12" PRIu64
                   "\n",
                   bench_kind_name((enum bench_kind)i), kind->requests, kind->operations,
                   kind->hits, kind->misses, kind->errors);
        }
    }
    printf("verified      %" PRIu64 " answers exactly\n", tally->checked);
}

static void text_errors(const struct bench_tally *tally)
{
    for (size_t i = 0; i < BENCH_ERROR_LINES && tally->error_lines[i].count != 0; i++) {
        printf("error         %" PRIu64 " x %s%s\n", tally->error_lines[i].count,
               tally->error_lines[i].text, tally->error_lines[i].expected ? " (expected)" : "");
    }
    if (tally->first_mismatch[0] != '\0') {
        printf("first wrong   %s\n", tally->first_mismatch);
    }
}

static void text_cpu(const struct bench_result *result)
{
    uint64_t requests = result->tally.requests;

    if (result->server_known) {
        printf("server cpu    %.3f us a request (user %.3f, system %.3f)\n",
               us_each(proc_cpu_total_ns(&result->server), requests),
               us_each(result->server.user_us * 1000, requests),
               us_each(result->server.system_us * 1000, requests));
    }
    printf("client cpu    %.3f us a request\n", us_each(result->client_cpu_ns, requests));
}

static void text_result(const struct bench_result *result, bool mix)
{
    const struct bench_tally *tally = &result->tally;

    printf("requests      %" PRIu64 " in %.3f s\n", tally->requests,
           (double)result->elapsed_ns / NS_A_SECOND);
    printf("requests/s    %.0f\n", rate(tally->requests, result->elapsed_ns));
    printf("%s%.0f\n", mix ? "operations/s  " : "ids/s         ",
           rate(tally->operations, result->elapsed_ns));
    printf("bytes         %" PRIu64 " sent, %" PRIu64 " received\n", tally->bytes_sent,
           tally->bytes_received);
    text_latency(result->latency_ns);
    if (mix) {
        text_histogram(result->latency_ns);
    }
    text_cpu(result);
    printf("replies       hits %" PRIu64 "   misses %" PRIu64 "   errors %" PRIu64
           "   expected errors %" PRIu64 "   mismatches %" PRIu64 "\n",
           tally->hits, tally->misses, tally->errors, tally->expected, tally->mismatches);
    if (mix) {
        text_kinds(tally);
    }
    if (tally->foreign != 0) {
        printf("foreign       %" PRIu64 " asked, %" PRIu64 " wrongly found: %.6f %%\n",
               tally->foreign, tally->wrong, 100.0 * (double)tally->wrong / (double)tally->foreign);
    }
    text_errors(tally);
}

/* What was asked for, and how. */
static void text_workload(const struct bench_options *options)
{
    printf("workload      %s", bench_workload_name(options->workload));
    if (options->workload == BENCH_PAGE) {
        printf(" of %" PRIu64 " ids", options->page_ids);
    }
    if (options->workload == BENCH_MIX) {
        printf(", window %" PRIu64 ", %" PRIu64 " %% late, %" PRIu64 " %% old", options->window,
               options->late, options->old);
    }
    if (options->workload == BENCH_EXIST) {
        printf(", %" PRIu64 " checks, %" PRIu64 " %% hits", options->page_ids, options->hits);
    }
    if (options->workload != BENCH_MIX || options->load) {
        printf(", %" PRIu64 " ids", options->ids);
    }
    printf(", %s, from %" PRIu64, bench_shape_name(options->shape), options->first);
    printf("\nprotocol      %s\n", bench_protocol_name(options));
    printf("connections   %" PRIu64 ", %" PRIu64 " pipelined, threads %" PRIu64 "\n",
           options->connections, options->pipeline, options->threads);
    if (options->kit->report != NULL) {
        options->kit->report(options, false);
    }
}

void bench_report_text(const struct bench_options *options, const struct bench_result *load,
                       const struct bench_result *run)
{
    if (load != NULL) {
        printf("load          %" PRIu64 " ids, %s, from %" PRIu64 ", protocol %s\n", options->ids,
               bench_shape_name(options->shape), options->first, bench_protocol_name(options));
        text_result(load, false);
    }
    if (load != NULL && run != NULL) {
        puts("");
    }
    if (run == NULL) {
        return;
    }
    text_workload(options);
    text_result(run, options->workload == BENCH_MIX);
}

static void json_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            printf("\\%c", *text);
        } else if ((unsigned char)*text < ' ' || (unsigned char)*text > 126) {
            printf("\\u%04x", (unsigned char)*text);
        } else {
            putchar(*text);
        }
    }
    putchar('"');
}

static void json_histogram(const struct histogram *latency)
{
    printf(",\"latency_us_counts\":[");
    for (size_t i = 0; i < STEPS; i++) {
        printf("%s[%" PRIu64 ",%" PRIu64 "]", i == 0 ? "" : ",", steps_us[i],
               between_steps(latency, i));
    }
    putchar(']');
}

static void json_kinds(const struct bench_tally *tally)
{
    printf(",\"kinds\":{");
    for (size_t i = 0; i < BENCH_KINDS; i++) {
        const struct bench_kind_tally *kind = &tally->kinds[i];
        printf("%s\"%s\":{\"requests\":%" PRIu64 ",\"operations\":%" PRIu64 ",\"hits\":%" PRIu64
               ",\"misses\":%" PRIu64 ",\"errors\":%" PRIu64 "}",
               i == 0 ? "" : ",", bench_kind_name((enum bench_kind)i), kind->requests,
               kind->operations, kind->hits, kind->misses, kind->errors);
    }
    printf("},\"checked\":%" PRIu64, tally->checked);
}

static void json_errors(const struct bench_tally *tally)
{
    printf(",\"error_lines\":[");
    for (size_t i = 0; i < BENCH_ERROR_LINES && tally->error_lines[i].count != 0; i++) {
        printf("%s{\"text\":", i == 0 ? "" : ",");
        json_text(tally->error_lines[i].text);
        printf(",\"count\":%" PRIu64 ",\"expected\":%s}", tally->error_lines[i].count,
               tally->error_lines[i].expected ? "true" : "false");
    }
    printf("],\"first_mismatch\":");
    json_text(tally->first_mismatch);
}

static void json_result(const char *name, const struct bench_result *result, bool mix)
{
    const struct bench_tally *tally = &result->tally;
    uint64_t ns = result->elapsed_ns;

    printf(",\"%s\":{\"seconds\":%.6f,\"requests\":%" PRIu64 ",\"requests_per_s\":%.1f", name,
           (double)ns / NS_A_SECOND, tally->requests, rate(tally->requests, ns));
    printf(",\"%s\":%" PRIu64 ",\"%s_per_s\":%.1f", mix ? "operations" : "ids", tally->operations,
           mix ? "operations" : "ids", rate(tally->operations, ns));
    printf(",\"bytes_sent\":%" PRIu64 ",\"bytes_received\":%" PRIu64 ",\"latency_us\":{",
           tally->bytes_sent, tally->bytes_received);
    for (size_t i = 0; i < PERCENTILES; i++) {
        printf("\"%s\":%.3f,", percentiles[i].json,
               (double)histogram_percentile(result->latency_ns, percentiles[i].percent) / NS_A_US);
    }
    printf("\"max\":%.3f}", (double)histogram_max(result->latency_ns) / NS_A_US);
    if (result->server_known) {
        printf(",\"server_cpu_us\":{\"total\":%.4f,\"user\":%.4f,\"system\":%.4f}",
               us_each(proc_cpu_total_ns(&result->server), tally->requests),
               us_each(result->server.user_us * 1000, tally->requests),
               us_each(result->server.system_us * 1000, tally->requests));
    }
    printf(",\"client_cpu_us\":%.4f,\"hits\":%" PRIu64 ",\"misses\":%" PRIu64 ",\"errors\":%" PRIu64
           ",\"expected_errors\":%" PRIu64 ",\"mismatches\":%" PRIu64,
           us_each(result->client_cpu_ns, tally->requests), tally->hits, tally->misses,
           tally->errors, tally->expected, tally->mismatches);
    if (mix) {
        json_histogram(result->latency_ns);
        json_kinds(tally);
    }
    if (tally->foreign != 0) {
        printf(",\"foreign\":%" PRIu64 ",\"wrongly_found\":%" PRIu64, tally->foreign, tally->wrong);
    }
    json_errors(tally);
    putchar('}');
}

void bench_report_json(const struct bench_options *options, const struct bench_result *load,
                       const struct bench_result *run)
{
    printf("{\"address\":");
    json_text(options->address);
    printf(",\"workload\":\"%s\",\"shape\":\"%s\",\"verify\":\"%s\"",
           bench_workload_name(options->workload), bench_shape_name(options->shape),
           bench_verify_name(options->verify));
    printf(",\"protocol\":\"%s\",\"threads\":%" PRIu64, bench_protocol_name(options),
           options->threads);
    if (options->kit->report != NULL) {
        options->kit->report(options, true);
    }
    printf(",\"connections\":%" PRIu64 ",\"pipeline\":%" PRIu64 ",\"ids\":%" PRIu64
           ",\"first\":%" PRIu64 ",\"page_ids\":%" PRIu64 ",\"seed\":%" PRIu64,
           options->connections, options->pipeline, options->ids, options->first, options->page_ids,
           options->seed);
    if (load != NULL) {
        json_result("load", load, false);
    }
    if (run != NULL) {
        json_result("run", run, options->workload == BENCH_MIX);
    }
    puts("}");
}
