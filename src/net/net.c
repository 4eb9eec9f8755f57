#include "net/net.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "net/listener.h"
#include "net/private.h"
#include "net/tls.h"

struct net {
    struct net_common common;
    struct net_metrics metrics; /* of the main thread */
    struct event_base *base;
    struct net_listeners *listeners;
    pthread_mutex_t tls_lock;    /* a leaf: of the pointer */
    struct net_tls_context *tls; /* of connections to come; NULL: no TLS */
    _Atomic unsigned max_connections;
    uint64_t serial_last;
    size_t dealt_last; /* the worker that got the last connection */
    int stop_fd;       /* eventfd */
    struct event stop_event;
    struct event signal_event;
    size_t worker_count;
    struct net_worker *workers[NET_THREADS_MAX];
};

static bool start_workers(struct net *net, unsigned threads)
{
    for (unsigned i = 0; i < threads; i++) {
        struct net_worker *worker = net_worker_create(&net->common, i);
        if (worker == NULL) {
            return false;
        }
        net->workers[net->worker_count++] = worker;
        if (!net_worker_start(worker)) {
            return false;
        }
    }
    return true;
}

struct net *net_create(const struct net_options *options, const struct net_service *service,
                       char error[NET_ERROR_MAX], bool *in_use)
{
    CHECK(options->threads >= 1 && options->threads <= NET_THREADS_MAX);
    CHECK(service->state_bytes <= NET_STATE_BYTES_MAX);
    *in_use = false;
    signal(SIGPIPE, SIG_IGN);
    struct net *net = calloc(1, sizeof(*net));
    if (net == NULL) {
        snprintf(error, NET_ERROR_MAX, "out of memory");
        return NULL;
    }
    CHECK(pthread_mutex_init(&net->tls_lock, NULL) == 0);
    net->common.service = *service;
    net->common.budget = options->budget;
    budget_divide(options->budget, options->threads);
    net->tls = options->tls != NULL ? net_tls_context_share(options->tls) : NULL;
    net_reconfigure(net, options->max_connections, options->idle_timeout_s,
                    options->request_timeout_s);
    net->common.hold_stall_s = options->hold_stall_s > 0 ? options->hold_stall_s : NET_HOLD_STALL_S;
    net->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    net->listeners = net_listener_create(options, error, in_use);
    if (net->listeners == NULL) {
        net_destroy(net);
        return NULL;
    }
    net->base = event_base_new();
    if (net->stop_fd < 0 || net->base == NULL || !start_workers(net, options->threads)) {
        snprintf(error, NET_ERROR_MAX, "cannot start the workers: %s", strerror(errno));
        net_destroy(net);
        return NULL;
    }
    return net;
}

void net_destroy(struct net *net)
{
    if (net == NULL) {
        return;
    }
    /* All stand still before the first is freed: a turn of one may sum the figures of all. */
    for (size_t i = 0; i < net->worker_count; i++) {
        net_worker_stop(net->workers[i]);
    }
    for (size_t i = 0; i < net->worker_count; i++) {
        net_worker_destroy(net->workers[i]);
    }
    CHECK(atomic_load(&net->common.connections) == 0);
    net_listener_destroy(net->listeners);
    if (net->base != NULL) {
        event_base_free(net->base);
    }
    if (net->stop_fd >= 0) {
        close(net->stop_fd);
    }
    net_tls_context_release(net->tls);
    pthread_mutex_destroy(&net->tls_lock);
    free(net);
}

static struct net_tls_context *share_tls(struct net *net)
{
    pthread_mutex_lock(&net->tls_lock);
    struct net_tls_context *shared = net_tls_context_share(net->tls);
    pthread_mutex_unlock(&net->tls_lock);
    return shared;
}

