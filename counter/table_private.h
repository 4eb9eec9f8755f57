/*
 * table_private.h: the table's inside, shared by table*.c alone. The layout stands in table.h.
 */
#ifndef ROLLCALL_COUNTER_TABLE_PRIVATE_H
#define ROLLCALL_COUNTER_TABLE_PRIVATE_H

#include <stdatomic.h>

#include "base/check.h"
#include "base/dict.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/verlock.h"
#include "base/words.h"
#include "counter/table.h"
#include "counter/table_overlay.h"
#include "row/permute.h"
#include "row/row_cold.h"

#define TABLE_MAGIC 0x74626c31u

/* Fields of a group's lock word; bit 0 is the lock. */
#define GROUP_SPILLED      2u
#define GROUP_MARK_SHIFT   2
#define GROUP_MARKS        8u
#define GROUP_COUNT_SHIFT  10
#define GROUP_COUNT_ONE    (1u << GROUP_COUNT_SHIFT)
#define GROUP_CHOICE_SHIFT 14 /* narrow groups: after a count of 4 bits */
#define GROUP_WIDE_VERSION 16 /* wide groups: after a count of 6 bits */
#define STRIPE_VERSION_ONE 2u

struct table_stripe {
    _Alignas(MEMORY_LINE_BYTES) verlock lock;
};

#define TABLE_ID_BITS   63
#define TABLE_NO_WINDOW (1ull << 63) /* an origin that every id is outside of */

struct counter_table {
    struct row_table row; /* first, and whole cache lines */
    /* What every look-up reads. Only settling changes any of it, with the world stopped. */
    uint64_t origin; /* of the window; TABLE_NO_WINDOW: unsettled */
    shared_word *memory;
    uint64_t secret;
    uint32_t magic;
    uint32_t count_mask;
    uint32_t choice_mask; /* narrow: one bit a place */
    uint32_t version_one;
    uint32_t page_groups; /* groups in TABLE_PAGE_BYTES */
    uint32_t rem_offset;  /* of the remainders in a group */
    uint32_t rem_eight;   /* of the eight bytes that end with the first one … */
    uint32_t rem_shift;   /* … and how many bits of them are others */
    uint32_t rem_bits;    /* of what an id is permuted to: the others are its group's number */
    /* Remainders of two bytes: the words they lie in, the lanes in front of them. lanes_end 0: they
     * have another width. */
    uint32_t lanes_first, lanes_end, lanes_skip;
    bool wide; /* more than TABLE_NARROW_PLACES: choice bits in a word of their own */
    struct permute permute;
    struct counter_shape shape;
    struct counter_view view;
    struct dict *extend;          /* id -> payload */
    struct dict *aux;             /* id, sub-key -> value */
    struct table_stripe *stripes; /* homes of ids outside the window */
    struct row *in_row;           /* NULL: on its own */
    struct counter_table *root;   /* whose layer it is; itself if it is none */
    /* Entries new ones are refused beyond: a restored table's dicts have room to spare, which the
       next restart needs. UINT64_MAX: what the dict takes. */
    uint64_t extend_max, aux_max;
    unsigned extend_times, aux_times; /* as large as the shape says: 1, or TABLE_ROOMY and more */
    bool previewed;                   /* its schema has not learned the view's names yet */
    /* With the world stopped. `memory` and `extend` NULL: the table is dumped. */
    struct table_overlay *overlay, *older; /* overlay of one in memory: it is tapped */
    struct counter_file *file;
    struct table_fold fold;
    unsigned doubles; /* the file of the merge under way has 2^doubles times as many groups */
    uint64_t *shadow; /* full ids beside the places; only with ROLLCALL_SHADOW_IDS */
    struct counter_schema schema;
};

/* Groups and their words. */

/* Returns where a deleted record lay, as a change says it. */
static inline enum change_place table_delete_place(const struct counter_table *t)
{
    return t->row.is_apart ? CHANGE_APART : t == t->root ? CHANGE_THERE : CHANGE_INSIDE;
}

static inline shared_word *group_words(const struct counter_table *t, uint64_t group)
{
    return (shared_word *)((char *)t->memory + group * t->shape.group_bytes);
}

