/*
 * libmemcached.c: calls of libmemcached for run.py, which has no binding of it: a line of stdin is
 * a call, what it came to is one line of stdout.
 *
 * usage: libmemcached text|binary PORT…   A call begins with the number of the port, from 0.
 *
 *     0 get KEY…                    found: TOKEN KEY VALUE for each hit
 *     0 set|add|replace KEY VALUE   STORED, NOTSTORED
 *     0 cas KEY TOKEN VALUE         STORED, EXISTS, NOTFOUND
 *     0 incr|decr KEY DELTA         the number, NOTFOUND
 *     0 delete KEY, 0 touch KEY EXPTIME    DONE, NOTFOUND
 *
 * Anything else it says begins with ERROR. Keys and values are without white space.
 */
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX   65536
#define WORDS_MAX  256
#define PEERS_MAX  8
#define VERB_WORDS 2 /* the peer and the verb */

/* One call: words[0] is the peer, words[1] the verb. */
struct call {
    memcached_st *mc;
    char *words[WORDS_MAX];
    size_t lengths[WORDS_MAX];
    size_t count;
};

static const char *word_of(memcached_return_t rc)
{
    switch (rc) {
    case MEMCACHED_SUCCESS:
    case MEMCACHED_STORED:
        return "STORED";
    case MEMCACHED_NOTSTORED:
        return "NOTSTORED";
    case MEMCACHED_DATA_EXISTS:
        return "EXISTS";
    case MEMCACHED_NOTFOUND:
        return "NOTFOUND";
    default:
        return NULL;
    }
}

static void say(const struct call *call, memcached_return_t rc)
{
    const char *word = word_of(rc);
    if (word == NULL) {
        printf("ERROR %s\n", memcached_last_error_message(call->mc));
        return;
    }
    printf("%s\n", word);
}

static void call_get(const struct call *call)
{
    const char *const *keys = (const char *const *)call->words + VERB_WORDS;
    size_t count = call->count - VERB_WORDS;
    memcached_return_t rc = memcached_mget(call->mc, keys, call->lengths + VERB_WORDS, count);
    if (rc != MEMCACHED_SUCCESS && rc != MEMCACHED_NOTFOUND) {
        say(call, rc);
        return;
    }
    memcached_result_st *result;
    printf("found:");
    while ((result = memcached_fetch_result(call->mc, NULL, &rc)) != NULL) {
        printf(" %llu %.*s %.*s", (unsigned long long)memcached_result_cas(result),
               (int)memcached_result_key_length(result), memcached_result_key_value(result),
               (int)memcached_result_length(result), memcached_result_value(result));
        memcached_result_free(result);
    }
    bool ended = rc == MEMCACHED_END || rc == MEMCACHED_NOTFOUND || rc == MEMCACHED_SUCCESS;
    printf("%s\n", ended ? "" : " ERROR");
}

typedef memcached_return_t store_fn(memcached_st *mc, const char *key, size_t key_length,
                                    const char *value, size_t length, time_t expiry,
                                    uint32_t flags);

static void call_store(const struct call *call, store_fn *store)
{
    say(call,
        store(call->mc, call->words[2], call->lengths[2], call->words[3], call->lengths[3], 0, 0));
}

static void call_count(const struct call *call, bool up)
{
    uint64_t value = 0;
    memcached_return_t (*count)(memcached_st *, const char *, size_t, uint32_t, uint64_t *) =
        up ? memcached_increment : memcached_decrement;
    uint32_t delta = (uint32_t)strtoul(call->words[3], NULL, 10);
    memcached_return_t rc = count(call->mc, call->words[2], call->lengths[2], delta, &value);
    if (rc != MEMCACHED_SUCCESS) {
        say(call, rc);
        return;
    }
    printf("%llu\n", (unsigned long long)value);
}

static void call_other(const struct call *call)
{
    const char *verb = call->words[1], *key = call->words[2];
    size_t length = call->lengths[2];
    if (strcmp(verb, "cas") == 0) {
        uint64_t token = strtoull(call->words[3], NULL, 10);
        say(call,
            memcached_cas(call->mc, key, length, call->words[4], call->lengths[4], 0, 0, token));
    } else if (strcmp(verb, "delete") == 0) {
        say(call, memcached_delete(call->mc, key, length, 0));
    } else if (strcmp(verb, "touch") == 0) {
        say(call, memcached_touch(call->mc, key, length, atol(call->words[3])));
    } else {
        printf("ERROR no such call\n");
    }
}

static void run(const struct call *call)
{
    const char *verb = call->words[1];
    if (strcmp(verb, "get") == 0) {
        call_get(call);
    } else if (strcmp(verb, "set") == 0) {
        call_store(call, memcached_set);
    } else if (strcmp(verb, "add") == 0) {
        call_store(call, memcached_add);
    } else if (strcmp(verb, "replace") == 0) {
        call_store(call, memcached_replace);
    } else if (strcmp(verb, "incr") == 0 || strcmp(verb, "decr") == 0) {
        call_count(call, verb[0] == 'i');
    } else {
        call_other(call);
    }
    fflush(stdout);
}

static memcached_st *connect_to(const char *port, bool binary)
{
    memcached_st *mc = memcached_create(NULL);
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, binary);
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    memcached_server_add(mc, "127.0.0.1", (in_port_t)atoi(port));
    return mc;
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX];
    memcached_st *peers[PEERS_MAX];
    int count = argc - 2;
    if (count < 1 || count > PEERS_MAX) {
        fprintf(stderr, "usage: libmemcached text|binary PORT...\n");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        peers[i] = connect_to(argv[2 + i], strcmp(argv[1], "binary") == 0);
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct call call = {.count = 0};
        char *at = NULL;
        for (char *word = strtok_r(line, " \n", &at); word != NULL && call.count < WORDS_MAX;
             word = strtok_r(NULL, " \n", &at)) {
            call.words[call.count] = word;
            call.lengths[call.count++] = strlen(word);
        }
        int peer = call.count > VERB_WORDS ? atoi(call.words[0]) : count;
        if (peer < 0 || peer >= count) {
            fprintf(stderr, "no call: %s\n", line);
            return 2;
        }
        call.mc = peers[peer];
        run(&call);
    }
    for (int i = 0; i < count; i++) {
        memcached_free(peers[i]);
    }
    return 0;
}
