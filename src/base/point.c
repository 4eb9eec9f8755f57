/* point.c: who is told of points. Test builds alone have it. */
#include "base/point.h"

#ifdef ROLLCALL_POINTS

#include <stddef.h>

static point_fn *told;
static void *told_context;

void point_set(point_fn *function, void *context)
{
    told = function;
    told_context = context;
}

void point_pass(const char *name)
{
    if (told != NULL) {
        told(told_context, name);
    }
}

#else

typedef int point_is_empty; /* a file of C has something in it */

#endif
