/*
 * phantoms.h: phantom spaces for tests: operations in one call, a sink that counts.
 * Thread rule: a call belongs to one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_PHANTOMS_H
#define ROLLCALL_TESTS_SUPPORT_PHANTOMS_H

#include "phantom/phantom.h"

/* An operation with room for its answer. */
struct phantoms_call {
    struct engine_op op;
    char value[ENGINE_VALUE_MAX];
};

/* One smallest table, one in a thousand wrong, growing ids, role store. */
struct phantom_config phantoms_config(bool deletes);

/* An engine of a valid configuration; never NULL. */
struct engine *phantoms_create(const struct phantom_config *config);
/* Checks its invariants, then destroys it. */
void phantoms_destroy(struct engine *engine);

/* Fills the caller's part of an operation; the texts must live as long as it. */
void phantoms_call_init(struct phantoms_call *call, enum engine_verb verb, uint64_t id,
                        const char *member, const char *text);
/* Prepares and runs an operation that was filled, once: it may end in ENGINE_PENDING. */
enum engine_status phantoms_try(struct engine *engine, struct phantoms_call *call,
                                struct change_sink *sink);
/* The same, with the keeper's work after a change, again while it is pending. For one thread. */
enum engine_status phantoms_run(struct engine *engine, struct phantoms_call *call,
                                struct change_sink *sink);
/* The two in one, with the text "1" and a sink that keeps nothing. */
enum engine_status phantoms_do(struct engine *engine, enum engine_verb verb, uint64_t id,
                               const char *member);
bool phantoms_hold(struct engine *engine, uint64_t id, const char *member);

/* Adds members to the id until the space knows its ids: from there on they go in place. */
void phantoms_settle(struct engine *engine, uint64_t id);

/* The figure "members" of `stats spaces`. */
uint64_t phantoms_members(const struct engine *engine);
/* A figure of `stats spaces` as text; "" if there is none. */
struct phantoms_figure {
    char text[ENGINE_STAT_TEXT_MAX];
};
struct phantoms_figure phantoms_space_figure(const struct engine *engine, const char *name);
/* The same of the table at this place of the row, the oldest being 0. */
struct phantoms_figure phantoms_table_figure(const struct engine *engine, unsigned place,
                                             const char *name);
uint64_t phantoms_table_number(const struct engine *engine, unsigned place, const char *name);
unsigned phantoms_tables(const struct engine *engine);

/* A sink that counts, and can be told to have no room. Not for several threads. */
struct phantoms_sink {
    struct change_sink sink;
    bool full;
    unsigned reserved, put, cancelled;
    struct change last;
};
void phantoms_sink_init(struct phantoms_sink *sink);

#endif
