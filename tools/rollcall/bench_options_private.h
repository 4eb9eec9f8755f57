/*
 * bench_options_private.h: the inside of the options, shared by bench_options.c (the table, reading
 * it) and bench_options_check.c (what follows from them). Included by no other.
 */
#ifndef ROLLCALL_TOOLS_BENCH_OPTIONS_PRIVATE_H
#define ROLLCALL_TOOLS_BENCH_OPTIONS_PRIVATE_H

#include "tools/rollcall/bench_options.h"

/* Fills in what was not said and what is derived. False: they do not go together; it was said. */
bool bench_options_complete(struct bench_options *options);

#endif
