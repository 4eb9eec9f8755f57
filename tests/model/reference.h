/*
 * reference.h: the counter engine as plainly as it can be written: a hash map from id to optional
 * numbers by slot name, against which the real one is compared.
 *
 * plan says what an operation answers and remembers what it would change; commit changes it. A
 * caller whose engine refused (it was full) leaves the commit out. Memory is never short here.
 * Thread rule: one thread.
 */
#ifndef ROLLCALL_TESTS_MODEL_REFERENCE_H
#define ROLLCALL_TESTS_MODEL_REFERENCE_H

#include "counter/counter.h"

#define REFERENCE_NAMES_MAX 48 /* slot names a reference ever sees */

struct reference;

struct reference_answer {
    enum engine_status status;
    enum engine_error error;
    enum engine_miss miss;
    size_t length;
    char text[ENGINE_VALUE_MAX];
    bool grows; /* a new record, or a number that may not fit where it stands: may be refused */
};

struct reference *reference_create(const struct counter_config *config);
void reference_destroy(struct reference *reference);
void reference_reconfigure(struct reference *reference, const struct counter_config *config);
void reference_clear(struct reference *reference);

void reference_plan(struct reference *reference, const struct engine_op *op,
                    struct reference_answer *answer);
void reference_commit(struct reference *reference); /* what was planned last */

/* The cas token of what an operation's key names; 0 when there is none. */
uint64_t reference_token(struct reference *reference, const struct engine_op *op);

uint64_t reference_records(const struct reference *reference);

#endif
