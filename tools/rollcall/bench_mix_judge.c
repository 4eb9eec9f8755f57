/*
 * Judging the replies of the workload mix. Every reply is judged by its form; what a kept id
 * answers also by what is remembered of it, which the same step then brings up to date.
 */
#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "tools/rollcall/bench_item.h"
#include "tools/rollcall/bench_mix_private.h"
#include "tools/rollcall/bench_workload.h"

#define TOO_OLD "CLIENT_ERROR id below the oldest table"

/* One item being judged. */
struct judged {
    struct bench_mix *mix;
    const uint64_t *words;
    struct bench_item item;
    struct bench_reply *reply;
    struct bench_tally *tally;
    struct bench_kind_tally *kind;
};

static void mismatch(const struct judged *judged, const char *what)
{
    bench_tally_mismatch(judged->tally, what, judged->item.line, judged->item.line_length);
}

/* The answer to a kept id must have been as it says. */
static void demand(const struct judged *judged, bool right, const char *what)
{
    judged->tally->checked++;
    if (!right) {
        mismatch(judged, what);
    }
}

static void count(const struct judged *judged, bool hit)
{
    judged->tally->hits += hit;
    judged->tally->misses += !hit;
    judged->kind->hits += hit;
    judged->kind->misses += !hit;
}

/* NULL: none, or its place has been taken by a newer one since. */
static struct bench_kept *kept_at(const struct judged *judged, uint64_t key)
{
    uint64_t place = bench_mix_place(judged->words, key);

    if (place == 0) {
        return NULL;
    }
    struct bench_lane *lane = &judged->mix->lanes[bench_mix_lane(judged->words)];
    struct bench_kept *kept = &lane->kept[place - 1];
    return kept->id == bench_mix_id(judged->words, key) ? kept : NULL;
}

/* The record as a get answers it: an unset slot is empty. Returns its length. */
static size_t print_record(const struct bench_kept *kept, size_t slots, char *out)
{
    char *at = out;

    for (size_t i = 0; i < slots; i++) {
        if (kept->set >> i & 1) {
            at += num_print(at, kept->values[i]);
        }
        *at++ = ',';
    }
    return (size_t)(at - out) - 1;
}

static bool is_text(const char *bytes, size_t length, const char *text, size_t text_length)
{
    return length == text_length && memcmp(bytes, text, length) == 0;
}

static bool is_record(const struct judged *judged, const struct bench_kept *kept, const char *bytes,
                      size_t length)
{
    char text[BENCH_MIX_VALUE_MAX];
    size_t text_length = print_record(kept, judged->mix->options->slot_count, text);
    return is_text(bytes, length, text, text_length);
}

static bool is_value(const struct bench_kept *kept, uint32_t slot, const char *bytes, size_t length)
{
    char text[NUM_DIGITS_MAX];
    return (kept->set >> slot & 1) != 0 &&
           is_text(bytes, length, text, num_print(text, kept->values[slot]));
}

/* --- get ---------------------------------------------------------------------------------------
 */

/* A member of a kept id that was never added may be found now and then. */
static void judge_foreign(const struct judged *judged, bool found)
{
    judged->tally->foreign++;
    judged->tally->wrong += found;
}

static void judge_member(const struct judged *judged, const struct bench_kept *kept, uint32_t bit,
                         bool found)
{
    if (kept->added & bit) {
        demand(judged, found, "a member that was added is denied: ");
    } else if (kept->deleted & bit) {
        demand(judged, !found, "a deleted member is found: ");
    } else {
        judge_foreign(judged, found);
    }
}

static void judge_missed(const struct judged *judged, uint64_t key)
{
    const struct bench_kept *kept = kept_at(judged, key);
    uint32_t argument = bench_mix_argument(judged->words, key);

    count(judged, false);
    if (kept == NULL) {
        return;
    }
    if (bench_mix_kind(judged->words) == BENCH_KIND_EXIST) {
        judge_member(judged, kept, 1u << argument, false);
    } else if (bench_mix_kind(judged->words) == BENCH_KIND_SLOT) {
        demand(judged, (kept->set >> argument & 1) == 0, "a slot that was set is missing: ");
    } else {
        demand(judged, kept->set == 0, "a record is missing: ");
    }
}

