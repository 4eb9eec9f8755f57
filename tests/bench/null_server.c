/*
 * The null server: answers every request line with the same bytes and does nothing else. What it
 * costs a request is the floor of this kernel path, beside which rollcalld is measured in the same
 * run. One thread; on libevent as rollcalld is, or with --bare on epoll alone. Read it with
 * `rollcall bench --verify off`.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_BYTES     65536
#define OUTPUT_BYTES    (1u << 20)
#define REPLIES_AT_ONCE 64u /* replies lie ready this often in a row */
#define KEYS_MAX        1000u
#define BYTES_MAX       4096u
#define EVENTS_A_TURN   64

struct null_server {
    char *replies; /* REPLIES_AT_ONCE of them */
    size_t reply_length;
    bool each;           /* a value for each key that is asked for */
    size_t value_length; /* of a reply, each of its values */
    char input[INPUT_BYTES];
    char output[OUTPUT_BYTES]; /* each: replies that are not sent yet */
    size_t output_length;
};

struct settings {
    bool incr;
    bool each;
    bool bare;
    unsigned port;
    unsigned keys;
    unsigned key_bytes;
    unsigned value_bytes;
};

struct client {
    struct null_server *server;
    struct event *event; /* NULL on bare epoll */
    int fd;
    unsigned asked; /* keys of the line that is not whole yet */
    char before;    /* its last byte */
};

static void die(const char *what)
{
    fprintf(stderr, "null_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *must(void *memory)
{
    if (memory == NULL) {
        die("memory");
    }
    return memory;
}

/* One reply: keys x VALUE and END, or a number. Returns its length. */
static size_t compose(const struct settings *settings, char *out)
{
    char key[BYTES_MAX + 1], value[BYTES_MAX + 1];
    size_t length = 0;

    if (settings->incr) {
        return (size_t)sprintf(out, "%.*d\r\n", (int)settings->value_bytes, 1);
    }
    memset(key, 'k', settings->key_bytes);
    key[settings->key_bytes] = '\0';
    for (unsigned i = 0; i < settings->value_bytes; i++) {
        value[i] = i % 3 == 1 ? ',' : '1';
    }
    value[settings->value_bytes] = '\0';
    for (unsigned i = 0; i < settings->keys; i++) {
        length += (size_t)sprintf(out + length, "VALUE %s 0 %u\r\n%s\r\n", key,
                                  settings->value_bytes, value);
    }
    return length + (size_t)sprintf(out + length, "END\r\n");
}

static void prepare(struct null_server *server, const struct settings *settings)
{
    size_t bytes_max = settings->keys * (settings->key_bytes + settings->value_bytes + 32) + 64;

    server->replies = must(malloc(bytes_max * REPLIES_AT_ONCE));
    server->reply_length = compose(settings, server->replies);
    server->each = settings->each;
    server->value_length = (server->reply_length - strlen("END\r\n")) / settings->keys;
    for (size_t i = 1; i < REPLIES_AT_ONCE; i++) {
        memcpy(server->replies + i * server->reply_length, server->replies, server->reply_length);
    }
}

/* A client that does not read holds everything up, which is fair to one that measures. */
static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            poll(&wait, 1, -1);
            continue;
        }
        if (sent < 0) {
            return false;
        }
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool flush_output(struct null_server *server, int fd)
{
    bool sent = write_all(fd, server->output, server->output_length);

    server->output_length = 0;
    return sent;
}

/* Answers each line with as many values as it has keys: the end of the whole reply. */
static bool answer_each(struct client *client, size_t got)
{
    struct null_server *server = client->server;
    bool good = true;

    for (size_t i = 0; i < got && good; i++) {
        client->asked += client->before == ' ' && server->input[i] > ' ' ? 1 : 0;
        client->before = server->input[i];
        if (server->input[i] != '\n') {
            continue;
        }
        size_t length = client->asked * server->value_length + strlen("END\r\n");
        if (length > server->reply_length) {
            length = server->reply_length;
        }
        if (server->output_length + length > OUTPUT_BYTES) {
            good = flush_output(server, client->fd);
        }
        memcpy(server->output + server->output_length,
               server->replies + server->reply_length - length, length);
        server->output_length += length;
        client->asked = 0;
    }
    return flush_output(server, client->fd) && good;
}

/* Reads once and answers as many replies as newlines came. False: the client is gone. */
static bool answer(struct client *client)
{
    struct null_server *server = client->server;
    int fd = client->fd;
    ssize_t got = recv(fd, server->input, sizeof(server->input), 0);
    size_t lines = 0;

    if (got < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (got == 0) {
        return false;
    }
    if (server->each) {
        return answer_each(client, (size_t)got);
    }
    const char *end = server->input + got;
    for (const char *at = server->input; (at = memchr(at, '\n', (size_t)(end - at))) != NULL;
         at++) {
        lines++;
    }
    while (lines > 0) {
        size_t now = lines < REPLIES_AT_ONCE ? lines : REPLIES_AT_ONCE;
        if (!write_all(fd, server->replies, now * server->reply_length)) {
            return false;
        }
        lines -= now;
    }
    return true;
}

static struct client *client_create(struct null_server *server, int fd)
{
    struct client *client = must(calloc(1, sizeof(*client)));
    int on = 1;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    client->server = server;
    client->fd = fd;
    return client;
}

static void client_destroy(struct client *client)
{
    if (client->event != NULL) {
        event_free(client->event);
    }
    close(client->fd);
    free(client);
}

static void on_readable(evutil_socket_t fd, short what, void *context)
{
    struct client *client = context;
    (void)fd;
    (void)what;
    if (!answer(client)) {
        client_destroy(client);
    }
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
                      int length, void *context)
{
    struct client *client = client_create(context, fd);

    (void)from;
    (void)length;
    client->event = must(event_new(evconnlistener_get_base(listener), fd, EV_READ | EV_PERSIST,
                                   on_readable, client));
    event_add(client->event, NULL);
}

static void serve_libevent(struct null_server *server, int listening)
{
    struct event_base *base = must(event_base_new());
    struct evconnlistener *listener =
        must(evconnlistener_new(base, on_accept, server, LEV_OPT_CLOSE_ON_FREE, 0, listening));

    event_base_dispatch(base);
    evconnlistener_free(listener);
    event_base_free(base);
}

static void accept_bare(struct null_server *server, int epoll, int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    struct client *client = client_create(server, fd);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        die("epoll");
    }
}

static void serve_bare(struct null_server *server, int listening)
{
    struct epoll_event events[EVENTS_A_TURN];
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event) != 0) {
        die("epoll");
    }
    for (;;) {
        int n = epoll_wait(epoll, events, EVENTS_A_TURN, -1);
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;
            if (client == NULL) {
                accept_bare(server, epoll, listening);
            } else if (!answer(client)) {
                client_destroy(client);
            }
        }
    }
}

