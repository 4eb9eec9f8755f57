/*
 * arguments.h: the command line of a verb. Its options are rows (base/options.h) of a struct of the
 * verb's own: parsing, complaints and --help come from them. A letter means one option in all verbs
 * (-s server, -q quiet ...) and is taken where the verb has that option.
 */
#ifndef ROLLCALL_TOOLS_ARGUMENTS_H
#define ROLLCALL_TOOLS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"

#define ARGUMENTS_ROWS_MAX 80u

struct arguments {
    const char *name;              /* of the verb; conf diff: two words */
    const char *words;             /* what follows the options, for the usage line; "": nothing */
    const char *examples;          /* lines */
    const char *does;              /* lines, the last without its end; so is `ends` */
    const char *ends;              /* of --help: exit statuses, and what else there is to say */
    const struct option_row *rows; /* a name of NULL ends them; --help is in all verbs */
    size_t words_least, words_most;

    /* Reads the text of a CUSTOM row. False: it was complained of. NULL: there is no such row. */
    bool (*take_custom)(const struct option_row *row, const char *text, void *into);
};

/* The fields of a row that say where it is in the struct `in`, and the usual rows of a verb. */
#define ARGUMENTS_AT(in, field)   .offset = offsetof(in, field), .bytes = sizeof(((in *)0)->field)
#define ARGUMENTS_FLAG(in, field) .type = OPTION_BOOL, ARGUMENTS_AT(in, field)
#define ARGUMENTS_TEXT(in, field) /* an owned char * */                                            \
    .type = OPTION_STRING, .max = 4096, ARGUMENTS_AT(in, field)
#define ARGUMENTS_WORD(in, field, list)                                                            \
    .type = OPTION_WORD, .words = (list), ARGUMENTS_AT(in, field)
#define ARGUMENTS_NUMBER(in, field, least, most)                                                   \
    .type = OPTION_NUMBER, .min = (least), .max = (most), ARGUMENTS_AT(in, field)
#define ARGUMENTS_SECONDS(in, field, least_ms, most_ms) /* 0.2 or 5min; the field counts ms */     \
    .type = OPTION_DURATION, .min = (least_ms), .max = (most_ms), .unit_ms = 1, .bare_ms = 1000,   \
    ARGUMENTS_AT(in, field)

/*
 * Stores what the rows begin with, then the options, into the verb's struct; argv[0] is the verb.
 * -1: go on, its words are at argv[optind]. Else the exit status: help was printed, or what is
 * wrong was complained of. In any case arguments_clear() frees the texts.
 */
int arguments_take(const struct arguments *arguments, int argc, char **argv, void *into);
void arguments_clear(const struct arguments *arguments, void *into);

#endif
