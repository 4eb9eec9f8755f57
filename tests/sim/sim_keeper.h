/*
 * sim_keeper.h: a keeper without a thread, for a simulation: it notes who holds it, and whoever
 * plays the keeper asks. Link sim_keeper.c in place of space/keeper.c. Thread rule: one at a time.
 */
#ifndef ROLLCALL_TESTS_SIM_KEEPER_H
#define ROLLCALL_TESTS_SIM_KEEPER_H

#include "space/keeper.h"

/* Held, or in a bracket: nothing may be maintained. */
bool sim_keeper_is_held(const struct keeper *keeper);
/* Between keeper_stop() and keeper_go(): nothing may be replaced either. */
bool sim_keeper_is_bracketed(const struct keeper *keeper);

#endif
