#include "fake_engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/barrier.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/num.h"
#include "counter/counter.h"
#include "engine/slots.h"
#include "row/row.h"

#define ENTRIES     (1u << 15) /* a power of two */
#define MARKS_MAX   64
#define TICKETS_MAX 4096

struct entry {
    bool used;
    bool there;
    int slot;
    uint64_t id;
    uint32_t length;
    char text[ENGINE_VALUE_MAX];
};

struct kept {
    uint64_t id;
    struct ticket ticket;
};

struct fake {
    struct engine engine;
    struct engine_slots slots;
    struct row row; /* of no kind: what is asked of it the fake answers */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t held[MARKS_MAX];
    size_t held_count;
    uint64_t busy; /* one of them, which waits for a merge */
    uint64_t broken[MARKS_MAX];
    size_t broken_count;
    struct kept kept[TICKETS_MAX];
    size_t kept_count;
    uint64_t needed[MARKS_MAX]; /* ids that need a table … */
    size_t needed_count;
    uint64_t asked[MARKS_MAX]; /* … and those of them that were asked for */
    size_t asked_count;
    bool gate_closed;
    bool maintaining;
    uint64_t recycle;
    uint64_t recycled;
    uint64_t maintained;
    bool full, jammed, crowded;
    uint64_t crowded_out;
    uint64_t reads_longest, adds_longest;
    uint64_t changes;
    uint64_t clears;
    uint64_t readied;   /* before them */
    uint64_t cleanings; /* after them */
    uint64_t figures;
    uint64_t waited;
    uint64_t tables; /* 0: one with few figures */
    struct entry *entries;
};

static struct fake *fake_of(struct engine *engine)
{
    return (struct fake *)engine;
}

