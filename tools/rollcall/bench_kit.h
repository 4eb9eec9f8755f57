/*
 * bench_kit.h: what a load generator is made of beside the common part: the dialects it speaks and,
 * if it has any, options, keys and draws of its own. The one for comparisons is in tests/load.
 * Const and shared by all threads. How bench works is in DESIGN.md beside this file.
 */
#ifndef ROLLCALL_TOOLS_BENCH_KIT_H
#define ROLLCALL_TOOLS_BENCH_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"

struct bench_dialect;
struct bench_options;
struct bench_watch;
struct bench_workload;
struct json_t;

struct bench_kit {
    const struct bench_dialect *const *dialects; /* by the option protocol; text first */
    const char *const *protocols;                /* their names, the words of that option */
    size_t options_bytes; /* of the kit's options, which begin with a struct bench_options */
    const struct option_row *options; /* rows beside the common ones; a name of NULL ends them */

    /* The rest may be NULL: nothing of its own. */

    /* Completes the kit's own options. False: they do not go together; it was said. */
    bool (*complete)(struct bench_options *options);

    /* Adds the keys of an id in place of the usual ones; false: it added none. */
    bool (*add_keys)(struct bench_workload *workload, bool load);

    /* The index of an id, from a drawn number and the stream it came from. */
    uint64_t (*draw)(const struct bench_options *options, uint64_t drawn, uint64_t *random);

    /* Called by each thread of a run, by its number, before it asks. 0, or an errno. */
    int (*begin_thread)(const struct bench_options *options, uint64_t thread);

    /* Sets in a report's object what is to be said of the kit's own options. */
    void (*report)(const struct bench_options *options, struct json_t *object);

    const struct bench_watch *watch; /* mix: remembers what it wrote (bench_mix.h) */
};

extern const struct bench_kit bench_kit_product; /* the memcached protocols */

/* The verb bench with a kit, and with the product's. argv[0] is the verb; returns the status. */
int bench_main_with(const struct bench_kit *kit, int argc, char **argv);
int bench_main(int argc, char **argv);

#endif
