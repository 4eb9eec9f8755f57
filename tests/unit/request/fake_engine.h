/*
 * fake_engine.h: an engine for tests: a plain map under one lock that can be told to answer PENDING
 * or a failed read for chosen ids, to be full, and to need maintenance before it takes an id.
 *
 * Slots are .a (0) and .b (1). A slot and the record of its id are separate entries: the map knows
 * nothing of records. Values are kept as text; a slot takes only numbers. Changes of slots, and
 * deletes, are told to the sink.
 * Thread rule: any thread for everything.
 */
#ifndef ROLLCALL_TESTS_FAKE_ENGINE_H
#define ROLLCALL_TESTS_FAKE_ENGINE_H

#include "engine/engine.h"

#define FAKE_TABLE_IDS 1000u
#define FAKE_FIGURES   32u /* of a table */

struct engine *fake_engine_create(bool role_cache);

/* From now on operations on id answer PENDING, and their tickets are kept. */
void fake_engine_hold(struct engine *engine, uint64_t id);
/* The same, as an operation does that waits for a merge: BUSY if that takes too long. */
void fake_engine_hold_busy(struct engine *engine, uint64_t id);
/* No longer; the tickets kept for it are woken. */
void fake_engine_release(struct engine *engine, uint64_t id);
/* Blocks until at least n tickets are kept. */
void fake_engine_await(struct engine *engine, size_t n);
/* Reads of id end in ENGINE_E_READ_FAILED. */
void fake_engine_break(struct engine *engine, uint64_t id);
/* Reads end in ENGINE_E_BUSY, as where the queue of disk reads is full. */
void fake_engine_crowd(struct engine *engine, bool crowded);
uint64_t fake_engine_crowded_out(struct engine *engine); /* reads that have ended so */
/* DELETE ends in ENGINE_E_BUSY. */
void fake_engine_jam(struct engine *engine);
/* SET, ADD, REPLACE, CAS, INCR and DECR end in ENGINE_E_OUT_OF_MEMORY. */
void fake_engine_fill(struct engine *engine, bool full);

/*
 * The next operation on id that would create it answers PENDING and notifies the keeper; maintain()
 * then lets it through and wakes all such. An id may be named again.
 */
void fake_engine_need_table(struct engine *engine, uint64_t id);
/* Maintenance waits inside until it is let go; `await` blocks until it is there. */
void fake_engine_gate(struct engine *engine, bool closed);
void fake_engine_gate_await(struct engine *engine);
/* Each maintenance from now on recycles so many records. */
void fake_engine_recycle(struct engine *engine, uint64_t records);
uint64_t fake_engine_maintained(struct engine *engine); /* calls of maintain that have ended */

/* So many tables of FAKE_TABLE_IDS ids, with as many figures as one can have. Before it is used. */
void fake_engine_tables(struct engine *engine, uint64_t tables);

uint64_t fake_engine_reads_longest(struct engine *engine); /* operations of the longest read call */
uint64_t fake_engine_adds_longest(struct engine *engine);  /* done by one call */
uint64_t fake_engine_changes(struct engine *engine);       /* changes made */
uint64_t fake_engine_clears(struct engine *engine);
uint64_t fake_engine_figures(struct engine *engine); /* calls of figures */
uint64_t
fake_engine_waited(struct engine *engine); /* operations that waited too long for a table */

#endif
