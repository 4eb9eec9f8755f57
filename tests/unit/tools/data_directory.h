/*
 * data_directory.h: a data directory in a temporary folder, for the tests of verify and inspect:
 * made by the store, then damaged by hand. And what a verb said of it. All abort the test on an
 * error.
 */
#ifndef ROLLCALL_TESTS_UNIT_TOOLS_DATA_DIRECTORY_H
#define ROLLCALL_TESTS_UNIT_TOOLS_DATA_DIRECTORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>

#include "store/journal.h"
#include "store/manifest.h"
#include "store/table_file.h"
#include "store/vfs.h"

#define DATA_TABLES        2
#define DATA_SEGMENTS      3 /* of records; those of the last one end far below its end */
#define DATA_TABLE_PAGES   3
#define DATA_ENTRIES       400 /* of section 0, with values of 8 bytes: two pages */
#define DATA_ENTRY_PAGES   3   /* of both sections; section 1 has one entry */
#define DATA_TABLE_BYTES   (4096u * (1 + DATA_TABLE_PAGES + DATA_ENTRY_PAGES + 3))
#define DATA_CLOSED_BYTES  16 /* the record of a clean end */
#define DATA_SEGMENT_BYTES JOURNAL_SEGMENT_BYTES_MIN

struct data {
    char directory[64];
    char table[DATA_TABLES][32];            /* names */
    char segment[DATA_SEGMENTS][32];        /* names, in order */
    struct manifest_file file[DATA_TABLES]; /* as MANIFEST has them */
    uint64_t records;                       /* in the journal */
    uint64_t second_lsn;                    /* of the second record */
    uint64_t record_bytes;                  /* of each, all but the first */
    uint64_t end_lsn;                       /* after the last, the clean end left out */
    uint64_t journal_lsn;                   /* in MANIFEST: in the second segment */
    char path[VFS_PATH_MAX];                /* of data_path */
};

/* A sound one: spaces feed (counter) and liked (phantom) with a table each, MANIFEST, a journal
 * that was closed, `lock`. */
struct data *data_directory_create(void);
void data_directory_destroy(struct data *data); /* deletes all of it */

/* Stores MANIFEST again, with file[] and journal_lsn as they are now. */
void data_store_manifest(struct data *data);
/* Until the next call. */
const char *data_path(struct data *data, const char *name);

void data_flip(struct data *data, const char *name, uint64_t offset); /* one bit */
void data_write(struct data *data, const char *name, uint64_t offset, const void *bytes,
                size_t length); /* the file may be new */
void data_read(struct data *data, const char *name, uint64_t offset, void *bytes, size_t length);
uint64_t data_size(struct data *data, const char *name);
void data_truncate(struct data *data, const char *name, uint64_t bytes);
void data_remove(struct data *data, const char *name);
void data_rename(struct data *data, const char *from, const char *to);

/* The system's files; every call that would change one fails the test. */
struct vfs *data_only_read(void);

/* What was printed: two texts in memory that are read as files. */
struct said {
    FILE *out, *errors;
    char *out_text, *errors_text; /* whole after said_end() */
    size_t out_length, errors_length;
};
void said_begin(struct said *said);
void said_end(struct said *said);
void said_free(struct said *said);
/* Fails the test if `part` is not in the text, or how often it is there is not `times`. */
void said_has(const char *text, const char *part);
void said_has_times(const char *text, const char *part, unsigned times);
void said_lacks(const char *text, const char *part);

/* A directory and what the last verb said of it. */
struct said_run {
    struct data *data;
    struct said said;
};
/* For cmocka: a sound directory each; *state is the said_run. */
int said_run_setup(void **state);
int said_run_teardown(void **state);
#define SAID_RUN_TEST(name) cmocka_unit_test_setup_teardown(name, said_run_setup, said_run_teardown)

#endif
