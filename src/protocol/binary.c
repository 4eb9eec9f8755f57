/*
 * binary.c: the binary codec: its table of functions, the table of opcodes, packets to requests.
 *
 * A packet is judged by its header alone, before its body has come. What it may be is a row of
 * `commands`; a packet that does not fit its row, or that no row is for, is refused and its whole
 * body dropped as it comes, so that the next packet is found whatever the body held. (A set with
 * too long a value is refused after its key.)
 */
#include "protocol/binary_private.h"

#include "base/check.h"
#include "base/num.h"

/* A request takes one number at most. */
_Static_assert(PROTOCOL_SCRATCH_BYTES >= PROTOCOL_BATCH_REQUESTS * NUM_DIGITS_MAX,
               "a number for each request");

#define EXTRAS_STORAGE    8  /* flags, expiration */
#define EXTRAS_ARITHMETIC 20 /* delta, initial, expiration */
#define EXTRAS_NUMBER     4  /* expiration, or level */
#define CREATE_NEVER_MARK UINT32_MAX

struct parser {
    const char *bytes; /* as given to parse … */
    size_t length;
    size_t at;                   /* … and how far they are done with */
    struct protocol_state state; /* at `at` */
    struct request_batch *batch;
};

/* A request's header and where its body is. */
struct packet {
    uint8_t opcode;
    uint8_t extras_length;
    uint16_t key_length;
    uint32_t body_length;
    uint64_t cas;
    const char *body; /* extras, key, value */
};

enum key_rule {
    KEY_NONE,
    KEY_ONE,
    KEY_WORDS, /* arguments, or none */
};

enum token_rule {
    TOKEN_NO,
    TOKEN_HIT,  /* the answer to a key that is there holds it */
    TOKEN_LOUD, /* so does that to a change, which a quiet one has not */
};

/* What packets of a kind are made of. */
struct shape {
    enum key_rule key : 8;
    enum token_rule token : 8;
    uint8_t extras_length;
    bool extras_may; /* they may also be left out */
    bool value;      /* it has one, of 0 bytes at least */
    /* Reads what only this kind has into the request. NULL: there is nothing. */
    void (*fill)(struct request_batch *batch, struct request *request, const struct packet *packet);
};

struct command {
    const struct shape *shape; /* NULL: there is no such opcode */
    enum verb verb : 8;
    bool quiet;
};

/* ---- what packets hold beside key and value ---- */

static const char one_digit[] = "0123456789";

/* The number in digits, as every dialect hands it on. */
static void put_digits(struct request_batch *batch, struct request *request, uint64_t number)
{
    CHECK(batch->scratch_used + NUM_DIGITS_MAX <= PROTOCOL_SCRATCH_BYTES);
    if (number < sizeof(one_digit) - 1) { /* most deltas */
        request->value = &one_digit[number];
        request->value_length = 1;
        return;
    }
    char *digits = batch->scratch + batch->scratch_used;
    request->value = digits;
    request->value_length = (uint32_t)num_print(digits, number);
    batch->scratch_used += request->value_length;
}

static void fill_compare(struct request_batch *batch, struct request *request,
                         const struct packet *packet)
{
    (void)batch;
    request->cas = packet->cas;
    request->compare = packet->cas != 0;
}

/* A token makes a compare-and-swap of each of the three, as in memcached. */
static void fill_storage(struct request_batch *batch, struct request *request,
                         const struct packet *packet)
{
    (void)batch;
    request->flags = binary_read32(packet->body);
    request->exptime = binary_read32(packet->body + 4);
    request->cas = packet->cas;
    if (packet->cas != 0) {
        request->verb = VERB_CAS;
    }
}

static void fill_arithmetic(struct request_batch *batch, struct request *request,
                            const struct packet *packet)
{
    uint32_t expiration = binary_read32(packet->body + 16);
    put_digits(batch, request, binary_read64(packet->body));
    if (LIKELY(expiration == CREATE_NEVER_MARK)) { /* no exptime, no initial value */
        request->create = CREATE_NEVER;
        request->bare = packet->cas == 0;
    } else {
        request->create = CREATE_INITIAL;
        request->initial = binary_read64(packet->body + 8);
        request->exptime = expiration;
    }
    fill_compare(batch, request, packet);
}

static void fill_expiration(struct request_batch *batch, struct request *request,
                            const struct packet *packet)
{
    (void)batch;
    request->exptime = binary_read32(packet->body);
}

