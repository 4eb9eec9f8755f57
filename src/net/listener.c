#include "net/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fail.h"
#include "base/log.h"
#include "net/address.h"
#include "net/peer.h"

struct listener {
    int fd;
    bool is_unix;
    bool tls;
    dev_t device; /* of the unix socket's file: only our own is unlinked */
    ino_t inode;
    char address[NET_ADDRESS_TEXT_MAX];
    struct event event;
    struct net_listeners *set;
};

struct net_listeners {
    size_t count;
    int backlog;
    int reserve_fd; /* -1: could not be had */
    struct event_base *base;
    net_listener_accepted *accepted;
    void *context;
    struct net_metrics *metrics;
    struct event resume;
    struct listener items[NET_LISTEN_MAX];
};

/* What opening an address needs besides the set, and the place of its error. */
struct opening {
    const struct net_options *options;
    const char *text;
    bool plain; /* without TLS, whatever the others have */
    char *error;
    bool *in_use;
};

static bool listener_fail(const struct opening *opening, int error_number)
{
    if (error_number == EADDRINUSE) {
        *opening->in_use = true;
        snprintf(opening->error, NET_ERROR_MAX, "%.120s is in use", opening->text);
    } else {
        snprintf(opening->error, NET_ERROR_MAX, "%.120s: %s", opening->text,
                 strerror(error_number));
    }
    return false;
}

static bool fail_text(const struct opening *opening, const char *why)
{
    return fail_with(opening->error, NET_ERROR_MAX, "%.120s: %.120s", opening->text, why);
}

/* Takes over a bound descriptor. */
static bool listener_add(struct net_listeners *set, const struct opening *opening, int fd,
                         bool is_unix)
{
    if (set->count == NET_LISTEN_MAX) {
        close(fd);
        return fail_text(opening, "too many addresses");
    }
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
        int saved = errno;
        close(fd);
        return listener_fail(opening, saved);
    }
    struct listener *item = &set->items[set->count++];
    item->fd = fd;
    item->is_unix = is_unix;
    item->tls = opening->options->tls != NULL && !is_unix && !opening->plain;
    item->set = set;
    net_address_print(&bound, length, item->address);
    struct stat file;
    if (is_unix && lstat(item->address, &file) == 0) {
        item->device = file.st_dev;
        item->inode = file.st_ino;
    }
    return true;
}

static void set_option(int fd, int level, int option)
{
    int on = 1;
    (void)setsockopt(fd, level, option, &on, sizeof(on)); /* none of them is worth a refusal */
}

/* Returns a bound descriptor, or -1 with errno: EADDRINUSE where somebody listens. */
static int open_tcp(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    set_option(fd, SOL_SOCKET, SO_REUSEADDR);
    /* Accepted sockets inherit these two on Linux, which saves a system call a connection. */
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY);
    if (at->ai_family == AF_INET6) {
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    }
    if (bind(fd, at->ai_addr, at->ai_addrlen) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static bool add_tcp(struct net_listeners *set, const struct opening *opening,
                    const struct net_address_parts *parts)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int code =
        getaddrinfo(parts->host[0] != '\0' ? parts->host : NULL, parts->port, &hints, &found);
    if (code != 0) {
        return code == EAI_SYSTEM ? listener_fail(opening, errno)
                                  : fail_text(opening, gai_strerror(code));
    }
    size_t before = set->count;
    int error_number = EADDRNOTAVAIL;
    bool done = true;
    for (const struct addrinfo *at = found; done && at != NULL; at = at->ai_next) {
        int fd = open_tcp(at);
        if (fd >= 0) {
            done = listener_add(set, opening, fd, false);
        } else if (errno == EADDRINUSE) {
            done = listener_fail(opening, EADDRINUSE);
        } else {
            error_number = errno; /* a machine without v6 may well listen on v4 only */
        }
    }
    freeaddrinfo(found);
    if (done && set->count == before) {
        done = listener_fail(opening, error_number);
    }
    return done;
}

