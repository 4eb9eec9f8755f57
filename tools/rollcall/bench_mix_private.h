/*
 * bench_mix_private.h: the inside of the workload mix, shared by bench_mix.c (which composes) and
 * bench_mix_judge.c (which judges). Included by no other.
 *
 * Words of a request: its kind and its lane; then for each key the id, and beside it the *argument*
 * (the slot, the slots of several, the member) with the place of the kept id, if it is one.
 */
#ifndef ROLLCALL_TOOLS_BENCH_MIX_PRIVATE_H
#define ROLLCALL_TOOLS_BENCH_MIX_PRIVATE_H

#include "tools/rollcall/bench_feed.h"
#include "tools/rollcall/bench_mix.h"
#include "tools/rollcall/bench_workload.h"

#define BENCH_MIX_MARK      0x4d697865u
#define BENCH_MIX_KEY_MAX   (BENCH_KEY_MAX + 32)
#define BENCH_MIX_VALUE_MAX (BENCH_SLOTS_MAX * 21) /* numbers of twenty digits and commas */
#define BENCH_MIX_KEY_WORDS 2u
#define BENCH_KIND_BITS     8
#define BENCH_ARGUMENT_BITS 16

/* What stands around the id of a key. */
struct bench_around {
    char head[BENCH_KEY_MAX + 1];
    size_t head_length;
    char tail[BENCH_KEY_MAX + BENCH_NAME_MAX + 2];
    size_t tail_length;
};

/* An id that one lane alone changes, and what it holds. */
struct bench_kept {
    uint64_t index;
    uint64_t id;
    uint32_t set;     /* bits of slots that are set */
    uint32_t added;   /* bits of members that are there */
    uint32_t deleted; /* bits of members that were deleted and not added since */
    bool used;
    uint64_t values[BENCH_SLOTS_MAX];
};

/* A connection's kept ids, a ring. */
struct bench_lane {
    uint64_t next;
    struct bench_kept *kept;
};

struct bench_mix {
    uint32_t mark;
    const struct bench_options *options;
    struct bench_feed feed;
    uint64_t random;
    struct bench_around record, member;
    struct bench_around slots[BENCH_SLOTS_MAX];
    uint64_t kept_a_lane; /* 0: none are kept */
    struct bench_lane *lanes;
};

static inline enum bench_kind bench_mix_kind(const uint64_t *words)
{
    return (enum bench_kind)(words[0] & ((1u << BENCH_KIND_BITS) - 1));
}

static inline uint64_t bench_mix_lane(const uint64_t *words)
{
    return words[0] >> BENCH_KIND_BITS;
}

static inline uint64_t bench_mix_id(const uint64_t *words, uint64_t key)
{
    return words[1 + key * BENCH_MIX_KEY_WORDS];
}

static inline uint32_t bench_mix_argument(const uint64_t *words, uint64_t key)
{
    return (uint32_t)(words[2 + key * BENCH_MIX_KEY_WORDS] & ((1u << BENCH_ARGUMENT_BITS) - 1));
}

/* The place of a kept id in its lane (create: its index), plus one; 0: it is none. */
static inline uint64_t bench_mix_place(const uint64_t *words, uint64_t key)
{
    return words[2 + key * BENCH_MIX_KEY_WORDS] >> BENCH_ARGUMENT_BITS;
}

/* Keys of a request. */
static inline uint64_t bench_mix_keys(const struct bench_mix *mix, enum bench_kind kind)
{
    return kind == BENCH_KIND_PAGE || kind == BENCH_KIND_EXIST ? mix->options->page_ids : 1;
}

/* Appends the key of that number, without the space in front. */
char *bench_mix_put_key(const struct bench_mix *mix, const uint64_t *words, uint64_t key,
                        char *out);

/* What several adds to a slot. */
static inline uint64_t bench_mix_delta(size_t slot)
{
    return slot + 1;
}

#endif