static bool marked(const uint64_t *ids, size_t count, uint64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static struct entry *entry_of(struct fake *fake, uint64_t id, int slot)
{
    size_t at = hash_u64(id * 4 + (uint64_t)(slot + 1)) & (ENTRIES - 1);

    for (size_t i = 0; i < ENTRIES; i++, at = (at + 1) & (ENTRIES - 1)) {
        struct entry *entry = &fake->entries[at];

        if (!entry->used) {
            entry->used = true;
            entry->id = id;
            entry->slot = slot;
            return entry;
        }
        if (entry->id == id && entry->slot == slot) {
            return entry;
        }
    }
    check_failed(__FILE__, __LINE__, __func__, "room in the map");
}

static uint64_t token_of(const struct entry *entry)
{
    return hash_bytes(entry->text, entry->length, entry->id) | 1;
}

static void keep_ticket(struct fake *fake, struct engine_op *op)
{
    CHECK(fake->kept_count < TICKETS_MAX);
    fake->kept[fake->kept_count++] = (struct kept){op->id, op->ticket};
    op->status = ENGINE_PENDING;
    op->error = ENGINE_E_NONE;
    op->wants_table = false;
    pthread_cond_broadcast(&fake->changed);
}

/* True if the operation has to wait, and keeps its ticket. */
static bool waits(struct fake *fake, struct engine_op *op)
{
    if (!marked(fake->held, fake->held_count, op->id)) {
        return false;
    }
    keep_ticket(fake, op);
    if (fake->busy == op->id) {
        op->wants_table = true;
        op->error = ENGINE_E_BUSY;
    }
    return true;
}

/* True if the id is new and there is no table for it yet. */
static bool needs_table(struct fake *fake, struct engine_op *op)
{
    bool creates =
        op->verb != ENGINE_DELETE && op->verb != ENGINE_REPLACE && op->verb != ENGINE_CAS;

    if (!creates || !marked(fake->needed, fake->needed_count, op->id) ||
        entry_of(fake, op->id, op->slot)->there) {
        return false;
    }
    keep_ticket(fake, op);
    op->wants_table = true;
    CHECK(fake->asked_count < MARKS_MAX);
    if (!marked(fake->asked, fake->asked_count, op->id)) {
        fake->asked[fake->asked_count++] = op->id;
    }
    fake->engine.keeper.notify(fake->engine.keeper.context);
    return true;
}

static void fail(struct engine_op *op, enum engine_error error)
{
    op->status = ENGINE_ERROR;
    op->error = error;
}

static void read_one(struct fake *fake, struct engine_op *op)
{
    CHECK(op->scratch[0] == hash_u64(op->id)); /* it was prepared */
    if (fake->crowded) {
        fail(op, ENGINE_E_BUSY);
        fake->crowded_out++;
        return;
    }
    if (waits(fake, op)) {
        return;
    }
    if (marked(fake->broken, fake->broken_count, op->id)) {
        fail(op, ENGINE_E_READ_FAILED);
        return;
    }
    struct entry *entry = entry_of(fake, op->id, op->slot);

    if (!entry->there) {
        op->status = ENGINE_ABSENT;
        op->miss = ENGINE_MISS_ABSENT;
        return;
    }
    op->status = ENGINE_DONE;
    op->value_length = entry->length;
    memcpy(op->value, entry->text, entry->length);
    op->cas_now = op->want_cas ? token_of(entry) : 0;
}

static void fake_read(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    fake->reads_longest = n > fake->reads_longest ? n : fake->reads_longest;
    for (size_t i = 0; i < n; i++) {
        CHECK(ops[i]->verb == ENGINE_READ || ops[i]->verb == ENGINE_TOUCH);
        read_one(fake, ops[i]);
    }
    pthread_mutex_unlock(&fake->lock);
}

static void fake_prepare(struct engine *engine, struct engine_op *const *ops, size_t n)
{
    (void)engine;
    for (size_t i = 0; i < n; i++) {
        ops[i]->scratch[0] = hash_u64(ops[i]->id);
    }
}

static void store(struct entry *entry, struct engine_op *op)
{
    uint64_t number;

    if (op->slot != ENGINE_SLOT_RECORD && !num_parse(op->text, op->text_length, &number)) {
        fail(op, ENGINE_E_NOT_A_NUMBER);
        return;
    }
    if (op->text_length > ENGINE_VALUE_MAX) {
        fail(op, ENGINE_E_RECORD_FIELDS);
        return;
    }
    entry->there = !op->expires;
    entry->length = op->text_length;
    memcpy(entry->text, op->text, op->text_length);
    op->status = ENGINE_DONE;
}

static void conditional(struct entry *entry, struct engine_op *op)
{
    if (op->verb == ENGINE_ADD && entry->there) {
        op->status = ENGINE_EXISTS;
    } else if ((op->verb == ENGINE_REPLACE || op->verb == ENGINE_CAS) && !entry->there) {
        op->status = ENGINE_ABSENT;
    } else if (op->verb == ENGINE_CAS && token_of(entry) != op->cas) {
        op->status = ENGINE_EXISTS;
    } else {
        store(entry, op);
    }
}

static void arithmetic(struct fake *fake, struct entry *entry, struct engine_op *op)
{
    uint64_t delta;
    uint64_t now = 0;

    if (op->slot == ENGINE_SLOT_RECORD) {
        fail(op, ENGINE_E_NON_NUMERIC);
        return;
    }
    if (!num_parse(op->text, op->text_length, &delta)) {
        fail(op, ENGINE_E_BAD_DELTA);
        return;
    }
    op->created = !entry->there && op->create_initial;
    if (!entry->there && (op->create_never || (fake->engine.role_cache && !op->created))) {
        op->status = ENGINE_ABSENT;
        return;
    }
    if (entry->there) {
        CHECK(num_parse(entry->text, entry->length, &now));
    }
    if (op->created) {
        now = op->initial;
    } else if (op->verb == ENGINE_INCR) {
        now += delta;
    } else {
        now = now < delta ? 0 : now - delta;
    }
    entry->there = true;
    entry->length = (uint32_t)num_print(entry->text, now);
    op->value_length = entry->length;
    memcpy(op->value, entry->text, entry->length);
    op->status = ENGINE_DONE;
}

static void change_one(struct fake *fake, struct engine_op *op)
{
    struct entry *entry = entry_of(fake, op->id, op->slot);

    if (op->verb == ENGINE_DELETE && fake->jammed) {
        fail(op, ENGINE_E_BUSY);
    } else if (op->verb == ENGINE_DELETE) {
        op->status = entry->there ? ENGINE_DONE : ENGINE_ABSENT;
        entry->there = false;
    } else if (fake->full) {
        fail(op, ENGINE_E_OUT_OF_MEMORY);
    } else if (op->verb == ENGINE_INCR || op->verb == ENGINE_DECR) {
        arithmetic(fake, entry, op);
    } else {
        conditional(entry, op);
    }
    fake->changes += op->status == ENGINE_DONE;
}

/* Under the lock, as real engines do. A record is told as if it were deleted. */
static void tell(struct fake *fake, const struct engine_op *op, struct change_sink *sink)
{
    const struct entry *entry = entry_of(fake, op->id, op->slot);
    struct change change = {.space = fake->engine.space, .id = op->id, .type = CHANGE_DELETE};

    if (op->status != ENGINE_DONE) {
        sink->functions->cancel(sink);
        return;
    }
    if (entry->there && op->slot != ENGINE_SLOT_RECORD) {
        change.type = CHANGE_SLOTS;
        change.named = change.set = 1u << op->slot;
        CHECK(num_parse(entry->text, entry->length, &change.values[op->slot]));
    }
    sink->functions->put(sink, &change);
}

static void fake_change(struct engine *engine, struct engine_op *op, struct change_sink *sink)
{
    struct fake *fake = fake_of(engine);

    CHECK(sink != NULL && op->scratch[0] == hash_u64(op->id));
    if (!sink->functions->reserve(sink)) {
        fail(op, ENGINE_E_JOURNAL_BUSY);
        return;
    }
    pthread_mutex_lock(&fake->lock);
    if (!waits(fake, op) && !needs_table(fake, op)) {
        change_one(fake, op);
    }
    tell(fake, op, sink);
    pthread_mutex_unlock(&fake->lock);
}

/* Numbers that are there, and nothing else. */
static bool add_one(struct fake *fake, struct engine_op *op, struct change_sink *sink)
{
    uint64_t delta;

    CHECK(op->scratch[0] == hash_u64(op->id) && !op->want_cas);
    CHECK(op->verb == ENGINE_INCR || op->verb == ENGINE_DECR);
    if (op->slot < 0 || op->compare || fake->full || !entry_of(fake, op->id, op->slot)->there ||
        !num_parse(op->text, op->text_length, &delta) ||
        marked(fake->held, fake->held_count, op->id) || !sink->functions->reserve(sink)) {
        return false;
    }
    change_one(fake, op);
    tell(fake, op, sink);
    return true;
}

static size_t fake_add(struct engine *engine, struct engine_op *const *ops, size_t n,
                       struct change_sink *sink, uint64_t *now, uint64_t *tokens)
{
    struct fake *fake = fake_of(engine);
    size_t done = 0;

    pthread_mutex_lock(&fake->lock);
    while (done < n && add_one(fake, ops[done], sink)) {
        CHECK(num_parse(ops[done]->value, ops[done]->value_length, &now[done]));
        if (ops[done]->want_cas) {
            tokens[done] = ops[done]->cas_now;
        }
        done++;
    }
    fake->adds_longest = done > fake->adds_longest ? done : fake->adds_longest;
    pthread_mutex_unlock(&fake->lock);
    return done;
}

/*
 * Returns the fake whose row it is; NULL: it is a real one. Programs that may have both are linked
 * with --wrap for what is asked of rows.
 */
static struct fake *fake_of_row(struct row *row)
{
    return row->kind == NULL ? (struct fake *)((char *)row - offsetof(struct fake, row)) : NULL;
}

size_t __real_counter_add(struct engine *engine, struct engine_op *const *ops, size_t n,
                          struct change_sink *sink, uint64_t *now, uint64_t *tokens);
size_t __wrap_counter_add(struct engine *engine, struct engine_op *const *ops, size_t n,
                          struct change_sink *sink, uint64_t *now, uint64_t *tokens);
size_t __wrap_counter_add(struct engine *engine, struct engine_op *const *ops, size_t n,
                          struct change_sink *sink, uint64_t *now, uint64_t *tokens)
{
    bool fake = fake_of_row(engine->row) != NULL;

    return fake ? fake_add(engine, ops, n, sink, now, tokens)
                : __real_counter_add(engine, ops, n, sink, now, tokens);
}

void __real_row_clean_up(struct row *row);
void __wrap_row_clean_up(struct row *row);
void __wrap_row_clean_up(struct row *row)
{
    struct fake *fake = fake_of_row(row);

    if (fake == NULL) {
        __real_row_clean_up(row);
        return;
    }
    pthread_mutex_lock(&fake->lock);
    fake->cleanings++;
    pthread_mutex_unlock(&fake->lock);
}

void __real_row_flush_ready(struct row *row);
void __wrap_row_flush_ready(struct row *row);
void __wrap_row_flush_ready(struct row *row)
{
    struct fake *fake = fake_of_row(row);

    if (fake == NULL) {
        __real_row_flush_ready(row);
        return;
    }
    pthread_mutex_lock(&fake->lock);
    fake->readied++;
    pthread_mutex_unlock(&fake->lock);
}

void __real_row_flush(struct row *row);
void __wrap_row_flush(struct row *row);
void __wrap_row_flush(struct row *row)
{
    struct fake *fake = fake_of_row(row);

    if (fake == NULL) {
        __real_row_flush(row);
        return;
    }
    pthread_mutex_lock(&fake->lock);
    CHECK(!fake->maintaining); /* which may be between two stops of its own */
    CHECK(fake->readied > fake->clears && fake->cleanings == fake->clears);
    memset(fake->entries, 0, ENTRIES * sizeof(*fake->entries));
    fake->clears++;
    pthread_mutex_unlock(&fake->lock);
}

static void fake_stats_space(const struct engine *engine, engine_stat_fn *emit, void *context)
{
    (void)engine;
    emit(context, "frontier", "17");
}

static uint64_t fake_stats_table(const struct engine *engine, uint64_t from, engine_stat_fn *emit,
                                 void *context)
{
    const struct fake *fake = (const struct fake *)engine;
    uint64_t tables = fake->tables > 0 ? fake->tables : 1;
    uint64_t table = from / FAKE_TABLE_IDS < tables ? from / FAKE_TABLE_IDS : tables - 1;
    char name[32];

    snprintf(name, sizeof(name), "%llu:records", (unsigned long long)table);
    emit(context, name, "5");
    for (unsigned i = 1; fake->tables > 0 && i < FAKE_FIGURES; i++) {
        snprintf(name, sizeof(name), "%llu:figure_%u", (unsigned long long)table, i);
        emit(context, name, "12345678901234567890");
    }
    return table + 1 < tables ? (table + 1) * FAKE_TABLE_IDS : 0;
}

static void fake_figures(const struct engine *engine, struct engine_figures *figures)
{
    struct fake *fake = fake_of((struct engine *)(uintptr_t)engine);

    figures->memory[ENGINE_MEMORY_TABLES] = (struct engine_memory){5, 14, 70, 1u << 20};
    figures->memory[ENGINE_MEMORY_AUX] = (struct engine_memory){2, 24, 48, 4096};
    pthread_mutex_lock(&fake->lock);
    figures->recycled = fake->recycled;
    fake->figures++;
    pthread_mutex_unlock(&fake->lock);
}

/* Under the lock: moves the tickets of id to `out`. */
static size_t take_tickets(struct fake *fake, uint64_t id, struct ticket *out)
{
    size_t taken = 0;
    size_t stay = 0;

    for (size_t i = 0; i < fake->kept_count; i++) {
        if (fake->kept[i].id == id) {
            out[taken++] = fake->kept[i].ticket;
        } else {
            fake->kept[stay++] = fake->kept[i];
        }
    }
    fake->kept_count = stay;
    return taken;
}

/* Under the lock. Lets through what was asked for; the tickets to wake into `out`. */
static size_t grant(struct fake *fake, struct ticket *out)
{
    size_t taken = 0;

    for (size_t i = 0; i < fake->asked_count; i++) {
        uint64_t id = fake->asked[i];
        size_t stay = 0;

        for (size_t j = 0; j < fake->needed_count; j++) {
            if (fake->needed[j] != id) {
                fake->needed[stay++] = fake->needed[j];
            }
        }
        fake->needed_count = stay;
        taken += take_tickets(fake, id, out + taken);
    }
    fake->asked_count = 0;
    return taken;
}

static void wake_all(struct ticket *tickets, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tickets[i].wake(tickets[i].target, tickets[i].serial);
    }
    free(tickets);
}

