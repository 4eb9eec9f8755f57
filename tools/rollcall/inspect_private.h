/* inspect_private.h: what the files of the verb inspect share. Included by inspect*.c only. */
#ifndef ROLLCALL_TOOLS_INSPECT_PRIVATE_H
#define ROLLCALL_TOOLS_INSPECT_PRIVATE_H

#include <stddef.h>

#include "store/journal.h"
#include "tools/rollcall/inspect.h"

struct inspect {
    struct vfs *vfs;
    const struct inspect_options *options;
    FILE *out, *errors;
};

/* One kind of file each. */
enum verb_exit inspect_manifest(const struct inspect *inspect);
enum verb_exit inspect_journal(const struct inspect *inspect);
enum verb_exit inspect_table(const struct inspect *inspect);

/* ---- inspect_text.c ---- */

/* A line of a header: the name, aligned, and a text. */
__attribute__((format(printf, 3, 4))) void inspect_field(const struct inspect *inspect,
                                                         const char *name, const char *format, ...);
/* Bytes in hex on the present line, cut after some. */
void inspect_hex(FILE *to, const void *bytes, size_t length);
/* Bytes in hex, 16 a line with their offset, characters beside; equal lines once. */
void inspect_dump(FILE *to, const void *bytes, size_t length, uint64_t offset);
/* Returns whether line number `line`, from 0, is still to be printed. */
bool inspect_wants(const struct inspect *inspect, uint64_t line);

/* ---- inspect_record.c ---- */

/* What a record of the journal says, on the present line. */
void inspect_record(FILE *to, const struct journal_record *record);
const char *inspect_record_name(uint8_t type);

#endif
