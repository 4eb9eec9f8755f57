/*
 * id_span.h: the smallest and the largest id a table has ever taken, kept by many threads at once.
 * Noting an id inside the span costs two loads. Any thread.
 */
#ifndef ROLLCALL_ROW_ID_SPAN_H
#define ROLLCALL_ROW_ID_SPAN_H

#include <stdatomic.h>
#include <stdint.h>

struct id_span {
    _Atomic uint64_t first; /* UINT64_MAX while nothing was noted */
    _Atomic uint64_t last;  /* 0 then */
};

static inline void id_span_clear(struct id_span *span)
{
    atomic_store(&span->first, UINT64_MAX);
    atomic_store(&span->last, 0);
}

static inline void id_span_note(struct id_span *span, uint64_t id)
{
    uint64_t first = atomic_load_explicit(&span->first, memory_order_relaxed);
    while (id < first && !atomic_compare_exchange_weak(&span->first, &first, id)) {
    }
    uint64_t last = atomic_load_explicit(&span->last, memory_order_relaxed);
    while (id > last && !atomic_compare_exchange_weak(&span->last, &last, id)) {
    }
}

static inline uint64_t id_span_first(const struct id_span *span)
{
    return atomic_load_explicit(&span->first, memory_order_relaxed);
}

static inline uint64_t id_span_last(const struct id_span *span)
{
    return atomic_load_explicit(&span->last, memory_order_relaxed);
}

#endif
