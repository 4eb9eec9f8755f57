/* backup.h: the verbs backup and restore. argv[0] is the verb. They return the exit status. */
#ifndef ROLLCALL_TOOLS_BACKUP_H
#define ROLLCALL_TOOLS_BACKUP_H

int backup_main(int argc, char **argv);
int restore_main(int argc, char **argv);

#endif
