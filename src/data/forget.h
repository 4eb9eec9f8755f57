/*
 * forget.h: what a changed configuration would lose is refused until it says so: `forget`.
 *
 * A slot that is not named any more and that records have, dumped tables beyond a smaller
 * dumps-max, tables beyond what smaller `tables` or `table-size` have room for. What is let go is
 * gone: a slot of the same name that comes later begins with nothing. A record that gets a slot
 * after it was looked whether any has it keeps that for when the name comes back.
 *
 * Main thread, while nothing is maintained.
 */
#ifndef ROLLCALL_DATA_FORGET_H
#define ROLLCALL_DATA_FORGET_H

#include "space/spaces.h"

/*
 * May the space take `next`? True: all that is lost is named there, and is said on the log. False
 * with `error`: what would be lost, how many records, and what to write.
 */
bool forget_allowed(const struct space *space, const struct space_settings *next,
                    char error[SPACES_ERROR_MAX]);

#endif
