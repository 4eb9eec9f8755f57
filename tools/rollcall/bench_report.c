/* Text and JSON have the same figures, in the same order: a figure is a row of both. */
#include "tools/rollcall/bench_report.h"

#include <inttypes.h>
#include <stdio.h>

#define NS_A_SECOND 1e9
#define NS_A_US     1e3

struct figure {
    const char *group; /* of JSON: the object it is in; NULL: none */
    const char *name;
    int decimals;
    double value;
    bool unknown;
};

static double per_second(uint64_t things, uint64_t ns)
{
    return ns == 0 ? 0 : (double)things * NS_A_SECOND / (double)ns;
}

/* Microseconds a request. */
static double us_each(uint64_t ns, uint64_t requests)
{
    return requests == 0 ? 0 : (double)ns / NS_A_US / (double)requests;
}

static double percentile_us(const struct bench_result *result, double percent)
{
    return (double)histogram_percentile(result->latency_ns, percent) / NS_A_US;
}

static void put_figures(bool json, const struct figure *figures, size_t count)
{
    const char *group = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct figure *figure = &figures[i];
        if (figure->unknown) {
            continue;
        }
        if (!json) {
            printf("%-14s%s %.*f\n", figure->group != NULL ? figure->group : figure->name,
                   figure->group != NULL ? figure->name : "", figure->decimals, figure->value);
            continue;
        }
        bool first = figure->group != NULL && group != figure->group;
        fputs(group != NULL && group != figure->group ? "}" : "", stdout);
        if (first) {
            printf(",\"%s\":{", figure->group);
        }
        printf("%s\"%s\":", first ? "" : ",", figure->name);
        printf("%.*f", figure->decimals, figure->value);
        group = figure->group;
    }
    fputs(json && group != NULL ? "}" : "", stdout);
}

/* Prints in quotes an address, or text of a tally, which has no control characters. */
static void put_quoted(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('"');
}

/* What each kind of request of the workload mix came to. */
static void put_kinds(bool json, const struct bench_tally *tally)
{
    static const char text[] = "%s  %-9s requests %" PRIu64 "   operations %" PRIu64
                               "   hits %" PRIu64 "   misses %" PRIu64 "   errors %" PRIu64 "\n";
    static const char member[] =
        "%s\"%s\":{\"requests\":%" PRIu64 ",\"operations\":%" PRIu64 ",\"hits\":%" PRIu64
        ",\"misses\":%" PRIu64 ",\"errors\":%" PRIu64 "}";

    for (size_t i = 0; i < BENCH_KINDS; i++) {
        const struct bench_kind_tally *kind = &tally->kinds[i];
        const char *before = !json ? "" : i == 0 ? ",\"kinds\":{" : ",";
        printf(json ? member : text, before, bench_kind_name((enum bench_kind)i), kind->requests,
               kind->operations, kind->hits, kind->misses, kind->errors);
    }
    printf(json ? "},\"checked\":%" PRIu64 : "checked        %" PRIu64 "\n", tally->checked);
}

static void put_errors(bool json, const struct bench_tally *tally)
{
    fputs(json ? ",\"error_lines\":[" : "", stdout);
    for (size_t i = 0; i < BENCH_ERROR_LINES && tally->error_lines[i].count != 0; i++) {
        const struct bench_error *error = &tally->error_lines[i];
        if (json) {
            fputs(i == 0 ? "{\"text\":" : ",{\"text\":", stdout);
            put_quoted(error->text);
            printf(",\"count\":%" PRIu64 ",\"expected\":%s}", error->count,
                   error->expected ? "true" : "false");
        } else {
            printf("error          %" PRIu64 " x %s%s\n", error->count, error->text,
                   error->expected ? " (expected)" : "");
        }
    }
    if (json) {
        fputs("],\"first_mismatch\":", stdout);
        put_quoted(tally->first_mismatch);
    } else if (tally->first_mismatch[0] != '\0') {
        printf("first wrong    %s\n", tally->first_mismatch);
    }
}