static inline verlock *group_lock(const struct counter_table *t, const shared_word *words)
{
    return (verlock *)((char *)words + t->shape.group_bytes) - 1;
}

static inline uint32_t group_count(const struct counter_table *t, uint32_t word)
{
    return word >> GROUP_COUNT_SHIFT & t->count_mask;
}

/* Bit a place: it lies here as its alternate. */
static inline uint32_t group_choices(const struct counter_table *t, const shared_word *words,
                                     uint32_t word)
{
    if (t->wide) {
        return __atomic_load_n(group_lock(t, words) - 1, __ATOMIC_RELAXED);
    }
    return word >> GROUP_CHOICE_SHIFT & t->choice_mask;
}

static inline uint64_t group_rem(const struct counter_table *t, const shared_word *words,
                                 uint32_t place)
{
    return words_eight(words, (size_t)t->rem_eight + (size_t)place * t->shape.rem_bytes) >>
           t->rem_shift;
}

static inline uint64_t rem_hash(const struct counter_table *t, uint64_t rem)
{
    return hash_u64(rem ^ t->secret);
}

static inline uint32_t rem_mark(uint64_t hash)
{
    return 1u << (GROUP_MARK_SHIFT + hash % GROUP_MARKS);
}

/* The other group of a record: in the same page, and its own inverse. */
static inline uint64_t group_other(const struct counter_table *t, uint64_t group, uint64_t hash)
{
    return group ^ (1 + ((hash >> 32) * (t->page_groups - 1) >> 32));
}

static inline verlock *stripe_lock(const struct counter_table *t, uint64_t id)
{
    return &t->stripes[hash_u64(id) % TABLE_STRIPES].lock;
}

/* The lock of a locus' home. */
static inline verlock *table_home_lock(const struct counter_table *t,
                                       const struct counter_locus *locus)
{
    return locus->group == TABLE_OUTSIDE || !t->memory
               ? stripe_lock(t, locus->id)
               : group_lock(t, group_words(t, locus->group));
}

/* ---- matching remainders ---- */

#define LANE_BYTES 2
#define LANES      (8 / LANE_BYTES) /* remainders in a word */
#define LANE_ONES  0x0001000100010001u
#define LANE_REST  0x7fff7fff7fff7fffu

/* Bit a two-byte lane of x, lane 0 lowest, where it is not zero; exact, no carry crosses a lane.
 * The multiplication puts the bits side by side: each of the four goes up, and no two meet. */
static inline uint64_t lanes_other(uint64_t x)
{
    uint64_t other = (((x & LANE_REST) + LANE_REST) | x) >> 15 & LANE_ONES;
    return other * (1ull << 48 | 1ull << 33 | 1ull << 18 | 1ull << 3) >> 48;
}

/* Bit a place whose remainder is not rem, and more above. Those of two bytes, the common ones, lie
 * at whole lanes: all are compared, without a branch. */
static inline uint64_t match_lanes(const struct counter_table *t, const shared_word *words,
                                   uint64_t rem)
{
    uint64_t wanted = rem * LANE_ONES;
    uint64_t other = 0;
    unsigned shift = 0;
    for (uint32_t i = t->lanes_first; i < t->lanes_end; i++, shift += LANES) {
        other |= lanes_other(word_load(words, i) ^ wanted) << shift;
    }
    return other >> t->lanes_skip;
}

/* The same with remainders of other widths: the place among the candidates, -1 if none. All `count`
 * places are looked at: a step to the next one costs less than to find and reach a candidate. */
static inline int match_each(const struct counter_table *t, const shared_word *words,
                             uint32_t candidates, uint32_t count, uint64_t rem)
{
    size_t at = t->rem_eight, step = t->shape.rem_bytes;
    __asm__("" : "+r"(step)); /* else GCC loads it for each step */
    for (uint32_t place = 0; place < count; place++, at += step) {
        bool same = words_eight(words, at) >> t->rem_shift == rem;
        if (UNLIKELY(same) && LIKELY(candidates >> place & 1)) {
            return (int)place;
        }
    }
    return -1;
}

/*
 * The place of rem among a group's records that lie here at home (alternate false) or as their
 * alternate; -1 if none. Consistent only if the word is unchanged afterwards.
 */
