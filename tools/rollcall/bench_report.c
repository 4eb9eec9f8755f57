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
    for (size_t i = 0; i < PERCENTILES; i++)
        printf("%s %.1f us   ", percentiles[i].text,
               (double)histogram_percentile(latency, percentiles[i].percent) / NS_A_US);
    printf("max %.1f us\n", (double)histogram_max(latency) / NS_A_US);
}

static void text_cpu(const struct bench_result *result)
{
    uint64_t requests = result->tally.requests;

    if (result->server_known)
        printf("server cpu    %.3f us a request (user %.3f, system %.3f)\n",
               us_each(proc_cpu_total_ns(&result->server), requests),
               us_each(result->server.user_us * 1000, requests),
               us_each(result->server.system_us * 1000, requests));
    printf("client cpu    %.3f us a request\n", us_each(result->client_cpu_ns, requests));
}

static void text_result(const struct bench_result *result)
{
    const struct bench_tally *tally = &result->tally;

    printf("requests      %" PRIu64 " in %.3f s\n", tally->requests,
           (double)result->elapsed_ns / NS_A_SECOND);
    printf("requests/s    %.0f\n", rate(tally->requests, result->elapsed_ns));
    printf("ids/s         %.0f\n", rate(tally->ids, result->elapsed_ns));
    printf("bytes         %" PRIu64 " sent, %" PRIu64 " received\n", tally->bytes_sent,
           tally->bytes_received);
    text_latency(result->latency_ns);
    text_cpu(result);
    printf("replies       hits %" PRIu64 "   misses %" PRIu64 "   errors %" PRIu64
           "   mismatches %" PRIu64 "\n",
           tally->hits, tally->misses, tally->errors, tally->mismatches);
    if (tally->foreign != 0)
        printf("foreign       %" PRIu64 " asked, %" PRIu64 " wrongly found: %.6f %%\n",
               tally->foreign, tally->wrong, 100.0 * (double)tally->wrong / (double)tally->foreign);
    if (tally->first_error[0] != '\0')
        printf("first error   %s\n", tally->first_error);
    if (tally->first_mismatch[0] != '\0')
        printf("first wrong   %s\n", tally->first_mismatch);
}

void bench_report_text(const struct bench_options *options, const struct bench_result *load,
                       const struct bench_result *run)
{
    if (load != NULL) {
        printf("load          %" PRIu64 " ids, %s, from %" PRIu64 ", by %s\n", options->ids,
               bench_shape_name(options->shape), options->first,
               bench_layout_name(options->layout));
        text_result(load);
    }
    if (load != NULL && run != NULL)
        puts("");
    if (run == NULL)
        return;
    printf("workload      %s", bench_workload_name(options->workload));
    if (options->workload == BENCH_PAGE)
        printf(" of %" PRIu64 " ids", options->page_ids);
    if (options->workload == BENCH_EXIST)
        printf(", %" PRIu64 " checks, %" PRIu64 " %% hits", options->page_ids, options->hits);
    printf(", %" PRIu64 " ids, %s, from %" PRIu64 "\n", options->ids,
           bench_shape_name(options->shape), options->first);
    printf("connections   %" PRIu64 ", %" PRIu64 " pipelined\n", options->connections,
           options->pipeline);
    text_result(run);
}

static void json_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text > 126)
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void json_result(const char *name, const struct bench_result *result)
{
    const struct bench_tally *tally = &result->tally;
    uint64_t ns = result->elapsed_ns;

    printf(",\"%s\":{\"seconds\":%.6f,\"requests\":%" PRIu64 ",\"ids\":%" PRIu64
           ",\"requests_per_s\":%.1f,\"ids_per_s\":%.1f",
           name, (double)ns / NS_A_SECOND, tally->requests, tally->ids, rate(tally->requests, ns),
           rate(tally->ids, ns));
    printf(",\"bytes_sent\":%" PRIu64 ",\"bytes_received\":%" PRIu64 ",\"latency_us\":{",
           tally->bytes_sent, tally->bytes_received);
    for (size_t i = 0; i < PERCENTILES; i++)
        printf("\"%s\":%.3f,", percentiles[i].json,
               (double)histogram_percentile(result->latency_ns, percentiles[i].percent) / NS_A_US);
    printf("\"max\":%.3f}", (double)histogram_max(result->latency_ns) / NS_A_US);
    if (result->server_known)
        printf(",\"server_cpu_us\":{\"total\":%.4f,\"user\":%.4f,\"system\":%.4f}",
               us_each(proc_cpu_total_ns(&result->server), tally->requests),
               us_each(result->server.user_us * 1000, tally->requests),
               us_each(result->server.system_us * 1000, tally->requests));
    printf(",\"client_cpu_us\":%.4f,\"hits\":%" PRIu64 ",\"misses\":%" PRIu64 ",\"errors\":%" PRIu64
           ",\"mismatches\":%" PRIu64,
           us_each(result->client_cpu_ns, tally->requests), tally->hits, tally->misses,
           tally->errors, tally->mismatches);
    if (tally->foreign != 0)
        printf(",\"foreign\":%" PRIu64 ",\"wrongly_found\":%" PRIu64, tally->foreign, tally->wrong);
    printf(",\"first_error\":");
    json_text(tally->first_error);
    printf(",\"first_mismatch\":");
    json_text(tally->first_mismatch);
    putchar('}');
}

void bench_report_json(const struct bench_options *options, const struct bench_result *load,
                       const struct bench_result *run)
{
    printf("{\"address\":");
    json_text(options->address);
    printf(",\"workload\":\"%s\",\"shape\":\"%s\",\"layout\":\"%s\",\"verify\":\"%s\"",
           bench_workload_name(options->workload), bench_shape_name(options->shape),
           bench_layout_name(options->layout), bench_verify_name(options->verify));
    printf(",\"connections\":%" PRIu64 ",\"pipeline\":%" PRIu64 ",\"ids\":%" PRIu64
           ",\"first\":%" PRIu64 ",\"page_ids\":%" PRIu64 ",\"seed\":%" PRIu64,
           options->connections, options->pipeline, options->ids, options->first, options->page_ids,
           options->seed);
    if (load != NULL)
        json_result("load", load);
    if (run != NULL)
        json_result("run", run);
    puts("}");
}
