/* Keys to engine operations: which space, which slot, which row of the command table. */
#include "base/check.h"
#include "engine/slots.h"
#include "request/dispatch_private.h"

/* What the keys of one request have in common. */
struct route {
    const struct request *request;
    const struct command *const *row; /* its verb's, by kind of key */
    uint32_t least;                   /* bytes of value it has, or is not usual */
    bool past;                        /* its exptime is */
    bool usual;                       /* the row is all there is to ask */
    bool gets;                        /* usual, and a get: it changes nothing and brings nothing */
};

/* A key of no space of ids. */
static enum key_kind find_plain(struct dispatch_worker *worker, const struct request_key *bytes,
                                struct dispatch_key *key)
{
    const struct spaces *spaces = worker->spaces;
    uint32_t similar;
    key->space = spaces->plain;
    key->op.member = bytes->bytes;
    key->op.member_length = bytes->length;
    if (key->space == NULL) {
        return KEY_NONE;
    }
    if (spaces->plain->settings.similar_keys == SPACE_SIMILAR_REFUSE &&
        pattern_similar(spaces->patterns, bytes->bytes, bytes->length, &similar)) {
        key->space = spaces->of_pattern[similar];
        return KEY_SIMILAR;
    }
    return KEY_PLAIN;
}

/* Finds what a key names: fills space and the operation's id, slot or member. */
static inline __attribute__((always_inline)) enum key_kind
find(struct dispatch_worker *worker, const struct request_key *bytes, struct dispatch_key *key)
{
    struct pattern_match *match = &worker->match;
    enum pattern_result result =
        pattern_match_next(worker->spaces->patterns, bytes->bytes, bytes->length, match);

    if (UNLIKELY(result == PATTERN_NONE)) {
        return find_plain(worker, bytes, key);
    }
    struct space *space = worker->spaces->of_pattern[match->space];
    const struct engine *engine = space->engine;

    key->space = space;
    key->op.id = match->id;
    key->op.slot = ENGINE_SLOT_RECORD;
    switch (result) {
    case PATTERN_RECORD:
        if (match->rest_length == 0) {
            return KEY_RECORD;
        }
        if (engine->slots == NULL ||
            !engine_slots_parse(engine->slots, match->rest, match->rest_length, &key->op)) {
            return match->rest[0] == '.' ? KEY_SLOT_UNKNOWN : KEY_BAD;
        }
        return key->op.slot == ENGINE_SLOT_RECORD ? KEY_RECORD : KEY_SLOT;
    case PATTERN_MEMBER:
        key->op.member = match->rest;
        key->op.member_length = match->rest_length;
        return KEY_MEMBER;
    default:
        return KEY_BAD;
    }
}

/* Returns whether the space declines the initial value that clients of this codec send with every
 * incr. */
static bool declines_initial(const struct dispatch_worker *worker, const struct space *space)
{
    return worker->codec->initial_in_every && !space->settings.binary_create;
}

static void fill_extended(const struct request *request, struct engine_extended *extended)
{
    const struct request_extended *asked = request->extended;
    *extended = (struct engine_extended){
        .vivify = asked->vivify,
        .vivify_first = asked->vivify_first,
        .recache = asked->recache,
        .recache_first = asked->recache_first,
        .unnoticed = asked->unnoticed,
        .invalidate = asked->invalidate,
        .empty = asked->empty,
        .touch = asked->touch,
        .gives_token = asked->gives_token,
        .vivify_s = command_exptime_at(asked->vivify_exptime),
        .recache_s = command_exptime_at(asked->recache_exptime),
        .token = asked->token,
    };
}

static void fill_plain(const struct request *request, struct dispatch_key *key)
{
    struct engine_op *op = &key->op;
    op->flags = request->flags;
    op->touch = request->touch;
    op->touch_s = request->touch ? command_exptime_at(request->touch_exptime) : 0;
    op->expires_s = command_exptime_at(request->exptime);
    op->extended = NULL;
    if (request->extended != NULL) {
        fill_extended(request, key->extended);
        op->extended = key->extended;
    }
}

/* What only a change needs, or any operation of a plain space. */
static inline void fill_change(const struct dispatch_worker *worker, const struct request *request,
                               bool past, enum key_kind kind, struct dispatch_key *key)
{
    struct engine_op *op = &key->op;

    op->cas = request->cas;
    op->compare = request->compare;
    op->initial = request->initial;
    op->create_initial = request->create == CREATE_INITIAL;
    op->create_never = request->create == CREATE_NEVER;
    if (op->create_initial && (kind == KEY_SLOT || kind == KEY_RECORD) &&
        declines_initial(worker, key->space)) {
        op->create_initial = false;
        op->create_never = true;
    }
    op->expires = past && kind != KEY_PLAIN;
    if (UNLIKELY(kind == KEY_PLAIN)) {
        fill_plain(request, key);
    }
}

