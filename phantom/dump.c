/* dump.c: lines of a filter in a file and in overlays. */
#include "phantom/dump.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "row/row_cold.h"
#include "store/table_file.h"

#define DUMP_MAGIC      0x70686475u /* "phdu" */
#define SUBS            2           /* keys of the older overlay and of the present one differ */
#define LINES_A_PAGE    (TABLE_FILE_PAGE_BYTES / PHANTOM_LINE_BYTES)
#define CROWDED_DIVISOR 2 /* more than one place in this many is taken */

_Static_assert(PHANTOM_LINE_BYTES <= DICT_VALUE_MAX, "a line is a value");
_Static_assert(PHANTOM_OVERLAY_BYTES_MIN >= DICT_POOL_MIN, "a dict can be that small");

/* Both overlays become one again (row/row_fold.h). */
struct phantom_dump_fold {
    struct dict *wider; /* a copy of the older one, to take its place; NULL: there is none */
    bool resident;      /* its memory, and what it takes of the older one's else */
    bool ready;         /* the copy is whole */
    uint64_t at;        /* in what is made resident, copied, or moved out of */
    bool refused;       /* memory */
    bool moves;         /* the older one changes: phantom_dump_taking() */
};

struct phantom_dump {
    uint32_t magic;
    struct engine_cold *cold;
    struct table_file *file;
    uint64_t pool_bytes;            /* of the next overlay */
    uint64_t usual_bytes;           /* of those after that */
    _Atomic(struct dict *) overlay; /* NULL: nothing was added yet */
    struct dict *older;             /* NULL: no merge is under way */
    uint8_t sub;                    /* of the present overlay's keys */
    _Atomic bool full;              /* some line found no place, though few are taken maybe */
    struct phantom_dump_fold fold;
    _Atomic unsigned holders;
};

/* ---- life ---- */

static uint64_t phantom_dump_room_bytes(const struct engine_cold *cold, uint64_t table_bytes)
{
    uint64_t bytes = table_bytes / PHANTOM_OVERLAY_SHARE;
    bytes = bytes > cold->overlay_bytes_max ? cold->overlay_bytes_max : bytes;
    return bytes < PHANTOM_OVERLAY_BYTES_MIN ? PHANTOM_OVERLAY_BYTES_MIN : bytes;
}

struct phantom_dump *phantom_dump_create(struct engine_cold *cold, uint64_t table_bytes,
                                         unsigned overruns)
{
    struct phantom_dump *dump = memory_zalloc(sizeof(*dump));
    dump->magic = DUMP_MAGIC;
    dump->cold = cold;
    dump->usual_bytes = phantom_dump_room_bytes(cold, table_bytes);
    dump->pool_bytes = row_cold_wider(dump->usual_bytes, overruns, cold->overlay_bytes_max);
    atomic_init(&dump->holders, 1);
    return dump;
}

void phantom_dump_hold(struct phantom_dump *dump)
{
    CHECK(dump->magic == DUMP_MAGIC);
    atomic_fetch_add(&dump->holders, 1);
}

static void give_back(const struct phantom_dump *dump, uint64_t lines)
{
    uint64_t bytes = lines * PHANTOM_OVERLAY_LINE_BYTES;
    CHECK(atomic_fetch_sub(&dump->cold->overlay_bytes, bytes) >= bytes);
}

void phantom_dump_release(struct phantom_dump *dump)
{
    if (!dump) {
        return;
    }
    CHECK(dump->magic == DUMP_MAGIC);
    if (atomic_fetch_sub(&dump->holders, 1) > 1) {
        return;
    }
    if (dump->file) {
        cold_forget(dump->cold->cold, dump->file);
        table_file_close(dump->file);
    }
    give_back(dump, phantom_dump_lines(dump));
    dict_destroy(dump->older);
    dict_destroy(dump->fold.wider);
    dict_destroy(atomic_load(&dump->overlay));
    dump->magic = 0;
    free(dump);
}

/* ---- adding ---- */

/* Made by the first thread that needs it. NULL: memory is refused. */
static struct dict *overlay_to_add(struct phantom_dump *dump)
{
    struct dict *dict = atomic_load(&dump->overlay);
    if (dict) {
        return dict;
    }
    struct dict *mine = dict_create(PHANTOM_LINE_BYTES, dump->pool_bytes, clock_random());
    if (mine && atomic_compare_exchange_strong(&dump->overlay, &dict, mine)) {
        return mine;
    }
    dict_destroy(mine);
    return dict;
}

static uint8_t older_sub(const struct phantom_dump *dump)
{
    return (uint8_t)((dump->sub + 1) % SUBS);
}

/*
 * Returns the overlay that takes what is added to a line, and *sub for it: the present one; while
 * that goes back into the older one, the older one, but for the lines that still stand there.
 */
