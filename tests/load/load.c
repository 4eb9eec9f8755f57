/*
 * load: the load generator for comparisons, for tools/compare and tests/bench/data.py.
 *
 *     load bench ...   as `rollcall bench`, with the options of kit.h beside
 *     load cold ...    reads of new ids, with and without reads of old ones beside (cold.h)
 */
#include <stdio.h>
#include <string.h>

#include "tests/load/cold.h"
#include "tests/load/kit.h"

#define EXIT_USAGE 2

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "bench") == 0) {
        return bench_main_with(&load_kit, argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "cold") == 0) {
        return load_cold_main(argc - 1, argv + 1);
    }
    fputs("usage: load bench|cold [options]; the options of both: load bench --help\n", stderr);
    return EXIT_USAGE;
}
