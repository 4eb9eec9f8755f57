/*
 * ops.h: what the load of the recovery tests asks for, what must come back, and the file that says
 * what every id then holds.
 *
 * The model is a file of one entry an id, mapped and shared: load.c changes an entry when the
 * answer has come, so an entry is always what was *acknowledged*; crash.py reads it, and writes
 * into it what a restart brought back. What was sent and not answered is printed by load.c.
 *
 *     offset           size  meaning (native byte order; -1 in a slot: unset)
 *     0                8     MODEL_MAGIC
 *     8                8     entries the file has room for
 *     16               8     the next id nobody has taken yet; ids begin at 1
 *     24               8     1: the daemon has refused an id for want of a table; take no new ones
 *     4096 + 40 * id   32    the slots
 *                  32  1     members u0, u1, two bits each from the lowest: enum member_state
 *                  33  1     recycled, as an answer said: GONE_FEED, GONE_LIKED
 *                  34  1     the writer that owns it, from 1; 0: nobody
 *                  35  1     zero
 *                  36  4     the last round in which it was changed
 *
 * Each id is changed by its owner alone, which is what makes the expectation exact.
 * Thread rule: `next`, `full` and `owner` by any thread, the rest of an entry by its owner's.
 */
#ifndef ROLLCALL_TESTS_RECOVERY_OPS_H
#define ROLLCALL_TESTS_RECOVERY_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_MAGIC        0x6c65646f6d736f70u
#define MODEL_HEADER_BYTES 4096

#define SLOTS       4 /* of the space feed: repost comment like read */
#define MEMBERS     2 /* of an id of the space liked: u0, u1; few, for a table has room for so many */
#define UNSET_VALUE (-1)
#define WHOLE       (-1) /* instead of a slot: the record */

#define OP_BYTES_MAX 256 /* of a request, of an answer */

enum gone { GONE_FEED = 1, GONE_LIKED = 2 };

enum member_state {
    MEMBER_NEVER,   /* was never added: the filter may still say yes, seldom */
    MEMBER_THERE,   /* an add was acknowledged */
    MEMBER_DELETED, /* a delete was acknowledged: exactly absent */
    MEMBER_UNKNOWN, /* the filter said yes for one never added: not judged */
};

struct model_entry {
    int64_t slots[SLOTS];
    uint8_t members;
    uint8_t gone;
    _Atomic uint8_t owner;
    uint8_t zero;
    uint32_t round;
};

struct model_header {
    uint64_t magic;
    uint64_t ids_max;
    _Atomic uint64_t next;
    _Atomic uint64_t full;
};

enum verb {
    VERB_INCR,   /* the slots that `values` names */
    VERB_DECR,   /* same */
    VERB_SET,    /* one slot */
    VERB_RECORD, /* all slots, an empty one unsets */
    VERB_UNSET,  /* one slot */
    VERB_DELETE, /* the record */
    VERB_GET,    /* the record */
    VERB_ADD_MEMBER,
    VERB_DELETE_MEMBER,
    VERBS
};

struct op {
    uint64_t id;
    int64_t values[SLOTS]; /* UNSET_VALUE: not named */
    enum verb verb;
    int slot;     /* or WHOLE; of a member's verb: the member */
    uint64_t end; /* in the connection's stream: all of it was sent when this much was */
};

/* What an answer that is not the expected one means. */
enum outcome {
    OUTCOME_WRONG,          /* a failure */
    OUTCOME_REFUSED,        /* SERVER_ERROR, id too far ahead: nothing has changed */
    OUTCOME_GONE,           /* the id's table was recycled */
    OUTCOME_FALSE_POSITIVE, /* the filter said yes for a member never added */
};

static inline enum member_state member_get(const struct model_entry *entry, int member)
{
    return (enum member_state)(entry->members >> (2 * member) & 3);
}

static inline void member_put(struct model_entry *entry, int member, enum member_state state)
{
    entry->members =
        (uint8_t)((entry->members & ~(3u << (2 * member))) | (unsigned)state << (2 * member));
}

/* "counter" or "member", and the verb's name: for reports. */
const char *op_kind(const struct op *op);
const char *op_name(const struct op *op);
bool op_is_member(const struct op *op);

/* Writes the request to `out`, of OP_BYTES_MAX; its length. */
size_t op_compose(const struct op *op, char *out);

/* Does to *entry what the daemon must do; the answer that must come goes to `answer`, of
 * OP_BYTES_MAX; its length. */
size_t op_apply(const struct op *op, struct model_entry *entry, char *answer);

/* What `line`, which is not the expected answer, means for an op on *entry, whose state is that
 * before the op; FALSE_POSITIVE and GONE are noted in *entry. `recycles`: ids may be gone. */
enum outcome op_other(const struct op *op, struct model_entry *entry, const char *line,
                      bool recycles);

#endif
