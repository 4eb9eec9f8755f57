/*
 * emit.h: figures of an engine as text, for its stats functions. Pure but for what is called. By
 * hand rather than by printf: a daemon may have ten thousand tables of some thirty figures each.
 */
#ifndef ROLLCALL_ENGINE_EMIT_H
#define ROLLCALL_ENGINE_EMIT_H

#include "engine/engine.h"

/* The receiver of the figures: what a stats function was called with. */
struct emitter {
    engine_stat_fn *emit;
    void *context;
};

void emit_text(const struct emitter *to, const char *name, const char *text);
void emit_u64(const struct emitter *to, const char *name, uint64_t value);
/* Emits a number with `digits` digits after the point. */
void emit_real(const struct emitter *to, const char *name, int digits, double value);
/* part / whole with four digits: at most 1, as the two may have been read while they change; 0 of
 * nothing. */
void emit_share(const struct emitter *to, const char *name, uint64_t part, uint64_t whole);

/* Puts "<number>:" in front of every name: figures of one table among several. */
struct emit_numbered {
    struct emitter to;
    uint64_t number;
};
/* Returns an emitter that does this for as long as `numbered`, which is filled here, lives. */
struct emitter emit_numbered(struct emit_numbered *numbered, const struct emitter *to,
                             uint64_t number);

#endif