static struct dict *phantom_dump_taking(struct phantom_dump *dump, uint64_t line, uint8_t *sub)
{
    struct dict *dict = overlay_to_add(dump);
    bool older = UNLIKELY(dump->fold.moves) && !dict_get(dict, line, dump->sub, NULL);
    *sub = older ? older_sub(dump) : dump->sub;
    return older ? dump->older : dict;
}

static bool charge(const struct phantom_dump *dump)
{
    struct engine_cold *cold = dump->cold;
    uint64_t before = atomic_fetch_add(&cold->overlay_bytes, PHANTOM_OVERLAY_LINE_BYTES);
    bool dumped = dump->file != NULL;
    if (before + PHANTOM_OVERLAY_LINE_BYTES > engine_overlay_most(cold, dumped)) {
        give_back(dump, 1);
        return false;
    }
    return true;
}

bool phantom_dump_room(struct phantom_dump *dump, uint64_t line)
{
    static const uint64_t nothing[DICT_VALUE_WORDS];
    uint8_t sub;
    struct dict *dict = phantom_dump_taking(dump, line, &sub);
    if (!dict) {
        return false;
    }
    if (dict_get(dict, line, sub, NULL)) {
        return true;
    }
    if (UNLIKELY(sub != dump->sub) && !row_fold_keeps_room(dict, atomic_load(&dump->overlay))) {
        return false;
    }
    if (!charge(dump)) {
        return false;
    }
    if (!dict_put(dict, line, sub, nothing)) {
        give_back(dump, 1);
        atomic_store(&dump->full, true);
        return false;
    }
    return true;
}

bool phantom_dump_add(struct phantom_dump *dump, uint64_t line, unsigned bits, uint64_t hash)
{
    uint64_t words[DICT_VALUE_WORDS];
    uint8_t sub;
    if (!atomic_load(&dump->overlay)) {
        return false;
    }
    struct dict *dict = phantom_dump_taking(dump, line, &sub);
    if (!dict_get(dict, line, sub, words)) {
        return false;
    }
    phantom_line_set(words, bits, hash);
    CHECK(dict_put(dict, line, sub, words));
    return true;
}

/* Nobody else is there. */
static bool put_growing(struct dict **dict, uint64_t line, uint8_t sub, const uint64_t *words)
{
    while (!dict_put(*dict, line, sub, words)) {
        if (!dict_grow(dict)) {
            return false;
        }
    }
    return true;
}

bool phantom_dump_restore(struct phantom_dump *dump, uint64_t line, const uint64_t *words)
{
    uint64_t sum[DICT_VALUE_WORDS] = {0};
    uint8_t sub;
    struct dict *dict = phantom_dump_taking(dump, line, &sub);
    if (!dict) {
        return false;
    }
    bool there = dict_get(dict, line, sub, sum);
    for (unsigned i = 0; i < PHANTOM_LINE_WORDS; i++) {
        sum[i] |= words[i];
    }
    bool done = put_growing(&dict, line, sub, sum);
    if (sub == dump->sub) {
        atomic_store(&dump->overlay, dict);
    } else {
        dump->older = dict;
    }
    if (done && !there) {
        atomic_fetch_add(&dump->cold->overlay_bytes, PHANTOM_OVERLAY_LINE_BYTES);
    }
    return done;
}

bool phantom_dump_grow(struct phantom_dump *dump, uint64_t line)
{
    static const uint64_t nothing[DICT_VALUE_WORDS];
    return phantom_dump_restore(dump, line, nothing);
}

/* ---- reading ---- */

static void or_line(const struct dict *dict, uint64_t line, uint8_t sub, uint64_t *words)
{
    uint64_t added[DICT_VALUE_WORDS];
    if (dict && dict_get(dict, line, sub, added)) {
        for (unsigned i = 0; i < PHANTOM_LINE_WORDS; i++) {
            words[i] |= added[i];
        }
    }
}

void phantom_dump_line(const struct phantom_dump *dump, uint64_t line, uint64_t *words)
{
    or_line(atomic_load(&dump->overlay), line, dump->sub, words);
    or_line(dump->older, line, older_sub(dump), words);
}

enum cold_result phantom_dump_page(const struct phantom_dump *dump, uint64_t line,
                                   const struct ticket *ticket, uint64_t *words)
{
    uint64_t page[TABLE_FILE_PAGE_BYTES / sizeof(uint64_t)];
    char error[TABLE_FILE_ERROR_MAX];
    enum cold_result result =
        cold_get(dump->cold->cold, dump->file, line / LINES_A_PAGE, ticket, page, error);
    const uint64_t *from = page + line % LINES_A_PAGE * PHANTOM_LINE_WORDS;
    for (unsigned i = 0; result == COLD_HIT && i < PHANTOM_LINE_WORDS; i++) {
        words[i] |= from[i];
    }
    return result;
}

