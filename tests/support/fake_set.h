/*
 * fake_set.h: a set of ids, exact. Zeroed it is empty. One thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_FAKE_SET_H
#define ROLLCALL_TESTS_SUPPORT_FAKE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_NEVER   UINT64_MAX       /* places[i]: nothing was there */
#define FAKE_REMOVED (UINT64_MAX - 1) /* something was; ids are below */

struct fake_set {
    size_t places, used, count;
    uint64_t *ids; /* of `places`: an id, or one of the above */
};

bool fake_set_has(const struct fake_set *set, uint64_t id);
void fake_set_add(struct fake_set *set, uint64_t id);    /* it is not there */
bool fake_set_remove(struct fake_set *set, uint64_t id); /* false: it was not there */
uint64_t *fake_set_sorted(const struct fake_set *set);   /* all of it; the caller frees */
void fake_set_fini(struct fake_set *set);                /* it is empty again */

#endif
