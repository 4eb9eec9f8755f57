/*
 * bench_mix.h: the workload mix: what a social feed asks, all at once, on ids that grow while it
 * runs. Kinds of request and their shares: bench_shares.h; which ids: bench_feed.h.
 *
 * Kept ids. With --verify values one in BENCH_KEPT_ONE_IN created ids is *kept*: only the
 * connection that created it changes it, and the newest of each connection are remembered with all
 * they hold. Requests of a connection are carried out in their order and judged in it, so each
 * answer to a kept id must be exactly what was remembered when it is judged: a value off by one, a
 * record that is gone, a member denied or deleted in vain is a mismatch. A kept id is asked for
 * only while it is among the newest `window` (--window): older ones a server may have recycled.
 * Of all other ids only the form of answers is checked. A member of a kept id that was never added
 * and is found is counted as wrong, as in the workload exist.
 *
 * Errors. `CLIENT_ERROR id below the oldest table` is expected for ids older than the window.
 *
 * Nobody else may write to these ids, and they must be new to the server: members are not unset by
 * creating an id again. Memory: window / BENCH_KEPT_ONE_IN kept ids of 160 bytes. Cost: about 25 ns
 * to compose a key and 40 ns to judge one. One thread.
 */
#ifndef ROLLCALL_TOOLS_BENCH_MIX_H
#define ROLLCALL_TOOLS_BENCH_MIX_H

#include <stddef.h>
#include <stdint.h>

#include "tools/rollcall/bench_options.h"
#include "tools/rollcall/bench_tally.h"

#define BENCH_KEPT_ONE_IN 16u

struct bench_mix;
struct bench_reply;

/*
 * The ids --load sets, if it does, are there before; the first created is the next. The options
 * outlive it. Never NULL.
 */
struct bench_mix *bench_mix_create(const struct bench_options *options);
void bench_mix_destroy(struct bench_mix *mix); /* NULL: no-op */

size_t bench_mix_words(const struct bench_mix *mix);     /* words a request */
size_t bench_mix_bytes_max(const struct bench_mix *mix); /* bytes a request */

/* As bench_workload_compose() and bench_workload_judge() in bench_workload.h say. */
size_t bench_mix_compose(struct bench_mix *mix, uint64_t lane, char *out, uint64_t *words);
size_t bench_mix_judge(struct bench_mix *mix, const uint64_t *words, const char *bytes,
                       size_t length, struct bench_reply *reply, struct bench_tally *tally);

#endif
