#include "tools/rollcall/arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/rollcall/verb.h"

#define HELP_COLUMN 26
#define HELP_WIDTH  80
#define GETOPT_FROM 256 /* getopt's values for the rows */
#define HELP_LETTER 'h'

static const struct {
    char letter;
    const char *name;
} letters[] = {
    {'s', "server"}, {'f', "format"}, {'c', "columns"},      {'m', "mode"},
    {'o', "output"}, {'q', "quiet"},  {HELP_LETTER, "help"},
};
#define LETTERS (sizeof(letters) / sizeof(letters[0]))

static const struct option_row help_row = {"help", OPTION_BOOL, .help = "this text"};

/* ' ': it has none. */
static char letter_of(const struct option_row *row)
{
    for (size_t i = 0; i < LETTERS; i++) {
        if (strcmp(letters[i].name, row->name) == 0) {
            return letters[i].letter;
        }
    }
    return ' ';
}

/* ---- help ---- */

/* Words from HELP_COLUMN on, broken before HELP_WIDTH. */
static void arguments_put_words(const char *text)
{
    int column = HELP_COLUMN;

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");

        if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += printf("%s%.*s", column > HELP_COLUMN ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void arguments_put_row(const struct option_row *row)
{
    char limits[OPTIONS_TEXT_MAX] = "", words[3 * OPTIONS_TEXT_MAX];
    const char *initial = row->initial;
    char letter = letter_of(row);

    if (row->type == OPTION_WORD) {
        options_format_limits(row, limits);
    }
    snprintf(words, sizeof(words), "%s%s%s%s%s%s", limits, *limits != '\0' ? "; " : "", row->help,
             initial != NULL ? " (" : "", initial != NULL ? initial : "",
             initial != NULL ? ")" : "");
    printf("  %c%c%c --%-*s", letter != ' ' ? '-' : ' ', letter, letter != ' ' ? ',' : ' ',
           HELP_COLUMN - 8, row->name);
    arguments_put_words(words);
}

static void arguments_help(const struct arguments *arguments)
{
    printf("%s\nusage: rollcall %s [options]%s%s\n%s\n\n", arguments->examples, arguments->name,
           *arguments->words != '\0' ? " " : "", arguments->words, arguments->does);
    for (const struct option_row *row = arguments->rows; row->name != NULL; row++) {
        arguments_put_row(row);
    }
    arguments_put_row(&help_row);
    printf("\n%s\n", arguments->ends);
}

/* ---- parsing ---- */

static bool arguments_store(const struct arguments *arguments, const struct option_row *row,
                            const char *text, void *into)
{
    struct option_value value;
    char error[OPTIONS_ERROR_MAX];

    if (row->type == OPTION_CUSTOM) {
        return arguments->take_custom(row, text, into);
    }
    if (!options_parse(row, text, &value, error)) {
        verb_complain(stderr, "--%s", error);
        return false;
    }
    options_store(row, into, &value);
    return true;
}

static int complain_unknown(const struct arguments *arguments, const char *given)
{
    const char *names[ARGUMENTS_ROWS_MAX];
    char wrong[OPTIONS_NAME_MAX];
    size_t count = 0;

    for (const struct option_row *row = arguments->rows; row->name != NULL; row++) {
        names[count++] = row->name;
    }
    snprintf(wrong, sizeof(wrong), "%.*s", (int)strcspn(given, "="), given);
    const char *nearest = options_nearest(wrong + strspn(wrong, "-"), names, count);

    return (int)verb_complain(stderr, "unknown option %s%s%s; see rollcall %s --help", given,
                              nearest != NULL ? "; did you mean --" : "",
                              nearest != NULL ? nearest : "", arguments->name);
}

/* What getopt must know: the rows, and those letters that are of one of them. */
static void list_known(const struct arguments *arguments,
                       struct option known[ARGUMENTS_ROWS_MAX + 2], char shorts[2 * LETTERS + 2])
{
    size_t count = 0;

    *shorts++ = ':';
    for (const struct option_row *row = arguments->rows; row->name != NULL; row++) {
        bool alone = row->type == OPTION_BOOL;
        char letter = letter_of(row);

        CHECK(count < ARGUMENTS_ROWS_MAX);
        known[count] = (struct option){row->name, alone ? no_argument : required_argument, NULL,
                                       GETOPT_FROM + (int)count};
        count++;
        if (letter != ' ') {
            *shorts++ = letter;
            memcpy(shorts, ":", alone ? 0 : 1);
            shorts += alone ? 0 : 1;
        }
    }
    known[count++] = (struct option){help_row.name, no_argument, NULL, HELP_LETTER};
    known[count] = (struct option){0};
    *shorts++ = HELP_LETTER;
    *shorts = '\0';
}

/* Returns the row that getopt's value names. */
static const struct option_row *row_of(const struct arguments *arguments, int got)
{
    const struct option_row *row = arguments->rows;

    if (got >= GETOPT_FROM) {
        return &row[got - GETOPT_FROM];
    }
    while (letter_of(row) != got) {
        row++;
    }
    return row;
}

static int take_options(const struct arguments *arguments, int argc, char **argv, void *into)
{
    struct option known[ARGUMENTS_ROWS_MAX + 2];
    char shorts[2 * LETTERS + 2];

    list_known(arguments, known, shorts);
    opterr = 0;
    optind = 1;
    for (int got; (got = getopt_long(argc, argv, shorts, known, NULL)) != -1;) {
        if (got == HELP_LETTER) {
            arguments_help(arguments);
            return EXIT_STATUS_DONE;
        }
        if (got == ':') {
            return (int)verb_complain(stderr, "%s needs an argument", argv[optind - 1]);
        }
        if (got == '?') {
            return optopt >= GETOPT_FROM || optopt == HELP_LETTER
                       ? (int)verb_complain(stderr, "%s: it takes no value", argv[optind - 1])
                       : complain_unknown(arguments, optopt != 0 ? (char[]){'-', (char)optopt, '\0'}
                                                                 : argv[optind - 1]);
        }
        if (!arguments_store(arguments, row_of(arguments, got), optarg != NULL ? optarg : "yes",
                             into)) {
            return EXIT_STATUS_USAGE;
        }
    }
    return -1;
}

int arguments_take(const struct arguments *arguments, int argc, char **argv, void *into)
{
    for (const struct option_row *row = arguments->rows; row->name != NULL; row++) {
        if (row->initial != NULL && !arguments_store(arguments, row, row->initial, into)) {
            return EXIT_STATUS_USAGE;
        }
    }
    int status = take_options(arguments, argc, argv, into);
    size_t words = (size_t)(argc - optind);

    if (status >= 0) {
        return status;
    }
    if (words > arguments->words_most) {
        return (int)verb_complain(stderr, "what is \"%s\"? usage: rollcall %s [options] %s",
                                  argv[(size_t)optind + arguments->words_most], arguments->name,
                                  arguments->words);
    }
    if (words < arguments->words_least) {
        return (int)verb_complain(stderr, "usage: rollcall %s [options] %s", arguments->name,
                                  arguments->words);
    }
    return -1;
}

void arguments_clear(const struct arguments *arguments, void *into)
{
    for (const struct option_row *row = arguments->rows; row->name != NULL; row++) {
        options_clear(row, into);
    }
}
