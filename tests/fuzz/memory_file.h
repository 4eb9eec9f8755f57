/*
 * memory_file.h: one file in one directory, in memory, behind the table of store/vfs.h: small and
 * fast enough for a fuzzer. Renames keep the bytes; what else a loader does not need fails. One
 * thread.
 */
#ifndef ROLLCALL_TESTS_FUZZ_MEMORY_FILE_H
#define ROLLCALL_TESTS_FUZZ_MEMORY_FILE_H

#include "store/vfs.h"

#define MEMORY_FILE_BYTES_MAX (256u << 10)
#define MEMORY_FILE_DIRECTORY "data"

struct memory_file {
    struct vfs vfs; /* first: the functions are given this one */
    char name[64];  /* "": there is none */
    size_t length;
    unsigned char bytes[MEMORY_FILE_BYTES_MAX];
};

void memory_file_init(struct memory_file *file);
void memory_file_set(struct memory_file *file, const char *name, const void *bytes, size_t length);

#endif