static inline int table_match(const struct counter_table *t, const shared_word *words,
                              uint32_t word, uint64_t rem, bool alternate)
{
    uint32_t choices = group_choices(t, words, word);
    uint32_t count = group_count(t, word);
    uint32_t candidates = (alternate ? choices : ~choices) & (uint32_t) ~(UINT64_MAX << count);
    if (UNLIKELY(t->lanes_end == 0)) {
        return match_each(t, words, candidates, count, rem);
    }
    candidates &= (uint32_t)~match_lanes(t, words, rem);
    return candidates ? __builtin_ctz(candidates) : -1;
}

/* Returns whether a record of this locus, inside the window, lies in a group. Nobody else there. */
bool table_in_groups(const struct counter_table *t, const struct counter_locus *locus);

/* A payload where it lies: in a group, or in local words. */
struct table_packed {
    const shared_word *words;
    size_t at; /* its first bit */
};

static inline struct table_packed table_packed_at(const struct counter_table *t,
                                                  const shared_word *words, uint32_t place)
{
    return (struct table_packed){words, (size_t)place * t->shape.payload_bytes * 8};
}

/* Some of the view's slots out of a payload: what of them is set, the values in place. Returns bit
 * a slot that may be in aux; of those that are no physical slots nothing else is known. */
static inline uint32_t table_decode(const struct counter_view *view, struct table_packed packed,
                                    uint32_t slots, struct counter_values *values)
{
    uint32_t set = 0;
    uint32_t in_aux = 0;
    for (; slots; slots &= slots - 1) {
        unsigned i = (unsigned)__builtin_ctz(slots);
        const struct counter_view_slot *slot = &view->slots[i];
        uint64_t raw = field_load(packed.words, packed.at, &slot->field);
        values->value[i] = raw - 1;
        set |= (uint32_t)(raw != 0) << i;
        if (UNLIKELY(raw == slot->field.mask)) {
            in_aux |= 1u << i;
        }
    }
    values->set = set;
    return in_aux;
}
/* Returns whether any of the view's other physical slots is set. */
bool table_others_set(const struct counter_view *view, struct table_packed packed, uint32_t slots);
/* Values of the slots of `mask` out of the aux dict; those not found become unset. */
void table_read_aux(const struct counter_table *t, uint64_t id, uint32_t mask,
                    struct counter_values *values);

/* A lock that is held: the group's or stripe's word as it will be left. */
struct table_held {
    shared_word *words; /* NULL for a stripe */
    verlock *lock;
    uint32_t word;
    uint32_t version_one;
    bool changed; /* raise the version */
    uint64_t group;
};

#define TABLE_HOLD_MAX 3 /* home, alternate, the group a record moves to */

struct table_hold {
    struct table_held held[TABLE_HOLD_MAX]; /* [0] is the home; [1], if any, the alternate */
    unsigned count;
};

/* Takes the lock of the home of a locus inside the window. */
static inline void table_hold_inside(const struct counter_table *t,
                                     const struct counter_locus *locus, struct table_hold *hold)
{
    shared_word *words = group_words(t, locus->group);
    verlock *lock = group_lock(t, words);
    hold->count = 1;
    hold->held[0] =
        (struct table_held){words, lock, verlock_take(lock), t->version_one, false, locus->group};
}

/* Takes the lock of a locus' home. */
static inline void table_hold_home(const struct counter_table *t, const struct counter_locus *locus,
                                   struct table_hold *hold)
{
    if (LIKELY(locus->group != TABLE_OUTSIDE)) {
        table_hold_inside(t, locus, hold);
        return;
    }
    verlock *stripe = stripe_lock(t, locus->id);
    uint32_t word = verlock_take(stripe);
    hold->count = 1;
    hold->held[0] =
        (struct table_held){NULL, stripe, word, STRIPE_VERSION_ONE, false, TABLE_OUTSIDE};
}

static inline void table_release(struct table_hold *hold)
{
    while (hold->count > 0) {
        struct table_held *held = &hold->held[--hold->count];
        verlock_release(held->lock, held->word + (held->changed ? held->version_one : 0));
    }
}

