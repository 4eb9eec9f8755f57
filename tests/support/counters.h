/*
 * counters.h: counter spaces for tests: configurations from a line of text, operations in one call.
 * Thread rule: a call belongs to one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_COUNTERS_H
#define ROLLCALL_TESTS_SUPPORT_COUNTERS_H

#include "counter/counter.h"
#include "counter/table.h"

/* An operation with room for its answer. */
struct counters_call {
    struct engine_op op;
    char value[ENGINE_VALUE_MAX + 1]; /* the answer's text, NUL added; "" when there is none */
};

/*
 * `slots` as "like:20 read:16": one table of 64 KiB, growing ids, spacing unknown, role store.
 * Aborts if the text is no configuration.
 */
void counters_config(struct counter_config *config, const char *slots);
void counters_config_slots(struct counter_config *config, const char *slots);

/* An engine of a valid configuration; never NULL. */
struct engine *counters_create(const struct counter_config *config);
void counters_reconfigure(struct engine *engine, const struct counter_config *config);

/* Fills the caller's part of an operation; text may be NULL and must live as long as it. */
void counters_call_init(struct counters_call *call, enum engine_verb verb, int slot, uint64_t id,
                        const char *text);
/*
 * Prepares and runs an operation that was filled; when it is pending the row is maintained and it
 * runs again, so it never ends so. No other thread may be there.
 */
enum engine_status counters_run(struct engine *engine, struct counters_call *call,
                                struct change_sink *sink);
/* The three in one, with a sink that keeps nothing. */
enum engine_status counters_do(struct engine *engine, struct counters_call *call,
                               enum engine_verb verb, int slot, uint64_t id, const char *text);

/* A table on its own, in no row. */
struct counters_table {
    struct counter_table *table;
    void *region;
    uint64_t bytes;
};

/* Its window is anchored for ids from first_id on, unless that is COUNTERS_UNSETTLED. */
void counters_table_open(struct counters_table *opened, const struct counter_config *config,
                         uint64_t first_id);
void counters_table_settle(struct counters_table *opened, uint64_t low, uint64_t frontier);
/* One for ids apart. */
void counters_apart_open(struct counters_table *opened, const struct counter_config *config);
void counters_table_close(struct counters_table *opened);
#define COUNTERS_UNSETTLED UINT64_MAX

/* A sink that counts, and can be told to have no room. Not for several threads. */
struct counters_sink {
    struct change_sink sink;
    bool full;
    unsigned reserved, put, cancelled;
    struct change last;
};
void counters_sink_init(struct counters_sink *sink);

#endif
