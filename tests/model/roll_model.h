/*
 * roll_model.h: a space with rolling ids and a plain map of what it must hold, run side by side:
 * every operation goes to both, and its answer must be the map's. What was recycled is told by the
 * oldest table's base; where a table between others went, what it had is gone, unless it may have
 * moved to one opened in the same round, and is answered as below until a later one opens there.
 * Counters use one slot; phantoms a member, of which an id may have several.
 *
 * A filter may take a pair that never was for there; such answers are counted, never those for
 * pairs that were added or deleted. Thread rule: one thread.
 */
#ifndef ROLLCALL_TESTS_MODEL_ROLL_MODEL_H
#define ROLLCALL_TESTS_MODEL_ROLL_MODEL_H

#include "tests/model/roll.h"
#include "tests/support/random.h"

#define ROLL_DROPS_MAX 1024u

struct roll_item {
    uint64_t id, value;
    uint32_t member;
    bool there;
    bool deleted;   /* it was there before: must be denied */
    bool refused;   /* for want of room, once */
    bool unlucky;   /* for want of a place in a side dict, once */
    bool unsure;    /* there, or gone with its table: the next answer tells */
    bool dropped;   /* gone with its table, between others: below until one opens there */
    uint64_t after; /* with that: tables from this serial on may have opened there since */
};

struct roll_model {
    struct roll roll;
    struct roll_worker worker;
    const char *name; /* of the test, for messages */
    size_t count, room;
    struct roll_item *items; /* all that were ever named */
    uint32_t *index;         /* hash of id and member: 1 + place in items; 2 x room */
    uint64_t done;           /* operations */
    struct roll_item *asked; /* of the operation now */
    uint64_t compared_at;    /* of these, when all was compared last, */
    uint64_t compared_round; /* and the row had been maintained so often */
    uint64_t oldest;         /* base of the first table */
    uint64_t maintained;     /* when that was looked up, and these */
    size_t range_count;
    struct roll_range ranges[ROW_TABLES_MAX];
    uint64_t gone;                           /* items, with tables between others */
    uint64_t below;                          /* operations on such that were answered as below */
    size_t drop_count;                       /* tables between others that are no more, */
    struct roll_range drops[ROLL_DROPS_MAX]; /* the last of them */
    bool drops_missed;                       /* one opened and went while one request waited */
    uint64_t denials, wrong_denials;         /* pairs that never were: asked for, and found */
    bool may_refuse;                         /* what is new; and what has no room in a pool */
    uint64_t refused;
    uint64_t vain, vain_most; /* of these one after the other, while a table was free; at most */
    /* So many times a 64 KiB table's side dict may have no place for an id: luck of hashes. */
    uint64_t unlucky_max;
    uint64_t unlucky;
    union {
        struct counters_call counter;
        struct phantoms_call phantom;
    } call;
    char text[24];
    char member[ROLL_MEMBER_MAX];
};

void roll_model_init_counter(struct roll_model *model, const char *name,
                             const struct counter_config *config);
void roll_model_init_phantom(struct roll_model *model, const char *name,
                             const struct phantom_config *config);
/* Compares every item, unless nothing has happened since, checks the invariants, gives all back. */
void roll_model_fini(struct roll_model *model);

/* The place of an item in model->items: as it is, or new and not there. */
size_t roll_model_item(struct roll_model *model, uint64_t id, uint32_t member);

/*
 * One operation on slot 0, on the record (DELETE), or on the pair; value is what is set or the
 * delta. Fails the test if the answer is not the map's, or if it was refused and may not be.
 */
void roll_model_do(struct roll_model *model, enum engine_verb verb, size_t item, uint64_t value);

/* Reads every item, and checks the invariants. */
void roll_model_compare(struct roll_model *model);

#endif
