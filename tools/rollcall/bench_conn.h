/*
 * bench_conn.h: one connection of the load generator: a batch of requests out, its replies in, the
 * next batch. Never blocks once connected; the caller watches the descriptor for what it wants.
 * Memory: room for one batch and BENCH_CONN_INPUT_BYTES of replies. Not thread-safe.
 */
#ifndef ROLLCALL_TOOLS_BENCH_CONN_H
#define ROLLCALL_TOOLS_BENCH_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/rollcall/bench_item.h"
#include "tools/rollcall/bench_workload.h"

#define BENCH_CONN_INPUT_BYTES (4 * BENCH_ITEM_MAX)
#define BENCH_CONN_ERROR_MAX   256

struct bench_conn;

enum bench_conn_result {
    BENCH_CONN_WAIT,  /* nothing more can be done now */
    BENCH_CONN_BATCH, /* all replies of the batch are in */
    BENCH_CONN_LOST,  /* closed, failed or out of step: errno, or 0 when the server closed it */
};

/*
 * Connects to host:port, [v6]:port, host (port 11211) or /path; blocks while it does. Its batches
 * have at most `pipeline` requests of the workload; lane: its number among the run's connections,
 * from 0. NULL with `error` when it cannot.
 */
struct bench_conn *bench_conn_create(const char *address, const struct bench_workload *workload,
                                     uint64_t lane, uint64_t pipeline,
                                     char error[BENCH_CONN_ERROR_MAX]);
void bench_conn_destroy(struct bench_conn *conn); /* closes. NULL: no-op */

int bench_conn_fd(const struct bench_conn *conn);
bool bench_conn_wants_write(const struct bench_conn *conn); /* part of the batch is unsent */

/* Composes the next batch, of 1 to pipeline requests; none may be under way. */
void bench_conn_start(struct bench_conn *conn, struct bench_workload *workload, uint64_t requests);

/* Sends what is unsent of the batch, as far as it goes. False: lost. */
bool bench_conn_send(struct bench_conn *conn, struct bench_tally *tally);

/* Reads what is there and judges it. */
enum bench_conn_result bench_conn_receive(struct bench_conn *conn, struct bench_workload *workload,
                                          struct bench_tally *tally);

#endif
