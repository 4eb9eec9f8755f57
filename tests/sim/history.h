/*
 * history.h: every record that was put into a journal, in order, and what follows from it: the
 * model a recovered server is held against.
 *
 * A record is known by its LSN. After a crash the journal ends somewhere: history_cut() forgets
 * what comes after, and the model is what the rest makes. It knows three things of a key (an id of
 * a counter space, a member of an id of a phantom space): it is there, it is not, nobody can say
 * (a filter that was thrown away may or may not say yes by chance).
 *
 * What an event does to ids: FIRST takes all away; DROP those from its table's base up to the next
 * table's, but for what is apart above its frontier, unless it is the lowest. No other changes an
 * answer, nor does a change that puts in place what was apart.
 *
 * Thread rule: one thread at a time.
 */
#ifndef ROLLCALL_TESTS_SIM_HISTORY_H
#define ROLLCALL_TESTS_SIM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/change.h"
#include "store/journal.h"

#define HISTORY_SPACES_MAX 8 /* by number */
#define HISTORY_BASES_MAX  1024
#define HISTORY_SLOTS_MAX  8
#define HISTORY_NO_MEMBER  UINT32_MAX

enum history_state { HISTORY_UNUSED, HISTORY_THERE, HISTORY_ABSENT, HISTORY_UNKNOWN };

struct history_key {
    uint64_t id;
    uint32_t member; /* by the test's number; HISTORY_NO_MEMBER: a counter's */
    uint8_t space;
    uint8_t state;
    bool apart;     /* it is there, and apart (row/row.h) */
    int8_t members; /* it counts as so many in a filter: 1 if it is there, but for luck of hashes */
    uint64_t hash;  /* of a member, as it was added last */
    uint32_t set;   /* slots that hold a number */
    uint64_t values[HISTORY_SLOTS_MAX];
};

struct history_record;

/* A member that was added, hashed by the rest; member NO_MEMBER: free. */
struct history_name {
    uint64_t id, hash;
    uint32_t member;
    uint8_t space;
};

struct history_bases {
    size_t count;
    uint64_t base[HISTORY_BASES_MAX]; /* of the tables, rising */
};

struct history {
    size_t count, room;
    struct history_record *records; /* by rising LSN */
    size_t keys, key_room;
    struct history_key *key; /* hashed by what they are; HISTORY_UNUSED: free */
    size_t names, name_room;
    struct history_name *name; /* of members, by what a change knows of one; never forgotten */
    struct history_bases tables[HISTORY_SPACES_MAX];
    uint64_t dropped; /* keys that went with a table, in what is left of the history */
};

struct history_event {
    uint32_t space;
    enum change_event event;
    uint64_t base; /* of its table */
    uint64_t last; /* DROP: its frontier, if it had reached its base, and it was not the lowest */
};

void history_init(struct history *history);
void history_fini(struct history *history);

/* What was put last, at lsn. member: see history_key. */
void history_change(struct history *history, uint64_t lsn, const struct change *change,
                    uint32_t member);
/* The member of an id that a change with no operation is about; of a counter NO_MEMBER. */
uint32_t history_member(const struct history *history, const struct change *change);
struct history_event history_event_of(uint32_t space, enum change_event event, const void *bytes,
                                      size_t length);
void history_event(struct history *history, uint64_t lsn, const struct history_event *event);
/* Forgets what was put at or above lsn. */
void history_cut(struct history *history, uint64_t lsn);
/*
 * A record of the journal that is left: is it what was put there? One that nobody has seen put is
 * added if it is an event: a recovery puts some by itself. False: it is neither.
 */
bool history_meet(struct history *history, const struct journal_record *record);
/* Takes what `from` has after its own end and below lsn. */
void history_follow(struct history *history, const struct history *from, uint64_t lsn);
/* A record of a journal that came from another node: it is taken as that one's history has it.
 * False: it is known here, or is not the other's. */
bool history_learn(struct history *history, const struct history *from,
                   const struct journal_record *record);
/* Records at or above lsn. */
size_t history_above(const struct history *history, uint64_t lsn);

#endif
