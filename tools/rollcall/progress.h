/*
 * progress.h: how far a long verb is, on stderr: a line that is written over on a terminal, a line
 * now and then elsewhere. With a rate, and the time left where the whole is known.
 *
 * Thread rule: one thread.
 */
#ifndef ROLLCALL_TOOLS_PROGRESS_H
#define ROLLCALL_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *to; /* NULL: nothing is said */
    bool terminal;
    bool bytes; /* what is counted: else it is `unit` */
    const char *unit;
    uint64_t from; /* what was done before this run */
    uint64_t began_us, next_us;
    bool json;  /* an event a second, for programs */
    bool shown; /* a line stands on the terminal */
};

void progress_init(struct progress *progress, FILE *to, const char *unit, uint64_t from);
/* Tells as JSON, one object a line, the first one at once. */
void progress_as_json(struct progress *progress);
/* whole: 0: not known. more: text after the line, or NULL. Costs little when nothing is due. */
void progress_tell(struct progress *progress, uint64_t done, uint64_t whole, const char *more);
/* Takes the line away: before anything else is printed to the same terminal. */
void progress_clear(struct progress *progress);
/* Things a second since it began. */
double progress_rate(const struct progress *progress, uint64_t done);

#endif
