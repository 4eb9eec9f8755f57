/*
 * check.h: invariants, on in release builds too.
 *
 * CHECK(condition) is for what the caller or this program must guarantee; a false one ends the
 * process with the file, line and text of the condition. What the world may do wrong (input, a
 * full disk, memory) is handled, never checked. Cost: one predictable branch.
 */
#ifndef ROLLCALL_BASE_CHECK_H
#define ROLLCALL_BASE_CHECK_H

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Prints "file:line: function: check failed: text" to stderr, after what was logged, and aborts.
 * Any thread. */
__attribute__((noreturn, cold)) void check_failed(const char *file, int line, const char *function,
                                                  const char *text);

#define CHECK(condition)                                                                           \
    (LIKELY(condition) ? (void)0 : check_failed(__FILE__, __LINE__, __func__, #condition))

#endif
