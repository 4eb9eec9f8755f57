/* sim_points.c: the named points of the code, and which of them a process has ended at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/sim.h"

/* usual: a process that comes there does so so many times, more or less. */
static const struct sim_code codes[SIM_CODES] = {
    {"found, nothing changed", 2000, false, false},
    {"in the lock, before the LSN", 1500, false, false},
    {"in the lock, after the LSN", 1500, false, false},
    {"member looked for, nothing changed", 800, false, false},
    {"member changed, before the LSN", 500, false, false},
    {"member changed, after the LSN", 500, false, false},
    {"exception made, before the LSN", 100, false, false},
    {"record unfilled", 3000, false, false},
    {"pages half copied", 60, false, true},
    {"page begun, not copied", 60, false, true},
    {"filter half copied", 2, false, true},
    {"between pages and entries", 10, false, false},
    {"entries half copied", 20, false, true},
    {"file written, not synced", 10, false, false},
    {"opening", 3, false, false},
    {"opened, nothing inserted", 3, false, false},
    {"ids apart, not in place", 4, false, false},
    {"part filled, not in place", 2, false, false},
    {"files synced, no manifest names them", 4, false, false},
    {"manifest stored, nothing deleted", 4, false, false},
    {"frozen", 4, true, false},
    {"dumps stored, not handed over", 3, true, false},
    {"handed over, not yet forgotten", 3, true, false},
    {"left memory", 3, true, false},
    {"merge begins", 2, true, false},
    {"merge switch", 2, true, false},
    {"dumped table dropped", 1, true, false},
    {"sync of a file", 20, false, false},
    {"the manifest gets its name", 4, false, false},
    {"sync of the directory", 12, false, false},
    {"unlink of a table's file", 10, false, false},
    {"overlays half one", 3, true, true}, /* nothing is stored of it: others come between */
};

const struct sim_code *sim_code(unsigned code)
{
    return &codes[code];
}

unsigned sim_code_of(const char *name)
{
    unsigned i = 0;

    while (i < SIM_CODES && codes[i].name != NULL && strcmp(codes[i].name, name) != 0) {
        i++;
    }
    if (i == SIM_CODES || codes[i].name == NULL) {
        fail_msg("the simulation knows no point '%s'", name);
    }
    return i;
}

void sim_codes_print(const struct sim_figures *figures)
{
    for (unsigned i = 0; i < SIM_CODES; i++) {
        printf("%8llu times, ended %3llu times at: %s\n",
               (unsigned long long)figures->code_passed[i],
               (unsigned long long)figures->code_ends[i], codes[i].name);
    }
}
