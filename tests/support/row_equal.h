/*
 * row_equal.h: are two rows the same, one that was used and one that was made again? Expectations
 * that do not hold fail the cmocka test that runs. Nobody else is there.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_ROW_EQUAL_H
#define ROLLCALL_TESTS_SUPPORT_ROW_EQUAL_H

#include <stdbool.h>

#include "row/row.h"

/*
 * Routing, what tables were made of, how far streams have come, how much is held. exact: the second
 * was made by replay of all that ever happened, so what was counted on the way is the same too.
 * (Not what is only remembered for a while: ahead ids, samples, wants.)
 */
void row_equal(const struct row *live, const struct row *again, bool exact);

#endif
