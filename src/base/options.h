/*
 * options.h: typed options: one row declares a value; text is parsed, checked and printed by it.
 *
 * A table of rows (struct option) describes the fields of some struct: name, type, limits, default,
 * help. Configuration files, flags and statistics all go through the same row, so that a value has
 * one spelling and one set of limits wherever it is given. Rows are static const.
 *
 * Spelling, without locale:
 *     BOOL      yes no true false
 *     NUMBER    decimal digits
 *     OCTAL     octal digits, as of permissions
 *     SIZE      bytes; K M G T, 1024-based, with or without B or iB, either case: 64K 1MiB 4g
 *     DURATION  ms s min h; a bare number is in the row's own unit
 *     REAL      a decimal fraction, also as percentage: 0.001 1e-3 0.1%
 *     STRING    any text without control characters
 *     WORD      one of the row's words
 *     CUSTOM    the owner of the table reads and prints it (lists, mappings)
 *
 * Cost does not matter here: start and reload only. Pure functions but for store and clear; any
 * thread on objects of its own.
 */
#ifndef ROLLCALL_BASE_OPTIONS_H
#define ROLLCALL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTIONS_ERROR_MAX   256 /* bytes of an error text, NUL included */
#define OPTIONS_TEXT_MAX    512 /* bytes of a printed value, NUL included */
#define OPTIONS_NAME_MAX    64  /* names compared by options_distance() are cut to this */
#define OPTIONS_QUOTE_MAX   48  /* bytes of a user's text shown in an error, NUL included */
#define OPTIONS_DISTANCE_NO 3   /* names further apart than this are never suggested */

enum option_type {
    OPTION_BOOL,
    OPTION_NUMBER,
    OPTION_OCTAL,
    OPTION_SIZE,
    OPTION_DURATION,
    OPTION_REAL,
    OPTION_STRING,
    OPTION_WORD,
    OPTION_CUSTOM,
};

/* Flags of a row. */
#define OPTION_POWER_OF_TWO 1u /* NUMBER, SIZE: nothing else is allowed */
#define OPTION_INLINE       2u /* STRING: the field is a char array, not an owned char * */

struct option_row {
    const char *name;
    enum option_type type;
    unsigned flags;
    size_t offset; /* of the field in its struct */
    size_t bytes;  /* of the field: bool, 4 or 8 byte unsigned, enum, double, char *, char[] */
    uint64_t min;  /* in the field's unit; STRING: of its length; not for BOOL, REAL, WORD */
    uint64_t max;
    double real_min; /* REAL */
    double real_max;
    uint64_t unit_ms;         /* DURATION: what the field counts, in ms: 1 or 1000 */
    uint64_t bare_ms;         /* and what a number without a unit does; 0: the same */
    const char *const *words; /* WORD: ends with NULL; the value is the index */
    const char *automatic;    /* a word for "chosen by the program" or NULL; stored 0, REAL -1 */
    const char *initial;      /* the default as text; NULL: none */
    const char *help;         /* whole sentences, for --help, the sample file, the manual */
};

struct option_value {
    uint64_t number; /* BOOL: 0, 1; WORD: the index */
    double real;
    const char *text; /* STRING: into what was parsed or loaded; NULL: none */
};

/*
 * Reads text by the row and checks its limits. On false `error` is a sentence that begins with the
 * row's name and says what would be right, and *value is untouched. Not for CUSTOM.
 */
bool options_parse(const struct option_row *row, const char *text, struct option_value *value,
                   char error[OPTIONS_ERROR_MAX]);

/* Prints the value so that options_parse() reads it back. A STRING of NULL prints nothing. */
void options_format(const struct option_row *row, const struct option_value *value,
                    char text[OPTIONS_TEXT_MAX]);

/* What the row allows, for help: "1 to 64", "64KiB to 1TiB, a power of two", "store or cache". */
void options_format_limits(const struct option_row *row, char text[OPTIONS_TEXT_MAX]);

/*
 * Moves a value into, and out of, the field of `object`. A STRING is copied (the old one is freed);
 * a STRING that options_load() gives lives until the field changes.
 */
void options_store(const struct option_row *row, void *object, const struct option_value *value);
void options_load(const struct option_row *row, const void *object, struct option_value *value);
/* Frees an owned STRING and leaves NULL; other types: no-op. */
void options_clear(const struct option_row *row, void *object);

/* Returns the number of edits (insert, delete, change, swap of neighbours) between two names; case
 * counts. */
unsigned options_distance(const char *left, const char *right);

/*
 * Returns the name most like `wrong` of names[0..n), or NULL if none is near enough to suggest: at
 * most a third of the letters may differ, and never more than OPTIONS_DISTANCE_NO.
 */
const char *options_nearest(const char *wrong, const char *const *names, size_t n);

/* Writes a user's text for an error: in quotes, cut short, control characters as '?'. Returns
 * `quoted`. */
const char *options_quote(const char *text, char quoted[OPTIONS_QUOTE_MAX]);

#endif