static void judge_found(const struct judged *judged, uint64_t key)
{
    const struct bench_kept *kept = kept_at(judged, key);
    const char *data = judged->item.data;
    size_t length = judged->item.data_length;
    uint32_t argument = bench_mix_argument(judged->words, key);
    enum bench_kind kind = bench_mix_kind(judged->words);
    bool whole = kind == BENCH_KIND_PAGE || kind == BENCH_KIND_RECORD;
    size_t fields = whole ? judged->mix->options->slot_count : 1;

    count(judged, true);
    if (!bench_item_numbers(data, length, fields, whole)) {
        mismatch(judged, "not numbers: ");
    }
    if (kept == NULL) {
        return;
    }
    if (kind == BENCH_KIND_EXIST) {
        judge_member(judged, kept, 1u << argument, true);
    } else if (kind == BENCH_KIND_SLOT) {
        demand(judged, is_value(kept, argument, data, length), "wrong value: ");
    } else {
        demand(judged, kept->set != 0 && is_record(judged, kept, data, length), "wrong record: ");
    }
}

static void pass_missed(const struct judged *judged, uint64_t to)
{
    for (; judged->reply->key < to; judged->reply->key++) {
        judge_missed(judged, judged->reply->key);
    }
}

static bool is_key(const struct judged *judged, uint64_t key)
{
    char text[BENCH_MIX_KEY_MAX];
    size_t skipped = strlen("VALUE ");
    size_t length = (size_t)(bench_mix_put_key(judged->mix, judged->words, key, text) - text);
    return is_text(judged->item.line + skipped, judged->item.key_end - skipped, text, length);
}

/* A VALUE: of the next key asked for, or of a later one. */
static void judge_value(const struct judged *judged)
{
    uint64_t asked = bench_mix_keys(judged->mix, bench_mix_kind(judged->words));

    if (judged->mix->options->verify == BENCH_OFF) {
        count(judged, true);
        judged->reply->key++;
        return;
    }
    for (uint64_t key = judged->reply->key; key < asked; key++) {
        if (!is_key(judged, key)) {
            continue;
        }
        pass_missed(judged, key);
        judge_found(judged, key);
        judged->reply->key++;
        return;
    }
    mismatch(judged, "key not asked for here: ");
}

static void judge_get(const struct judged *judged, bool yes)
{
    (void)yes;
    pass_missed(judged, bench_mix_keys(judged->mix, bench_mix_kind(judged->words)));
}

/* --- changes -----------------------------------------------------------------------------------
 */

static void judge_incr(const struct judged *judged, bool yes)
{
    struct bench_kept *kept = kept_at(judged, 0);
    uint32_t slot = bench_mix_argument(judged->words, 0);

    if (yes && !bench_item_numbers(judged->item.line, judged->item.line_length, 1, false)) {
        mismatch(judged, "not a number: ");
    }
    if (kept == NULL) {
        return;
    }
    if (!yes) {
        demand(judged, (kept->set >> slot & 1) == 0, "incr: a slot that was set is missing: ");
        return;
    }
    kept->values[slot] = kept->set >> slot & 1 ? kept->values[slot] + 1 : 1;
    kept->set |= 1u << slot;
    demand(judged, is_value(kept, slot, judged->item.line, judged->item.line_length),
           "incr: wrong value: ");
}

static void judge_several(const struct judged *judged, bool yes)
{
    struct bench_kept *kept = kept_at(judged, 0);
    uint32_t named = bench_mix_argument(judged->words, 0);
    size_t slots = judged->mix->options->slot_count;

    if (yes && !bench_item_numbers(judged->item.line, judged->item.line_length, slots, true)) {
        mismatch(judged, "not a record: ");
    }
    if (kept == NULL) {
        return;
    }
    if (!yes) {
        demand(judged, (kept->set & named) != named, "incr: slots that were set are missing: ");
        return;
    }
    for (size_t i = 0; i < slots; i++) {
        if (named >> i & 1) {
            kept->values[i] = (kept->set >> i & 1 ? kept->values[i] : 0) + bench_mix_delta(i);
        }
    }
    kept->set |= named;
    demand(judged, is_record(judged, kept, judged->item.line, judged->item.line_length),
           "incr: wrong record: ");
}

/* What was created is remembered, in place of the lane's oldest. */
static void judge_create(const struct judged *judged, bool yes)
{
    struct bench_mix *mix = judged->mix;
    uint64_t id = bench_mix_id(judged->words, 0);
    uint64_t place = bench_mix_place(judged->words, 0);

    if (!yes || place == 0) {
        return;
    }
    struct bench_lane *lane = &mix->lanes[bench_mix_lane(judged->words)];
    struct bench_kept *kept = &lane->kept[lane->next++ % mix->kept_a_lane];
    *kept = (struct bench_kept){
        .index = place - 1,
        .id = id,
        .set = (uint32_t)((1ull << mix->options->slot_count) - 1),
        .used = true,
    };
    for (size_t i = 0; i < mix->options->slot_count; i++) {
        kept->values[i] = bench_workload_value(id, i);
    }
}

static void judge_delete(const struct judged *judged, bool yes)
{
    struct bench_kept *kept = kept_at(judged, 0);

    if (kept == NULL) {
        return;
    }
    demand(judged, yes == (kept->set != 0), "delete: wrong answer: ");
    kept->set = 0;
}