static void fill_flush(struct request_batch *batch, struct request *request,
                       const struct packet *packet)
{
    (void)batch;
    request->delay = packet->extras_length > 0 ? binary_read32(packet->body) : 0;
}

static void fill_level(struct request_batch *batch, struct request *request,
                       const struct packet *packet)
{
    put_digits(batch, request, binary_read32(packet->body));
}

static void binary_fill_words(struct request_batch *batch, struct request *request,
                              const struct packet *packet)
{
    (void)batch;
    if (packet->key_length > 0) {
        request->value = packet->body + packet->extras_length;
        request->value_length = packet->key_length;
    }
}

/* ---- the opcodes ---- */

static const struct shape empty = {.key = KEY_NONE};
static const struct shape reading = {.key = KEY_ONE, .token = TOKEN_HIT};
static const struct shape touching = {KEY_ONE, TOKEN_HIT, EXTRAS_NUMBER, .fill = fill_expiration};
static const struct shape reading_touching = {KEY_ONE, TOKEN_HIT, EXTRAS_NUMBER,
                                              .fill = fill_expiration};
static const struct shape storing = {KEY_ONE, TOKEN_LOUD, EXTRAS_STORAGE, .value = true,
                                     .fill = fill_storage};
static const struct shape extending = {KEY_ONE, TOKEN_LOUD, .value = true, .fill = fill_compare};
static const struct shape counting = {KEY_ONE, TOKEN_LOUD, EXTRAS_ARITHMETIC,
                                      .fill = fill_arithmetic};
static const struct shape deleting = {KEY_ONE, TOKEN_NO, .fill = fill_compare};
static const struct shape flushing = {KEY_NONE, TOKEN_NO, EXTRAS_NUMBER, .extras_may = true,
                                      .fill = fill_flush};
static const struct shape asking = {KEY_WORDS, TOKEN_NO, .fill = binary_fill_words};
static const struct shape setting_level = {KEY_NONE, TOKEN_NO, EXTRAS_NUMBER, .fill = fill_level};
static const struct shape authenticating = {KEY_ONE, TOKEN_NO, .value = true};

static const struct command commands[] = {
    [BINARY_GET] = {&reading, VERB_GET, false},
    [BINARY_SET] = {&storing, VERB_SET, false},
    [BINARY_ADD] = {&storing, VERB_ADD, false},
    [BINARY_REPLACE] = {&storing, VERB_REPLACE, false},
    [BINARY_DELETE] = {&deleting, VERB_DELETE, false},
    [BINARY_INCR] = {&counting, VERB_INCR, false},
    [BINARY_DECR] = {&counting, VERB_DECR, false},
    [BINARY_QUIT] = {&empty, VERB_QUIT, false},
    [BINARY_FLUSH] = {&flushing, VERB_FLUSH_ALL, false},
    [BINARY_GETQ] = {&reading, VERB_GET, true},
    [BINARY_NOOP] = {&empty, VERB_NOOP, false},
    [BINARY_VERSION] = {&empty, VERB_VERSION, false},
    [BINARY_GETK] = {&reading, VERB_GET, false},
    [BINARY_GETKQ] = {&reading, VERB_GET, true},
    [BINARY_APPEND] = {&extending, VERB_APPEND, false},
    [BINARY_PREPEND] = {&extending, VERB_PREPEND, false},
    [BINARY_STAT] = {&asking, VERB_STATS, false},
    [BINARY_SETQ] = {&storing, VERB_SET, true},
    [BINARY_ADDQ] = {&storing, VERB_ADD, true},
    [BINARY_REPLACEQ] = {&storing, VERB_REPLACE, true},
    [BINARY_DELETEQ] = {&deleting, VERB_DELETE, true},
    [BINARY_INCRQ] = {&counting, VERB_INCR, true},
    [BINARY_DECRQ] = {&counting, VERB_DECR, true},
    [BINARY_QUITQ] = {&empty, VERB_QUIT, true},
    [BINARY_FLUSHQ] = {&flushing, VERB_FLUSH_ALL, true},
    [BINARY_APPENDQ] = {&extending, VERB_APPEND, true},
    [BINARY_PREPENDQ] = {&extending, VERB_PREPEND, true},
    [BINARY_VERBOSITY] = {&setting_level, VERB_VERBOSITY, false},
    [BINARY_TOUCH] = {&touching, VERB_TOUCH, false},
    [BINARY_GAT] = {&reading_touching, VERB_GAT, false},
    [BINARY_GATQ] = {&reading_touching, VERB_GAT, true},
    [BINARY_SASL_LIST] = {&empty, VERB_SASL_LIST, false},
    [BINARY_SASL_START] = {&authenticating, VERB_SASL, false},
    [BINARY_SASL_STEP] = {&authenticating, VERB_SASL, false},
    [BINARY_GATK] = {&reading_touching, VERB_GAT, false},
    [BINARY_GATKQ] = {&reading_touching, VERB_GAT, true},
    [BINARY_GETS] = {&reading, VERB_GET, false},
    [BINARY_GETSQ] = {&reading, VERB_GET, true},
};

