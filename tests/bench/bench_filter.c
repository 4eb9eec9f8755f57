/*
 * Micro-benchmark of the phantom engine (`make bench`): nanoseconds a check, an add and a delete,
 * one at a time and in batches, beside one dependent load of a random cache line of as much memory.
 *
 * usage: bench_filter [SIZE...]      sizes as 64K, 16M, 1G; default 16M
 *
 * Operations go through the engine's functions, with members of eight bytes. Batches follow each
 * other in a dependent chain, as turns of a server do; each figure is the best of LINE_ROUNDS.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "phantom/phantom.h"
#include "row/row.h"
#include "tests/bench/line.h"

#define USAGE       "bench_filter [SIZE...]   (as 64K, 16M, 1G)"
#define BATCH_MAX   80u
#define GOAL_BATCH  20u
#define GOAL_RATIO  0.15
#define MEMBERS_MAX (8u << 20) /* put in; a check costs the same however full the table is */
#define WRONG       0.001
#define EXCEPTED    4096u /* members that are deleted and added again in turn */
#define FOREIGN     (1ull << 40)
#define IDS         1000u

struct bench {
    struct engine *engine;
    uint64_t members;
    struct engine_op ops[BATCH_MAX];
    struct engine_op *list[BATCH_MAX];
    uint64_t names[BATCH_MAX];
    char values[BATCH_MAX][ENGINE_VALUE_MAX];
};

static const unsigned batches[] = {1, GOAL_BATCH, BATCH_MAX};
#define BATCHES (sizeof(batches) / sizeof(batches[0]))

static void name_op(struct bench *bench, unsigned i, uint64_t name)
{
    bench->names[i] = name;
    bench->ops[i].id = name % IDS;
}

static void set_verb(struct bench *bench, enum engine_verb verb)
{
    for (unsigned i = 0; i < BATCH_MAX; i++) {
        bench->ops[i].verb = verb;
    }
}

/* A change; the few that the row must change for are run again. */
static void change(struct bench *bench, struct engine_op *op)
{
    const struct engine_functions *functions = bench->engine->functions;

    functions->change(bench->engine, op, change_sink_null());
    while (op->status == ENGINE_PENDING) {
        row_maintain(bench->engine->row, NULL);
        functions->prepare(bench->engine, &op, 1);
        functions->change(bench->engine, op, change_sink_null());
    }
}

/* Returns the sum of the batch's answers. */
static uint64_t carry_out(struct bench *bench, unsigned batch)
{
    const struct engine_functions *functions = bench->engine->functions;
    uint64_t answers = 0;

    functions->prepare(bench->engine, bench->list, batch);
    if (bench->ops[0].verb == ENGINE_READ) {
        functions->read(bench->engine, bench->list, batch);
    }
    for (unsigned i = 0; i < batch; i++) {
        if (bench->ops[0].verb != ENGINE_READ) {
            change(bench, bench->list[i]);
        }
        CHECK(bench->ops[i].status != ENGINE_ERROR);
        answers += (uint64_t)bench->ops[i].status;
    }
    return answers;
}

static void bench_create(struct bench *bench, uint64_t bytes)
{
    struct phantom_config config = {.row.table_bytes = bytes,
                                    .false_positives = WRONG,
                                    .deletes = true,
                                    .row.tables = 1,
                                    .row.late_room = 0};
    struct phantom_size size;
    char error[PHANTOM_ERROR_MAX];

    memset(bench, 0, sizeof(*bench));
    config.exceptions_bytes = 1 << 20;
    if (!phantom_config_valid(&config, error) ||
        (bench->engine = phantom_create(&config, error)) == NULL) {
        fprintf(stderr, "bench_filter: %s\n", error);
        exit(1);
    }
    phantom_config_size(&config, &size);
    bench->members = size.members < MEMBERS_MAX ? size.members : MEMBERS_MAX;
    for (unsigned i = 0; i < BATCH_MAX; i++) {
        bench->list[i] = &bench->ops[i];
        bench->ops[i].value = bench->values[i];
        bench->ops[i].member = (const char *)&bench->names[i];
        bench->ops[i].member_length = sizeof(bench->names[i]);
        bench->ops[i].text = "1";
        bench->ops[i].text_length = 1;
    }
    printf("%" PRIu64 " KiB: holds %" PRIu64 " members, %.3f bytes each (goal 2.0%s)\n",
           bytes / 1024, size.members, size.bits_per_member / 8,
           size.bits_per_member / 8 <= 2.0 ? "" : " MISSED");
}

