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

/* The smallest table, one in a thousand wrong, growing ids, role store. */
struct phantom_config phantoms_config(bool deletes);

/* An engine of a valid configuration; never NULL. */
struct engine *phantoms_create(const struct phantom_config *config);
/* Checks its invariants, then destroys it. */
void phantoms_destroy(struct engine *engine);

/* Fills the caller's part of an operation; the texts must live as long as it. */
void phantoms_call_init(struct phantoms_call *call, enum engine_verb verb, uint64_t id,
                        const char *member, const char *text);
/* Prepares and runs an operation that was filled. */
enum engine_status phantoms_run(struct engine *engine, struct phantoms_call *call,
                                struct change_sink *sink);
/* The two in one, with the text "1" and a sink that keeps nothing. */
enum engine_status phantoms_do(struct engine *engine, enum engine_verb verb, uint64_t id,
                               const char *member);
bool phantoms_hold(struct engine *engine, uint64_t id, const char *member);

/* The figure "members" of `stats spaces`. */
uint64_t phantoms_members(const struct engine *engine);

/* A sink that counts, and can be told to have no room. Not for several threads. */
struct phantoms_sink {
    struct change_sink sink;
    bool full;
    unsigned reserved, put, cancelled;
    struct change last;
};
void phantoms_sink_init(struct phantoms_sink *sink);

#endif
