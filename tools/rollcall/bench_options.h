/*
 * bench_options.h: what `rollcall bench` was asked to do.
 *
 * One static table declares every option with its limits, a kit's table (bench_kit.h) those of its
 * own; the parser, --help and the messages come from them. The result is plain data, read-only
 * afterwards.
 */
#ifndef ROLLCALL_TOOLS_BENCH_OPTIONS_H
#define ROLLCALL_TOOLS_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/rollcall/bench_kit.h"
#include "tools/rollcall/bench_shares.h"

#define BENCH_CONNECTIONS_MAX 10000u
#define BENCH_PIPELINE_MAX    10000u
#define BENCH_PAGE_IDS_MAX    1000u
#define BENCH_IN_FLIGHT_MAX   10000000u /* keys asked for and not yet answered */
#define BENCH_IDS_MAX         1000000000000ull
#define BENCH_SECONDS_MAX     604800u
#define BENCH_SECONDS_DEFAULT 5u
#define BENCH_SLOTS_MAX       16u
#define BENCH_NAME_MAX        32u
#define BENCH_KEY_MAX         250u
#define BENCH_ID_MAX          0x7fffffffffffffffull
#define BENCH_MIX_IDS_MAX     1000000000ull /* mix: ids created in a run */
#define BENCH_WINDOW_MIN      100u
#define BENCH_WINDOW_MAX      10000000u
#define BENCH_MEMBERS_MAX     32u
#define BENCH_RATE_MAX        10000000u
#define BENCH_THREADS_MAX     64u

enum bench_shape { BENCH_DENSE, BENCH_SECONDS, BENCH_MS, BENCH_RANDOM };
enum bench_workload_kind {
    BENCH_INCR,
    BENCH_SLOT,
    BENCH_RECORD,
    BENCH_PAGE,
    BENCH_EXIST,
    BENCH_MIX
};
enum bench_protocol { BENCH_TEXT, BENCH_BINARY }; /* as in the product's kit */
enum bench_verify { BENCH_VALUES, BENCH_FORM, BENCH_OFF };

struct bench_options {
    const struct bench_kit *kit;
    const char *address; /* host:port, [v6]:port or /path */
    const char *space;
    const char *key;         /* pattern; NULL: <space>:{id}, exist: <space>:{id}:{member} */
    const char *slots;       /* names, or how many */
    const char *slot;        /* the one that incr and slot use; NULL: like, else the first */
    const char *mix;         /* mix: shares; NULL: as they are */
    const char *exist_space; /* mix: of the existence keys */
    const char *exist_key;   /* mix: NULL: <exist-space>:{id}:{member} */
    const char *allow;       /* error lines that begin so are expected; NULL: none */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t requests; /* UINT64_MAX: until `seconds` have passed */
    uint64_t seconds;  /* 0: until `requests` are answered */
    uint64_t ids;
    uint64_t first; /* the smallest id, or where the shape's clock starts */
    uint64_t per_second;
    uint64_t page_ids; /* exist, mix: checks too */
    uint64_t hits;     /* exist: per cent of the checks that ask for a loaded member */
    uint64_t one_in;   /* exist, mix: the server plans one wrong answer in so many */
    uint64_t window;   /* mix: newest ids: what is mostly asked for, and what is verified */
    uint64_t late;     /* mix: per cent of the ids that are created half a window later */
    uint64_t old;      /* mix: per cent of the draws that are from all ids */
    uint64_t members;  /* mix: different ones of an id */
    uint64_t rate;     /* requests a second; 0: as many as are answered */
    uint64_t threads;
    uint64_t seed;
    uint64_t pid;      /* 0: none */
    uint64_t shape;    /* enum bench_shape */
    uint64_t workload; /* enum bench_workload_kind */
    uint64_t protocol; /* place in the kit's dialects */
    uint64_t verify;   /* enum bench_verify */
    bool load;
    bool json;
    bool progress;
    bool help;
    bool members_apart; /* exist: a member is no part of its id's key */

    /* Derived. */
    char slot_names[BENCH_SLOTS_MAX][BENCH_NAME_MAX + 1];
    size_t slot_count;
    size_t slot_chosen;
    char key_head[BENCH_KEY_MAX + 1];   /* the pattern before {id} */
    char key_tail[BENCH_KEY_MAX + 1];   /* and behind it, without {member} */
    char exist_head[BENCH_KEY_MAX + 1]; /* mix: the same of the existence keys */
    char exist_tail[BENCH_KEY_MAX + 1];
    struct bench_shares shares;
};

/*
 * Reads the arguments after `bench` (argv[0] is skipped) into the kit's options, at `options`.
 * Strings point into argv. On false what is wrong has been said on stderr, with the limits.
 */
bool bench_options_parse(const struct bench_kit *kit, int argc, char **argv,
                         struct bench_options *options);

void bench_options_help(const struct bench_kit *kit); /* to stdout */

/* Says on stderr what is wrong, after the program's name. Always false. */
__attribute__((format(printf, 1, 2))) bool bench_bad(const char *format, ...);

/* The word for a value of the enums above. */
const char *bench_shape_name(uint64_t shape);
const char *bench_workload_name(uint64_t workload);
const char *bench_verify_name(uint64_t verify);
const char *bench_protocol_name(const struct bench_options *options);

#endif