enum table_file_result phantom_dump_load(const struct phantom_dump *dump, uint64_t first,
                                         uint64_t count, uint64_t *to,
                                         char error[TABLE_FILE_ERROR_MAX])
{
    enum table_file_result result =
        table_file_load_pages(dump->file, first, count, to, NULL, NULL, error);
    if (result != TABLE_FILE_DONE) {
        return result;
    }
    for (uint64_t i = 0; i < count * LINES_A_PAGE; i++) {
        or_line(dump->older, first * LINES_A_PAGE + i, older_sub(dump),
                to + i * PHANTOM_LINE_WORDS);
    }
    return TABLE_FILE_DONE;
}

/* ---- its stages ---- */

void phantom_dump_open(struct phantom_dump *dump, struct table_file *file)
{
    CHECK(!dump->file);
    dump->file = file;
}

struct table_file *phantom_dump_file(const struct phantom_dump *dump)
{
    return dump->file;
}

void phantom_dump_take_back(struct phantom_dump *dump)
{
    dump->file = NULL;
}

/* Half of its places are taken, or one line found none. */
static bool is_crowded(const struct phantom_dump *dump, const struct dict *dict)
{
    return atomic_load(&dump->full) || dict_count(dict) > dict_places(dict) / CROWDED_DIVISOR;
}

void phantom_dump_size(const struct phantom_dump *dump, struct row_overlay_size *size)
{
    const struct dict *dict = atomic_load(&dump->overlay);
    *size = (struct row_overlay_size){
        .entries = phantom_dump_lines(dump),
        .bytes = (dict ? dict_count(dict) : 0) * PHANTOM_OVERLAY_LINE_BYTES,
        .older_bytes = (dump->older ? dict_count(dump->older) : 0) * PHANTOM_OVERLAY_LINE_BYTES,
        .held_bytes = phantom_dump_pool_bytes(dump),
        .half = dict && is_crowded(dump, dict),
        .merges = dump->file && !dump->older && dict && dict_count(dict) > 0,
    };
}

void phantom_dump_merge(struct phantom_dump *dump)
{
    CHECK(dump->file && !dump->older && atomic_load(&dump->overlay));
    dump->older = atomic_exchange(&dump->overlay, NULL);
    dump->pool_bytes = dump->usual_bytes;
    atomic_store(&dump->full, false);
    dump->sub = (uint8_t)((dump->sub + 1) % SUBS);
}

struct table_file *phantom_dump_merged(struct phantom_dump *dump, struct table_file *file,
                                       struct dict **spent)
{
    CHECK(dump->older && file && !dump->fold.moves);
    struct table_file *before = dump->file;
    dump->file = file;
    give_back(dump, dict_count(dump->older));
    *spent = dump->older;
    dump->older = NULL;
    return before;
}

struct dict *phantom_dump_give_up(struct phantom_dump *dump)
{
    CHECK(!dump->file && !dump->older && atomic_load(&dump->holders) == 1);
    give_back(dump, phantom_dump_lines(dump));
    return atomic_exchange(&dump->overlay, NULL);
}

/* ---- both overlays become one again ---- */

/* With room for the lines of both in half of its places. */
static struct dict *phantom_fold_widen(const struct dict *older, const struct dict *newer)
{
    uint64_t lines = dict_count(older) + dict_count(newer);
    return dict_create(PHANTOM_LINE_BYTES, row_fold_pool_bytes(older, lines), clock_random());
}

static void phantom_fold_copy(void *context, uint64_t line, uint8_t sub, const uint64_t *value)
{
    CHECK(dict_put(context, line, sub, value)); /* it is at most half full in the end */
}

/* True: there is more to do. */
static bool phantom_fold_piece(struct phantom_dump *dump, const struct dict *newer)
{
    struct phantom_dump_fold *fold = &dump->fold;
    if (fold->resident) {
        return fold->wider &&
               dict_walk(dump->older, &fold->at, ROW_FOLD_COPIES, phantom_fold_copy, fold->wider);
    }
    uint64_t lines = dict_count(dump->older) + (newer ? dict_count(newer) : 0);
    fold->resident =
        !dict_populate(fold->wider ? fold->wider : dump->older, lines, &fold->at, ROW_FOLD_BYTES);
    fold->at = fold->resident ? 0 : fold->at;
    return true;
}

enum row_fold phantom_dump_fold_prepare(struct phantom_dump *dump)
{
    struct phantom_dump_fold *fold = &dump->fold;
    const struct dict *newer = atomic_load(&dump->overlay);
    CHECK(dump->older);
    if (fold->moves || fold->ready) {
        return ROW_FOLD_MOVE;
    }
    if (!fold->wider && !row_fold_has_room(dump->older, newer)) {
        fold->wider = phantom_fold_widen(dump->older, newer);
        fold->refused = !fold->wider;
        fold->resident = false;
        fold->at = 0;
    }
    fold->ready = !fold->refused && !phantom_fold_piece(dump, newer);
    return fold->ready || fold->refused ? ROW_FOLD_MOVE : ROW_FOLD_COPY;
}

