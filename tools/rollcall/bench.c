#include "tools/rollcall/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "tools/rollcall/bench_dialect.h"
#include "tools/rollcall/bench_options.h"
#include "tools/rollcall/bench_report.h"
#include "tools/rollcall/bench_run.h"
#include "tools/rollcall/bench_workload.h"

#define EXIT_FAILED      1
#define EXIT_USAGE       2
#define LOAD_PIPELINE    200u /* sets sent together; rising order allows one connection only */
#define LOAD_CONNECTIONS 1u

static bool is_right(const struct bench_result *result)
{
    return result->tally.errors == 0 && result->tally.mismatches == 0;
}

static const struct bench_dialect *const dialects[] = {
    [BENCH_TEXT] = &bench_dialect_text,
    [BENCH_BINARY] = &bench_dialect_binary,
    NULL,
};

const struct bench_kit bench_kit_product = {
    .dialects = dialects,
    .options_bytes = sizeof(struct bench_options),
};

static bool load(const struct bench_options *options, struct bench_result *result)
{
    struct bench_plan plan = {
        .label = "load",
        .options = options,
        .load = true,
        .threads = 1,
        .connections = LOAD_CONNECTIONS,
        .pipeline = LOAD_PIPELINE,
        .requests = bench_workload_load_requests(options),
        .pid = options->pid,
        .progress = options->progress,
    };
    bool ok = bench_run(&plan, result);
    return ok && is_right(result);
}

static bool run(const struct bench_options *options, struct bench_result *result)
{
    struct bench_plan plan = {
        .label = bench_workload_name(options->workload),
        .options = options,
        .threads = options->threads,
        .connections = options->connections,
        .pipeline = options->pipeline,
        .requests = options->requests,
        .seconds = options->seconds,
        .rate = options->rate,
        .pid = options->pid,
        .progress = options->progress,
    };
    bool ok = bench_run(&plan, result);
    if (ok && !bench_workload_wrong_few(options, &result->tally)) {
        return bench_bad("wrong answers are far more than one in %" PRIu64, options->one_in);
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
    if (loaded == NULL && ran == NULL) {
        return;
    }
    if (options->json) {
        bench_report_json(options, loaded, ran);
    } else {
        bench_report_text(options, loaded, ran);
    }
}

/* A failed load is reported and ends the bench: what follows would measure something else. */
static int carry_out(const struct bench_options *options)
{
    struct bench_result loaded = {0}, ran = {0};
    bool ok = !options->load || load(options, &loaded);

    if (ok && options->requests != 0) {
        ok = run(options, &ran);
    }
    report(options, measured(&loaded), measured(&ran));
    bench_result_fini(&loaded);
    bench_result_fini(&ran);
    return ok ? 0 : EXIT_FAILED;
}

static int parse_and_carry_out(int argc, char **argv, struct bench_options *options,
                               const struct bench_kit *kit)
{
    if (!bench_options_parse(kit, argc, argv, options)) {
        return EXIT_USAGE;
    }
    if (options->help) {
        bench_options_help(kit);
        return 0;
    }
    options->progress = options->progress || isatty(STDERR_FILENO);
    return carry_out(options);
}

int bench_main_with(const struct bench_kit *kit, int argc, char **argv)
{
    struct bench_options *options = memory_zalloc(kit->options_bytes);
    int status = parse_and_carry_out(argc, argv, options, kit);

    free(options);
    return status;
}

int bench_main(int argc, char **argv)
{
    return bench_main_with(&bench_kit_product, argc, argv);
}
