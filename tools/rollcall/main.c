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

static bool has_value(const char *option)
{
    const struct option_row *row = online_option(option);

    return row != NULL && row->type != OPTION_BOOL;
}

/* Returns the place of the first word that is no option and no option's value; argc or more: none.
 */
static int verb_place(int argc, char **argv)
{
    static const char *const alone[] = {"-h", "--help", "-V", "--version", NULL};
    int at = 1;

    while (at < argc && argv[at][0] == '-' && !is_any(argv[at], alone)) {
        at += has_value(argv[at]) ? 2 : 1;
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

static int refuse_no_verb(int place, int argc, char **argv)
{
    const char *last = argv[argc - 1];

    if (argc == 1) {
        verb_usage(stderr);
        return VERB_USAGE;
    }
    return (int)(place > argc ? verb_complain(stderr, "%s needs a value, and a verb after it", last)
                              : verb_complain(stderr, "no verb after %s; see rollcall help", last));
}

/* The first word is no verb; before: the option it followed, or NULL. */
static int refuse_verb(const char *word, const char *before)
{
    if (before == NULL || online_option(before) != NULL || verb_nearest(word) != NULL) {
        return verb_refuse(word);
    }
    return (int)verb_complain(stderr,
                              "\"%s\" is no verb; as the value of %s it comes after the verb: "
                              "rollcall VERB %s %s",
                              word, before, before, word);
}

static int run_verb(int place, int argc, char **argv)
{
    const struct verb *verb = NULL;

    if (place >= argc) {
        return refuse_no_verb(place, argc, argv);
    }
    put_verb_first(place, argv);
    if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0 ||
        strcmp(argv[1], "version") == 0) {
        puts("rollcall " PACKAGE_VERSION);
        return VERB_SOUND;
    }
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        return verb_help_main(1, argv);
    }
    verb = verb_find(argv[1]);
    return verb != NULL ? verb_run(verb, argc - 1, argv + 1)
                        : refuse_verb(argv[1], place > 1 ? argv[place] : NULL);
}

int main(int argc, char **argv)
{
    bool json = wants_json(argc, argv);
    int status = run_verb(verb_place(argc, argv), argc, argv);

    return json ? online_say_error(status) : status;
}