/* NULL: there is no such opcode. */
static const struct command *command_of(uint8_t opcode)
{
    static const size_t count = sizeof(commands) / sizeof(commands[0]);
    return opcode < count && commands[opcode].shape != NULL ? &commands[opcode] : NULL;
}

/* ---- packets to requests ---- */

/* Returns the bytes of extras and key, which may claim to be more than the body. */
static uint32_t front_length(const struct packet *packet)
{
    return (uint32_t)packet->extras_length + packet->key_length;
}

static bool shape_fits(const struct shape *shape, const struct packet *packet)
{
    uint32_t front = front_length(packet);
    if (packet->extras_length != shape->extras_length &&
        !(shape->extras_may && packet->extras_length == 0)) {
        return false;
    }
    if (packet->key_length > (shape->key == KEY_NONE ? 0 : PROTOCOL_KEY_MAX) ||
        (shape->key == KEY_ONE && packet->key_length == 0)) {
        return false;
    }
    return shape->value ? packet->body_length >= front : packet->body_length == front;
}

/* Adds a request for the packet's header and the `body_length` bytes after it. */
static inline __attribute__((always_inline)) struct request *
binary_push(struct parser *parser, const struct packet *packet, enum verb verb,
            uint32_t body_length)
{
    size_t end = parser->at + BINARY_HEADER_BYTES + body_length;
    struct request *request = protocol_push(parser->batch, verb, parser->at, end, &parser->state);
    binary_fill_asked(&request->binary, packet->body - BINARY_HEADER_BYTES);
    parser->at = request->end;
    return request;
}

static void push_key(struct parser *parser, struct request *request, const struct packet *packet)
{
    struct request_batch *batch = parser->batch;
    batch->keys[batch->key_count++] = (struct request_key){
        .bytes = packet->body + packet->extras_length, .length = packet->key_length};
    request->keys = 1;
}

/* Adds a refusal; the packet's body, but for `taken` bytes of it, is dropped as it comes. */
static __attribute__((noinline)) struct request *
refuse_behind(struct parser *parser, const struct packet *packet, uint32_t taken,
              enum reply_status status, enum reply_detail detail, const char *text)
{
    struct request *request = binary_push(parser, packet, VERB_ERROR, taken);
    request->refusal = status;
    request->detail = detail;
    request->text = text;
    request->swallow_after = packet->body_length > taken;
    parser->state.swallow_bytes = packet->body_length - taken;
    return request;
}

/* A malformed login stays a login: to the server it is a failed one. */
static void binary_refuse(struct parser *parser, const struct packet *packet,
                          const struct command *command, enum reply_status status,
                          enum reply_detail detail, const char *text)
{
    struct request *request = refuse_behind(parser, packet, 0, status, detail, text);

    if (command != NULL && command->verb == VERB_SASL) {
        request->verb = VERB_SASL;
    }
}

/*
 * Refuses a value that is too long. A set takes its key along, whatever its token: the older value
 * is out of date. False: the key has not come yet.
 */
static bool refuse_value(struct parser *parser, const struct packet *packet,
                         const struct command *command)
{
    static const char words[] = "Too large.";
    uint32_t front = front_length(packet);
    if (command->verb != VERB_SET) {
        binary_refuse(parser, packet, command, REPLY_SERVER_ERROR, DETAIL_TOO_LARGE, words);
        return true;
    }
    if (parser->length - parser->at - BINARY_HEADER_BYTES < front) {
        return false;
    }
    struct request *request =
        refuse_behind(parser, packet, front, REPLY_SERVER_ERROR, DETAIL_TOO_LARGE, words);
    push_key(parser, request, packet);
    return true;
}

