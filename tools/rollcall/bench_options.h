/*
 * bench_options.h: what `rollcall bench` was asked to do.
 *
 * One static table of rows (base/options.h) declares every option, a kit's table those of its own;
 * the parser, --help and the messages come from them. The result is plain data, read-only
 * afterwards.
 */
#ifndef ROLLCALL_TOOLS_BENCH_OPTIONS_H
#define ROLLCALL_TOOLS_BENCH_OPTIONS_H

#include "tools/rollcall/arguments.h"
#include "tools/rollcall/bench_feed.h"
#include "tools/rollcall/bench_kit.h"
#include "tools/rollcall/bench_tally.h"

#define BENCH_CONNECTIONS_MAX 10000u
#define BENCH_PIPELINE_MAX    10000u
#define BENCH_PAGE_IDS_MAX    1000u
#define BENCH_IN_FLIGHT_MAX   10000000u /* keys asked for and not yet answered: 10 million */
#define BENCH_IDS_MAX         1000000000000ull
#define BENCH_SECONDS_MAX     604800u
#define BENCH_SECONDS_DEFAULT 5u
#define BENCH_SLOTS_MAX       16u
#define BENCH_NAME_MAX        32u
#define BENCH_KEY_MAX         250u
#define BENCH_LIST_MAX        600u /* bytes of --slots, --mix */
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

/* A key pattern, cut at its {id}. */
struct bench_pattern {
    char head[BENCH_KEY_MAX + 1];
    char tail[BENCH_KEY_MAX + 1]; /* without {member} */
};

struct bench_options {
    const struct bench_kit *kit;
    const char *address; /* host:port, [v6]:port or /path; into argv */
    char space[BENCH_NAME_MAX + 1];
    char key[BENCH_KEY_MAX + 1]; /* "": <space>:{id}, exist: <space>:{id}:{member} */
    char slots[BENCH_LIST_MAX + 1];
    char slot[BENCH_NAME_MAX + 1]; /* the one that incr and slot use; "": like, else the first */
    char mix[BENCH_LIST_MAX + 1];  /* mix: shares; "": as they are */
    char exist_space[BENCH_NAME_MAX + 1]; /* mix: of the existence keys */
    char exist_key[BENCH_KEY_MAX + 1];    /* mix: "": <exist-space>:{id}:{member} */
    char allow[BENCH_TEXT_MAX];           /* error lines that begin so are expected; "": none */
    uint64_t connections;
    uint64_t pipeline;
    uint64_t requests; /* UINT64_MAX: until `seconds` have passed */
    uint64_t seconds;  /* 0: until `requests` are answered */
    uint64_t ids;
    uint64_t first; /* the smallest id, or where the shape's clock starts */
    uint64_t per_second;
    uint64_t page_ids; /* exist, mix: checks too */
    uint64_t hits;     /* exist: per cent of the checks that ask for a loaded member */
    uint64_t one_in;   /* exist, mix: the server plans one wrong answer in this many */
    uint64_t window;   /* mix: newest ids, which are mostly asked for */
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
    bool help;          /* it was printed: there is nothing to do */
    bool members_apart; /* exist: a member is no part of its id's key */

    /* Derived. */
    char slot_names[BENCH_SLOTS_MAX][BENCH_NAME_MAX + 1];
    size_t slot_count;
    size_t slot_chosen;
    struct bench_pattern record; /* exist: of its keys */
    struct bench_pattern member; /* mix: of the existence keys */
    struct bench_shares shares;
};

/* A row of a text that is in the struct itself. */
#define BENCH_STRING(in, field)                                                                    \
    .type = OPTION_STRING, .flags = OPTION_INLINE, .min = 1, .max = sizeof(((in *)0)->field) - 1,  \
    ARGUMENTS_AT(in, field)

/*
 * Reads the arguments after `bench` (argv[0] is skipped) into the kit's options, at `options`.
 * On false what is wrong has been said on stderr, with the limits.
 */
bool bench_options_parse(const struct bench_kit *kit, int argc, char **argv,
                         struct bench_options *options);

/* Fills in what follows from the options, and checks them against each other; false: as above. */
bool bench_options_complete(struct bench_options *options);

/* Says on stderr what is wrong, after the program's name. Always false. */
__attribute__((format(printf, 1, 2))) bool bench_bad(const char *format, ...);

/* The words for the values of the enums above; NULL ends them. */
extern const char *const bench_shapes[], *const bench_workloads[], *const bench_verifies[];

#endif
