/*
 * admin_attention.h: what needs an operator, in whole sentences, each with the next step. On a good
 * day there are none.
 */
#ifndef ROLLCALL_ADMIN_ADMIN_ATTENTION_H
#define ROLLCALL_ADMIN_ADMIN_ATTENTION_H

#include "admin/admin_private.h"

#define ADMIN_ATTENTION_MAX   40  /* sentences; the last one says how many more there are */
#define ADMIN_SENTENCE_MAX    400 /* bytes */
#define ADMIN_SOON_S          86400
#define ADMIN_NEAR            0.8 /* of a limit */
#define ADMIN_JOURNAL_LAG_US  5000000
#define ADMIN_BEHIND_US       5000000 /* of a follower */
#define ADMIN_DISK_FREE_LEAST 0.1
#define ADMIN_OVERFLOW        0.01 /* of the records: numbers too large for their slot */

struct admin_attention {
    size_t count;
    size_t more; /* that did not fit */
    char sentences[ADMIN_ATTENTION_MAX][ADMIN_SENTENCE_MAX];
};

/* Collects what a view that is serving needs, the most urgent first. */
void admin_attention_collect(const struct admin_view *view, struct admin_attention *attention);

#endif