/*
 * The headers of two gets whose first word has the same of this are alike but for their keys:
 * magic, opcode, no extras. The rest of it, and the token, no get looks at.
 */
#define ALIKE_MASK 0xffff0000ff000000u

/* Joins the gets to this one that come after it, as far as they are whole and of its opcode. */
static __attribute__((noinline)) void join_gets(struct parser *parser, struct request *request)
{
    uint64_t first = binary_read64(parser->bytes + request->begin) & ALIKE_MASK;
    const char *end = parser->bytes + parser->length;
    const char *at = parser->bytes + parser->at;
    struct request_key *key = &parser->batch->keys[request->first_key + 1];
    const struct request_key *keys_end = protocol_joined_end(parser->batch, request);
    while (key < keys_end && end - at > BINARY_HEADER_BYTES) {
        uint64_t word = binary_read64(at);
        uint32_t length = (uint32_t)(word >> 32) & UINT16_MAX;
        const char *bytes = at + BINARY_HEADER_BYTES;
        if ((word & ALIKE_MASK) != first || length - 1 >= PROTOCOL_KEY_MAX ||
            length > (size_t)(end - bytes) || binary_read32(at + 8) != length) {
            break;
        }
        *key++ = (struct request_key){.bytes = bytes, .length = length};
        at = bytes + length;
    }
    parser->at = (size_t)(at - parser->bytes);
    protocol_join(parser->batch, request, key, parser->at);
}

static inline __attribute__((always_inline)) void
binary_take(struct parser *parser, const struct packet *packet, const struct command *command)
{
    const struct shape *shape = command->shape;
    struct request_batch *batch = parser->batch;
    struct request *request = binary_push(parser, packet, command->verb, packet->body_length);
    request->quiet = command->quiet ? QUIET_USUAL : QUIET_NO;
    request->want_cas =
        shape->token == TOKEN_HIT || (shape->token == TOKEN_LOUD && !command->quiet);
    if (shape->key == KEY_ONE) {
        push_key(parser, request, packet);
    }
    if (shape->value) {
        request->value = packet->body + front_length(packet);
        request->value_length = packet->body_length - front_length(packet);
    }
    if (shape->fill != NULL) {
        shape->fill(batch, request, packet);
    }
    if (shape == &reading && parser->at < parser->length && batch->joins) {
        join_gets(parser, request);
    }
}

static void binary_read_header(struct packet *packet, const char *header)
{
    packet->opcode = (uint8_t)header[1];
    packet->key_length = binary_read16(header + 2);
    packet->extras_length = (uint8_t)header[4];
    packet->body_length = binary_read32(header + 8);
    packet->cas = binary_read64(header + 16);
    packet->body = header + BINARY_HEADER_BYTES;
}

/* Parses one packet. False: the packet at parser->at is not whole yet. */
static inline bool parse_packet(struct parser *parser)
{
    struct packet packet;
    size_t left = parser->length - parser->at;
    if (left < BINARY_HEADER_BYTES) {
        return false;
    }
    binary_read_header(&packet, parser->bytes + parser->at);
    const struct command *command = command_of(packet.opcode);
    if (command == NULL) {
        binary_refuse(parser, &packet, NULL, REPLY_ERROR, DETAIL_UNKNOWN_COMMAND, NULL);
        return true;
    }
    if (!shape_fits(command->shape, &packet)) {
        binary_refuse(parser, &packet, command, REPLY_CLIENT_ERROR, DETAIL_NONE,
                      "Invalid arguments");
        return true;
    }
    if (packet.body_length - front_length(&packet) > parser->batch->value_max) {
        return refuse_value(parser, &packet, command);
    }
    if (left - BINARY_HEADER_BYTES < packet.body_length) {
        return false;
    }
    binary_take(parser, &packet, command);
    return true;
}

/* Takes the increments that come next as long as they are as bare as the one before, and of its
 * opcode and key's length. Apart, so that they have the registers to themselves. */
