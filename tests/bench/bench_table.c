/*
 * Micro-benchmark of the counter engine (`make bench`): nanoseconds an operation, one at a time and
 * in batches, beside one dependent load of a random cache line of as much memory; and the bytes a
 * record costs in a full table.
 *
 * usage: bench_table [capacity|operations] [SIZE...]      sizes as 64K, 16M, 1G; default 16M
 *
 * Operations go through the engine's functions, so values are read as text as the server reads
 * them; the last row reads the numbers off the table itself. Batches follow each other in a
 * dependent chain, as turns of a server do; each figure is the best of LINE_ROUNDS.
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
#include "counter/counter.h"
#include "counter/table.h"
#include "row/row_data.h"
#include "tests/bench/line.h"

#define USAGE        "bench_table [capacity|operations] [SIZE...]   (as 64K, 16M, 1G)"
#define BATCH_MAX    80u
#define HOLE_EVERY   64u /* of dense ids every 64th is left out: the ids that miss */
#define STAMP_SHIFT  22
#define PER_SECOND   1000u
#define FIRST_SECOND 1700000000ull
#define SIZES_MAX    8
#define GOAL_BATCH   32u
#define GOAL_RATIO   0.25
#define REPLAY_BATCH 64u
#define GOAL_REPLAY  5.0 /* million a second */
#define MIB          (1u << 20)

struct shape {
    const char *name;
    uint64_t (*id)(uint64_t index);
    uint64_t spacing;
};

struct schema {
    const char *name;
    size_t slots;
    unsigned bits;
    const char *record;
    double goal_bytes; /* a record in a full table */
};

struct bench {
    struct engine *engine;
    const struct shape *shape;
    const struct schema *schema;
    uint64_t records;
    double fill_ns;
    enum engine_error full;
    struct engine_op ops[BATCH_MAX];
    struct engine_op *list[BATCH_MAX];
    char values[BATCH_MAX][ENGINE_VALUE_MAX];
};

struct job {
    const char *name;
    enum engine_verb verb;
    int slot;
    bool misses;
};

static uint64_t dense_id(uint64_t index)
{
    return 1 + index + index / (HOLE_EVERY - 1);
}

static uint64_t seconds_id(uint64_t index)
{
    return ((FIRST_SECOND + index / PER_SECOND) << STAMP_SHIFT) + index % PER_SECOND;
}

static const struct shape shapes[] = {
    {"dense", dense_id, 1},
    {"seconds<<22", seconds_id, (1u << STAMP_SHIFT) / PER_SECOND},
};

static const struct schema schemas[] = {
    {"4 x 20 bits", 4, 20, "1,22,333,44", 15.0},
    {"2 x 16 bits", 2, 16, "1,22", 7.5},
};

static const struct job jobs[] = {
    {"slot, hit", ENGINE_READ, 0, false},
    {"slot, miss", ENGINE_READ, 0, true},
    {"increment", ENGINE_INCR, 1, false},
    {"all slots", ENGINE_READ, ENGINE_SLOT_RECORD, false},
};

static const unsigned batches[] = {1, 16, GOAL_BATCH, BATCH_MAX};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- filling ---- */

static void make_config(struct counter_config *config, const struct schema *schema,
                        const struct shape *shape, uint64_t bytes)
{
    char error[COUNTER_ERROR_MAX];

    *config = (struct counter_config){
        .slot_count = schema->slots,
        .id_spacing = shape->spacing,
        .row.table_bytes = bytes,
        .row.tables = 1,
    };
    for (size_t i = 0; i < schema->slots; i++) {
        snprintf(config->slots[i].name, sizeof(config->slots[i].name), "s%zu", i);
        config->slots[i].bits = schema->bits;
    }
    if (!counter_config_valid(config, error)) {
        fprintf(stderr, "bench_table: %s\n", error);
        exit(1);
    }
}

static void bench_create(struct bench *bench, const struct schema *schema,
                         const struct shape *shape, uint64_t bytes)
{
    struct counter_config config;
    char error[COUNTER_ERROR_MAX];

    memset(bench, 0, sizeof(*bench));
    bench->shape = shape;
    bench->schema = schema;
    make_config(&config, schema, shape, bytes);
    bench->engine = counter_create(&config, error);
    if (bench->engine == NULL) {
        fprintf(stderr, "bench_table: %s\n", error);
        exit(1);
    }
    for (size_t i = 0; i < BATCH_MAX; i++) {
        bench->list[i] = &bench->ops[i];
        bench->ops[i].value = bench->values[i];
    }
}