static void on_accepted(void *context, int fd, bool tls)
{
    struct net *net = context;
    if (atomic_load(&net->common.connections) >= atomic_load(&net->max_connections)) {
        net_listener_refuse(net->listeners, fd, tls, "max-connections are open");
        return;
    }
    metric_add(&net->metrics.total_connections, 1);
    atomic_fetch_add(&net->common.connections, 1);
    net->dealt_last = (net->dealt_last + 1) % net->worker_count;
    net_worker_adopt(net->workers[net->dealt_last], fd, ++net->serial_last,
                     tls ? share_tls(net) : NULL);
}

static void net_on_signal(evutil_socket_t fd, short what, void *argument)
{
    struct net *net = argument;
    const struct net_service *service = &net->common.service;
    struct signalfd_siginfo signal;
    (void)what;
    while (read(fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal)) {
        if (service->signalled == NULL || !service->signalled(service->context, &signal)) {
            event_base_loopbreak(net->base);
            return;
        }
    }
}

static void on_stop(evutil_socket_t fd, short what, void *argument)
{
    struct net *net = argument;
    uint64_t count;
    (void)what;
    (void)!read(fd, &count, sizeof(count));
    event_base_loopbreak(net->base);
}

static bool net_add_event(struct net *net, struct event *event, int fd, event_callback_fn call)
{
    return event_assign(event, net->base, fd, EV_READ | EV_PERSIST, call, net) == 0 &&
           event_add(event, NULL) == 0;
}

void net_run(struct net *net, int signal_fd)
{
    bool added =
        net_add_event(net, &net->stop_event, net->stop_fd, on_stop) &&
        (signal_fd < 0 || net_add_event(net, &net->signal_event, signal_fd, net_on_signal));
    if (net_listener_start(net->listeners, net->base, on_accepted, net, &net->metrics) && added) {
        (void)event_base_dispatch(net->base);
    } else {
        log_error("the event loop refuses its events");
    }
    net_listener_stop(net->listeners);
    if (signal_fd >= 0) {
        event_del(&net->signal_event);
    }
    event_del(&net->stop_event);
}

bool net_listen(struct net *net, char error[NET_ERROR_MAX], bool *in_use)
{
    *in_use = false;
    return net_listener_listen(net->listeners, error, in_use);
}

void net_stop(struct net *net)
{
    const uint64_t one = 1;
    (void)!write(net->stop_fd, &one, sizeof(one));
}

void net_reconfigure(struct net *net, unsigned max_connections, unsigned idle_timeout_s,
                     unsigned request_timeout_s)
{
    atomic_store(&net->max_connections, max_connections);
    atomic_store(&net->common.idle_timeout_s, idle_timeout_s);
    atomic_store(&net->common.request_timeout_s, request_timeout_s);
}

void net_renew_tls(struct net *net, struct net_tls_context *tls)
{
    if (net->tls == NULL || tls == NULL) {
        return;
    }
    pthread_mutex_lock(&net->tls_lock);
    struct net_tls_context *before = net->tls;
    net->tls = net_tls_context_share(tls);
    pthread_mutex_unlock(&net->tls_lock);
    net_tls_context_release(before);
}

const char *net_address(const struct net *net, size_t i)
{
    return net_listener_address(net->listeners, i);
}

bool net_address_tls(const struct net *net, size_t i)
{
    return net_listener_tls(net->listeners, i);
}

const char *net_library_version(void)
{
    return event_get_version();
}

static void add_metrics(struct net_metrics *sum, const struct net_metrics *part)
{
#define ADD(name, meaning) metric_add(&sum->name, metric_read(&part->name));
    NET_METRICS(ADD)
#undef ADD
}

void net_metrics_sum(const struct net *net, struct net_metrics *sum)
{
    memset(sum, 0, sizeof(*sum));
    add_metrics(sum, &net->metrics);
    for (size_t i = 0; i < net->worker_count; i++) {
        add_metrics(sum, &net->workers[i]->metrics);
    }
    /* One number for all threads: max-connections needs it exact. */
    metric_add(&sum->curr_connections, atomic_load(&net->common.connections));
}