/* Tries the lock of a further group. NULL: taken by somebody else. */
struct table_held *table_hold_group(const struct counter_table *t, struct table_hold *hold,
                                    uint64_t group);

/* Who says where a new id is stored. */
enum table_ask {
    TABLE_ASK_ADMIT, /* row_admit(), or the table itself when it is on its own */
    TABLE_ASK_PLACE, /* row_place(): it was apart and goes in place; stopped */
    TABLE_ASK_THERE, /* nobody: what is not there is `elsewhere` */
    TABLE_ASK_APART, /* nobody: this is the table for ids apart, where it has been counted */
    /* Nobody, it is counted elsewhere: a change is replayed that said so (engine/change.h). */
    TABLE_REPLAY_THERE,  /* what is not there is left out */
    TABLE_REPLAY_INSIDE, /* what is there becomes what is made, and nothing else */
};

static inline bool table_is_replayed(enum table_ask ask)
{
    return ask >= TABLE_REPLAY_THERE;
}

enum table_insert_result {
    TABLE_INSERTED,
    TABLE_INSERT_FULL,
    TABLE_INSERT_NO_TABLE,
    TABLE_INSERT_TOO_FAR,
    TABLE_INSERT_WAIT,  /* the row changes first */
    TABLE_INSERT_BUSY,  /* of a dumped table: its overlay is full */
    TABLE_INSERT_LATER, /* the row cannot change for a moment */
    TABLE_INSERT_APART, /* it belongs apart, and has been counted there */
    TABLE_INSERT_AGAIN,
};

/* What the row said of a new record, as a result. */
enum table_insert_result table_verdict_result(enum row_verdict verdict);

/*
 * Stores a new record and says in *place where. The home is held. On anything but TABLE_INSERTED
 * nothing was changed.
 */
enum table_insert_result table_insert(struct counter_table *t, const struct counter_locus *locus,
                                      struct table_hold *hold, const uint64_t *payload,
                                      enum table_ask ask, enum change_place *place);
/* A dict has no room: FULL; or WAIT, until there is a layer for what is new, the table is dumped,
 * or the part has grown. */
enum table_insert_result table_insert_full(struct counter_table *t, bool anew);
/* The same for one that is counted already: in place as far as there is room. False: none. */
bool table_insert_counted(struct counter_table *t, const struct counter_locus *locus,
                          struct table_hold *hold, const uint64_t *payload);
/* Takes the record of a place out; the group's last record fills the hole. */
void table_remove(const struct counter_table *t, struct table_held *held, uint32_t place);

/*
 * An edit under way, wherever the record lies: table_edit.c and table_cold.c find it and put it.
 * The caller fills the first five.
 */
struct table_change {
    struct counter_table *table;
    const struct counter_locus *locus;
    struct counter_edit *edit;
    uint32_t space;
    struct change_sink *sink;
    enum change_place put;           /* where it was stored */
    enum engine_status status;       /* as decided */
    enum table_insert_result result; /* of what was to be stored */
    bool done;                       /* there was something to change, and it is made */
};
/* Asks the sink for room. False with *error: there is none. */
bool table_change_begin(struct table_change *c, enum engine_error *error);
/* Hands the named slots of edit->after to the sink, under the lock. */
void table_change_hand_over(const struct table_change *c, uint32_t named, bool erased);
/* Gives the sink's room back unless it was used; returns what counter_table_edit() does. */
enum engine_status table_change_end(const struct table_change *c, enum engine_error *error);

/* counter_table_edit with a choice of who is asked. */
enum engine_status table_edit(const struct table_change *change, enum table_ask ask,
                              enum engine_error *error);
/* Drops all aux entries of a record, hidden ones too. */
void table_free_aux(const struct counter_table *t, uint64_t id, const uint64_t *payload);

/* Takes groups and dicts away; the region is the row's. */
void table_leave_memory(struct counter_table *t);

/* ---- whole records (table_record.c) ---- */

#define TABLE_SUBS (ENGINE_SLOTS_MAX + SCHEMA_EXTRAS_MAX) /* sub-keys of aux */