static void bench_destroy(struct bench *bench)
{
    bench->engine->functions->destroy(bench->engine);
    bench->engine = NULL;
}

/*
 * Sets the ids of a batch, or the first of them: where the row changes first, the rest is for the
 * next batch. False once the table is full.
 */
static bool fill_batch(struct bench *bench)
{
    const struct engine_functions *functions = bench->engine->functions;

    for (size_t i = 0; i < BATCH_MAX; i++) {
        bench->ops[i].id = bench->shape->id(bench->records + i);
    }
    functions->prepare(bench->engine, bench->list, BATCH_MAX);
    for (size_t i = 0; i < BATCH_MAX; i++) {
        functions->change(bench->engine, &bench->ops[i], change_sink_null());
        if (bench->ops[i].status == ENGINE_PENDING) {
            row_maintain(bench->engine->row, NULL);
            return true;
        }
        if (bench->ops[i].status == ENGINE_ERROR) {
            bench->full = bench->ops[i].error;
            return false;
        }
        CHECK(bench->ops[i].status == ENGINE_DONE);
        bench->records++;
    }
    return true;
}

static void set_ops(struct bench *bench, enum engine_verb verb, int slot, const char *text)
{
    for (size_t i = 0; i < BATCH_MAX; i++) {
        bench->ops[i].verb = verb;
        bench->ops[i].slot = slot;
        bench->ops[i].text = text;
        bench->ops[i].text_length = (uint32_t)strlen(text);
    }
}

static void fill(struct bench *bench)
{
    set_ops(bench, ENGINE_SET, ENGINE_SLOT_RECORD, bench->schema->record);
    double began = line_now_ns();
    while (fill_batch(bench)) {
        ;
    }
    bench->fill_ns = (line_now_ns() - began) / (double)(bench->records + 1);
    CHECK(bench->full == ENGINE_E_NO_TABLE_FREE || bench->full == ENGINE_E_OUT_OF_MEMORY);
    CHECK(bench->records >= HOLE_EVERY);
}

static uint64_t bytes_held(const struct bench *bench)
{
    struct engine_figures figures = {0};
    uint64_t bytes = 0;

    bench->engine->functions->figures(bench->engine, &figures);
    for (size_t i = 0; i < ENGINE_MEMORY_KINDS; i++) {
        bytes += figures.memory[i].held_bytes;
    }
    return bytes;
}

static void print_capacity(const struct bench *bench, uint64_t bytes)
{
    double each = (double)bytes / (double)bench->records;

    printf("%8" PRIu64 " KiB  %-11s  %-11s  %11" PRIu64 "  %6.2f  (goal %4.1f%s)  %6.2f  %7.1f\n",
           bytes / 1024, bench->schema->name, bench->shape->name, bench->records, each,
           bench->schema->goal_bytes, each <= bench->schema->goal_bytes ? "" : " MISSED",
           (double)bytes_held(bench) / (double)bench->records, bench->fill_ns);
    fflush(stdout);
}

static void measure_capacity(struct bench *bench, uint64_t bytes)
{
    for (size_t i = 0; i < COUNT(schemas); i++) {
        for (size_t j = 0; j < COUNT(shapes); j++) {
            bench_create(bench, &schemas[i], &shapes[j], bytes);
            fill(bench);
            print_capacity(bench, bytes);
            bench_destroy(bench);
        }
    }
}

/* ---- operations ---- */

static void draw_ids(struct bench *bench, unsigned batch, bool misses, uint64_t state)
{
    for (unsigned i = 0; i < batch; i++) {
        uint64_t index = line_scale_down(hash_u64(state + i * LINE_WEYL), bench->records);
        bench->ops[i].id = misses ? (index / HOLE_EVERY + 1) * HOLE_EVERY : bench->shape->id(index);
    }
}

static void carry_out(struct bench *bench, const struct job *job, unsigned batch)
{
    const struct engine_functions *functions = bench->engine->functions;

    functions->prepare(bench->engine, bench->list, batch);
    if (job->verb == ENGINE_READ) {
        functions->read(bench->engine, bench->list, batch);
        return;
    }
    for (unsigned i = 0; i < batch; i++) {
        functions->change(bench->engine, bench->list[i], change_sink_null());
    }
}

static double job_round(struct bench *bench, const struct job *job, unsigned batch, uint64_t *state)
{
    enum engine_status wanted = job->misses ? ENGINE_ABSENT : ENGINE_DONE;
    uint64_t done = 0;
    double began = line_now_ns();

    while (done < LINE_OPS_A_ROUND) {
        draw_ids(bench, batch, job->misses, *state);
        carry_out(bench, job, batch);
        for (unsigned i = 0; i < batch; i++) {
            CHECK(bench->ops[i].status == wanted);
            *state += (uint64_t)bench->ops[i].status; /* makes the next batch wait for this one */
        }
        *state += LINE_WEYL + (unsigned char)bench->values[batch - 1][0];
        done += batch;
    }
    return (line_now_ns() - began) / (double)done;
}

