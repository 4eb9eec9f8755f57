/* exit_status.h: what rollcalld and rollcall exit with; tools/README.md has the table. */
#ifndef ROLLCALL_BASE_EXIT_STATUS_H
#define ROLLCALL_BASE_EXIT_STATUS_H

enum exit_status {
    EXIT_STATUS_DONE = 0,   /* what was asked for was done; data is sound */
    EXIT_STATUS_FAILED = 1, /* it was not: a start, a last checkpoint, a reply; data is damaged */
    EXIT_STATUS_USAGE = 2,  /* nothing was begun: a mistake on the command line or in the
                               configuration, or no such file */
    EXIT_STATUS_NO_ANSWER = 3,  /* rollcall: no connection, or no answer in time */
    EXIT_STATUS_REFUSED = 4,    /* rollcall: the daemon refused: a login, a command */
    EXIT_STATUS_SOME_LINES = 5, /* load: all was read, some lines were refused */
    EXIT_STATUS_TOO_MANY = 6,   /* load: given up, as more lines were refused than may be */
};

#endif
