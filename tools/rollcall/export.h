/*
 * export.h: the verb export: the records of a space of a running daemon, in the order of their ids,
 * to a file or stdout.
 */
#ifndef ROLLCALL_TOOLS_EXPORT_H
#define ROLLCALL_TOOLS_EXPORT_H

/* How the first line of an export begins that is not of all ids; its part follows. */
#define EXPORT_NOTE "# rollcall export"

int export_main(int argc, char **argv);

#endif
