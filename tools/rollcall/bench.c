/* The verb bench: the kit of the product, and the runs that its options ask for. */
#include "tools/rollcall/bench_kit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit_status.h"
#include "base/memory.h"
#include "tools/rollcall/bench_dialect.h"
#include "tools/rollcall/bench_options.h"
#include "tools/rollcall/bench_run.h"
#include "tools/rollcall/bench_workload.h"

static const struct bench_dialect *const dialects[] = {
    [BENCH_TEXT] = &bench_dialect_text,
    [BENCH_BINARY] = &bench_dialect_binary,
};

static const char *const protocols[] = {"text", "binary", NULL};

static const struct option_row rows[] = {
    {"protocol", ARGUMENTS_WORD(struct bench_options, protocol, protocols), .initial = "text",
     .help = "dialect of the requests; mix: text only"},
    {.name = NULL},
};

const struct bench_kit bench_kit_product = {
    .dialects = dialects,
    .protocols = protocols,
    .options = rows,
    .options_bytes = sizeof(struct bench_options),
};

static bool bench_measure(const struct bench_options *options, bool load,
                          struct bench_result *result)
{
    const struct bench_plan plan = {
        .label = load ? "load" : bench_workloads[options->workload],
        .options = options,
        .load = load,
    };
    bool ok = bench_run(&plan, result);

    if (ok && !load && !bench_workload_wrong_few(options, &result->tally)) {
        return bench_bad("wrong answers are far more than one in %" PRIu64, options->one_in);
    }
    return ok && result->tally.errors == 0 && result->tally.mismatches == 0;
}

/* A failed load is reported and ends the bench: what follows would measure something else. */
static int bench_run_all(const struct bench_options *options)
{
    struct bench_result loaded = {0}, ran = {0};
    bool ok = !options->load || bench_measure(options, true, &loaded);

    if (ok && options->requests != 0) {
        ok = bench_measure(options, false, &ran);
    }
    bool unanswered = loaded.unanswered || ran.unanswered;
    bench_report(options, &loaded, &ran);
    bench_result_fini(&loaded);
    bench_result_fini(&ran);
    return ok ? EXIT_STATUS_DONE : unanswered ? EXIT_STATUS_NO_ANSWER : EXIT_STATUS_FAILED;
}

int bench_main_with(const struct bench_kit *kit, int argc, char **argv)
{
    struct bench_options *options = memory_zalloc(kit->options_bytes);
    int status = EXIT_STATUS_USAGE;
    uint64_t used_ns;

    if (bench_options_parse(kit, argc, argv, options)) {
        if (options->help) {
            status = EXIT_STATUS_DONE;
        } else if (!bench_process_cpu_ns((pid_t)options->pid, &used_ns)) {
            (void)bench_bad("--pid %" PRIu64 ": %s", options->pid, strerror(errno));
        } else {
            options->progress = options->progress || isatty(STDERR_FILENO);
            status = bench_run_all(options);
        }
    }
    free(options);
    return status;
}

int bench_main(int argc, char **argv)
{
    return bench_main_with(&bench_kit_product, argc, argv);
}
