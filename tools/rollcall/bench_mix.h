/*
 * bench_mix.h: the workload mix: what a social feed asks, on ids that grow while it runs
 * (bench_feed.h). Each kind of request is a workload of its own, one for each slot or member it may
 * be about; mix draws one and hands it the ids.
 *
 * Answers are judged by their form, since their values change; a kit's *watch* remembers what was
 * written and knows the values. `CLIENT_ERROR id below the oldest table` is expected for ids older
 * than the window. Words of a request: kind, slot or member, and lane in the first; then its ids.
 */
#ifndef ROLLCALL_TOOLS_BENCH_MIX_H
#define ROLLCALL_TOOLS_BENCH_MIX_H

#include "tools/rollcall/bench_dialect.h"

#define BENCH_ABOUT_MAX BENCH_MEMBERS_MAX /* slots or members that requests of a kind are about */

struct bench_mix {
    const struct bench_options *options;
    struct bench_feed feed;
    uint64_t random;
    struct bench_workload *forms[BENCH_KINDS][BENCH_ABOUT_MAX];
    void *watcher; /* of the kit's watch, if it has one */
};

/* What is known of a request of mix when it is judged. */
struct bench_asked {
    struct bench_mix *mix;
    enum bench_kind kind;
    uint32_t about; /* the slot, the first of several, or the member */
    uint64_t lane;
};

/* Remembers what a mix wrote. A watcher belongs to one mix and its thread. */
struct bench_watch {
    void *(*create)(const struct bench_mix *mix); /* NULL: it is not wanted, with these options */
    void (*destroy)(void *watcher);

    /* The id a request asks for, or a create sets: that of the index, or another one. */
    uint64_t (*pick)(void *watcher, const struct bench_asked *asked, uint64_t index);

    /* Takes the answer to a key of the request: whether it was found, or the change made, as the
     * item shows. */
    void (*answered)(void *watcher, const struct bench_judged *judged, uint64_t key, bool yes);
};

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

/* What the judge of a dialect tells: the answer to a key, for the watch. */
void bench_mix_answered(const struct bench_judged *judged, uint64_t key, bool yes);

/* Returns whether the item's line is the error of an id that may have been recycled by now. */
bool bench_mix_expects(const struct bench_judged *judged);

/* What several adds to a slot, from the first of them on. */
static inline uint64_t bench_mix_delta(size_t slot)
{
    return slot + 1;
}

#endif
