/*
 * counters.h: counter spaces for tests: configurations from a line of text, operations in one call.
 * Thread rule: a call belongs to one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_COUNTERS_H
#define ROLLCALL_TESTS_SUPPORT_COUNTERS_H

#include "counter/counter.h"

/* An operation with room for its answer. */
struct counters_call {
    struct engine_op op;
    char value[ENGINE_VALUE_MAX + 1]; /* the answer's text, NUL added; "" when there is none */
};

/*
 * `slots` as "like:20 read:16": a table of 64 KiB, growing ids, spacing unknown, role store. Aborts
 * if the text is no configuration.
 */
void counters_config(struct counter_config *config, const char *slots);
void counters_config_slots(struct counter_config *config, const char *slots);

/* An engine of a valid configuration; never NULL. */
struct engine *counters_create(const struct counter_config *config);
void counters_reconfigure(struct engine *engine, const struct counter_config *config);

/* Fills the caller's part of an operation; text may be NULL and must live as long as it. */
void counters_call_init(struct counters_call *call, enum engine_verb verb, int slot, uint64_t id,
                        const char *text);
/* Prepares and runs an operation that was filled. */
enum engine_status counters_run(struct engine *engine, struct counters_call *call,
                                struct change_sink *sink);
/* The three in one, with a sink that keeps nothing. */
enum engine_status counters_do(struct engine *engine, struct counters_call *call,
                               enum engine_verb verb, int slot, uint64_t id, const char *text);

/* A sink that counts, and can be told to have no room. Not for several threads. */
struct counters_sink {
    struct change_sink sink;
    bool full;
    unsigned reserved, put, cancelled;
    struct change last;
};
void counters_sink_init(struct counters_sink *sink);

#endif
