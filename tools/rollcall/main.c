/*
 * rollcall: one command-line tool for rollcalld, with a verb for each job. A new verb is a row of
 * the table below and a file of its own.
 */
#include <stdio.h>
#include <string.h>

#include "tools/rollcall/bench.h"
#include "tools/rollcall/inspect.h"
#include "tools/rollcall/repair.h"
#include "tools/rollcall/verify.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#else
#define PACKAGE_VERSION "unversioned"
#endif

typedef int verb_fn(int argc, char **argv);

static verb_fn main_help;

static const struct {
    const char *name;
    verb_fn *main;
    const char *help;
} verbs[] = {
    {"bench", bench_main, "send load to a server, check its replies, print rates and latencies"},
    {"verify", verify_main, "check a data directory: every checksum, order and count"},
    {"repair", repair_main,
     "make a damaged data directory one a daemon starts with, and say the loss"},
    {"inspect", inspect_main, "print a manifest, a journal segment or a table file as text"},
    {"help", main_help, "this text; rollcall VERB --help for the options of one"},
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void usage(FILE *to)
{
    fputs("usage: rollcall VERB [options]\n\n", to);
    for (size_t i = 0; i < VERBS; i++) {
        fprintf(to, "  %-8s %s\n", verbs[i].name, verbs[i].help);
    }
    fputs("\n  -V, --version\n  -h, --help\n", to);
}

static int main_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    usage(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return VERB_USAGE;
    }
    if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0) {
        puts("rollcall " PACKAGE_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        return main_help(argc, argv);
    }
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            return verbs[i].main(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "rollcall: unknown verb \"%s\"; see rollcall help\n", argv[1]);
    return VERB_USAGE;
}
