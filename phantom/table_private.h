/*
 * table_private.h: what table*.c share.
 */
#ifndef ROLLCALL_PHANTOM_TABLE_PRIVATE_H
#define ROLLCALL_PHANTOM_TABLE_PRIVATE_H

#include "base/dict.h"
#include "phantom/table.h"

#define PHANTOM_TABLE_MAGIC 0x7068746cu /* "phtl" */

#define PHANTOM_APART_VALUE_BYTES 16 /* of an entry apart: the id and the second hash */
#define PHANTOM_STRIPES_BYTES     (PHANTOM_STRIPES * sizeof(verlock))

/*
 * table_apart.c: in the table for pairs apart; under the member's lock, with its second hash.
 * False: no room, or it is not there.
 */
bool phantom_apart_put(struct phantom_table *apart, const struct phantom_member *member);
bool phantom_apart_remove(struct phantom_table *apart, const struct phantom_member *member);
/* Puts a pair whatever the limit, with nobody else there; a second time does nothing. False: memory
 * is refused. */
bool phantom_apart_restore(struct phantom_table *apart, const struct phantom_member *member);
void phantom_apart_check(const struct phantom_table *apart);

/* shape.c: bytes of pools; wanted 0: the usual part of the table. */
uint64_t phantom_exceptions_pool(uint64_t table_bytes, uint64_t wanted);
/* shape.c: makes the shape one of this many bytes, with the plan it has. */
void phantom_shape_size(struct phantom_shape *shape, uint64_t table_bytes);

/* A layer has no exceptions of its own. */
static inline bool phantom_table_is_layer(const struct phantom_table *table)
{
    return table->stripes == NULL && table->apart == NULL;
}

/* table.c: returns whether an exception stands for the pair of these hashes. */
bool phantom_exception_stands(const struct phantom_table *table, uint64_t hash, uint64_t second);
/* table.c: sets the bits of a member in it, in memory and in the overlay, which has room for it. */
void phantom_table_set_bits(struct phantom_table *table, uint64_t hash);
/* table_cold.c: phantom_table_filtered(), by what is known of lines that are away. */
bool phantom_table_filtered_by(const struct phantom_table *table, uint64_t hash,
                               const struct phantom_lines *lines);

#endif
