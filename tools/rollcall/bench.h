/*
 * bench.h: the verb `rollcall bench`, a load generator for the memcached protocols.
 * How it works is in DESIGN.md beside this file.
 */
#ifndef ROLLCALL_TOOLS_BENCH_H
#define ROLLCALL_TOOLS_BENCH_H

/*
 * argv[0] is the verb. Returns the exit status: 0, 1 when replies were wrong or failed, 2 for
 * options that make no sense.
 */
int bench_main(int argc, char **argv);

/* The same with another kit than the product's (bench_kit.h). */
struct bench_kit;
int bench_main_with(const struct bench_kit *kit, int argc, char **argv);

#endif