static void fake_maintain(struct fake *fake, struct barrier *barrier)
{
    struct ticket *tickets = memory_zalloc(TICKETS_MAX * sizeof(*tickets));

    if (barrier != NULL) { /* a switch, as a row makes one */
        barrier_stop(barrier);
        barrier_go(barrier);
    }
    pthread_mutex_lock(&fake->lock);
    CHECK(!fake->maintaining); /* by one thread, and never twice at once */
    fake->maintaining = true;
    pthread_cond_broadcast(&fake->changed);
    while (fake->gate_closed) {
        pthread_cond_wait(&fake->changed, &fake->lock);
    }
    size_t taken = grant(fake, tickets);

    fake->maintaining = false;
    fake->recycled += fake->recycle;
    fake->maintained++;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    wake_all(tickets, taken);
}

void __real_row_maintain(struct row *row, struct barrier *barrier);
void __wrap_row_maintain(struct row *row, struct barrier *barrier);
void __wrap_row_maintain(struct row *row, struct barrier *barrier)
{
    struct fake *fake = fake_of_row(row);

    if (fake == NULL) {
        __real_row_maintain(row, barrier);
    } else {
        fake_maintain(fake, barrier);
    }
}

void __real_row_waited(struct row *row);
void __wrap_row_waited(struct row *row);
void __wrap_row_waited(struct row *row)
{
    struct fake *fake = fake_of_row(row);

    if (fake == NULL) {
        __real_row_waited(row);
        return;
    }
    pthread_mutex_lock(&fake->lock);
    fake->waited++;
    pthread_mutex_unlock(&fake->lock);
}

