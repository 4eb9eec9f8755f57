/* verb_table.c: the verbs of rollcall, one row each: a verb is that and a file of its own. Help. */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "tools/rollcall/bench_kit.h"
#include "tools/rollcall/inspect.h"
#include "tools/rollcall/online.h"
#include "tools/rollcall/repair.h"
#include "tools/rollcall/verb.h"
#include "tools/rollcall/verify.h"

const struct verb verbs[] = {
    {"status", .online = &verb_status,
     .help = "how a daemon is, and what each of its spaces holds"},
    {"top", .online = &verb_top, .help = "the same, live, with rates"},
    {"tables", .online = &verb_tables, .help = "the tables of its spaces: ids, fill, state"},
    {"hot", .online = &verb_hot, .help = "ids and members asked for most"},
    {"get", .online = &verb_get,
     .help = "all slots of an id, or a member, and the table that has it"},
    {"conf", .online = &verb_conf,
     .help = "diff FILE: the options a daemon does not run with as the file says"},
    {"plan", .online = &verb_plan,
     .help = "how much memory and disk so many ids take, and a configuration"},
    {"bench", bench_main, .help = "send load to a server, check its replies, print its rates"},
    {"verify", verify_main, .help = "check a data directory: every checksum, order and count"},
    {"repair", repair_main, .help = "make a damaged data directory a sound one, and say the loss"},
    {"inspect", inspect_main,
     .help = "print a manifest, a journal segment or a table file as text"},
    {"export", export_main, .help = "write the records of a space of a running daemon to a file"},
    {"load", load_main, .help = "load counters or members from files into a running daemon"},
    {"backup", backup_main, .help = "copy the data of a running daemon, up to one moment"},
    {"restore", restore_main, .help = "make a data directory from a backup"},
    {"promote", .online = &verb_promote, .help = "makes a follower lead"},
    {"follow", .online = &verb_follow, .help = "HOST:PORT: makes a node follow another one"},
    {"agent", agent_main,
     .help = "beside a daemon: makes the right node of its group lead, by etcd"},
    {"completion", .online = &verb_completion, .help = "a script for bash, zsh or fish"},
    {"help", verb_help_main, .help = "this text; rollcall VERB --help for the options of one"},
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))
const size_t verb_count = VERBS;

const char *verb_nearest(const char *wrong)
{
    const char *names[VERBS];

    for (size_t i = 0; i < VERBS; i++) {
        names[i] = verbs[i].name;
    }
    return options_nearest(wrong, names, VERBS);
}

void verb_usage(FILE *to)
{
    fputs("  rollcall status\n"
          "  rollcall top -s 10.0.0.5:11211\n"
          "  rollcall plan --ids-per-day 20M --days 30 --slots repost:14,like:18\n"
          "usage: rollcall [options] VERB [options]; rollcall VERB --help; rollcall -V\n",
          to);
    for (size_t i = 0; i < verb_count; i++) {
        if (verbs[i].main != verb_help_main) { /* this text, which is to fit a screen */
            fprintf(to, "  %-11s %s\n", verbs[i].name, verbs[i].help);
        }
    }
}

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < verb_count; i++) {
        if (strcmp(name, verbs[i].name) == 0) {
            return &verbs[i];
        }
    }
    return NULL;
}

int verb_run(const struct verb *verb, int argc, char **argv)
{
    return verb->online != NULL ? online_main(verb->online, argc, argv) : verb->main(argc, argv);
}

int verb_refuse(const char *name)
{
    const char *nearest = verb_nearest(name);

    return (int)verb_complain(stderr, "unknown verb \"%s\"%s%s; see rollcall help", name,
                              nearest != NULL ? "; did you mean " : "",
                              nearest != NULL ? nearest : "");
}

/* help, help VERB */
int verb_help_main(int argc, char **argv)
{
    char help[] = "--help";
    const struct verb *verb = argc > 1 ? verb_find(argv[1]) : NULL;
    bool itself = argc > 1 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], help) == 0);

    if (argc > 1 && argv[1][0] == '-' && !itself) {
        return (int)verb_complain(stderr, "help takes no option, %s; usage: rollcall help [VERB]",
                                  argv[1]);
    }
    if (argc > 1 && verb == NULL && !itself) {
        return verb_refuse(argv[1]);
    }
    if (verb != NULL && verb->main != verb_help_main) {
        char *words[] = {argv[1], help, NULL};

        return verb_run(verb, 2, words);
    }
    verb_usage(stdout);
    return 0;
}
