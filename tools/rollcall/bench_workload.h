/*
 * bench_workload.h: the requests of a workload and the judgement of their replies.
 *
 * A workload remembers nothing of a request but a few words (its ids), which the caller keeps until
 * the reply is judged. What a loaded id holds is a function of id and slot, so that any process can
 * check any read: bits = hash_u64(id + slot / 4) >> 16 * (slot % 4), its low 16 bits; value = bits
 * * 1000 >> 16. So is the member a load adds to an id, u<n>, and the foreign one that is asked for
 * instead, f<n>: n = the high 30 bits of hash_u64(id). Cost: about 15 ns to compose a key, 25 ns to
 * judge a record of four slots. Not thread-safe.
 */
#ifndef ROLLCALL_TOOLS_BENCH_WORKLOAD_H
#define ROLLCALL_TOOLS_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/rollcall/bench_options.h"
#include "tools/rollcall/bench_tally.h"

#define BENCH_FOREIGN (1ull << 63)

struct bench_workload;

/* Where in the reply to one request its judge stands. All zero at its beginning. */
struct bench_reply {
    uint64_t key;  /* keys judged, in the order asked */
    uint64_t left; /* elements of the array under way that have not come */
    uint32_t seen; /* slots of the array under way that have come, a bit each */
    bool open;     /* an array is under way, in a dialect that has them */
    bool done;     /* the reply is complete */
    bool broken;   /* what came is no reply: the connection is of no more use */
};

/*
 * The workload the options ask for; or, with `load`, the one that sets all ids in rising order: its
 * requests are bench_workload_load_requests(), no more may be composed. The options outlive it.
 * Never NULL.
 */
struct bench_workload *bench_workload_create(const struct bench_options *options, bool load);

/* Draws from a stream of its own, for a thread among several; 0 is what create gives. */
void bench_workload_stream(struct bench_workload *workload, uint64_t stream);

void bench_workload_destroy(struct bench_workload *workload); /* NULL: no-op */

uint64_t bench_workload_load_requests(const struct bench_workload *workload);
size_t bench_workload_words(const struct bench_workload *workload);     /* words a request */
size_t bench_workload_bytes_max(const struct bench_workload *workload); /* bytes a request */

/*
 * Composes the next request of a connection (lane: 0 to options' connections - 1) at `out`, which
 * has room for bench_workload_bytes_max(), and leaves in `words` what its judge must know: its ids
 * (exist: with BENCH_FOREIGN where it asks for a foreign member; mix: its own). Returns its length.
 */
size_t bench_workload_compose(struct bench_workload *workload, uint64_t lane, char *out,
                              uint64_t *words);

/*
 * Judges the next items of the reply to the request with these words, one or several; replies of a
 * lane are judged in their order. Returns the bytes it took, 0 when no item is complete yet; reply
 * and tally say what they were.
 */
size_t bench_workload_judge(struct bench_workload *workload, const uint64_t *words,
                            const char *bytes, size_t length, struct bench_reply *reply,
                            struct bench_tally *tally);

/* The id at an index of the population: rises with the index. */
uint64_t bench_workload_id(const struct bench_options *options, uint64_t index);

/* Returns whether wrong answers to existence keys are at most a few times those planned. */
bool bench_workload_wrong_few(const struct bench_options *options, const struct bench_tally *tally);

/* What a loaded id holds in a slot: 0 to 999. */
uint64_t bench_workload_value(uint64_t id, size_t slot);

#endif
