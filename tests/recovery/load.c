/*
 * load.c: several writers under whom a daemon is killed: every answer is checked, and what was
 * acknowledged and what was only sent is known exactly.
 *
 * usage: load PORT MODEL [name=number ...]   (names: the table `options` below)
 *
 * Each writer has a connection, keeps `depth` commands under way and changes ids that it alone owns
 * (mix.h). An answer is compared with what the model (ops.h) says must come, then the model takes
 * the change. It ends when the daemon closes, or after `milliseconds`, when all answers have come.
 *
 * Lines on standard output: "ready" when all are connected; at the end, a writer after the other,
 *     writer N answered N sent N END        END: closed | drained | stuck | wrong
 *     wrong N TEXT                          an answer that must not come
 *     refused N KIND TEXT                   so many SERVER_ERRORs of this text; KIND as below
 *     gone N, false-positives N             answers that say so
 *     pending N KIND VERB ID SLOT V V V V   sent whole, not answered, in order (ops.h; -1: none)
 * and "end". Exit 0 unless it could not do its work; what the lines mean is judged by who started
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/recovery/mix.h"
#include "tests/recovery/ops.h"

#define WRITERS_MAX   16
#define DEPTH_MAX     4096
#define RING          (2 * DEPTH_MAX) /* ops under way: a power of two */
#define REFUSALS_MAX  16              /* different texts and kinds */
#define IN_BYTES      (64 << 10)
#define OUT_BYTES     (64 << 10)
#define STUCK_SECONDS 30 /* without an answer */
#define NO_TABLE      "SERVER_ERROR no table free"

struct options {
    uint64_t writers, depth, seed, milliseconds, new_per_mille, window, round, recycles, refuses;
};

static const struct {
    const char *name;
    size_t offset;
    uint64_t usual, min, max;
} options_table[] = {
    {"writers", offsetof(struct options, writers), 4, 1, WRITERS_MAX},
    {"depth", offsetof(struct options, depth), 64, 1, DEPTH_MAX},
    {"seed", offsetof(struct options, seed), 1, 0, UINT64_MAX},
    {"milliseconds", offsetof(struct options, milliseconds), 0, 0,
     UINT32_MAX}, /* 0: until closed */
    {"new", offsetof(struct options, new_per_mille), 30, 0, 1000},
    {"window", offsetof(struct options, window), 20000, 1, UINT64_MAX},
    {"round", offsetof(struct options, round), 1, 0, UINT32_MAX},
    {"recycles", offsetof(struct options, recycles), 0, 0, 1},
    /* 1: without a free table there will never be one, and no more new ids are tried */
    {"refuses", offsetof(struct options, refuses), 1, 0, 1},
};

enum end { END_CLOSED, END_DRAINED, END_STUCK, END_WRONG };
static const char *const end_names[] = {"closed", "drained", "stuck", "wrong"};

struct refusal {
    const char *kind; /* of the op */
    char text[OP_BYTES_MAX];
    uint64_t count;
};

struct load {
    struct options options;
    struct model_header *model;
    struct model_entry *entries;
    uint64_t deadline_ns; /* 0: none */
    atomic_bool stop;     /* a writer found a wrong answer */
};