/* yes: STORED, it was not there before. */
static void judge_like(const struct judged *judged, bool yes)
{
    struct bench_kept *kept = kept_at(judged, 0);

    if (kept == NULL) {
        return;
    }
    uint32_t bit = 1u << bench_mix_argument(judged->words, 0);
    judge_member(judged, kept, bit, !yes);
    kept->added |= bit;
    kept->deleted &= ~bit;
}

static void judge_unlike(const struct judged *judged, bool yes)
{
    struct bench_kept *kept = kept_at(judged, 0);

    if (kept == NULL) {
        return;
    }
    uint32_t bit = 1u << bench_mix_argument(judged->words, 0);
    judge_member(judged, kept, bit, yes);
    if (yes) {
        kept->deleted |= bit;
    }
    kept->added &= ~bit;
}

/* --- replies -----------------------------------------------------------------------------------
 */

/* The lines that end a reply; yes NULL: a line of digits and commas. */
static const struct answer {
    const char *yes, *no;
    void (*judge)(const struct judged *judged, bool yes);
} answers[BENCH_KINDS] = {
    [BENCH_KIND_PAGE] = {"END", "END", judge_get},
    [BENCH_KIND_RECORD] = {"END", "END", judge_get},
    [BENCH_KIND_SLOT] = {"END", "END", judge_get},
    [BENCH_KIND_INCR] = {NULL, "NOT_FOUND", judge_incr},
    [BENCH_KIND_SEVERAL] = {NULL, "NOT_FOUND", judge_several},
    [BENCH_KIND_CREATE] = {"STORED", "STORED", judge_create},
    [BENCH_KIND_DELETE] = {"DELETED", "NOT_FOUND", judge_delete},
    [BENCH_KIND_EXIST] = {"END", "END", judge_get},
    [BENCH_KIND_LIKE] = {"STORED", "NOT_STORED", judge_like},
    [BENCH_KIND_UNLIKE] = {"DELETED", "NOT_FOUND", judge_unlike},
};

/* Older ids than the window may have been recycled. */
static bool is_expected(const struct judged *judged)
{
    const struct bench_mix *mix = judged->mix;
    const char *allow = mix->options->allow;

    if (allow != NULL && bench_item_begins(&judged->item, allow)) {
        return true;
    }
    if (!bench_item_is(&judged->item, TOO_OLD) || mix->feed.clock <= mix->feed.window) {
        return false;
    }
    uint64_t oldest = bench_workload_id(mix->options, mix->feed.clock - mix->feed.window);
    return bench_mix_id(judged->words, 0) < oldest;
}

static void judge_end(const struct judged *judged)
{
    const struct bench_item *item = &judged->item;
    enum bench_kind kind = bench_mix_kind(judged->words);
    const struct answer *answer = &answers[kind];
    bool digits = item->line_length > 0 && (item->line[0] <= '9' && item->line[0] >= ',');
    bool yes = answer->yes != NULL ? bench_item_is(item, answer->yes) : digits;

    if (bench_item_error(item)) {
        judged->kind->errors++;
        bench_tally_error(judged->tally, item->line, item->line_length, is_expected(judged));
    } else if (yes || bench_item_is(item, answer->no)) {
        if (answer->judge != judge_get) {
            count(judged, yes);
        }
        answer->judge(judged, yes);
    } else {
        mismatch(judged, "unexpected line: ");
        judged->reply->broken = true;
        return;
    }
    uint64_t operations = bench_mix_keys(judged->mix, kind);
    judged->tally->requests++;
    judged->kind->requests++;
    judged->tally->operations += operations;
    judged->kind->operations += operations;
    judged->reply->done = true;
}

size_t bench_mix_judge(struct bench_mix *mix, const uint64_t *words, const char *bytes,
                       size_t length, struct bench_reply *reply, struct bench_tally *tally)
{
    enum bench_kind kind = bench_mix_kind(words);
    struct judged judged = {
        .mix = mix, .words = words, .reply = reply, .tally = tally, .kind = &tally->kinds[kind]};
    bool values = answers[kind].judge == judge_get;
    size_t taken = 0;

    CHECK(mix->mark == BENCH_MIX_MARK);
    switch (bench_item_cut(bytes, length, values, &judged.item, &taken)) {
    case BENCH_ITEM_PART:
        break;
    case BENCH_ITEM_VALUE:
        judge_value(&judged);
        break;
    case BENCH_ITEM_LINE:
        judge_end(&judged);
        break;
    case BENCH_ITEM_BROKEN:
        mismatch(&judged, judged.item.fault);
        reply->broken = true;
        break;
    }
    return taken;
}