/* Binds 127.0.0.1 and prints the port on a line of its own. */
static int listen_on(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        die("listen");
    }
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static unsigned number(const char *name, const char *text, unsigned minimum, unsigned maximum)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value < minimum || value > maximum) {
        fprintf(stderr, "null_server: --%s: \"%s\" is not a number from %u to %u\n", name, text,
                minimum, maximum);
        exit(2);
    }
    return (unsigned)value;
}

static void set_mode(struct settings *settings, const char *mode)
{
    settings->incr = strcmp(mode, "incr") == 0;
    if (strcmp(mode, "page") == 0) {
        settings->keys = 20;
    } else if (strcmp(mode, "get") != 0 && !settings->incr) {
        fprintf(stderr, "null_server: --mode: \"%s\" is none of get, incr, page\n", mode);
        exit(2);
    }
    if (settings->incr) {
        settings->value_bytes = 3;
    }
}

static void usage(void)
{
    puts("usage: null_server [--mode get|incr|page] [--keys N] [--key-bytes N] [--value-bytes N]\n"
         "                   [--port N] [--bare] [--each]\n"
         "Prints its port and answers each line with the same reply; --mode first, its sizes\n"
         "after it: get 1 key, page 20 keys of 12 bytes with values of 11; incr 3 digits.\n"
         "--each: a get has a value for each of its keys, up to those of --keys.");
    exit(2);
}

static void parse(int argc, char **argv, struct settings *settings)
{
    static const struct option known[] = {
        {"mode", required_argument, NULL, 'm'},
        {"keys", required_argument, NULL, 'k'},
        {"key-bytes", required_argument, NULL, 'b'},
        {"value-bytes", required_argument, NULL, 'v'},
        {"port", required_argument, NULL, 'p'},
        {"bare", no_argument, NULL, 'e'},
        {"each", no_argument, NULL, 'a'},
        {NULL, 0, NULL, 0},
    };

    for (int got; (got = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (got == 'm') {
            set_mode(settings, optarg);
        } else if (got == 'k') {
            settings->keys = number("keys", optarg, 1, KEYS_MAX);
        } else if (got == 'b') {
            settings->key_bytes = number("key-bytes", optarg, 1, 250);
        } else if (got == 'v') {
            settings->value_bytes = number("value-bytes", optarg, 1, BYTES_MAX);
        } else if (got == 'p') {
            settings->port = number("port", optarg, 0, 65535);
        } else if (got == 'e') {
            settings->bare = true;
        } else if (got == 'a') {
            settings->each = true;
        } else {
            usage();
        }
    }
    if (optind < argc) {
        usage();
    }
}

int main(int argc, char **argv)
{
    struct settings settings = {.keys = 1, .key_bytes = 12, .value_bytes = 11};
    struct null_server *server = must(calloc(1, sizeof(*server)));

    parse(argc, argv, &settings);
    signal(SIGPIPE, SIG_IGN);
    prepare(server, &settings);
    int listening = listen_on(settings.port);
    if (settings.bare) {
        serve_bare(server, listening);
    } else {
        serve_libevent(server, listening);
    }
    return 0;
}
