/*
 * admin_rows.h: the one list of the figures that are told: /metrics and /status.json are made from
 * it, and what `stats` says of spaces and tables is taken by it.
 *
 * A row names a field of struct admin_figures, of a space or of a table, with its name in the one
 * and in the other; a figure that only one of them has leaves the other name NULL. Rows of one
 * family stand together. Read-only; any thread.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_ROWS_H
#define ROLLCALL_ADMIN_ADMIN_ROWS_H

#include "admin/admin_figures.h"

enum admin_object { ADMIN_DAEMON, ADMIN_SPACE, ADMIN_SLOT, ADMIN_TABLE };

/* How the field is kept. */
enum admin_form {
    ADMIN_WHOLE,    /* uint64_t */
    ADMIN_UNSIGNED, /* unsigned, or an enum: with `words` these are told */
    ADMIN_BOOL,
    ADMIN_REAL, /* double; negative: not known, which is null, and no sample */
    ADMIN_TEXT, /* a char array */
    ADMIN_HEAD, /* no field: the family of the labelled rows that follow */
};

/* When there is such a figure. */
enum admin_when {
    ADMIN_WHEN_SERVING,
    ADMIN_ALWAYS, /* while it loads, too */
    ADMIN_WITH_JOURNAL,
    ADMIN_WITH_DATA,
    ADMIN_WITH_COLD,
    ADMIN_WITH_FEEDS, /* others can follow it */
    ADMIN_FOLLOWING,  /* it follows another */
    ADMIN_LEASED,     /* it leads by an agent's word */
    ADMIN_NOT_PLAIN,  /* of a space, by its kind */
    ADMIN_FILTERS,
    ADMIN_COUNTERS,
    ADMIN_NOT_ZERO, /* /metrics leaves out what is 0 */
};

struct admin_row {
    enum admin_object of;
    enum admin_form form;
    enum admin_when when;
    bool us; /* counted in microseconds: /metrics has it in seconds */
    size_t offset;
    const char *const *words;
    const char *json; /* with a dot: in an object of that name */
    const char *metric, *labels, *type, *help;
};

extern const char *const admin_role_words[ADMIN_ROLES];
extern const char *const admin_following_words[REPL_RECEIVER_STATES];

extern const struct admin_row admin_rows[];
extern const size_t admin_row_count;

/* Returns whether an object of these figures has the row; `space`: for ADMIN_SPACE, ADMIN_TABLE. */
bool admin_row_applies(const struct admin_row *row, const struct admin_figures *figures,
                       const struct admin_space *space);

#endif