static void put_result(bool json, const char *name, const struct bench_result *result, bool mix)
{
    const struct bench_tally *tally = &result->tally;
    uint64_t ns = result->elapsed_ns, requests = tally->requests;
    const struct figure figures[] = {
        {NULL, "requests", 0, (double)requests, false},
        {NULL, "requests_per_s", 1, per_second(requests, ns), false},
        {NULL, mix ? "operations" : "ids", 0, (double)tally->operations, false},
        {NULL, mix ? "operations_per_s" : "ids_per_s", 1, per_second(tally->operations, ns), false},
        {NULL, "bytes_sent", 0, (double)tally->bytes_sent, false},
        {NULL, "bytes_received", 0, (double)tally->bytes_received, false},
        {"latency_us", "p50", 3, percentile_us(result, 50), false},
        {"latency_us", "p99", 3, percentile_us(result, 99), false},
        {"latency_us", "p99_9", 3, percentile_us(result, 99.9), false},
        {"latency_us", "max", 3, (double)histogram_max(result->latency_ns) / NS_A_US, false},
        {"server_cpu_us", "total", 4, us_each(result->server_cpu_ns, requests),
         !result->server_known},
        {NULL, "client_cpu_us", 4, us_each(result->client_cpu_ns, requests), false},
        {NULL, "hits", 0, (double)tally->hits, false},
        {NULL, "misses", 0, (double)tally->misses, false},
        {NULL, "errors", 0, (double)tally->errors, false},
        {NULL, "expected_errors", 0, (double)tally->expected, false},
        {NULL, "mismatches", 0, (double)tally->mismatches, false},
        {NULL, "foreign", 0, (double)tally->foreign, tally->foreign == 0},
        {NULL, "wrongly_found", 0, (double)tally->wrong, tally->foreign == 0},
    };

    printf(json ? ",\"%s\":{\"seconds\":%.6f" : "%-14s %.6f seconds\n", name,
           (double)ns / NS_A_SECOND);
    put_figures(json, figures, sizeof(figures) / sizeof(figures[0]));
    if (mix) {
        put_kinds(json, tally);
    }
    put_errors(json, tally);
    fputs(json ? "}" : "", stdout);
}

static void put_asked(const struct bench_options *options)
{
    bool json = options->json;
    const struct figure figures[] = {
        {NULL, "threads", 0, (double)options->threads, false},
        {NULL, "connections", 0, (double)options->connections, false},
        {NULL, "pipeline", 0, (double)options->pipeline, false},
        {NULL, "ids", 0, (double)options->ids, false},
        {NULL, "page_ids", 0, (double)options->page_ids, false},
    };

    if (json) {
        fputs("{\"address\":", stdout);
        put_quoted(options->address);
    } else {
        printf("address        %s\n", options->address);
    }
    printf(json ? ",\"workload\":\"%s\",\"shape\":\"%s\",\"verify\":\"%s\",\"protocol\":\"%s\""
                : "workload       %s, shape %s, verify %s, protocol %s\n",
           bench_workloads[options->workload], bench_shapes[options->shape],
           bench_verifies[options->verify], options->kit->protocols[options->protocol]);
    if (options->kit->report != NULL) {
        options->kit->report(options, json);
    }
    put_figures(json, figures, sizeof(figures) / sizeof(figures[0]));
    printf(json ? ",\"first\":%" PRIu64 ",\"seed\":%" PRIu64
                : "first          %" PRIu64 "\nseed           %" PRIu64 "\n",
           options->first, options->seed);
}

void bench_report(const struct bench_options *options, const struct bench_result *load,
                  const struct bench_result *run)
{
    if (load == NULL && run == NULL) {
        return;
    }
    put_asked(options);
    if (load != NULL) {
        put_result(options->json, "load", load, false);
    }
    if (run != NULL) {
        put_result(options->json, "run", run, options->workload == BENCH_MIX);
    }
    fputs(options->json ? "}\n" : "", stdout);
}
