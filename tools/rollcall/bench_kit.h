/*
 * bench_kit.h: what a load generator is made of beside the common part: the dialects it speaks and,
 * if it has any, options, keys and draws of its own. `rollcall bench` is bench_kit_product; the one
 * for comparisons is in tests/load. Const and shared by all threads.
 */
#ifndef ROLLCALL_TOOLS_BENCH_KIT_H
#define ROLLCALL_TOOLS_BENCH_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_option_kind {
    BENCH_OPTION_NUMBER,     /* uint64_t */
    BENCH_OPTION_HUNDREDTHS, /* uint64_t, of a number with at most two decimals */
    BENCH_OPTION_TEXT,       /* const char *, into argv */
    BENCH_OPTION_CHOICE,     /* uint64_t, place in the row's choices */
    BENCH_OPTION_PROTOCOL,   /* uint64_t, place in the kit's dialects */
    BENCH_OPTION_FLAG        /* bool */
};

/* One option of the command line. */
struct bench_option {
    const char *name;     /* NULL ends a table */
    const char *argument; /* as --help names it; NULL: a flag */
    enum bench_option_kind kind;
    size_t offset; /* of the field in the options */
    uint64_t minimum;
    uint64_t maximum;
    const char *const *choices; /* ends with NULL */
    const char *help;
};

struct bench_dialect;
struct bench_options;
struct bench_workload;

struct bench_kit {
    const struct bench_dialect *const *dialects; /* ends with NULL; text first: the default */
    size_t options_bytes; /* of the kit's options, which begin with a struct bench_options */

    /* The rest may be NULL: nothing of its own. */
    const struct bench_option *options; /* rows beside the common ones */

    /* Completes the kit's own options. False: they do not go together; it was said. */
    bool (*complete)(struct bench_options *options);

    /* Adds the keys of an id in place of the usual ones; false: it added none. */
    bool (*add_keys)(struct bench_workload *workload, bool load);

    /* The index of an id, from a drawn number and the stream it came from. */
    uint64_t (*draw)(const struct bench_options *options, uint64_t drawn, uint64_t *random);

    /* Called by each thread of a run, by its number, before it connects. 0, or an errno. */
    int (*begin_thread)(const struct bench_options *options, uint64_t thread);

    /* Prints what the report says of the kit's own options: lines of text, or members of JSON. */
    void (*report)(const struct bench_options *options, bool json);
};

extern const struct bench_kit bench_kit_product; /* the memcached protocols */

#endif