/* A record and its values beside. With nothing set it is none. */
struct table_record {
    uint64_t payload[SCHEMA_PAYLOAD_WORDS];
    uint64_t subs; /* bit a sub-key: there is a value */
    uint64_t aux[TABLE_SUBS];
};

bool table_record_is_set(const struct table_record *record);
/* Sub-keys: all of a schema; those of names it learned; those of some slots of a view. */
uint64_t table_subs_all(const struct counter_schema *schema);
uint64_t table_subs_extra(const struct counter_schema *schema);
uint64_t table_subs_of(const struct counter_view *view, uint32_t slots);
/* Returns those of `subs` that a payload may have: marked ones, and learned names. */
uint64_t table_subs_marked(const struct counter_schema *schema, const uint64_t *payload,
                           uint64_t subs);
/* Unsets what is marked but has no value, of `subs`. */
void table_record_tidy(const struct counter_schema *schema, struct table_record *record,
                       uint64_t subs);
/* The view's slots; the values beside of those in `slots`, and whether the learned ones are set. */
void table_record_decode(const struct counter_view *view, const struct table_record *record,
                         uint32_t slots, struct counter_values *values);
/* The named slots become what `values` says. */
void table_record_apply(const struct counter_view *view, struct table_record *record,
                        uint32_t named, const struct counter_values *values);
/* Reads the record of an id of a table in memory, whose payload this is. */
void table_record_read(const struct counter_table *t, uint64_t id, const uint64_t *payload,
                       struct table_record *record);
/* Gets values beside out of a dict: of `subs` those that are there. */
void table_record_read_aux(struct table_record *record, const struct dict *aux, uint64_t id,
                           uint64_t subs);
/* Makes the record of an id just this one, none if it has nothing set: uncounted, wherever it or a
 * part of it lay. Nobody else there. False: no room; again when the dicts have grown. */
bool table_put_record(struct counter_table *t, const struct counter_locus *locus,
                      const struct table_record *record);

/* ---- overlays ---- */

/* Returns the overlay that a change of the id goes to (row/row_fold.h). Under the id's lock. */
static inline struct table_overlay *table_overlay_of(const struct counter_table *t, uint64_t id)
{
    bool older = UNLIKELY(t->fold.moves) && !dict_get(t->overlay->extend, id, 0, NULL);
    return older ? t->older : t->overlay;
}

/* Returns whether each change is journaled as the whole record, as of a tapped or dumped table. */
static inline bool table_is_whole(const struct counter_table *t)
{
    return t->row.whole || t->overlay;
}

/* A change of a tapped table was made, under the home's lock: what the record is now; payload NULL:
 * nothing. */
void table_tap(struct counter_table *t, uint64_t id, const uint64_t *payload);

/* The file of a dumped table and its reader. The last one to let go of it forgets and closes it. */
struct counter_file {
    struct table_file *file;
    struct engine_cold *cold;
    _Atomic uint32_t users;
};
struct counter_file *table_file_hold(struct table_file *file, struct engine_cold *cold);
void table_file_let_go(struct counter_file *file); /* may block. NULL: no-op */

/* Sets the window of a table that had none, for ids from `low` on. */
void table_set_window(struct counter_table *t, uint64_t low);

/* The dicts of a described table: what was in them by another hash must fit again. */
#define TABLE_ROOMY 2u

#define TABLE_DICT_TAKES 70 /* per cent of a dict's places: then it refuses its first key */
/* table_count.c: counts the records of a table in memory, all stopped. What a dumped one counts was
 * read from a file, which nobody looks into: one that comes back is counted anew. */
uint64_t table_count_records(const struct counter_table *t);

/* Nobody else there; false: memory is refused. The fuller one becomes larger. */
bool table_dicts_grow(struct counter_table *t);
/* Notes what they take for the row: called where they are others. */
void table_dicts_note(struct counter_table *t);
/* Makes the dicts as large as this many entries need. */
bool table_dicts_hold(struct counter_table *t, uint64_t extend, uint64_t aux);
/* Called when all is loaded: makes the dicts as large as they must be, with the room that a restart
 * needs. */
void table_dicts_trim(struct counter_table *t);
/* What spilled goes back to the groups, as far as there is room. Nobody else there. */
void table_take_back_spilled(struct counter_table *t);