/* Makes the path free. 0, or an errno: EADDRINUSE when somebody listens there. */
static int clear_path(const struct sockaddr_un *name)
{
    struct stat file;
    if (lstat(name->sun_path, &file) != 0) {
        return errno == ENOENT ? 0 : errno;
    }
    if (!S_ISSOCK(file.st_mode)) {
        return EEXIST;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    int code = connect(fd, (const struct sockaddr *)name, sizeof(*name)) == 0 ? 0 : errno;
    close(fd);
    if (code == 0 || code == EAGAIN) { /* EAGAIN: somebody listens, with a full backlog */
        return EADDRINUSE;
    }
    if (code != ECONNREFUSED) {
        return code;
    }
    return unlink(name->sun_path) == 0 ? 0 : errno;
}

/*
 * Gives the file of a socket, just bound, its mode and owner. It goes by a descriptor of the file
 * itself: a user who may write in the folder could have put a link to something else in its place.
 */
static bool give_away(const char *path, const struct net_options *options)
{
    char self[64];
    struct stat file;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    bool ours = fstat(fd, &file) == 0 && S_ISSOCK(file.st_mode);
    errno = ours ? 0 : EEXIST;
    bool done =
        ours && chmod(self, (mode_t)options->unix_mode) == 0 &&
        (options->unix_owner == NULL || fchownat(fd, "", options->unix_owner->user,
                                                 options->unix_owner->group, AT_EMPTY_PATH) == 0);
    int saved = errno;
    close(fd);
    errno = saved;
    return done;
}

static bool add_unix(struct net_listeners *set, const struct opening *opening)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(opening->text) >= sizeof(name.sun_path)) {
        return listener_fail(opening, ENAMETOOLONG);
    }
    strcpy(name.sun_path, opening->text);
    int code = clear_path(&name);
    if (code != 0) {
        return listener_fail(opening, code);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return listener_fail(opening, errno);
    }
    /* Before listen(): until then nobody can connect. */
    if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) != 0 ||
        !give_away(name.sun_path, opening->options)) {
        int saved = errno;
        close(fd);
        return listener_fail(opening, saved);
    }
    return listener_add(set, opening, fd, true);
}

static int open_reserve(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

struct net_listeners *net_listener_create(const struct net_options *options,
                                          char error[NET_ERROR_MAX], bool *in_use)
{
    struct net_listeners *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        snprintf(error, NET_ERROR_MAX, "out of memory");
        return NULL;
    }
    set->reserve_fd = open_reserve();
    set->backlog = (int)options->backlog;
    for (size_t i = 0; i < options->address_count; i++) {
        const char *text = options->addresses[i];
        size_t prefix = sizeof(NET_PLAIN_PREFIX) - 1;
        bool plain = strncmp(text, NET_PLAIN_PREFIX, prefix) == 0;
        struct opening opening = {options, plain ? text + prefix : text, plain, error, in_use};
        struct net_address_parts parts;
        bool opened = false;
        if (!net_address_split(opening.text, &parts)) {
            fail_text(&opening, "not host:port, [v6]:port or /path");
        } else if (parts.is_unix) {
            opened = add_unix(set, &opening);
        } else {
            opened = add_tcp(set, &opening, &parts);
        }
        if (!opened) {
            net_listener_destroy(set);
            return NULL;
        }
    }
    return set;
}

bool net_listener_listen(struct net_listeners *set, char error[NET_ERROR_MAX], bool *in_use)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct opening opening = {
            .text = set->items[i].address, .error = error, .in_use = in_use};

        if (listen(set->items[i].fd, set->backlog) != 0) {
            return listener_fail(&opening, errno);
        }
    }
    return true;
}

static void unlink_own(const struct listener *item)
{
    struct stat file;
    if (lstat(item->address, &file) == 0 && file.st_dev == item->device &&
        file.st_ino == item->inode) {
        (void)unlink(item->address);
    }
}

void net_listener_destroy(struct net_listeners *set)
{
    if (set == NULL) {
        return;
    }
    CHECK(set->base == NULL);
    for (size_t i = 0; i < set->count; i++) {
        if (set->items[i].is_unix) {
            unlink_own(&set->items[i]);
        }
        close(set->items[i].fd);
    }
    if (set->reserve_fd >= 0) {
        close(set->reserve_fd);
    }
    free(set);
}