static __attribute__((noinline)) void take_bare(struct parser *parser, const struct request *before)
{
    struct request_batch *batch = parser->batch;
    const char *good = parser->bytes + before->begin;
    const size_t size = before->end - before->begin;
    const size_t key_at = BINARY_HEADER_BYTES + EXTRAS_ARITHMETIC;
    const char *header = parser->bytes + parser->at;
    const char *end = parser->bytes + parser->length;
    for (; (size_t)(end - header) >= size && !protocol_is_full(batch); header += size) {
        const char *extras = header + BINARY_HEADER_BYTES;
        const struct request_key key = {header + key_at, (uint32_t)(size - key_at)};
        if (binary_read64(header) != binary_read64(good) ||
            binary_read32(header + 8) != binary_read32(good + 8) ||
            binary_read64(header + 16) != 0 || binary_read32(extras + 16) != CREATE_NEVER_MARK) {
            break;
        }
        size_t begin = (size_t)(header - parser->bytes);
        struct request *request = protocol_push_alike(batch, &key, begin, begin + size);
        binary_fill_asked(&request->binary, header);
        put_digits(batch, request, binary_read64(extras));
    }
    parser->at = (size_t)(header - parser->bytes);
}

/* Takes the packets that come next as long as they are whole, and of opcode and lengths as the one
 * before: if that was good, they are. */
static __attribute__((noinline)) void take_alike(struct parser *parser)
{
    const struct request *before = &parser->batch->requests[parser->batch->request_count - 1];
    const char *good = parser->bytes + before->begin;
    const struct command *command = command_of((uint8_t)good[1]);
    uint64_t first = binary_read64(good);
    uint32_t body_length = binary_read32(good + 8);
    if (before->refusal != REPLY_OK) {
        return;
    }
    if (before->bare) {
        take_bare(parser, before);
    }
    while (parser->length - parser->at >= BINARY_HEADER_BYTES + body_length &&
           !protocol_is_full(parser->batch)) {
        struct packet packet;
        const char *header = parser->bytes + parser->at;
        if (binary_read64(header) != first || binary_read32(header + 8) != body_length) {
            return;
        }
        binary_read_header(&packet, header);
        binary_take(parser, &packet, command);
    }
}

/* Parses packet by packet; returns why it ended. */
static enum protocol_result run(struct parser *parser)
{
    for (;;) {
        if (UNLIKELY(parser->state.swallow_bytes > 0)) {
            parser->at += protocol_swallow(&parser->state, parser->length - parser->at);
        }
        if (parser->at == parser->length) {
            return PROTOCOL_MORE;
        }
        if ((unsigned char)parser->bytes[parser->at] != BINARY_MAGIC) {
            return PROTOCOL_CLOSE;
        }
        if (protocol_is_full(parser->batch)) {
            return PROTOCOL_FULL;
        }
        if (!parse_packet(parser)) {
            return PROTOCOL_MORE;
        }
        if (parser->at < parser->length) {
            take_alike(parser);
        }
    }
}

static enum protocol_result binary_parse(const struct protocol_state *state, const char *bytes,
                                         size_t length, struct request_batch *batch)
{
    struct parser parser = {
        .bytes = bytes, .length = length, .at = 0, .state = *state, .batch = batch};
    batch->request_count = 0;
    batch->key_count = 0;
    batch->scratch_used = 0;
    enum protocol_result result = run(&parser);
    batch->consumed = parser.at;
    batch->after = parser.state;
    return result;
}

static void binary_part(const struct request_batch *batch, const struct request *joined,
                        uint32_t number, const char *bytes, struct request *one)
{
    const struct request_key *key = protocol_part(batch, joined, number, bytes, one);
    binary_fill_asked(&one->binary, key->bytes - BINARY_HEADER_BYTES);
}

/* Never called: a request of this dialect that has more keys than one is joined. */
static void binary_cut(const struct request_batch *batch, const struct request *request,
                       uint32_t answered, const char *bytes, struct protocol_state *state,
                       size_t *offset)
{
    (void)batch;
    (void)bytes;
    (void)state;
    (void)offset;
    CHECK(answered > 0 && answered < request->keys);
}

const struct codec *binary_codec(void)
{
    static const struct codec codec = {
        .first_byte = BINARY_MAGIC,
        .initial_in_every = true,
        .read_auth = binary_auth_read,
        .parse = binary_parse,
        .reply_bytes_max = binary_compose_bytes_max,
        .compose_value = binary_compose_value,
        .compose_values = binary_compose_values,
        .compose_alike = binary_compose_alike,
        .compose_miss = binary_compose_miss,
        .compose_end = binary_compose_end,
        .compose_stat = binary_compose_stat,
        .compose_stats_end = binary_compose_stats_end,
        .compose = binary_compose,
        .compose_numbers = binary_compose_numbers,
        .part = binary_part,
        .cut = binary_cut,
    };
    return &codec;
}
