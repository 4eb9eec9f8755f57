/*
 * client.c: libmemcached against a running rollcalld: every command on slot and record keys.
 *
 * usage: client PORT. Wants the spaces of tests/protocol/scripts.yaml. Prints a line a failed check
 * and exits 1 if there was one.
 */
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDS 100

static unsigned failures;

static void expect(bool true_, const char *what)
{
    if (!true_) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

static memcached_return_t set(memcached_st *mc, const char *key, const char *value)
{
    return memcached_set(mc, key, strlen(key), value, strlen(value), 0, 0);
}

static bool holds(memcached_st *mc, const char *key, const char *wanted)
{
    size_t length = 0;
    uint32_t flags = 0;
    memcached_return_t rc;
    char *value = memcached_get(mc, key, strlen(key), &length, &flags, &rc);
    bool same = wanted ? value && length == strlen(wanted) && memcmp(value, wanted, length) == 0
                       : rc == MEMCACHED_NOTFOUND;
    if (!same) {
        printf("%s: %.*s (%s), wanted %s\n", key, (int)length, value ? value : "",
               memcached_strerror(mc, rc), wanted ? wanted : "nothing");
    }
    free(value);
    return same;
}

static void slots(memcached_st *mc)
{
    const char *key = "feed:500.like";
    uint64_t value = 0;
    expect(memcached_increment(mc, key, strlen(key), 5, &value) == MEMCACHED_SUCCESS && value == 5,
           "increment creates");
    expect(memcached_decrement(mc, key, strlen(key), 9, &value) == MEMCACHED_SUCCESS && value == 0,
           "decrement stops at 0");
    expect(set(mc, key, "17") == MEMCACHED_SUCCESS && holds(mc, key, "17"), "set and get");
    expect(memcached_add(mc, key, strlen(key), "1", 1, 0, 0) == MEMCACHED_NOTSTORED, "add on set");
    expect(memcached_replace(mc, key, strlen(key), "18446744073709551615", 20, 0, 0) ==
               MEMCACHED_SUCCESS,
           "replace");
    expect(holds(mc, key, "18446744073709551615"), "the largest number");
    expect(memcached_touch(mc, key, strlen(key), 60) == MEMCACHED_SUCCESS, "touch");
    expect(memcached_append(mc, key, strlen(key), "1", 1, 0, 0) != MEMCACHED_SUCCESS, "append");
    expect(memcached_exist(mc, key, strlen(key)) != MEMCACHED_NOTFOUND, "exist");
    expect(memcached_delete(mc, key, strlen(key), 0) == MEMCACHED_SUCCESS, "delete");
    expect(memcached_delete(mc, key, strlen(key), 0) == MEMCACHED_NOTFOUND, "delete again");
    expect(holds(mc, key, NULL), "gone");
}

static void records(memcached_st *mc)
{
    const char *key = "feed:501";
    expect(set(mc, key, "1,,30,1048575") == MEMCACHED_SUCCESS, "set record");
    expect(holds(mc, key, "1,,30,1048575"), "get record");
    expect(holds(mc, "feed:501.comment", NULL), "unset slot");
    expect(holds(mc, "feed:501.read", "1048575"), "slot beyond its bits");
    expect(set(mc, key, "1,2") == MEMCACHED_CLIENT_ERROR, "too few fields");
    expect(holds(mc, key, "1,,30,1048575"), "nothing changed");
    expect(memcached_delete(mc, key, strlen(key), 0) == MEMCACHED_SUCCESS, "delete record");
    expect(set(mc, "nobody", "1") == MEMCACHED_CLIENT_ERROR, "no space for key");
}

static void tokens(memcached_st *mc)
{
    const char *key = "feed:502.like";
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 1);
    set(mc, key, "7");
    size_t length = strlen(key);
    memcached_return_t rc = memcached_mget(mc, &key, &length, 1);
    expect(rc == MEMCACHED_SUCCESS, "gets");
    memcached_result_st *result = memcached_fetch_result(mc, NULL, &rc);
    expect(result != NULL, "gets result");
    uint64_t token = result ? memcached_result_cas(result) : 0;
    memcached_result_free(result);
    while ((result = memcached_fetch_result(mc, NULL, &rc)) != NULL) {
        memcached_result_free(result);
    }
    expect(token != 0, "token");
    rc = memcached_cas(mc, key, length, "8", 1, 0, 0, token);
    expect(rc == MEMCACHED_SUCCESS, memcached_strerror(mc, rc));
    expect(memcached_cas(mc, key, length, "9", 1, 0, 0, token) == MEMCACHED_DATA_EXISTS, "old cas");
    memcached_behavior_set(mc, MEMCACHED_BEHAVIOR_SUPPORT_CAS, 0);
}