static void fake_destroy(struct engine *engine)
{
    struct fake *fake = fake_of(engine);

    CHECK(!fake->maintaining);
    pthread_mutex_destroy(&fake->lock);
    pthread_cond_destroy(&fake->changed);
    free(fake->entries);
    free(fake);
}

static const struct engine_functions functions = {
    .kind = "fake",
    .prepare = fake_prepare,
    .read = fake_read,
    .change = fake_change,
    .stats_space = fake_stats_space,
    .stats_table = fake_stats_table,
    .figures = fake_figures,
    .destroy = fake_destroy,
};

struct engine *fake_engine_create(bool role_cache)
{
    struct fake *fake = memory_zalloc(sizeof(*fake));

    fake->engine.functions = &functions;
    fake->engine.role_cache = role_cache;
    fake->engine.row = &fake->row;
    fake->engine.slots = &fake->slots;
    engine_slots_add(&fake->slots, "a");
    engine_slots_add(&fake->slots, "b");
    fake->entries = memory_zalloc(ENTRIES * sizeof(*fake->entries));
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
    return &fake->engine;
}

void fake_engine_hold(struct engine *engine, uint64_t id)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    CHECK(fake->held_count < MARKS_MAX);
    fake->held[fake->held_count++] = id;
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_hold_busy(struct engine *engine, uint64_t id)
{
    fake_engine_hold(engine, id);
    fake_of(engine)->busy = id;
}

