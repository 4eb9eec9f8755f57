/*
 * direct.h: the system calls of a request and of a wake-up, asked for by number.
 *
 * As a place where a thread may be cancelled each of libc's functions exchanges an atomic word
 * before and after the call, which is 40 instructions; no thread of this process is ever cancelled.
 * Nor is libc's syscall() called where the machine's own is known, which is 15 instructions more.
 * Under a sanitizer, which watches libc's functions, those are called. Parameters, result and errno
 * are theirs (recv(2), send(2), epoll_wait(2), read(2), write(2)); any thread.
 */
#ifndef ROLLCALL_NET_DIRECT_H
#define ROLLCALL_NET_DIRECT_H

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DIRECT_IS_WATCHED 1
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DIRECT_IS_WATCHED 1
#endif
#endif

#if !defined(DIRECT_IS_WATCHED) && defined(SYS_recvfrom) && defined(SYS_sendto)

/* A call whose fifth and sixth argument are 0. */
static inline long direct_call(long number, long first, long second, long third, long fourth)
{
#if defined(__x86_64__) && defined(__LP64__)
    register long r10 __asm__("r10") = fourth;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    long result = number;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (UNLIKELY(result < 0)) {
        errno = (int)-result;
        return -1;
    }
    return result;
#else
    return syscall(number, first, second, third, fourth, 0l, 0l);
#endif
}

static inline ssize_t direct_recv(int fd, void *bytes, size_t length, int flags)
{
    return direct_call(SYS_recvfrom, fd, (long)bytes, (long)length, flags);
}

static inline ssize_t direct_send(int fd, const void *bytes, size_t length, int flags)
{
    return direct_call(SYS_sendto, fd, (long)bytes, (long)length, flags);
}

static inline ssize_t direct_read(int fd, void *bytes, size_t length)
{
    return direct_call(SYS_read, fd, (long)bytes, (long)length, 0);
}

static inline ssize_t direct_write(int fd, const void *bytes, size_t length)
{
    return direct_call(SYS_write, fd, (long)bytes, (long)length, 0);
}

static inline int direct_epoll_wait(int fd, struct epoll_event *events, int count, int wait_ms)
{
    return (int)direct_call(SYS_epoll_pwait, fd, (long)events, count, wait_ms);
}

#else

static inline ssize_t direct_recv(int fd, void *bytes, size_t length, int flags)
{
    return recv(fd, bytes, length, flags);
}

static inline ssize_t direct_send(int fd, const void *bytes, size_t length, int flags)
{
    return send(fd, bytes, length, flags);
}

static inline ssize_t direct_read(int fd, void *bytes, size_t length)
{
    return read(fd, bytes, length);
}

static inline ssize_t direct_write(int fd, const void *bytes, size_t length)
{
    return write(fd, bytes, length);
}

static inline int direct_epoll_wait(int fd, struct epoll_event *events, int count, int wait_ms)
{
    return epoll_wait(fd, events, count, wait_ms);
}

#endif

#endif
