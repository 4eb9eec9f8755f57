/*
 * fake_engine.h: an engine for tests: a plain map under one lock that can be told to answer PENDING
 * or a failed read for chosen ids, and to be full.
 *
 * Slots are .a (0) and .b (1). A slot and the record of its id are separate entries: the map knows
 * nothing of records. Values are kept as text; a slot takes only numbers.
 * Thread rule: any thread for everything.
 */
#ifndef ROLLCALL_TESTS_FAKE_ENGINE_H
#define ROLLCALL_TESTS_FAKE_ENGINE_H

#include "engine/engine.h"

struct engine *fake_engine_create(bool role_cache);

/* From now on operations on id answer PENDING, and their tickets are kept. */
void fake_engine_hold(struct engine *engine, uint64_t id);
/* No longer; the tickets kept for it are woken. */
void fake_engine_release(struct engine *engine, uint64_t id);
/* Blocks until at least n tickets are kept. */
void fake_engine_await(struct engine *engine, size_t n);
/* Reads of id end in ENGINE_E_READ_FAILED. */
void fake_engine_break(struct engine *engine, uint64_t id);
/* SET, ADD, REPLACE, CAS, INCR and DECR end in ENGINE_E_OUT_OF_MEMORY. */
void fake_engine_fill(struct engine *engine, bool full);

uint64_t fake_engine_reads_longest(struct engine *engine); /* operations of the longest read call */
uint64_t fake_engine_changes(struct engine *engine);       /* changes made */
uint64_t fake_engine_clears(struct engine *engine);

#endif
