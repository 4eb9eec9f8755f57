/*
 * metrics.h: figures a module counts.
 *
 * A module declares its figures in its header as an X-macro list, one row a figure
 *     #define FOO_METRICS(X) X(name, "meaning") ...
 * and holds `struct foo_metrics { FOO_METRICS(METRIC_FIELD) }`, one for each thread that counts.
 * Only that thread writes it; others sum all of them when read. Plain relaxed loads and stores: no
 * locked instruction and no shared cache line on the request path.
 */
#ifndef ROLLCALL_BASE_METRICS_H
#define ROLLCALL_BASE_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t metric;

#define METRIC_FIELD(name, meaning) metric name;

/* Adds n to a figure that only this thread writes. */
static inline void metric_add(metric *figure, uint64_t n)
{
    uint64_t now = atomic_load_explicit(figure, memory_order_relaxed);
    atomic_store_explicit(figure, now + n, memory_order_relaxed);
}

static inline uint64_t metric_read(const metric *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

#endif