/* A bare change: where a flag is false its number means nothing. */
static inline void fill_bare(const struct request *request, struct engine_op *op)
{
    op->compare = false;
    op->create_initial = false;
    op->create_never = request->create == CREATE_NEVER;
    op->want_cas = request->want_cas;
    op->expires = false;
    op->created = false;
    op->copied_bytes = 0;
}

/* What a key is to a request that is not usual. */
static enum key_kind kind_for(const struct request *request, enum key_kind kind)
{
    bool large = request->value_length > PROTOCOL_VALUE_MAX && kind != KEY_PLAIN;
    return large ? KEY_LARGE : kind;
}

/* The row of the command table for a key of such a request. */
static __attribute__((noinline)) const struct command *
find_command(const struct request *request, bool past, enum key_kind kind, struct dispatch_key *key)
{
    const struct command *look = NULL;

    if (request->value_length == 0 && request->verb == VERB_ADD) {
        look = command_find_look(key->space, kind, past);
    }
    const struct command *command = look != NULL ? look : command_find(request->verb, kind, past);

    if (request->plain_only || request->extended != NULL) {
        command = command_find_extended(command, request, kind);
    }
    key->delete_after = past && command_deletes_after(request->verb, kind);
    return command;
}

/* What keys of a get do without. */
static inline void fill_rest(const struct dispatch_worker *worker, const struct request *request,
                             bool past, enum key_kind kind, struct dispatch_key *key)
{
    struct engine_op *op = &key->op;

    op->text = request->value;
    op->text_length = request->value_length;
    op->created = false;
    op->copied_bytes = 0;
    if (LIKELY(request->bare) && LIKELY(kind != KEY_PLAIN)) {
        fill_bare(request, op);
    } else if (key->command->call == COMMAND_CALL_CHANGE || UNLIKELY(kind == KEY_PLAIN)) {
        fill_change(worker, request, past, kind, key);
    }
}

/* Returns whether a request whose exptime is not past asks for no more than its verb's row says. */
static inline bool is_usual(const struct request *request, uint32_t least)
{
    bool asks = request->plain_only | (request->extended != NULL);
    return !asks & (request->value_length - least <= PROTOCOL_VALUE_MAX - least);
}

static inline struct route request_route_of(const struct request *request)
{
    if (request->bare) {
        return (struct route){
            .request = request, .row = command_rows[request->verb], .usual = true};
    }
    uint32_t least = request->verb == VERB_ADD; /* one of nothing only looks */
    bool past = request->exptime != 0 && command_exptime_past(request->exptime);
    bool usual = !past && is_usual(request, least);

    return (struct route){.request = request,
                          .row = command_rows[request->verb],
                          .least = least,
                          .past = past,
                          .usual = usual,
                          .gets = usual && request->verb == VERB_GET};
}

static inline __attribute__((always_inline)) void route_key(struct dispatch_worker *worker,
                                                            const struct route *route,
                                                            const struct request_key *bytes,
                                                            struct dispatch_key *key)
{
    enum key_kind kind = find(worker, bytes, key);

    key->delete_after = false;
    if (LIKELY(route->usual)) {
        key->command = route->row[kind];
    } else {
        kind = kind_for(route->request, kind);
        key->command = find_command(route->request, route->past, kind, key);
    }
    key->op.verb = key->command->verb;
    key->op.want_cas = route->request->want_cas;
    key->op.ticket.serial = worker->serial;
    if (!route->gets || UNLIKELY(kind == KEY_PLAIN)) {
        fill_rest(worker, route->request, route->past, kind, key);
    }
}

struct dispatch_key *dispatch_route_alone(struct dispatch_worker *worker,
                                          const struct request *request,
                                          const struct request_key *bytes)
{
    const struct route route = request_route_of(request);
    struct dispatch_key *key = &worker->alone;

    route_key(worker, &route, bytes, key);
    return key;
}

static inline bool is_uniform(const struct dispatch_chunk *chunk, const struct dispatch_key *key)
{
    return (key->space == chunk->keys[0].space) & (key->command->call != COMMAND_CALL_NONE);
}

/* Bare requests of this verb come next; VERB_ERROR: others, or one without keys. */
static inline void note_verb(struct dispatch_chunk *chunk, uint32_t count, enum verb verb)
{
    chunk->verb = count == 0 || chunk->verb == verb ? verb : VERB_ERROR;
}

/*
 * Routes the keys of bare requests, up to `end`, that are of the first one's verb and begin like
 * the key that was routed last, which head and space are of. Returns how many. Apart, so that it
 * has the registers to itself.
 */