/* ---- parts (table_part.c) ---- */

/* Fills group and remainder of a key, of a part. */
void table_part_locate(const struct counter_table *t, uint64_t key, struct counter_locus *locus);
/* The key of a remainder and its home, of a part. */
uint64_t table_part_key(const struct counter_table *t, uint64_t home, uint64_t rem);
/* Pools of one that takes records of another: at least what those need. */
void table_part_pools(struct counter_shape *shape, const struct counter_table *of);
/* What the row routes an id by, as far as the table's range says. */
static inline uint64_t table_route_of(const struct counter_table *t, uint64_t id)
{
    return t->in_row && t->in_row->parted && !t->row.is_apart ? row_part_key(&t->row, id) : id;
}

/* ---- ids apart (table_place.c) ---- */

/* True: the id is in the row's table for ids apart. Under the home's lock, in a row. */
bool table_is_apart(const struct counter_table *t, uint64_t id);
/* A decision for an edit that creates a record: its named slots become the context's. */
enum engine_status table_decide_copy(const struct counter_edit *edit, bool present,
                                     const struct counter_values *before,
                                     struct counter_values *after);

/* What a description holds: all that a table is but its records. */
struct table_description {
    struct counter_shape shape;
    struct counter_schema schema;
    uint64_t origin, secret;
    uint64_t odd[PERMUTE_ROUNDS];
};
/* False: these bytes are none, or say what cannot be. */
bool table_description_read(struct table_description *description, const void *bytes,
                            size_t length);
/* Sets all of a shape that follows from table_bytes, group_bytes, places. */
void table_shape_derive(struct counter_shape *shape);
/*
 * Makes it one of 2^times as many groups: the number of a group is longer by so many bits, which
 * the remainder gives up, so what lies in page p comes to lie in the 2^times pages from p << times
 * on. doubles_max: the most times.
 */
void table_shape_double(struct counter_shape *shape, unsigned times);
unsigned table_shape_doubles_max(const struct counter_shape *shape);
/* The same of a dumped table. World stopped, or nobody else there. */
void table_reshape(struct counter_table *t, unsigned times);

/* The word of a group without lock and version, as images have it. */
static inline uint32_t group_word_still(const struct counter_table *t, uint32_t word)
{
    return word & (t->version_one - 1) & ~VERLOCK_LOCKED;
}

/* The id of a place, from its group, remainder and choice bit. */
uint64_t table_place_id(const struct counter_table *t, uint64_t group, uint32_t place,
                        uint32_t word);
/* The same of a copy of the group. */
uint64_t table_words_id(const struct counter_table *t, const shared_word *words, uint64_t group,
                        uint32_t place, uint32_t word);
/* The same where the table has 2^group_bits groups, whatever its shape says. */
uint64_t table_words_id_of(const struct counter_table *t, unsigned group_bits,
                           const shared_word *words, uint64_t group, uint32_t place, uint32_t word);

/* Fills both dicts from the sections of a file; they grow. Blocks for the disk. False: `error`. */
bool table_load_sections(struct counter_table *t, const struct table_file *file, char *error);

/* Keeps or checks the full id beside a place in a build with ROLLCALL_SHADOW_IDS; else nothing. */
#ifdef ROLLCALL_SHADOW_IDS
void table_shadow_set(const struct counter_table *t, uint64_t group, uint32_t place, uint64_t id);
void table_shadow_move(const struct counter_table *t, uint64_t group, uint32_t place,
                       uint64_t to_group, uint32_t to_place);
void table_shadow_check(const struct counter_table *t, uint64_t group, uint32_t place, uint64_t id);
void table_shadow_group(const struct counter_table *t, uint64_t group, uint32_t word); /* all */
#else
#define table_shadow_set(t, group, place, id) ((void)(t), (void)(group), (void)(place), (void)(id))
#define table_shadow_move(t, group, place, to_group, to_place)                                     \
    table_shadow_set((t), (group), (to_group), ((void)(place), (to_place)))
#define table_shadow_check                 table_shadow_set
#define table_shadow_group(t, group, word) table_shadow_set((t), (group), (word), 0)
#endif

#endif
