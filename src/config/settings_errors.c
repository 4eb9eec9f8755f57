/* settings_errors.c: mistakes, collected and printed together. */
#include "config/settings_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"

#define PROGRAM       "rollcalld"
#define INDENT        "    "
#define SHOWN_LETTERS 160 /* of a source line: longer ones are cut on both sides of the caret */

__attribute__((format(printf, 4, 0))) static void add(struct settings_draft *draft,
                                                      const struct settings_place *place,
                                                      bool warning, const char *format,
                                                      va_list arguments)
{
    static const struct settings_place nowhere;
    struct settings_mistake *mistake;

    draft->mistakes = array_room(draft->mistakes, draft->mistake_count, &draft->mistake_room,
                                 sizeof(*draft->mistakes));
    mistake = &draft->mistakes[draft->mistake_count++];
    *mistake = (struct settings_mistake){.place = place ? *place : nowhere, .warning = warning};
    CHECK(vasprintf(&mistake->text, format, arguments) >= 0);
    draft->error_count += !warning;
}

void settings_error(struct settings_draft *draft, const struct settings_place *place,
                    const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(draft, place, false, format, arguments);
    va_end(arguments);
}

void settings_warning(struct settings_draft *draft, const struct settings_place *place,
                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(draft, place, true, format, arguments);
    va_end(arguments);
}

void settings_error_note(struct settings_draft *draft, char *note)
{
    CHECK(draft->mistake_count > 0);
    free(draft->mistakes[draft->mistake_count - 1].note);
    draft->mistakes[draft->mistake_count - 1].note = note;
}

void settings_error_unknown(struct settings_draft *draft, const struct settings_place *place,
                            const char *what, const char *wrong, const char *nearest)
{
    char quoted[OPTIONS_QUOTE_MAX];

    settings_error(draft, place, "unknown %s %s%s%s%s", what, options_quote(wrong, quoted),
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* Returns whether this is the first byte of a UTF-8 letter: libyaml counts columns in letters. */
static bool starts_letter(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

static bool is_control(char byte)
{
    return (unsigned char)byte < ' ' || byte == 0x7f;
}

/* The start of line `number` (from 1) of text. */
static const char *find_line(const char *text, size_t number)
{
    for (; number > 1; number--) {
        const char *end = strchr(text, '\n');
        if (end == NULL) {
            return text + strlen(text);
        }
        text = end + 1;
    }
    return text;
}

/* Prints the letters [first, first + SHOWN_LETTERS) of a line; with a caret's blanks if blank. */
static void print_letters(const char *line, size_t first, size_t end, bool blank, FILE *err)
{
    size_t letter = 0;

    for (; *line != '\0' && *line != '\n' && *line != '\r'; line++) {
        letter += starts_letter(*line);
        if (letter <= first || letter > end || (blank && !starts_letter(*line))) {
            continue;
        }
        /* A tab is as wide in the caret's line as in the line above it. */
        putc(*line == '\t' ? '\t' : blank ? ' ' : is_control(*line) ? '?' : *line, err);
    }
}

/* The source line and a caret below the column. */
static void print_source(const struct settings_draft *draft, const struct settings_place *place,
                         FILE *err)
{
    size_t column = place->column - 1;
    size_t first = column >= SHOWN_LETTERS ? column - SHOWN_LETTERS / 2 : 0;
    const char *line;

    if (draft->file_text == NULL) {
        return;
    }
    line = find_line(draft->file_text, place->line);
    fputs(INDENT, err);
    print_letters(line, first, first + SHOWN_LETTERS, false, err);
    fputs("\n" INDENT, err);
    print_letters(line, first, column, true, err);
    fputs("^\n", err);
}

static void print_mistake(const struct settings_draft *draft,
                          const struct settings_mistake *mistake, FILE *err)
{
    const struct settings_place *place = &mistake->place;

    if (place->line > 0) {
        fprintf(err, "%s:%zu:%zu: %s: %s\n", draft->file_name, place->line, place->column,
                mistake->warning ? "warning" : "error", mistake->text);
        print_source(draft, place, err);
    } else {
        fprintf(err, PROGRAM ": %s%s%s%s%s%s\n", mistake->warning ? "warning: " : "",
                place->flag ? place->flag : "", place->argument ? " " : "",
                place->argument ? place->argument : "", place->flag ? ": " : "", mistake->text);
    }
    if (mistake->note != NULL) {
        fputs(mistake->note, err);
    }
}

/* Orders mistakes of the file by line and column, then the others; where that is equal, as found.
 */
static bool comes_before(const struct settings_place *left, const struct settings_place *right)
{
    if ((left->line > 0) != (right->line > 0)) {
        return left->line > 0;
    }
    if (left->line != right->line) {
        return left->line < right->line;
    }
    return left->column < right->column;
}

static void sort(struct settings_mistake *mistakes, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct settings_mistake moved = mistakes[i];
        size_t at = i;
        for (; at > 0 && comes_before(&moved.place, &mistakes[at - 1].place); at--) {
            mistakes[at] = mistakes[at - 1];
        }
        mistakes[at] = moved;
    }
}

void settings_errors_print(struct settings_draft *draft, FILE *err)
{
    sort(draft->mistakes, draft->mistake_count);
    for (size_t i = 0; i < draft->mistake_count; i++) {
        print_mistake(draft, &draft->mistakes[i], err);
    }
}

void settings_errors_clear(struct settings_draft *draft)
{
    for (size_t i = 0; i < draft->mistake_count; i++) {
        free(draft->mistakes[i].text);
        free(draft->mistakes[i].note);
    }
    free(draft->mistakes);
    draft->mistakes = NULL;
    draft->mistake_count = draft->mistake_room = draft->error_count = 0;
}
