/*
 * direct.h: the three system calls of a request, asked for by number.
 *
 * As a place where a thread may be cancelled each of libc's functions exchanges an atomic word
 * before and after the call, which is 40 instructions; no thread of this process is ever cancelled.
 * Under a sanitizer, which watches libc's functions, those are called. Parameters, result and errno
 * are theirs (recv(2), send(2), epoll_wait(2)); any thread.
 */
#ifndef ROLLCALL_NET_DIRECT_H
#define ROLLCALL_NET_DIRECT_H

#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DIRECT_IS_WATCHED 1
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DIRECT_IS_WATCHED 1
#endif
#endif

#if !defined(DIRECT_IS_WATCHED) && defined(SYS_recvfrom) && defined(SYS_sendto)

static inline ssize_t direct_recv(int fd, void *bytes, size_t length, int flags)
{
    return syscall(SYS_recvfrom, fd, bytes, length, flags, NULL, NULL);
}

static inline ssize_t direct_send(int fd, const void *bytes, size_t length, int flags)
{
    return syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0);
}

static inline int direct_epoll_wait(int fd, struct epoll_event *events, int count, int wait_ms)
{
    return (int)syscall(SYS_epoll_pwait, fd, events, count, wait_ms, NULL, 0);
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

static inline int direct_epoll_wait(int fd, struct epoll_event *events, int count, int wait_ms)
{
    return epoll_wait(fd, events, count, wait_ms);
}

#endif

#endif
