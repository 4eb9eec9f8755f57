/*
 * load.h: the verb load: counters, or members of existence keys, from files into a running daemon.
 */
#ifndef ROLLCALL_TOOLS_LOAD_H
#define ROLLCALL_TOOLS_LOAD_H

int load_main(int argc, char **argv);

#endif
