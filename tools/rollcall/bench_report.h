/*
 * bench_report.h: the results of a bench for people and for programs, on stdout.
 */
#ifndef ROLLCALL_TOOLS_BENCH_REPORT_H
#define ROLLCALL_TOOLS_BENCH_REPORT_H

#include "tools/rollcall/bench_options.h"
#include "tools/rollcall/bench_run.h"

/* Either result may be NULL: no load was asked for, or nothing but the load. */
void bench_report_text(const struct bench_options *options, const struct bench_result *load,
                       const struct bench_result *run);

/*
 * One line, one object; figures that are not known are left out. zipf is the theta, 0.00 when all
 * ids are drawn alike.
 */
void bench_report_json(const struct bench_options *options, const struct bench_result *load,
                       const struct bench_result *run);

#endif
