/* stats_private.h: where figures go, for stats*.c. */
#ifndef ROLLCALL_REQUEST_STATS_PRIVATE_H
#define ROLLCALL_REQUEST_STATS_PRIVATE_H

#include "request/dispatch_private.h"

#define STATS_NAME_MAX (ENGINE_STAT_TEXT_MAX + ENGINE_SPACE_NAME_MAX + 2)

struct stats_out {
    struct dispatch_worker *worker;
    const struct request *request;
    const char *words; /* after the name of the group */
    size_t words_length;
    const char *wrong;  /* what is wrong with them; NULL: nothing */
    const char *prefix; /* in front of each name; NULL: none */
    bool full;          /* no room: the answer is void */
};

/* A figure as text, number or double-prefixed number ("1:used_chunks"). The first: engine_stat_fn.
 */
void stats_text(void *out, const char *name, const char *text);
void stats_number(struct stats_out *out, const char *name, uint64_t number);

/* Bytes of the first word. */
size_t stats_word(const char *words, size_t length);

/* Returns the sum of the figure at `offset` over n structs of `stride` bytes, less that of the
 * struct after them. */
uint64_t stats_sum(const void *figures, size_t stride, size_t n, size_t offset);

/* What all spaces together hold, and have recycled. Inside the barrier: each is walked, once. */
void stats_engines(const struct spaces *spaces, struct engine_figures *sum);

/* The part of the general figures that is about the data directory. */
void stats_data(struct stats_out *out); /* stats_data.c */

/* The answers, one file a group. */
typedef void stats_fn(struct stats_out *out);
stats_fn stats_general; /* stats_general.c */
stats_fn stats_items;   /* stats_memory.c */
stats_fn stats_slabs;
stats_fn stats_conns;  /* stats_conns.c */
stats_fn stats_spaces; /* stats_spaces.c */
stats_fn stats_tables;
stats_fn stats_cold; /* stats_data.c */
stats_fn stats_replication;
stats_fn stats_hot; /* stats_watch.c */
stats_fn stats_slow;
stats_fn stats_latency;

#endif
