/*
 * online_text.h: what a view (online_view.h) says, as lines of at most 80 columns. Each writes to
 * `line`, which has room for ONLINE_LINE_MAX bytes, and returns it. Pure.
 */
#ifndef ROLLCALL_TOOLS_ONLINE_TEXT_H
#define ROLLCALL_TOOLS_ONLINE_TEXT_H

#include <jansson.h>
#include <stdint.h>

#include "base/readable.h"

#define ONLINE_LINE_MAX 256

/* 127.0.0.1:11211, up 3.1 days, 12 of 1024 connections, 97 MiB of 512 MiB */
char *online_text_daemon(char *line, const json_t *view);
/* Whom it follows and who follows it; "": it stands alone. */
char *online_text_nodes(char *line, const json_t *view);

char *online_text_heading(char *line);
char *online_text_space(char *line, const json_t *space);

char *online_text_table_heading(char *line);
char *online_text_table(char *line, const json_t *space, const json_t *table);

/* "9.6M": columns are few. */
char *online_text_bytes(char text[READABLE_MAX], uint64_t bytes);
/* Prints when a space has no place, or its oldest table goes: "3.1 days"; FULL; "-": never, or
 * unknown. */
char *online_text_full(char text[READABLE_MAX], const json_t *space);

/* The share of the newest table that is full: 0 to 1; negative: there is none. */
double online_fill(const json_t *space);

#endif