/* False: it is not ready, or more has come meanwhile than there is room for. */
static bool phantom_fold_begin(struct phantom_dump *dump, struct dict **spent)
{
    struct dict *wider = dump->fold.wider;
    bool begins = dump->fold.ready &&
                  row_fold_has_room(wider ? wider : dump->older, atomic_load(&dump->overlay));
    *spent = wider;
    if (begins && wider) {
        *spent = dump->older;
        dump->older = wider;
    }
    if (begins) {
        atomic_store(&dump->full, false);
    }
    dump->fold = (struct phantom_dump_fold){.moves = begins};
    return begins;
}

struct moving {
    struct phantom_dump *dump;
    struct dict *from;
    struct row_fold_moved moved;
};

static void phantom_fold_line(void *context, uint64_t line, uint8_t sub, const uint64_t *value)
{
    struct moving *moving = context;
    struct phantom_dump *dump = moving->dump;
    uint64_t words[DICT_VALUE_WORDS];
    uint64_t before = dict_count(dump->older);
    for (unsigned i = 0; i < PHANTOM_LINE_WORDS; i++) {
        words[i] = value[i];
    }
    or_line(dump->older, line, older_sub(dump), words);
    moving->moved.refused =
        moving->moved.refused || !put_growing(&dump->older, line, older_sub(dump), words);
    if (!moving->moved.refused) {
        dict_delete(moving->from, line, sub);
        give_back(dump, before + 1 - dict_count(dump->older)); /* it stood in both */
        moving->moved.entries++;
    }
}

static bool phantom_fold_move(struct phantom_dump *dump, unsigned most)
{
    struct moving moving = {.dump = dump, .from = atomic_load(&dump->overlay)};
    return row_fold_move(moving.from, &dump->fold.at, most, phantom_fold_line, &moving,
                         &moving.moved);
}

static struct dict *phantom_fold_end(struct phantom_dump *dump)
{
    struct dict *newer = atomic_exchange(&dump->overlay, dump->older);
    dump->older = NULL;
    dump->sub = older_sub(dump);
    dump->fold = (struct phantom_dump_fold){0};
    return newer;
}

enum row_fold phantom_dump_fold(struct phantom_dump *dump, unsigned most, struct dict *spent[2])
{
    CHECK(dump->older);
    spent[0] = spent[1] = NULL;
    if (dump->fold.refused) {
        dump->fold.refused = false;
        return ROW_FOLD_REFUSED;
    }
    if (!dump->fold.moves && !phantom_fold_begin(dump, &spent[0])) {
        return ROW_FOLD_COPY;
    }
    if (atomic_load(&dump->overlay) && !phantom_fold_move(dump, most)) {
        return ROW_FOLD_REFUSED;
    }
    const struct dict *newer = atomic_load(&dump->overlay);
    if (newer && dict_count(newer) > 0) {
        return ROW_FOLD_MOVE;
    }
    spent[1] = phantom_fold_end(dump);
    return ROW_FOLD_DONE;
}

/* ---- for images, figures and checks ---- */

const struct dict *phantom_dump_overlay(const struct phantom_dump *dump, unsigned which)
{
    return which == 0 ? dump->older : atomic_load(&dump->overlay);
}

uint64_t phantom_dump_lines(const struct phantom_dump *dump)
{
    const struct dict *present = atomic_load(&dump->overlay);
    return (present ? dict_count(present) : 0) + (dump->older ? dict_count(dump->older) : 0);
}

uint64_t phantom_dump_pool_bytes(const struct phantom_dump *dump)
{
    const struct dict *present = atomic_load(&dump->overlay);
    return (present ? dict_pool_bytes(present) : 0) +
           (dump->older ? dict_pool_bytes(dump->older) : 0);
}

struct checking {
    uint64_t lines;
    uint8_t sub;
};

static void check_line(void *context, uint64_t line, uint8_t sub, const uint64_t *value)
{
    const struct checking *checking = context;
    (void)value;
    CHECK(line < checking->lines && sub == checking->sub);
}

void phantom_dump_check(const struct phantom_dump *dump, uint64_t lines)
{
    CHECK(dump->magic == DUMP_MAGIC);
    for (unsigned which = 0; which < SUBS; which++) {
        const struct dict *dict = phantom_dump_overlay(dump, which);
        struct checking checking = {lines, which == 0 ? older_sub(dump) : dump->sub};
        if (dict) {
            dict_each(dict, check_line, &checking);
            dict_check(dict);
        }
    }
}