static void members(memcached_st *mc)
{
    const char *key = "liked:503:u9";
    size_t length = strlen(key);
    expect(memcached_exist(mc, key, length) == MEMCACHED_NOTFOUND, "member not there");
    expect(memcached_add(mc, key, length, "1", 1, 0, 0) == MEMCACHED_SUCCESS, "add member");
    expect(memcached_add(mc, key, length, "1", 1, 0, 0) == MEMCACHED_NOTSTORED, "add it again");
    expect(holds(mc, key, "1"), "member there");
    expect(memcached_exist(mc, key, length) == MEMCACHED_SUCCESS, "it exists");
    expect(set(mc, key, "2") == MEMCACHED_CLIENT_ERROR, "a member is 1");
    expect(holds(mc, "liked:504:u9", NULL) && holds(mc, "liked:503:u8", NULL), "no other");
    expect(memcached_delete(mc, key, length, 0) == MEMCACHED_SUCCESS, "delete member");
    expect(memcached_delete(mc, key, length, 0) == MEMCACHED_NOTFOUND, "delete it again");
    expect(holds(mc, key, NULL), "member gone");
    expect(set(mc, key, "1") == MEMCACHED_SUCCESS && holds(mc, key, "1"), "member back");
}

static void many(memcached_st *mc)
{
    char names[IDS][32];
    const char *keys[IDS];
    size_t lengths[IDS];
    for (int i = 0; i < IDS; i++) {
        snprintf(names[i], sizeof(names[i]), "feed:%d", 1000 + i);
        keys[i] = names[i];
        lengths[i] = strlen(names[i]);
        char value[64];
        snprintf(value, sizeof(value), "%d,%d,%d,%d", i, 2 * i, 3 * i, 4 * i);
        expect(set(mc, names[i], value) == MEMCACHED_SUCCESS, "set of many");
    }
    expect(memcached_mget(mc, keys, lengths, IDS) == MEMCACHED_SUCCESS, "mget");
    memcached_return_t rc;
    memcached_result_st *result;
    int found = 0;
    while ((result = memcached_fetch_result(mc, NULL, &rc)) != NULL) {
        int i = atoi(memcached_result_key_value(result) + strlen("feed:")) - 1000;
        char value[64];
        int length = snprintf(value, sizeof(value), "%d,%d,%d,%d", i, 2 * i, 3 * i, 4 * i);
        expect(memcached_result_length(result) == (size_t)length &&
                   memcmp(memcached_result_value(result), value, (size_t)length) == 0,
               "value of many");
        memcached_result_free(result);
        found++;
    }
    expect(found == IDS, "all of many");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: client PORT\n");
        return 2;
    }
    memcached_st *mc = memcached_create(NULL);
    memcached_server_add(mc, "127.0.0.1", (in_port_t)atoi(argv[1]));
    expect(memcached_version(mc) == MEMCACHED_SUCCESS, "version");
    slots(mc);
    records(mc);
    tokens(mc);
    members(mc);
    many(mc);
    memcached_return_t rc;
    memcached_stat_st *stats = memcached_stat(mc, NULL, &rc);
    expect(stats && rc == MEMCACHED_SUCCESS, "stat");
    memcached_stat_free(mc, stats);
    memcached_free(mc);
    printf("%u failures\n", failures);
    return failures ? 1 : 0;
}
