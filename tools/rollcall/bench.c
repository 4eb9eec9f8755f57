#include "tools/rollcall/bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/rollcall/bench_cold.h"
#include "tools/rollcall/bench_options.h"
#include "tools/rollcall/bench_report.h"
#include "tools/rollcall/bench_run.h"

#define EXIT_FAILED      1
#define EXIT_USAGE       2
#define LOAD_PIPELINE    200u /* sets sent together; rising order allows one connection only */
#define LOAD_CONNECTIONS 1u

static bool is_right(const struct bench_result *result)
{
    return result->tally.errors == 0 && result->tally.mismatches == 0;
}

static bool load(const struct bench_options *options, struct bench_result *result)
{
    struct bench_plan plan = {
        .label = "load",
        .address = options->address,
        .workload = bench_workload_create(options, true),
        .connections = LOAD_CONNECTIONS,
        .pipeline = LOAD_PIPELINE,
        .requests = bench_workload_load_requests(options),
        .pid = options->pid,
        .progress = options->progress,
    };
    bool ok = bench_run(&plan, result);
    bench_workload_destroy(plan.workload);
    return ok && is_right(result);
}

static bool run(const struct bench_options *options, struct bench_result *result)
{
    struct bench_plan plan = {
        .label = bench_workload_name(options->workload),
        .address = options->address,
        .workload = bench_workload_create(options, false),
        .connections = options->connections,
        .pipeline = options->pipeline,
        .requests = options->requests,
        .seconds = options->seconds,
        .rate = options->rate,
        .pid = options->pid,
        .progress = options->progress,
    };
    bool ok = bench_run(&plan, result);
    bench_workload_destroy(plan.workload);
    if (ok && !bench_workload_wrong_few(options, &result->tally)) {
        fprintf(stderr, "rollcall bench: wrong answers are far more than one in %" PRIu64 "\n",
                options->one_in);
        return false;
    }
    return ok && is_right(result);
}

/* Nothing was answered: there are no figures, and the reason has been said. */
static const struct bench_result *measured(const struct bench_result *result)
{
    return result->tally.requests != 0 || !is_right(result) ? result : NULL;
}

static void report(const struct bench_options *options, const struct bench_result *loaded,
                   const struct bench_result *ran)
{
    if (loaded == NULL && ran == NULL)
        return;
    if (options->json)
        bench_report_json(options, loaded, ran);
    else
        bench_report_text(options, loaded, ran);
}

/* A failed load is reported and ends the bench: what follows would measure something else. */
static int carry_out(const struct bench_options *options)
{
    struct bench_result loaded = {0}, ran = {0};
    bool ok = !options->load || load(options, &loaded);

    if (ok && options->workload == BENCH_COLD && options->requests != 0) {
        bench_result_fini(&loaded);
        return bench_cold(options) ? 0 : EXIT_FAILED;
    }
    if (ok && options->requests != 0)
        ok = run(options, &ran);
    report(options, measured(&loaded), measured(&ran));
    bench_result_fini(&loaded);
    bench_result_fini(&ran);
    return ok ? 0 : EXIT_FAILED;
}

int bench_main(int argc, char **argv)
{
    struct bench_options options;

    if (!bench_options_parse(argc, argv, &options))
        return EXIT_USAGE;
    if (options.help) {
        bench_options_help();
        return 0;
    }
    options.progress = options.progress || isatty(STDERR_FILENO);
    return carry_out(&options);
}