static __attribute__((noinline)) uint32_t route_alike(const struct dispatch_worker *worker,
                                                      const struct request *request,
                                                      const struct request *end,
                                                      struct space *space, struct dispatch_key *key)
{
    const struct request *first = request;
    const struct pattern_head *head = &worker->match.head;
    const struct engine_slots *slots = space->engine->slots;
    const struct request_key *bytes = &worker->batch.keys[request->first_key];
    const struct command *const *row = command_rows[request->verb];

    for (; request < end && request->bare && request->verb == first->verb; request++, key++) {
        const char *key_end = bytes->bytes + bytes->length;
        const char *rest = pattern_head_read(head, bytes->bytes, bytes->length, &key->op.id);

        bytes++;
        if (UNLIKELY(rest == NULL)) {
            break;
        }
        key->command = row[KEY_RECORD];
        key->op.slot = ENGINE_SLOT_RECORD;
        if (rest < key_end) {
            key->command = row[KEY_SLOT];
            key->op.slot = engine_slots_find(slots, rest + 1, (size_t)(key_end - rest - 1));
            if (UNLIKELY(key->op.slot < 0)) {
                break;
            }
        }
        key->op.verb = key->command->verb;
        key->op.text = request->value;
        key->op.text_length = request->value_length;
        key->op.ticket.serial = worker->serial;
        fill_bare(request, &key->op);
        key->space = space;
        key->delete_after = false;
    }
    return (uint32_t)(request - first);
}

/* Routes the keys of bare requests as route_alike(), up to a full chunk. Returns how many. */
static inline uint32_t load_alike(struct dispatch_worker *worker, const struct request *request,
                                  struct dispatch_chunk *chunk, uint32_t count)
{
    const struct request_batch *batch = &worker->batch;
    const struct pattern_head *head = &worker->match.head;

    if (!pattern_head_known(worker->spaces->patterns, head) || head->with_member) {
        return 0;
    }
    struct space *space = worker->spaces->of_pattern[worker->match.space];
    const struct request *end = &batch->requests[batch->request_count];

    if (UNLIKELY(space->engine->slots == NULL)) {
        return 0;
    }
    if (end - request > DISPATCH_CHUNK_KEYS - count) {
        end = request + DISPATCH_CHUNK_KEYS - count;
    }
    uint32_t n = route_alike(worker, request, end, space, &chunk->keys[count]);

    if (n > 0) {
        chunk->gets = false;
        chunk->uniform &= chunk->keys[0].space == space;
        note_verb(chunk, count, request->verb);
    }
    return n;
}

/* Routes the keys of the next requests, as far as they have one and ask for no more than the first
 * one's verb says, up to a full chunk; at least that of the first. */
static uint32_t load_ones(struct dispatch_worker *worker, const struct request *request,
                          struct dispatch_chunk *chunk, uint32_t count)
{
    const struct request_batch *batch = &worker->batch;
    struct route route = request_route_of(request);
    enum verb verb = request->verb;
    bool bare = request->bare;
    bool uniform = chunk->uniform;
    uint32_t left = batch->request_count - worker->route_request;
    uint32_t room = DISPATCH_CHUNK_KEYS - count;
    uint32_t most = left < room ? left : room;
    struct dispatch_key *key = &chunk->keys[count];
    uint32_t n = 0;

    if (bare) { /* load_alike() may go on now */
        most = 1;
    }
    chunk->gets &= route.gets;
    do {
        route.request = request++;
        route_key(worker, &route, &batch->keys[route.request->first_key], key);
        uniform &= is_uniform(chunk, key++);
    } while (++n < most && request->verb == verb && request->keys == 1 && route.usual &&
             request->exptime == 0 && is_usual(request, route.least));
    chunk->uniform = uniform;
    note_verb(chunk, count, bare ? verb : VERB_ERROR);
    worker->route_request += n;
    return count + n;
}

/* Returns whether a key of a get is one whose head says all of the keys that begin like it, but for
 * their ids and members. */
static inline bool begins_page(const struct dispatch_worker *worker, const struct dispatch_key *key)
{
    return pattern_head_known(worker->spaces->patterns, &worker->match.head) &&
           key->command->call == COMMAND_CALL_READ && key->op.slot == ENGINE_SLOT_RECORD;
}

/* Routes keys of a get that begin like the one before `key`, until one does not. Returns how many:
 * of a page all. Apart, so that it has the registers to itself. */
static __attribute__((noinline)) uint32_t load_page(const struct dispatch_worker *worker,
                                                    const struct request_key *bytes,
                                                    struct dispatch_key *key, uint32_t most)
{
    const struct pattern_head *head = &worker->match.head;
    const struct command *command = key[-1].command;
    struct space *space = key[-1].space;
    enum engine_verb verb = key[-1].op.verb;
    bool want_cas = key[-1].op.want_cas;
    uint64_t serial = worker->serial;
    uint32_t n = 0;

