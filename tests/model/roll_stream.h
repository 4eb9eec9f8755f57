/*
 * roll_stream.h: a space and its map with a stream of things going in: ids of one shape in rising
 * order, at which changes can be made on the way: gaps, other densities, ids far ahead. A thing is
 * an id, or a pair of one: MEMBERS pairs share an id. Thread rule: one thread.
 */
#ifndef ROLLCALL_TESTS_MODEL_ROLL_STREAM_H
#define ROLLCALL_TESTS_MODEL_ROLL_STREAM_H

#include "tests/model/roll_model.h"

#define ROLL_KINDS 3

struct roll_kind {
    const char *name;
    bool phantom;
    bool spacing; /* counters: id-spacing is given */
};
extern const struct roll_kind roll_kinds[ROLL_KINDS];

struct roll_stream {
    struct roll_model model;
    const struct roll_kind *kind;
    const struct roll_shape *shape;
    struct test_random random;
    uint64_t offset; /* added to ids */
    uint64_t stride; /* indices from an id to the next */
    uint64_t next;   /* things put */
    char name[128];
};

/* A space of so many tables of 64 KiB, with ample pools for aux entries and exceptions. */
void roll_stream_init(struct roll_stream *stream, const struct roll_kind *kind,
                      const struct roll_shape *shape, unsigned tables, bool recycle, uint64_t seed,
                      const char *name);
/* Settles and compares everything, then gives it back. */
void roll_stream_fini(struct roll_stream *stream);

unsigned roll_stream_members(const struct roll_stream *stream); /* things an id */
uint64_t roll_stream_id(const struct roll_stream *stream, uint64_t n);
uint64_t roll_stream_value(struct roll_stream *stream);
/* An id so far ahead of the stream, or the largest there is. */
uint64_t roll_stream_ahead(const struct roll_stream *stream, uint64_t distance);

/* Puts the n-th thing, under this id. */
void roll_stream_put(struct roll_stream *stream, uint64_t id, uint64_t n);
/* Puts the next thing of the stream; now and then touches some other. */
void roll_stream_one(struct roll_stream *stream);
void roll_stream_until(struct roll_stream *stream, uint64_t end);
/* Puts one id so far ahead. */
void roll_stream_stray(struct roll_stream *stream, uint64_t distance);
/* From here on ids are `stride` indices apart; the next id stays what it is. */
void roll_stream_set_stride(struct roll_stream *stream, uint64_t stride);

#endif