static double measure_job(struct bench *bench, const struct job *job, unsigned batch)
{
    uint64_t state = batch;
    double best = 1e9;

    set_ops(bench, job->verb, job->slot, "1");
    for (int round = 0; round < LINE_ROUNDS; round++) {
        double ns = job_round(bench, job, batch, &state);
        best = ns < best ? ns : best;
    }
    return best;
}

static void print_job(struct bench *bench, const struct job *job, double line_ns)
{
    double at_goal = 0;

    printf("  %-11s", job->name);
    for (size_t i = 0; i < COUNT(batches); i++) {
        double ns = measure_job(bench, job, batches[i]);
        printf("  %8.1f", ns);
        if (batches[i] == GOAL_BATCH) {
            at_goal = ns;
        }
    }
    printf("  %10.2f", at_goal / line_ns);
    putchar('\n');
    fflush(stdout);
}

/* ---- replay: changes of one slot of ids that are there, as a journal has them ---- */

static double replay_round(struct bench *bench, uint64_t *state)
{
    static struct engine_replay changes[REPLAY_BATCH];
    char error[ENGINE_ERROR_MAX];
    uint64_t done = 0;
    double began = line_now_ns();

    for (; done < LINE_OPS_A_ROUND; done += REPLAY_BATCH) {
        for (size_t i = 0; i < REPLAY_BATCH; i++) {
            uint64_t index = line_scale_down(hash_u64(*state), bench->records);
            *state += LINE_WEYL;
            changes[i].change.type = CHANGE_SLOTS;
            changes[i].change.place = CHANGE_THERE;
            changes[i].change.id = bench->shape->id(index);
            changes[i].change.named = changes[i].change.set = 2;
            changes[i].change.values[1] = done % 1000;
        }
        CHECK(row_replay(bench->engine->row, changes, REPLAY_BATCH, error));
    }
    return (line_now_ns() - began) / (double)done;
}

static void print_replay(struct bench *bench)
{
    uint64_t state = 1;
    double best = 1e9;

    for (int round = 0; round < LINE_ROUNDS; round++) {
        double ns = replay_round(bench, &state);
        best = ns < best ? ns : best;
    }
    printf("  %-11s  %8.1f in batches of %u: %.1f million a second (goal %.1f)\n", "replay", best,
           REPLAY_BATCH, 1e3 / best, GOAL_REPLAY);
    fflush(stdout);
}

/* ---- bare look-ups: all slots as numbers, no text, no engine ---- */

static enum engine_status put_one_each(const struct counter_edit *edit, bool present,
                                       const struct counter_values *before,
                                       struct counter_values *after)
{
    (void)present;
    (void)before;
    after->set = edit->named;
    for (unsigned i = 0; i < ENGINE_SLOTS_MAX; i++) {
        after->value[i] = 1;
    }
    return ENGINE_DONE;
}

/* A table in no row whose window begins below the first dense id; its region is the caller's. */
static struct counter_table *raw_create(const struct counter_config *config, void *region)
{
    const struct row_want want = {
        .first = true, .region = region, .region_bytes = config->row.table_bytes};
    struct counter_table *table = counter_table_create(config, &want, NULL);

    CHECK(table != NULL);
    counter_table_settle(table);
    return table;
}

/* As many dense ids as another table of this configuration took, less 1 %: hashes differ. */
static uint64_t raw_fill(struct counter_table *table, uint64_t records)
{
    uint32_t all = counter_view_all(counter_table_view(table));
    enum engine_error error;

    records -= records / 100;
    for (uint64_t i = 0; i < records; i++) {
        struct counter_edit edit = {.named = all, .decide = put_one_each};
        struct counter_locus locus;
        counter_table_locate(table, dense_id(i), true, &locus);
        CHECK(counter_table_edit(table, &locus, &edit, 0, change_sink_null(), &error) ==
              ENGINE_DONE);
    }
    return records;
}

