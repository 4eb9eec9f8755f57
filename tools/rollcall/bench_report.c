/* What the verb bench says: one object with all figures. */
#include "tools/rollcall/bench_run.h"

#include <jansson.h>
#include <stdio.h>

#define NS_A_SECOND 1e9
#define NS_A_US     1e3
#define DIGITS      9 /* of a number that is no integer */

static double per_second(uint64_t things, uint64_t ns)
{
    return ns == 0 ? 0 : (double)things * NS_A_SECOND / (double)ns;
}

/* Microseconds a request. */
static double us_each(uint64_t ns, uint64_t requests)
{
    return requests == 0 ? 0 : (double)ns / NS_A_US / (double)requests;
}

static void put_count(json_t *object, const char *name, uint64_t count)
{
    json_object_set_new(object, name, json_integer((json_int_t)count));
}

static void put_number(json_t *object, const char *name, double number)
{
    json_object_set_new(object, name, json_real(number));
}

static json_t *report_latency(const struct histogram *latency_ns)
{
    json_t *object = json_object();

    put_number(object, "p50", (double)histogram_percentile(latency_ns, 50) / NS_A_US);
    put_number(object, "p99", (double)histogram_percentile(latency_ns, 99) / NS_A_US);
    put_number(object, "p99_9", (double)histogram_percentile(latency_ns, 99.9) / NS_A_US);
    put_number(object, "max", (double)histogram_max(latency_ns) / NS_A_US);
    return object;
}

/* What each kind of request of the workload mix came to. */
static json_t *report_kinds(const struct bench_tally *tally)
{
    json_t *kinds = json_object();

    for (size_t i = 0; i < BENCH_KINDS; i++) {
        const struct bench_kind_tally *kind = &tally->kinds[i];

        json_object_set_new(kinds, bench_kind_name((enum bench_kind)i),
                            json_pack("{s:I, s:I, s:I, s:I, s:I}", "requests", kind->requests,
                                      "operations", kind->operations, "hits", kind->hits, "misses",
                                      kind->misses, "errors", kind->errors));
    }
    return kinds;
}

static json_t *report_errors(const struct bench_tally *tally)
{
    json_t *errors = json_array();

    for (size_t i = 0; i < BENCH_ERROR_LINES && tally->error_lines[i].count != 0; i++) {
        const struct bench_error *error = &tally->error_lines[i];

        json_array_append_new(errors, json_pack("{s:s, s:I, s:b}", "text", error->text, "count",
                                                error->count, "expected", error->expected));
    }
    return errors;
}

static json_t *report_result(const struct bench_result *result, bool mix)
{
    const struct bench_tally *tally = &result->tally;
    uint64_t ns = result->elapsed_ns, requests = tally->requests;
    json_t *object = json_object();

    put_number(object, "seconds", (double)ns / NS_A_SECOND);
    put_count(object, "requests", requests);
    put_number(object, "requests_per_s", per_second(requests, ns));
    put_count(object, mix ? "operations" : "ids", tally->operations);
    put_number(object, mix ? "operations_per_s" : "ids_per_s", per_second(tally->operations, ns));
    put_count(object, "bytes_sent", tally->bytes_sent);
    put_count(object, "bytes_received", tally->bytes_received);
    json_object_set_new(object, "latency_us", report_latency(result->latency_ns));
    if (result->server_known) {
        json_object_set_new(object, "server_cpu_us",
                            json_pack("{s:f}", "total", us_each(result->server_cpu_ns, requests)));
    }
    put_number(object, "client_cpu_us", us_each(result->client_cpu_ns, requests));
    put_count(object, "hits", tally->hits);
    put_count(object, "misses", tally->misses);
    put_count(object, "errors", tally->errors);
    put_count(object, "expected_errors", tally->expected);
    put_count(object, "mismatches", tally->mismatches);
    if (tally->foreign != 0) {
        put_count(object, "foreign", tally->foreign);
        put_count(object, "wrongly_found", tally->wrong);
    }
    if (mix) {
        json_object_set_new(object, "kinds", report_kinds(tally));
        put_count(object, "checked", tally->checked);
    }
    json_object_set_new(object, "error_lines", report_errors(tally));
    json_object_set_new(object, "first_mismatch", json_string(tally->first_mismatch));
    return object;
}

static json_t *report_asked(const struct bench_options *options)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s}", "address", options->address, "workload",
        bench_workloads[options->workload], "shape", bench_shapes[options->shape], "verify",
        bench_verifies[options->verify], "protocol", options->kit->protocols[options->protocol]);

    if (options->kit->report != NULL) {
        options->kit->report(options, object);
    }
    put_count(object, "threads", options->threads);
    put_count(object, "connections", options->connections);
    put_count(object, "pipeline", options->pipeline);
    put_count(object, "ids", options->ids);
    put_count(object, "page_ids", options->page_ids);
    put_count(object, "first", options->first);
    put_count(object, "seed", options->seed);
    return object;
}

/* Sets a result, unless nothing was answered: then there are no figures. Returns whether it did. */
static bool report_set(json_t *object, const char *name, const struct bench_result *result,
                       bool mix)
{
    const struct bench_tally *tally = &result->tally;
    bool answered = tally->requests != 0 || tally->errors != 0 || tally->mismatches != 0;

    return answered && json_object_set_new(object, name, report_result(result, mix)) == 0;
}

void bench_report(const struct bench_options *options, const struct bench_result *load,
                  const struct bench_result *run)
{
    json_t *object = report_asked(options);
    bool loaded = report_set(object, "load", load, false);

    if (report_set(object, "run", run, options->workload == BENCH_MIX) || loaded) {
        json_dumpf(object, stdout,
                   (options->json ? JSON_COMPACT : JSON_INDENT(2)) | JSON_PRESERVE_ORDER |
                       JSON_REAL_PRECISION(DIGITS));
        putchar('\n');
    }
    json_decref(object);
}
