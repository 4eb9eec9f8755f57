/*
 * point.h: named points in the code, where a test may want a process to end or another thread to
 * come first: POINT("name"). They do nothing unless ROLLCALL_POINTS is defined (configure
 * --enable-points); then each calls point_pass(), which the test program sets. POINT_SLOW("name")
 * calls nobody; the environment may make one of these take time, as a slow disk would:
 * ROLLCALL_POINT_DELAY="cold read=100ms".
 *
 * Thread rule: point_set() before any other thread is there; POINT() anywhere, locks may be
 * held; POINT_SLOW() where a thread may block.
 */
#ifndef ROLLCALL_BASE_POINT_H
#define ROLLCALL_BASE_POINT_H

#ifdef ROLLCALL_POINTS

#define POINT_SLOW_ENVIRONMENT "ROLLCALL_POINT_DELAY"

typedef void point_fn(void *context, const char *name);

/* NULL: nobody is told. */
void point_set(point_fn *function, void *context);
void point_pass(const char *name);
void point_slow(const char *name);

#define POINT(name)      point_pass(name)
#define POINT_SLOW(name) point_slow(name)

#else

#define POINT(name)      ((void)0)
#define POINT_SLOW(name) ((void)0)

#endif

#endif