/* Adds the members 0 to members - 1 in batches; nanoseconds each. */
static double fill(struct bench *bench)
{
    double began = line_now_ns();

    set_verb(bench, ENGINE_ADD);
    for (uint64_t at = 0; at < bench->members; at += BATCH_MAX) {
        uint64_t left = bench->members - at;
        unsigned batch = left < BATCH_MAX ? (unsigned)left : BATCH_MAX;
        for (unsigned i = 0; i < batch; i++) {
            name_op(bench, i, at + i);
        }
        (void)carry_out(bench, batch);
    }
    return (line_now_ns() - began) / (double)bench->members;
}

static double check_round(struct bench *bench, unsigned batch, uint64_t base, uint64_t *state)
{
    uint64_t done = 0;
    double began = line_now_ns();

    while (done < LINE_OPS_A_ROUND) {
        for (unsigned i = 0; i < batch; i++) {
            name_op(bench, i,
                    base + line_scale_down(hash_u64(*state + i * LINE_WEYL), bench->members));
        }
        *state += LINE_WEYL + carry_out(bench, batch); /* makes the next batch wait for this one */
        done += batch;
    }
    return (line_now_ns() - began) / (double)done;
}

static double measure_check(struct bench *bench, unsigned batch, uint64_t base)
{
    uint64_t state = batch;
    double best = 1e9;

    set_verb(bench, ENGINE_READ);
    for (int round = 0; round < LINE_ROUNDS; round++) {
        double ns = check_round(bench, batch, base, &state);
        best = ns < best ? ns : best;
    }
    return best;
}

static void print_checks(struct bench *bench, const char *name, uint64_t base, double line_ns)
{
    printf("  %-14s", name);
    for (size_t i = 0; i < BATCHES; i++) {
        double ns = measure_check(bench, batches[i], base);
        printf("  %u: %6.1f", batches[i], ns);
        if (batches[i] == GOAL_BATCH) {
            printf(" = %.2f of a line%s", ns / line_ns, ns <= GOAL_RATIO * line_ns ? "" : "*");
        }
    }
    printf("\n");
    fflush(stdout);
}

/* The same members deleted and added again, in batches. */
static double measure_turns(struct bench *bench)
{
    double began = line_now_ns();
    uint64_t done = 0;

    while (done < LINE_OPS_A_ROUND) {
        for (uint64_t at = 0; at < EXCEPTED; at += GOAL_BATCH) {
            for (unsigned i = 0; i < GOAL_BATCH; i++) {
                name_op(bench, i, at + i);
            }
            set_verb(bench, ENGINE_DELETE);
            (void)carry_out(bench, GOAL_BATCH);
            set_verb(bench, ENGINE_ADD);
            (void)carry_out(bench, GOAL_BATCH);
            done += 2 * (uint64_t)GOAL_BATCH;
        }
    }
    return (line_now_ns() - began) / (double)done;
}

static void measure(uint64_t bytes)
{
    static struct bench bench;
    double line_ns = line_measure(bytes);

    bench_create(&bench, bytes);
    printf("  a random line   %6.1f ns\n", line_ns);
    printf("  add             %6.1f\n", fill(&bench));
    print_checks(&bench, "check, hit", 0, line_ns);
    print_checks(&bench, "check, miss", FOREIGN, line_ns);
    printf("  delete, add     %6.1f\n", measure_turns(&bench));
    bench.engine->functions->destroy(bench.engine);
}

int main(int argc, char **argv)
{
    printf("nanoseconds an operation by size of batch; *: above %.2f of a line\n", GOAL_RATIO);
    for (int i = 1; i < argc; i++) {
        measure(line_parse_size(argv[i], USAGE));
    }
    if (argc < 2) {
        measure(16 << 20);
    }
    return 0;
}
