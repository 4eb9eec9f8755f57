#include "tools/rollcall/bench_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"

#define CONN_MARK    0x436f6e6eu
#define PORT_DEFAULT "11211"
#define HOST_MAX     256

struct bench_conn {
    uint32_t mark;
    int fd;
    uint64_t lane;
    uint64_t pipeline;
    size_t words_a_request;
    uint64_t batch;    /* requests composed */
    uint64_t answered; /* of those */
    struct bench_reply reply;
    uint64_t *words;
    char *output;
    size_t output_max;
    size_t output_length;
    size_t output_sent;
    size_t input_length;
    char input[BENCH_CONN_INPUT_BYTES];
};

static int connect_one(const struct addrinfo *to)
{
    int on = 1, fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);

    if (fd < 0) {
        return -1;
    }
    if (to->ai_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0) {
        return fd;
    }
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct addrinfo to = {.ai_family = AF_UNIX,
                                .ai_socktype = SOCK_STREAM,
                                .ai_addr = (struct sockaddr *)&address,
                                .ai_addrlen = sizeof(address)};

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    return connect_one(&to);
}

/* Cuts "host:port", "[v6]:port" or "host" in two. */
static bool split_address(const char *text, char host[HOST_MAX], char port[HOST_MAX])
{
    bool bracket = text[0] == '[';
    const char *start = bracket ? text + 1 : text;
    const char *end = bracket ? strchr(start, ']') : strrchr(start, ':');

    if (end == NULL && !bracket) {
        end = start + strlen(start);
    }
    if (end == NULL || (size_t)(end - start) >= HOST_MAX || end == start) {
        return false;
    }
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    const char *rest = bracket ? end + 1 : end;
    if (*rest != '\0' && (*rest != ':' || rest[1] == '\0')) {
        return false;
    }
    int length = snprintf(port, HOST_MAX, "%s", *rest == ':' ? rest + 1 : PORT_DEFAULT);
    return length > 0 && length < HOST_MAX;
}

/* -1 with what is wrong in `error`, which is left alone when errno says it. */
static int connect_tcp(const char *text, char error[BENCH_CONN_ERROR_MAX])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char host[HOST_MAX], port[HOST_MAX];
    int fd = -1;

    if (!split_address(text, host, port)) {
        snprintf(error, BENCH_CONN_ERROR_MAX, "not host:port, [v6]:port or /path");
        return -1;
    }
    int failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0) {
        snprintf(error, BENCH_CONN_ERROR_MAX, "%s", gai_strerror(failed));
        return -1;
    }
    for (const struct addrinfo *to = found; to != NULL && fd < 0; to = to->ai_next) {
        fd = connect_one(to);
    }
    int reason = errno;
    freeaddrinfo(found);
    errno = reason;
    return fd;
}

struct bench_conn *bench_conn_create(const char *address, const struct bench_workload *workload,
                                     uint64_t lane, uint64_t pipeline,
                                     char error[BENCH_CONN_ERROR_MAX])
{
    char reason[BENCH_CONN_ERROR_MAX] = "";
    int fd = address[0] == '/' ? connect_unix(address) : connect_tcp(address, reason);

    if (fd < 0) {
        snprintf(error, BENCH_CONN_ERROR_MAX, "%.120s: %.120s", address,
                 *reason != '\0' ? reason : strerror(errno));
        return NULL;
    }
    struct bench_conn *conn = memory_zalloc(sizeof(*conn));
    conn->mark = CONN_MARK;
    conn->fd = fd;
    conn->lane = lane;
    conn->pipeline = pipeline;
    conn->words_a_request = bench_workload_words(workload);
    conn->output_max = bench_workload_bytes_max(workload) * pipeline;
    conn->output = memory_zalloc(conn->output_max);
    conn->words = memory_zalloc(conn->words_a_request * pipeline * sizeof(*conn->words));
    return conn;
}

void bench_conn_destroy(struct bench_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    CHECK(conn->mark == CONN_MARK);
    close(conn->fd);
    free(conn->output);
    free(conn->words);
    free(conn);
}

int bench_conn_fd(const struct bench_conn *conn)
{
    return conn->fd;
}

bool bench_conn_wants_write(const struct bench_conn *conn)
{
    return conn->output_sent < conn->output_length;
}

void bench_conn_start(struct bench_conn *conn, struct bench_workload *workload, uint64_t requests)
{
    CHECK(conn->mark == CONN_MARK && conn->answered == conn->batch);
    CHECK(requests >= 1 && requests <= conn->pipeline);
    conn->batch = requests;
    conn->answered = 0;
    conn->output_length = 0;
    conn->output_sent = 0;
    for (uint64_t i = 0; i < requests; i++) {
        conn->output_length +=
            bench_workload_compose(workload, conn->lane, conn->output + conn->output_length,
                                   conn->words + i * conn->words_a_request);
    }
    CHECK(conn->output_length <= conn->output_max);
}

bool bench_conn_send(struct bench_conn *conn, struct bench_tally *tally)
{
    while (bench_conn_wants_write(conn)) {
        ssize_t sent = send(conn->fd, conn->output + conn->output_sent,
                            conn->output_length - conn->output_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK;
        }
        conn->output_sent += (size_t)sent;
        tally->bytes_sent += (uint64_t)sent;
    }
    return true;
}

/* Judges all complete items of the input. False: it is no reply. */
static bool judge_input(struct bench_conn *conn, struct bench_workload *workload,
                        struct bench_tally *tally)
{
    size_t at = 0;

    while (at < conn->input_length && conn->answered < conn->batch) {
        const uint64_t *words = conn->words + conn->answered * conn->words_a_request;
        size_t taken = bench_workload_judge(workload, words, conn->input + at,
                                            conn->input_length - at, &conn->reply, tally);
        if (conn->reply.broken) {
            return false;
        }
        if (taken == 0) {
            break;
        }
        at += taken;
        if (conn->reply.done) {
            conn->reply = (struct bench_reply){0};
            conn->answered++;
        }
    }
    conn->input_length -= at;
    memmove(conn->input, conn->input + at, conn->input_length);
    return true;
}

/* Bytes beyond the last reply: the server answered what nobody asked. */
static enum bench_conn_result batch_end(struct bench_conn *conn, struct bench_tally *tally)
{
    if (conn->answered < conn->batch) {
        return BENCH_CONN_WAIT;
    }
    if (conn->input_length == 0) {
        return BENCH_CONN_BATCH;
    }
    bench_tally_mismatch(tally, "bytes nobody asked for", NULL, 0);
    errno = EPROTO;
    return BENCH_CONN_LOST;
}

enum bench_conn_result bench_conn_receive(struct bench_conn *conn, struct bench_workload *workload,
                                          struct bench_tally *tally)
{
    CHECK(conn->mark == CONN_MARK && conn->input_length < sizeof(conn->input));
    for (;;) {
        size_t room = sizeof(conn->input) - conn->input_length;
        ssize_t got = recv(conn->fd, conn->input + conn->input_length, room, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK ? BENCH_CONN_WAIT : BENCH_CONN_LOST;
        }
        errno = 0;
        if (got == 0) {
            return BENCH_CONN_LOST;
        }
        tally->bytes_received += (uint64_t)got;
        conn->input_length += (size_t)got;
        if (!judge_input(conn, workload, tally)) {
            errno = EPROTO;
            return BENCH_CONN_LOST;
        }
        if (conn->answered == conn->batch || (size_t)got < room) {
            return batch_end(conn, tally);
        }
    }
}
