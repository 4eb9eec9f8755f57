/*
 * dispatch_trace.c: what clients say, what they are told and what becomes of their connections, in
 * the log and in memcached's form, where -vv and -vvv ask for it. Logins are no part of it. And
 * what is logged without being asked for.
 */
#include <string.h>

#include "base/log.h"
#include "request/dispatch_private.h"

#define TRACE_BYTES_MAX 256 /* of a line */

/* The first line of bytes, without its end. */
static int first_line(const char *bytes, size_t length)
{
    const char *newline = memchr(bytes, '\n', length);
    length = newline != NULL ? (size_t)(newline - bytes) : length;
    length -= length > 0 && bytes[length - 1] == '\r';
    return (int)(length < TRACE_BYTES_MAX ? length : TRACE_BYTES_MAX);
}

void dispatch_log_closed(const struct net_conn *conn, const char *why)
{
    char peer[128];
    log_info("a client was closed peer=%s reason=\"%s\"", net_conn_peer(conn, peer), why);
}

void dispatch_log_deed(const struct dispatch_worker *worker, const char *command)
{
    char peer[128];
    log_warning("a client changed what all share peer=%s command=\"%s\"",
                net_conn_peer(worker->net_conn, peer), command);
}

void dispatch_trace_request(struct dispatch_worker *worker, const struct request *request,
                            size_t answer)
{
    const struct buf *out = worker->out;
    const struct request_key *key = &worker->batch.keys[request->first_key];
    const char *bytes = worker->parsed + request->begin;
    int fd = net_conn_fd(worker->net_conn);
    if (worker->codec->has_meta) {
        log_at(LOG_LEVEL_COMMANDS, "<%d %.*s", fd, first_line(bytes, request->end - request->begin),
               bytes);
    } else {
        log_at(LOG_LEVEL_COMMANDS, "<%d opcode 0x%02x %.*s", fd, request->binary.opcode,
               request->keys > 0 ? (int)key->length : 0, request->keys > 0 ? key->bytes : "");
    }
    if (out->length > answer) {
        size_t length = out->length - answer;
        if (worker->codec->has_meta) {
            log_at(LOG_LEVEL_COMMANDS, ">%d %.*s", fd, first_line(out->data + answer, length),
                   out->data + answer);
        } else {
            log_at(LOG_LEVEL_COMMANDS, ">%d %zu bytes", fd, length);
        }
    }
}

void dispatch_trace_open(const struct dispatch_worker *worker)
{
    log_at(LOG_LEVEL_COMMANDS, "<%d new %s client connection", net_conn_fd(worker->net_conn),
           worker->codec == NULL     ? "unknown"
           : worker->codec->has_meta ? "ascii"
                                     : "binary");
}

void dispatch_trace_close(const struct net_conn *conn)
{
    log_at(LOG_LEVEL_COMMANDS, "<%d connection closed", net_conn_fd(conn));
}

void dispatch_trace_turn(const struct dispatch_worker *worker, const struct net_turn *turn,
                         enum net_next next)
{
    static const char *const states[] = {
        [NET_WAIT] = "waits for more of its client",
        [NET_AGAIN] = "goes on in another turn",
        [NET_SUSPENDED] = "waits for the engine, the disk or a login",
        [NET_CLOSE] = "is to be closed",
        [NET_LEAVE] = "is a follower's",
    };
    log_at(LOG_LEVEL_STATES, "%d: read %zu of %zu bytes, answered %zu; %s",
           net_conn_fd(worker->net_conn), turn->consumed, turn->in_length, turn->out->length,
           states[next]);
}
