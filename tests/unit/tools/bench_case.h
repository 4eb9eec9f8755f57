/* bench_case.h: one request of `rollcall bench` and the replies a test feeds its judge. */
#ifndef ROLLCALL_TESTS_UNIT_TOOLS_BENCH_CASE_H
#define ROLLCALL_TESTS_UNIT_TOOLS_BENCH_CASE_H

/* The includer has included cmocka.h and what it needs. */
#include <string.h>

#include "tests/unit/tools/bench_line.h"
#include "tools/rollcall/bench_workload.h"

#define BENCH_CASE_IDS         3    /* a page at most */
#define BENCH_CASE_KIT_OPTIONS 8192 /* bytes of a kit's own */

struct bench_case {
    union {
        struct bench_options options; /* followed by the kit's own */
        char room[sizeof(struct bench_options) + BENCH_CASE_KIT_OPTIONS];
    };
    struct bench_workload *workload;
    struct bench_tally tally;
    struct bench_reply reply;
    uint64_t ids[BENCH_CASE_IDS];
    char request[4096];
    size_t request_length;
};

/* Options by the words of a command line, and the first request. */
static inline void bench_case_start_with(const struct bench_kit *kit, struct bench_case *fixture,
                                         const char *line, bool load)
{
    assert_true(kit->options_bytes <= sizeof(fixture->room));
    memset(fixture, 0, sizeof(*fixture));
    assert_true(bench_line_parse_with(kit, line, &fixture->options));
    fixture->workload = bench_workload_create(&fixture->options, load);
    assert_true(bench_workload_bytes_max(fixture->workload) <= sizeof(fixture->request));
    fixture->request_length =
        bench_workload_compose(fixture->workload, 0, fixture->request, fixture->ids);
    assert_true(fixture->request_length <= bench_workload_bytes_max(fixture->workload));
}

static inline void bench_case_start(struct bench_case *fixture, const char *line, bool load)
{
    bench_case_start_with(&bench_kit_product, fixture, line, load);
}

/* How often the commonest of the first 2000 ids drawn, of 1000, is among them. */
static inline unsigned bench_case_commonest(const struct bench_kit *kit, const char *line,
                                            uint64_t stream)
{
    struct bench_case fixture;
    unsigned seen[1001] = {0};
    unsigned most = 0;

    bench_case_start_with(kit, &fixture, line, false);
    bench_workload_stream(fixture.workload, stream);
    for (int i = 0; i < 2000; i++) {
        bench_workload_compose(fixture.workload, 0, fixture.request, fixture.ids);
        assert_in_range(fixture.ids[0], 1, 1000);
        seen[fixture.ids[0]]++;
        most = seen[fixture.ids[0]] > most ? seen[fixture.ids[0]] : most;
    }
    bench_workload_destroy(fixture.workload);
    return most;
}

/* Feeds a reply whole, or byte by byte; returns the bytes taken. */
static inline size_t bench_case_feed(struct bench_case *fixture, const char *bytes, size_t length,
                                     bool bytewise)
{
    size_t at = 0;

    for (size_t seen = bytewise ? 1 : length; seen <= length; seen++) {
        for (;;) {
            if (fixture->reply.done || fixture->reply.broken) {
                return at;
            }
            size_t taken = bench_workload_judge(fixture->workload, fixture->ids, bytes + at,
                                                seen - at, &fixture->reply, &fixture->tally);
            if (taken == 0) {
                break;
            }
            at += taken;
        }
    }
    return at;
}

#endif
