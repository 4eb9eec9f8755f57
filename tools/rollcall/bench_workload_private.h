/*
 * bench_workload_private.h: the inside of a workload, shared by bench_workload.c, bench_judge.c,
 * dialects and kits. Included by no other.
 */
#ifndef ROLLCALL_TOOLS_BENCH_WORKLOAD_PRIVATE_H
#define ROLLCALL_TOOLS_BENCH_WORKLOAD_PRIVATE_H

#include "tools/rollcall/bench_mix.h"
#include "tools/rollcall/bench_text.h"
#include "tools/rollcall/bench_workload.h"

#define BENCH_WORKLOAD_MARK   0x576f726bu
#define BENCH_VALUE_TEXT_MAX  64u  /* sixteen numbers of three digits and fifteen commas */
#define BENCH_EXPECTED_MAX    512u /* "VALUE ", a key, the value and what stands between */
#define BENCH_NUMBERS         1000u
#define BENCH_SLOT_WHOLE      (-1)
#define BENCH_SLOT_MEMBER     (-2) /* no slot: the key ends in a member */
#define BENCH_NUMBER_TEXT_MAX 20u

#define BENCH_MEMBER_TEXT_MAX (1 + BENCH_NUMBER_TEXT_MAX)
#define BENCH_KEY_TEXT_MAX    (BENCH_KEY_MAX + BENCH_NUMBER_TEXT_MAX + BENCH_MEMBER_TEXT_MAX)

enum bench_verb { BENCH_VERB_GET, BENCH_VERB_INCR, BENCH_VERB_SET };

/* One key of an id: what stands behind the number, and what it names. */
struct bench_key {
    char suffix[BENCH_KEY_MAX + 1];
    size_t suffix_length;
    int slot; /* BENCH_SLOT_WHOLE: the record */
};

/* A number in text, padded to four bytes so that it is copied as one word. */
struct bench_number {
    char text[3];
    uint8_t length;
};

struct bench_workload {
    uint32_t mark;
    const struct bench_dialect *dialect;
    const struct bench_options *options;
    struct bench_mix *mix; /* not NULL: everything is its own, the rest is unused */
    enum bench_verb verb;
    enum bench_verify verify;
    bool climbed;       /* incr after a load of our own: answers are above the loaded value */
    uint64_t ids;       /* a request */
    uint64_t hit_below; /* exist: of 2^64, the draws that ask for a loaded member */
    uint64_t random;
    uint64_t next;                /* load: index of the next request */
    char head[BENCH_KEY_MAX + 2]; /* text: with a space before; others begin behind it */
    size_t head_length;           /* " feed:" */
    char value_head[BENCH_KEY_MAX + 8];
    size_t value_head_length; /* "VALUE feed:" */
    size_t key_count;         /* keys an id in a request; in a load they take turns */
    struct bench_key keys[BENCH_SLOTS_MAX];
    struct bench_number numbers[BENCH_NUMBERS];
    void *state; /* the dialect's */
};

/* Adds a key to those of an id: ends in the slot's name, "" for none. At most BENCH_SLOTS_MAX. */
void bench_workload_add_key(struct bench_workload *workload, int slot, const char *name);

/* Writes what a loaded key holds; `out` has room for BENCH_VALUE_TEXT_MAX + 4. Its length. */
size_t bench_workload_print_value(const struct bench_workload *workload, uint64_t id, int slot,
                                  char *out);

/* Appends the member of an id, loaded or foreign. */
char *bench_workload_put_member(uint64_t id, char *out);

/* Appends what follows the id of a key: its suffix, and the member if it has one. */
char *bench_workload_put_suffix(const struct bench_key *key, uint64_t id, char *out);

/* Appends a key: at most BENCH_KEY_TEXT_MAX bytes. */
char *bench_workload_put_key(const struct bench_workload *workload, const struct bench_key *key,
                             uint64_t id, char *out);

size_t bench_workload_key_bytes(const struct bench_workload *workload); /* the longest key */

#endif