const char *net_listener_address(const struct net_listeners *set, size_t i)
{
    return i < set->count ? set->items[i].address : NULL;
}

bool net_listener_tls(const struct net_listeners *set, size_t i)
{
    return i < set->count && set->items[i].tls;
}

void net_listener_refuse(struct net_listeners *set, int fd, bool tls, const char *why)
{
    static const char words[] = "ERROR Too many open connections\r\n";
    char unread[4096];
    metric_add(&set->metrics->rejected_connections, 1);
    net_peer_log_refused(fd, why);
    /* A close with unread input is a reset, which may overtake the words. */
    (void)!recv(fd, unread, sizeof(unread), MSG_DONTWAIT);
    if (!tls) {
        (void)!send(fd, words, sizeof(words) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(fd);
}

static void pause_all(struct net_listeners *set)
{
    struct timeval pause = {.tv_usec = NET_LISTENER_PAUSE_MS * 1000};
    metric_add(&set->metrics->listen_disabled_num, 1);
    for (size_t i = 0; i < set->count; i++) {
        event_del(&set->items[i].event);
    }
    if (event_add(&set->resume, &pause) != 0) {
        log_error("the accept timer failed: no further connections");
    }
}

static void on_resume(evutil_socket_t fd, short what, void *argument)
{
    struct net_listeners *set = argument;
    (void)fd;
    (void)what;
    if (set->reserve_fd < 0) {
        set->reserve_fd = open_reserve();
    }
    for (size_t i = 0; i < set->count; i++) {
        if (event_add(&set->items[i].event, NULL) != 0) {
            log_error("cannot listen again address=%s", set->items[i].address);
        }
    }
}

/*
 * No descriptor for the client at the head of the queue: tell it with the one in reserve. Returns
 * 0 or why that failed: EAGAIN if nobody waits (without descriptors that is not seen earlier),
 * EMFILE if the one in reserve is gone: another thread may take it at any time.
 */
static int refuse_with_reserve(struct net_listeners *set, const struct listener *item)
{
    if (set->reserve_fd < 0) {
        return EMFILE;
    }
    close(set->reserve_fd);
    int fd = accept4(item->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int result = fd >= 0 ? 0 : errno;
    if (fd >= 0) {
        net_listener_refuse(set, fd, item->tls, "no descriptor is left");
    }
    set->reserve_fd = open_reserve();
    return set->reserve_fd >= 0 ? result : EMFILE;
}

/* After a failed accept4: true if the next one may do better. */
static bool accept_failed(const struct listener *item, int error_number)
{
    struct net_listeners *set = item->set;
    if (error_number == EMFILE || error_number == ENFILE) {
        error_number = refuse_with_reserve(set, item);
    }
    switch (error_number) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        pause_all(set);
        return false;
    case EAGAIN:
        return false;
    default:
        return true; /* refused, or an error of that one connection: it is gone */
    }
}

static void on_accept(evutil_socket_t listen_fd, short what, void *argument)
{
    struct listener *item = argument;
    (void)what;
    for (int i = 0; i < NET_ACCEPTS_PER_TURN; i++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            item->set->accepted(item->set->context, fd, item->tls);
        } else if (!accept_failed(item, errno)) {
            return;
        }
    }
}

bool net_listener_start(struct net_listeners *set, struct event_base *base,
                        net_listener_accepted *accepted, void *context, struct net_metrics *metrics)
{
    set->accepted = accepted;
    set->context = context;
    set->metrics = metrics;
    bool started = evtimer_assign(&set->resume, base, on_resume, set) == 0;
    for (size_t i = 0; i < set->count; i++) {
        struct listener *item = &set->items[i];
        started = event_assign(&item->event, base, item->fd, EV_READ | EV_PERSIST, on_accept,
                               item) == 0 &&
                  event_add(&item->event, NULL) == 0 && started;
    }
    set->base = base;
    return started;
}

void net_listener_stop(struct net_listeners *set)
{
    if (set->base == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        event_del(&set->items[i].event);
    }
    event_del(&set->resume);
    set->base = NULL;
}
