/*
 * online_screen.h: a terminal as a screen of lines, by termios and the few sequences that every
 * terminal of today has. It is left as it was found, after a signal too. One at a
 * time; signals are held back from begin to end, so no other thread may take them.
 */
#ifndef ROLLCALL_TOOLS_ONLINE_SCREEN_H
#define ROLLCALL_TOOLS_ONLINE_SCREEN_H

#include <stdbool.h>
#include <termios.h>

#include "tools/rollcall/online_top.h"

#define ONLINE_KEY_NONE '\0'
#define ONLINE_KEY_END  '\4' /* SIGINT, SIGTERM, SIGHUP, SIGQUIT, or the terminal has gone */

struct online_screen {
    struct termios before;
    int signal_fd; /* these, and SIGWINCH */
};

bool online_screen_begin(struct online_screen *screen); /* false: stdin is no such terminal */
void online_screen_end(struct online_screen *screen);
void online_screen_size(unsigned *rows, unsigned *columns);
void online_screen_draw(const struct online_lines *lines, unsigned rows, unsigned columns);
/* The next key, or NONE after so long, or at once when the size has changed. */
char online_screen_key(const struct online_screen *screen, unsigned timeout_ms);

#endif
