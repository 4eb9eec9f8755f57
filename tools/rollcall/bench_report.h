/* bench_report.h: the results of a bench for people and for programs, on stdout. */
#ifndef ROLLCALL_TOOLS_BENCH_REPORT_H
#define ROLLCALL_TOOLS_BENCH_REPORT_H

#include "tools/rollcall/bench_run.h"

/*
 * Prints what was asked for and the results: lines of text, or with the option json one line, one
 * object. Either result may be NULL: no load was asked for, or nothing but the load. Figures that
 * are not known are left out.
 */
void bench_report(const struct bench_options *options, const struct bench_result *load,
                  const struct bench_result *run);

#endif