/* As the engine does: all homes first, then those that lie further. */
static void raw_batch(const struct counter_table *table, uint64_t records, unsigned batch,
                      uint64_t *state)
{
    uint32_t all = counter_view_all(counter_table_view(table));
    struct counter_locus loci[BATCH_MAX];
    struct counter_values values = {0};
    unsigned further[BATCH_MAX], further_count = 0;

    for (unsigned i = 0; i < batch; i++) {
        uint64_t index = line_scale_down(hash_u64(*state + i * LINE_WEYL), records);
        counter_table_locate(table, dense_id(index), false, &loci[i]);
    }
    for (unsigned i = 0; i < batch; i++) {
        if (counter_table_look(table, &loci[i], all, &values) == COUNTER_FOUND) {
            *state += values.value[0];
        } else {
            further[further_count++] = i;
        }
    }
    for (unsigned i = 0; i < further_count; i++) {
        CHECK(counter_table_read(table, &loci[further[i]], all, &values) == COUNTER_FOUND);
        *state += values.value[0];
    }
    *state += LINE_WEYL;
}

static double raw_measure(const struct counter_table *table, uint64_t records, unsigned batch)
{
    uint64_t state = batch;
    double best = 1e9;

    for (int round = 0; round < LINE_ROUNDS; round++) {
        uint64_t done = 0;
        double began = line_now_ns();
        for (; done < LINE_OPS_A_ROUND; done += batch) {
            raw_batch(table, records, batch, &state);
        }
        double ns = (line_now_ns() - began) / (double)done;
        best = ns < best ? ns : best;
    }
    return best;
}

static void print_raw(const struct schema *schema, uint64_t bytes, uint64_t records, double line_ns)
{
    struct counter_config config;
    double at_goal = 0;

    make_config(&config, schema, &shapes[0], bytes);
    void *region = memory_region_create(bytes);
    CHECK(region != NULL);
    struct counter_table *table = raw_create(&config, region);
    records = raw_fill(table, records);
    printf("  %-11s", "slots, raw");
    for (size_t i = 0; i < COUNT(batches); i++) {
        double ns = raw_measure(table, records, batches[i]);
        printf("  %8.1f", ns);
        if (batches[i] == GOAL_BATCH) {
            at_goal = ns;
        }
    }
    printf("  %10.2f  (goal %.2f in 1 GiB)\n", at_goal / line_ns, GOAL_RATIO);
    fflush(stdout);
    counter_table_destroy(table);
    memory_region_destroy(region, bytes);
}

static void measure_operations(struct bench *bench, uint64_t bytes)
{
    double line_ns = line_measure(bytes);

    printf("\n%" PRIu64 " MiB: one random line %.1f ns\n", bytes / MIB, line_ns);
    for (size_t i = 0; i < COUNT(schemas); i++) {
        bench_create(bench, &schemas[i], &shapes[0], bytes);
        fill(bench);
        printf("  %s, full with %" PRIu64 " dense ids, ns an operation\n", schemas[i].name,
               bench->records);
        printf("  %-11s  %8s  %8s  %8s  %8s  %10s\n", "", "single", "of 16", "of 32", "of 80",
               "32 / line");
        for (size_t j = 0; j < COUNT(jobs); j++) {
            print_job(bench, &jobs[j], line_ns);
        }
        print_replay(bench);
        uint64_t records = bench->records;
        bench_destroy(bench);
        print_raw(&schemas[i], bytes, records, line_ns);
    }
}

/* ---- */

static void measure_capacities(struct bench *bench, const uint64_t *sizes, size_t count)
{
    printf("%12s  %-11s  %-11s  %11s  %6s  %-11s  %6s  %7s\n", "table", "slots", "ids", "records",
           "B each", "", "+pools", "set ns");
    measure_capacity(bench, ROW_REGION_BYTES_MIN);
    for (size_t i = 0; i < count; i++) {
        measure_capacity(bench, sizes[i]);
    }
}

int main(int argc, char **argv)
{
    uint64_t sizes[SIZES_MAX] = {16 * MIB};
    bool only_capacity = argc > 1 && strcmp(argv[1], "capacity") == 0;
    bool only_operations = argc > 1 && strcmp(argv[1], "operations") == 0;
    int first = only_capacity || only_operations ? 2 : 1;
    size_t given = (size_t)(argc - first);
    struct bench *bench = memory_zalloc(sizeof(*bench));

    if (given > SIZES_MAX) {
        fprintf(stderr, "bench_table: at most %d sizes\n", SIZES_MAX);
        return 2;
    }
    for (size_t i = 0; i < given; i++) {
        sizes[i] = line_parse_size(argv[first + (int)i], USAGE);
    }
    if (given == 0) {
        given = 1;
    }
    if (!only_operations) {
        measure_capacities(bench, sizes, given);
    }
    for (size_t i = 0; i < given && !only_capacity; i++) {
        measure_operations(bench, sizes[i]);
    }
    free(bench);
    return 0;
}
