/* online_top.h: the lines of `rollcall top`. */
#ifndef ROLLCALL_TOOLS_ONLINE_TOP_H
#define ROLLCALL_TOOLS_ONLINE_TOP_H

#include <jansson.h>

#include "tools/rollcall/online.h"
#include "tools/rollcall/online_text.h"

#define ONLINE_TOP_LINES_MAX 128
#define ONLINE_TOP_ROWS_MIN  8 /* of a screen: fewer are not filled well */

struct online_lines {
    size_t count;
    size_t heading;                                 /* number of the line that is one */
    bool wrong;                                     /* the first line says what is */
    char at[ONLINE_TOP_LINES_MAX][ONLINE_LINE_MAX]; /* may be longer than the screen is wide */
};

/*
 * Composes at most `rows` lines of a view with its rates (online_rates.h); a line says when spaces
 * do not fit and are left out. error: of the last look, "" if none; with an error the view is an
 * older one.
 */
void online_top_compose(const json_t *view, enum online_sort sort, const char *error, unsigned rows,
                        struct online_lines *lines);

#endif
