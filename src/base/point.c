/* point.c: the function that is told of points, and delays. Only test builds have this file. */
#include "base/point.h"

#ifdef ROLLCALL_POINTS

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_A_SECOND 1000
#define NS_A_MS     1000000

static point_fn *told;
static void *told_context;
static pthread_once_t delay_once = PTHREAD_ONCE_INIT;
static const char *delayed; /* up to its '='; NULL: none */
static size_t delayed_length;
static struct timespec delay;

void point_set(point_fn *function, void *context)
{
    told = function;
    told_context = context;
}

static void read_delay(void)
{
    const char *text = getenv(POINT_SLOW_ENVIRONMENT);
    const char *equals = text != NULL ? strchr(text, '=') : NULL;
    char *end = NULL;
    long ms = equals != NULL ? strtol(equals + 1, &end, 10) : 0;

    if (ms <= 0 || strcmp(end, "ms") != 0) {
        return;
    }
    delay = (struct timespec){ms / MS_A_SECOND, ms % MS_A_SECOND * NS_A_MS};
    delayed_length = (size_t)(equals - text);
    delayed = text;
}

void point_pass(const char *name)
{
    if (told != NULL) {
        told(told_context, name);
    }
}

void point_slow(const char *name)
{
    pthread_once(&delay_once, read_delay);
    if (delayed == NULL || strlen(name) != delayed_length ||
        memcmp(name, delayed, delayed_length) != 0) {
        return;
    }
    struct timespec left = delay;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

#else

typedef int point_is_empty; /* a file of C has something in it */

#endif
