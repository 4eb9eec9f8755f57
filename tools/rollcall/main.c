/* rollcall: one command-line tool for rollcalld, with a verb for each job: verb_table.c. */
#include <stdio.h>
#include <string.h>

#include "tools/rollcall/verb.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#else
#define PACKAGE_VERSION "unversioned"
#endif

int main(int argc, char **argv)
{
    if (argc < 2) {
        verb_usage(stderr);
        return VERB_USAGE;
    }
    if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0 ||
        strcmp(argv[1], "version") == 0) {
        puts("rollcall " PACKAGE_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        return verb_help_main(1, argv);
    }
    const struct verb *verb = verb_find(argv[1]);

    return verb != NULL ? verb->main(argc - 1, argv + 1) : verb_refuse(argv[1]);
}
