/*
 * inspect_kind.h: what is known of the insides of a table file, by its kind: the one place where
 * engines teach inspect to read what the store holds as opaque bytes. A new reader is a function in
 * a row of the table in inspect_kind.c.
 *
 * Thread rule: functions without state.
 */
#ifndef ROLLCALL_TOOLS_INSPECT_KIND_H
#define ROLLCALL_TOOLS_INSPECT_KIND_H

#include <stdint.h>
#include <stdio.h>

#include "store/table_file.h"

struct inspect_kind {
    const char *name; /* as in the file's header */
    /* The description of the table: lines that begin with two spaces. */
    void (*description)(FILE *to, const struct table_file_info *info);
    /* A page of the table, sound or not. */
    void (*page)(FILE *to, const struct table_file_info *info, uint64_t number, const void *page);
    /* An entry's value, at the end of a line; `value` has no alignment. */
    void (*entry)(FILE *to, const struct table_file_info *info, unsigned section, uint64_t id,
                  uint8_t sub, const void *value);
};

/* Never NULL: what is not known is shown in hex. No member is NULL. */
const struct inspect_kind *inspect_kind_find(const char *name);

/* What an event of a row says, on the present line: ` name=value` for each field of its table's
 * state, hex where it is none. */
void inspect_event(FILE *to, const void *bytes, size_t length);

#endif