    for (; n < most; n++, key++) {
        uint64_t id;
        const char *rest = pattern_head_read(head, bytes[n].bytes, bytes[n].length, &id);
        const char *end = bytes[n].bytes + bytes[n].length;

        if (UNLIKELY(rest == NULL) || (UNLIKELY(rest != end) && !head->with_member)) {
            break;
        }
        key->op.verb = verb;
        key->op.slot = ENGINE_SLOT_RECORD;
        key->op.id = id;
        key->op.member = rest;
        key->op.member_length = (uint32_t)(end - rest);
        key->op.want_cas = want_cas;
        key->op.ticket.serial = serial;
        key->command = command;
        key->space = space;
        key->delete_after = false;
    }
    return n;
}

/* Routes the next keys of one request, up to a full chunk. */
static uint32_t load_request(struct dispatch_worker *worker, const struct request *request,
                             struct dispatch_chunk *chunk, uint32_t count)
{
    const struct route route = request_route_of(request);
    const struct request_key *bytes = &worker->batch.keys[request->first_key];
    uint32_t left = request->keys - worker->route_key;
    uint32_t room = DISPATCH_CHUNK_KEYS - count;
    uint32_t most = left < room ? left : room;
    struct dispatch_key *key = &chunk->keys[count];
    const struct dispatch_key *end = key + most;
    bool uniform = chunk->uniform;

    note_verb(chunk, count, VERB_ERROR);
    bytes += worker->route_key;
    worker->route_key += most;
    chunk->gets &= route.gets;
    while (key < end) {
        route_key(worker, &route, bytes++, key);
        uniform &= is_uniform(chunk, key++);
        if (route.gets && begins_page(worker, key - 1)) {
            uint32_t n = load_page(worker, bytes, key, (uint32_t)(end - key));
            key += n;
            bytes += n;
        }
    }
    chunk->uniform = uniform;
    if (worker->route_key == request->keys) {
        worker->route_request++;
        worker->route_key = 0;
    }
    return count + most;
}

/* Routes and prepares the next keys of the batch into a chunk that was run. */
static void chunk_load(struct dispatch_worker *worker, struct dispatch_chunk *chunk)
{
    const struct request_batch *batch = &worker->batch;
    uint32_t count = 0;

    chunk->uniform = true;
    chunk->gets = true;
    while (count < DISPATCH_CHUNK_KEYS && worker->route_request < batch->request_count) {
        const struct request *request = &batch->requests[worker->route_request];
        uint32_t alike = request->bare ? load_alike(worker, request, chunk, count) : 0;

        if (LIKELY(alike > 0)) {
            worker->route_request += alike;
            count += alike;
        } else if (request->keys == 0 || !command_has_keys(request->verb)) {
            note_verb(chunk, count, VERB_ERROR);
            worker->route_request++;
        } else if (request->keys == 1) {
            count = load_ones(worker, request, chunk, count);
        } else {
            count = load_request(worker, request, chunk, count);
        }
    }
    dispatch_chunk_prepare(worker, chunk, count);
}

/* The same of a batch that is one request of one key, the short way. */
static void load_lone(struct dispatch_worker *worker, const struct request *request)
{
    const struct route route = request_route_of(request);
    struct dispatch_chunk *chunk = worker->chunk;
    struct dispatch_key *key = &chunk->keys[0];

    route_key(worker, &route, &worker->batch.keys[request->first_key], key);
    chunk->uniform = key->command->call != COMMAND_CALL_NONE;
    chunk->gets = route.gets;
    chunk->verb = request->bare ? request->verb : VERB_ERROR;
    worker->route_request = 1;
    dispatch_chunk_prepare(worker, chunk, 1);
}

void dispatch_route_begin(struct dispatch_worker *worker)
{
    const struct request_batch *batch = &worker->batch;
    const struct request *first = &batch->requests[0];

    worker->route_request = 0;
    worker->route_key = 0;
    worker->next->count = worker->next->cursor = 0;
    if (batch->request_count == 1 && first->keys == 1 && command_has_keys(first->verb)) {
        load_lone(worker, first);
        return;
    }
    chunk_load(worker, worker->chunk);
    if (UNLIKELY(worker->route_request < batch->request_count)) {
        chunk_load(worker, worker->next);
    }
}

void dispatch_chunk_next(struct dispatch_worker *worker)
{
    struct dispatch_chunk *done = worker->chunk;

    worker->chunk = worker->next;
    worker->next = done;
    chunk_load(worker, done);
    CHECK(worker->chunk->cursor < worker->chunk->count);
}
