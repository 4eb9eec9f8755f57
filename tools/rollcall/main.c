/* rollcall: one command-line tool for rollcalld, with a verb for each job: verb_table.c. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tools/rollcall/online.h"
#include "tools/rollcall/verb.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#else
#define PACKAGE_VERSION "unversioned"
#endif

static bool is_any(const char *word, const char *const *names)
{
    while (*names != NULL && strcmp(word, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

/* Returns the place of the first word that is no option and no option's value. */
static int verb_place(int argc, char **argv)
{
    static const char *const alone[] = {"-h", "--help", "-V", "--version", NULL};
    int at = 1;

    while (at < argc && argv[at][0] == '-' && !is_any(argv[at], alone)) {
        at += online_has_value(argv[at]) ? 2 : 1;
    }
    return at;
}

/* Options may come before the verb: it takes its place before them. */
static void put_verb_first(int place, char **argv)
{
    char *verb = argv[place];

    memmove(argv + 2, argv + 1, (size_t)(place - 1) * sizeof(*argv));
    argv[1] = verb;
}

static bool wants_json(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

static int run_verb(int argc, char **argv)
{
    const struct verb *verb = verb_find(argv[1]);

    return verb != NULL ? verb_run(verb, argc - 1, argv + 1) : verb_refuse(argv[1]);
}

int main(int argc, char **argv)
{
    int place = verb_place(argc, argv);

    if (place >= argc) {
        verb_usage(stderr);
        return VERB_USAGE;
    }
    put_verb_first(place, argv);
    if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0 ||
        strcmp(argv[1], "version") == 0) {
        puts("rollcall " PACKAGE_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        return verb_help_main(1, argv);
    }
    bool json = wants_json(argc, argv);
    int status = run_verb(argc, argv);

    return json ? online_say_error(status) : status;
}