struct writer {
    struct load *load;
    struct mix mix;
    int fd;
    enum end end;
    struct op ring[RING];
    uint64_t first, last;    /* ops answered, ops composed */
    uint64_t composed, sent; /* bytes of the stream */
    char out[OUT_BYTES];
    size_t out_from, out_length;
    char in[IN_BYTES];
    size_t in_from, in_length;
    uint64_t heard_ns;
    struct refusal refusals[REFUSALS_MAX];
    uint64_t gone, false_positives;
    char wrong[4 * OP_BYTES_MAX];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- sending ---- */

static void compose_more(struct writer *writer)
{
    struct op ops[MIX_OPS_MAX];
    while (writer->last - writer->first < writer->load->options.depth &&
           writer->out_length + MIX_OPS_MAX * OP_BYTES_MAX <= OUT_BYTES) {
        size_t count = mix_next(&writer->mix, ops);
        if (count == 0) {
            return;
        }
        for (size_t i = 0; i < count; i++) {
            size_t length = op_compose(&ops[i], writer->out + writer->out_length);
            writer->out_length += length;
            writer->composed += length;
            ops[i].end = writer->composed;
            writer->ring[writer->last++ % RING] = ops[i];
        }
    }
}

/* False: the daemon has closed. */
static bool send_some(struct writer *writer)
{
    size_t left = writer->out_length - writer->out_from;
    if (left == 0) {
        return true;
    }
    ssize_t sent = send(writer->fd, writer->out + writer->out_from, left, MSG_NOSIGNAL);
    if (sent < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    writer->sent += (uint64_t)sent;
    writer->out_from += (size_t)sent;
    if (writer->out_from == writer->out_length) {
        writer->out_from = writer->out_length = 0;
    }
    return true;
}

/* ---- answers ---- */

static void count_refusal(struct writer *writer, const struct op *op, const char *line)
{
    if (strcmp(line, NO_TABLE) == 0 && !op_is_member(op) && writer->load->options.refuses) {
        atomic_store(&writer->load->model->full, 1);
    }
    for (size_t i = 0; i < REFUSALS_MAX; i++) {
        struct refusal *refusal = &writer->refusals[i];
        if (refusal->count == 0) {
            snprintf(refusal->text, sizeof(refusal->text), "%s", line);
            refusal->kind = op_kind(op);
        }
        if (refusal->kind == op_kind(op) && strcmp(refusal->text, line) == 0) {
            refusal->count++;
            return;
        }
    }
}

/* The answer is none of those that may come. */
static void note_wrong(struct writer *writer, const struct op *op, char *expected, char *line)
{
    char request[OP_BYTES_MAX];
    op_compose(op, request);
    int length = snprintf(writer->wrong, sizeof(writer->wrong),
                          "%s | must be answered | %s | came | %s", request, expected, line);
    for (int i = 0; i < length && i < (int)sizeof(writer->wrong) - 1; i++) {
        if (writer->wrong[i] == '\r' || writer->wrong[i] == '\n') {
            writer->wrong[i] = ' ';
        }
    }
    atomic_store(&writer->load->stop, true);
}

/* A whole line that is not the expected answer: its length, or 0 if it must not come. */
static size_t take_other(struct writer *writer, const struct op *op, char *expected, size_t length)
{
    char line[OP_BYTES_MAX];
    size_t end = length >= 2 && writer->in[writer->in_from + length - 2] == '\r' ? 2 : 1;
    snprintf(line, sizeof(line), "%.*s", (int)(length - end), writer->in + writer->in_from);
    struct model_entry *entry = &writer->load->entries[op->id];
    switch (op_other(op, entry, line, writer->load->options.recycles != 0)) {
    case OUTCOME_REFUSED:
        count_refusal(writer, op, line);
        return length;
    case OUTCOME_GONE:
        writer->gone++;
        return length;
    case OUTCOME_FALSE_POSITIVE:
        writer->false_positives++;
        return length;
    default:
        note_wrong(writer, op, expected, line);
        return 0;
    }
}

/* Takes the answer of the oldest op under way; false: it has not come whole, or is wrong. */
static bool take_answer(struct writer *writer)
{
    char expected[OP_BYTES_MAX];
    const struct op *op = &writer->ring[writer->first % RING];
    struct model_entry *entry = &writer->load->entries[op->id];
    struct model_entry after = {.members = entry->members};
    const char *came = writer->in + writer->in_from;
    size_t have = writer->in_length - writer->in_from;
    memcpy(after.slots, entry->slots, sizeof(after.slots));
    size_t length = op_apply(op, &after, expected);
    if (memcmp(came, expected, have < length ? have : length) == 0) {
        if (have < length) {
            return false;
        }
        memcpy(entry->slots, after.slots, sizeof(entry->slots));
        entry->members = after.members;
        entry->round = (uint32_t)writer->load->options.round;
    } else {
        const char *end = memchr(came, '\n', have);
        if (end == NULL) {
            return false;
        }
        length = take_other(writer, op, expected, (size_t)(end - came) + 1);
        if (length == 0) {
            return false;
        }
    }
    writer->in_from += length;
    writer->first++;
    return true;
}

/* False: the daemon has closed. */
static bool receive_some(struct writer *writer)
{
    memmove(writer->in, writer->in + writer->in_from, writer->in_length - writer->in_from);
    writer->in_length -= writer->in_from;
    writer->in_from = 0;
    ssize_t came =
        recv(writer->fd, writer->in + writer->in_length, IN_BYTES - writer->in_length, 0);
    if (came <= 0) {
        return came < 0 && (errno == EAGAIN || errno == EINTR);
    }
    writer->in_length += (size_t)came;
    writer->heard_ns = now_ns();
    while (writer->first < writer->last && writer->in_from < writer->in_length &&
           take_answer(writer)) {
    }
    return true;
}

/* ---- a writer ---- */

static bool may_compose(const struct writer *writer)
{
    const struct load *load = writer->load;
    return !atomic_load_explicit(&load->stop, memory_order_relaxed) &&
           (load->deadline_ns == 0 || now_ns() < load->deadline_ns);
}

/* One wait and what came of it; false: it is over, `end` says why. */
static bool writer_step(struct writer *writer)
{
    if (may_compose(writer)) {
        compose_more(writer);
    } else if (writer->first == writer->last) {
        writer->end = END_DRAINED;
        return false;
    }
    bool open = send_some(writer);
    bool left = writer->out_from < writer->out_length;
    struct pollfd wait = {.fd = writer->fd, .events = (short)(POLLIN | (left ? POLLOUT : 0))};
    poll(&wait, 1, 1000);
    if (!open || (wait.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        bool alive = receive_some(writer);
        while (!open && alive && writer->wrong[0] == '\0') { /* what it said before it died */
            alive = receive_some(writer);
        }
        if (writer->wrong[0] != '\0' || !alive) {
            writer->end = writer->wrong[0] != '\0' ? END_WRONG : END_CLOSED;
            return false;
        }
    }
    if (now_ns() - writer->heard_ns > STUCK_SECONDS * 1000000000ull) {
        writer->end = END_STUCK;
        return false;
    }
    return true;
}

static void *writer_run(void *argument)
{
    struct writer *writer = argument;
    writer->heard_ns = now_ns();
    while (writer_step(writer)) {
    }
    return NULL;
}

static bool writer_connect(struct writer *writer, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;
    writer->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (writer->fd < 0 || connect(writer->fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        return false;
    }
    setsockopt(writer->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    return fcntl(writer->fd, F_SETFL, O_NONBLOCK) == 0;
}

static void writer_report(const struct writer *writer, unsigned number)
{
    printf("writer %u answered %" PRIu64 " sent %" PRIu64 " %s\n", number, writer->first,
           writer->last, end_names[writer->end]);
    if (writer->wrong[0] != '\0') {
        printf("wrong %u %s\n", number, writer->wrong);
    }
    for (size_t i = 0; i < REFUSALS_MAX && writer->refusals[i].count > 0; i++) {
        const struct refusal *refusal = &writer->refusals[i];
        printf("refused %" PRIu64 " %s %s\n", refusal->count, refusal->kind, refusal->text);
    }
    printf("gone %" PRIu64 "\nfalse-positives %" PRIu64 "\n", writer->gone,
           writer->false_positives);
    for (uint64_t i = writer->first; i < writer->last; i++) {
        const struct op *op = &writer->ring[i % RING];
        if (op->end > writer->sent) {
            break; /* not all of it left this process: it cannot have happened */
        }
        printf("pending %u %s %s %" PRIu64 " %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
               number, op_kind(op), op_name(op), op->id, op->slot, op->values[0], op->values[1],
               op->values[2], op->values[3]);
    }
}

/* ---- the whole ---- */

static bool set_option(struct options *options, const char *text)
{
    for (size_t i = 0; i < sizeof(options_table) / sizeof(options_table[0]); i++) {
        size_t length = strlen(options_table[i].name);
        if (strncmp(text, options_table[i].name, length) != 0 || text[length] != '=') {
            continue;
        }
        char *end;
        uint64_t value = strtoull(text + length + 1, &end, 10);
        memcpy((char *)options + options_table[i].offset, &value, sizeof(value));
        return *end == '\0' && value >= options_table[i].min && value <= options_table[i].max;
    }
    return false;
}

static void options_parse(struct options *options, int count, char **texts)
{
    for (size_t i = 0; i < sizeof(options_table) / sizeof(options_table[0]); i++) {
        memcpy((char *)options + options_table[i].offset, &options_table[i].usual,
               sizeof(uint64_t));
    }
    for (int i = 0; i < count; i++) {
        if (!set_option(options, texts[i])) {
            fprintf(stderr, "load: bad option %s\n", texts[i]);
            exit(2);
        }
    }
}

static bool model_map(struct load *load, const char *path)
{
    struct stat stat;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) != 0) {
        return false;
    }
    void *memory = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) {
        return false;
    }
    load->model = memory;
    load->entries = (void *)((char *)memory + MODEL_HEADER_BYTES);
    return load->model->magic == MODEL_MAGIC &&
           (size_t)stat.st_size >=
               MODEL_HEADER_BYTES + load->model->ids_max * sizeof(struct model_entry);
}

static struct writer *writers_create(struct load *load, uint16_t port)
{
    struct options *options = &load->options;
    struct writer *writers = calloc(options->writers, sizeof(*writers));
    for (unsigned i = 0; writers != NULL && i < options->writers; i++) {
        writers[i].load = load;
        writers[i].mix = (struct mix){
            .model = load->model,
            .entries = load->entries,
            .random = {.state = hash_u64(options->seed) + i},
            .owner = i + 1,
            .window = options->window,
            .new_per_mille = options->new_per_mille,
        };
        if (!writer_connect(&writers[i], port)) {
            perror("load: connect");
            exit(1);
        }
    }
    return writers;
}

int main(int argc, char **argv)
{
    struct load load = {0};
    pthread_t threads[WRITERS_MAX];
    if (argc < 3) {
        fprintf(stderr, "usage: load PORT MODEL [name=number ...]\n");
        return 2;
    }
    options_parse(&load.options, argc - 3, argv + 3);
    if (!model_map(&load, argv[2])) {
        fprintf(stderr, "load: %s: no model\n", argv[2]);
        return 2;
    }
    struct writer *writers = writers_create(&load, (uint16_t)strtoul(argv[1], NULL, 10));
    if (writers == NULL) {
        return 1;
    }
    printf("ready\n");
    fflush(stdout);
    if (load.options.milliseconds > 0) {
        load.deadline_ns = now_ns() + load.options.milliseconds * 1000000u;
    }
    for (size_t i = 0; i < load.options.writers; i++) {
        if (pthread_create(&threads[i], NULL, writer_run, &writers[i]) != 0) {
            perror("load: thread");
            return 1;
        }
    }
    for (size_t i = 0; i < load.options.writers; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < load.options.writers; i++) {
        writer_report(&writers[i], i + 1);
        close(writers[i].fd);
    }
    printf("end\n");
    free(writers);
    return 0;
}
