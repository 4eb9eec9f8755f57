/*
 * plain_run.h: a small plain engine for tests, and operations on it. Thread rule: any thread; an
 * operation's value is there until the next one of its thread.
 */
#ifndef ROLLCALL_TESTS_PLAIN_RUN_H
#define ROLLCALL_TESTS_PLAIN_RUN_H

#include "plain/plain.h"

#define PLAIN_RUN_MEMORY_BYTES (1u << 20)
#define PLAIN_RUN_ITEM_MAX     4096u

/* For cmocka: *state is where the test keeps its engine, a struct engine **. Drop checks it. */
int plain_run_make(void **state);
int plain_run_drop(void **state);
#define PLAIN_RUN_TEST(name, engine)                                                               \
    cmocka_unit_test_prestate_setup_teardown(name, plain_run_make, plain_run_drop, engine)

/* Both texts are borrowed. */
struct engine_op plain_run_op(enum engine_verb verb, const char *key, const char *text);

#endif