void fake_engine_release(struct engine *engine, uint64_t id)
{
    struct fake *fake = fake_of(engine);
    struct ticket *tickets = memory_zalloc(TICKETS_MAX * sizeof(*tickets));

    pthread_mutex_lock(&fake->lock);
    size_t stay = 0;

    for (size_t i = 0; i < fake->held_count; i++) {
        if (fake->held[i] != id) {
            fake->held[stay++] = fake->held[i];
        }
    }
    fake->held_count = stay;
    size_t taken = take_tickets(fake, id, tickets);

    pthread_mutex_unlock(&fake->lock);
    wake_all(tickets, taken);
}

void fake_engine_await(struct engine *engine, size_t n)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    while (fake->kept_count < n) {
        pthread_cond_wait(&fake->changed, &fake->lock);
    }
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_break(struct engine *engine, uint64_t id)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    CHECK(fake->broken_count < MARKS_MAX);
    fake->broken[fake->broken_count++] = id;
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_crowd(struct engine *engine, bool crowded)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    fake->crowded = crowded;
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_jam(struct engine *engine)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    fake->jammed = true;
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_fill(struct engine *engine, bool full)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    fake->full = full;
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_need_table(struct engine *engine, uint64_t id)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    CHECK(fake->needed_count < MARKS_MAX);
    fake->needed[fake->needed_count++] = id;
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_gate(struct engine *engine, bool closed)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    fake->gate_closed = closed;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_gate_await(struct engine *engine)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    while (!fake->maintaining) {
        pthread_cond_wait(&fake->changed, &fake->lock);
    }
    pthread_mutex_unlock(&fake->lock);
}

void fake_engine_tables(struct engine *engine, uint64_t tables)
{
    fake_of(engine)->tables = tables;
}

void fake_engine_recycle(struct engine *engine, uint64_t records)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    fake->recycle = records;
    pthread_mutex_unlock(&fake->lock);
}

static uint64_t figure(struct engine *engine, const uint64_t *at)
{
    struct fake *fake = fake_of(engine);

    pthread_mutex_lock(&fake->lock);
    uint64_t value = *at;

    pthread_mutex_unlock(&fake->lock);
    return value;
}

uint64_t fake_engine_reads_longest(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->reads_longest);
}

uint64_t fake_engine_crowded_out(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->crowded_out);
}

uint64_t fake_engine_adds_longest(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->adds_longest);
}

uint64_t fake_engine_changes(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->changes);
}

uint64_t fake_engine_maintained(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->maintained);
}

uint64_t fake_engine_clears(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->clears);
}

uint64_t fake_engine_figures(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->figures);
}

uint64_t fake_engine_waited(struct engine *engine)
{
    return figure(engine, &fake_of(engine)->waited);
}
