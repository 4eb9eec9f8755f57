/*
 * agent_etcd.c: calls of etcd's JSON gateway. Bytes are base64 there, 64-bit numbers are strings,
 * and what is false, zero or empty is not said at all.
 */
#include "tools/rollcall/agent_etcd.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"

#define URL_MAX     512
#define LOGIN_MAX   512
#define TOKEN_MAX   1024
#define BASE64_MAX  1400 /* of a key or value */
#define NUMBER_MAX  24
#define HTTP_OK     200
#define HTTP_BAD    400
#define HTTP_DENIED 401
#define HTTP_BROKEN 500
#define QUOTED_MAX  120 /* of an answer that is none */
#define MS_US       1000u
#define ASK_MS_MIN  20u /* of one endpoint, when a call's time is over */

struct agent_etcd {
    CURL *curl;
    char endpoints[AGENT_ETCD_ENDPOINTS_MAX][URL_MAX];
    size_t endpoint_count, endpoint; /* the one that answered last */
    char login[LOGIN_MAX];           /* name:password; "": none */
    char token[TOKEN_MAX];           /* "": not logged in */
    bool refused;                    /* the last question: it was answered so */
    bool denied;                     /* likewise, as the token is good no more */
    unsigned timeout_ms;
    uint64_t until_ms; /* of a call: clock_boot_us, in milliseconds */
    struct buf answer;
    char error[AGENT_ETCD_ERROR_MAX];
};

const char *agent_etcd_error(const struct agent_etcd *etcd)
{
    return etcd->error;
}

bool agent_etcd_refused(const struct agent_etcd *etcd)
{
    return etcd->refused;
}

__attribute__((format(printf, 2, 3))) static bool etcd_fail(struct agent_etcd *etcd,
                                                            const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(etcd->error, sizeof(etcd->error), format, arguments);
    va_end(arguments);
    return false;
}

/* ---- its life ---- */

static bool etcd_take_endpoints(struct agent_etcd *etcd, const char *list)
{
    while (*list != '\0') {
        size_t length = strcspn(list, ",");
        char *to = etcd->endpoints[etcd->endpoint_count];

        if (etcd->endpoint_count + 1 == AGENT_ETCD_ENDPOINTS_MAX || length >= URL_MAX ||
            (strncmp(list, "http://", strlen("http://")) != 0 &&
             strncmp(list, "https://", strlen("https://")) != 0)) {
            return etcd_fail(etcd,
                             "--etcd: \"%.100s\" must be up to %d of http://HOST:PORT or "
                             "https://HOST:PORT, with commas between them",
                             list, AGENT_ETCD_ENDPOINTS_MAX - 1);
        }
        snprintf(to, URL_MAX, "%.*s", (int)length, list);
        to[strlen(to) - (to[strlen(to) - 1] == '/' ? 1 : 0)] = '\0';
        etcd->endpoint_count++;
        list += length + (list[length] == ',' ? 1 : 0);
    }
    return etcd->endpoint_count > 0 || etcd_fail(etcd, "--etcd: there is no endpoint");
}

static bool etcd_read_login(struct agent_etcd *etcd, const char *name)
{
    FILE *file = fopen(name, "re");

    if (file == NULL) {
        return etcd_fail(etcd, "%s: %s", name, strerror(errno));
    }
    if (fgets(etcd->login, sizeof(etcd->login), file) == NULL) {
        etcd->login[0] = '\0';
    }
    fclose(file);
    etcd->login[strcspn(etcd->login, "\r\n")] = '\0';
    return strchr(etcd->login, ':') != NULL ||
           etcd_fail(etcd, "%s: its first line must be name:password", name);
}

static size_t etcd_take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct agent_etcd *etcd = context;
    size_t length = size * count;

    return buf_append(&etcd->answer, bytes, length) ? length : 0;
}

static void etcd_set_up(struct agent_etcd *etcd, const struct agent_etcd_options *options)
{
    CURL *curl = etcd->curl;

    etcd->timeout_ms = options->timeout_ms;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, etcd_take_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, etcd);
    if (options->ca != NULL) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca);
    }
    if (options->cert != NULL) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, options->cert);
    }
    if (options->key != NULL) {
        curl_easy_setopt(curl, CURLOPT_SSLKEY, options->key);
    }
}

struct agent_etcd *agent_etcd_create(const struct agent_etcd_options *options,
                                     char error[AGENT_ETCD_ERROR_MAX])
{
    struct agent_etcd *etcd = memory_zalloc(sizeof(*etcd));

    buf_init(&etcd->answer, AGENT_ETCD_ANSWER_MAX, NULL);
    bool good = etcd_take_endpoints(etcd, options->endpoints) &&
                (options->auth_file == NULL || etcd_read_login(etcd, options->auth_file));

    if (good) {
        curl_global_init(CURL_GLOBAL_DEFAULT);
        etcd->curl = curl_easy_init();
        good = etcd->curl != NULL || etcd_fail(etcd, "libcurl cannot be used");
    }
    if (!good) {
        memcpy(error, etcd->error, AGENT_ETCD_ERROR_MAX);
        agent_etcd_destroy(etcd);
        return NULL;
    }
    etcd_set_up(etcd, options);
    return etcd;
}

void agent_etcd_destroy(struct agent_etcd *etcd)
{
    if (etcd == NULL) {
        return;
    }
    if (etcd->curl != NULL) {
        curl_easy_cleanup(etcd->curl);
        curl_global_cleanup();
    }
    explicit_bzero(etcd->login, sizeof(etcd->login));
    explicit_bzero(etcd->token, sizeof(etcd->token));
    buf_fini(&etcd->answer);
    free(etcd);
}

/* ---- one call ---- */

static void etcd_begin(struct agent_etcd *etcd)
{
    etcd->until_ms = clock_boot_us() / MS_US + etcd->timeout_ms;
}

/* Each of the endpoints that are left may take as much of the call's time as the others. */
static void etcd_bound(struct agent_etcd *etcd, size_t endpoints_left)
{
    uint64_t now_ms = clock_boot_us() / MS_US;
    uint64_t share_ms =
        etcd->until_ms > now_ms ? (etcd->until_ms - now_ms) / endpoints_left : ASK_MS_MIN;

    curl_easy_setopt(etcd->curl, CURLOPT_TIMEOUT_MS,
                     (long)(share_ms > ASK_MS_MIN ? share_ms : ASK_MS_MIN));
}

/* Posts to one endpoint. False: it cannot be reached, or says nothing: another one may. */
static bool etcd_post(struct agent_etcd *etcd, const char *path, const char *body, long *status)
{
    char url[URL_MAX + 64];
    char authorization[TOKEN_MAX + 32];
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");

    if (etcd->token[0] != '\0') {
        snprintf(authorization, sizeof(authorization), "Authorization: %s", etcd->token);
        headers = curl_slist_append(headers, authorization);
    }
    etcd->refused = false;
    snprintf(url, sizeof(url), "%s%s", etcd->endpoints[etcd->endpoint], path);
    buf_truncate(&etcd->answer, 0);
    curl_easy_setopt(etcd->curl, CURLOPT_URL, url);
    curl_easy_setopt(etcd->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(etcd->curl, CURLOPT_HTTPHEADER, headers);
    CURLcode code = curl_easy_perform(etcd->curl);

    curl_easy_getinfo(etcd->curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(headers);
    if (code != CURLE_OK) {
        return etcd_fail(etcd, "%s: %s", etcd->endpoints[etcd->endpoint], curl_easy_strerror(code));
    }
    return true;
}

/* A token is not known any more, or (one that is signed) of before users or roles were changed. */
static bool etcd_is_denied(long status, const char *why)
{
    return status == HTTP_DENIED ||
           (status == HTTP_BAD && why != NULL && strstr(why, "auth store is old") != NULL);
}

static json_t *etcd_parse(struct agent_etcd *etcd, long status)
{
    json_error_t error;
    size_t length = etcd->answer.length;
    json_t *answer =
        length > 0 ? json_loadb(etcd->answer.data, length, JSON_DISABLE_EOF_CHECK, &error) : NULL;

    if (status == HTTP_OK && json_is_object(answer)) {
        return answer;
    }
    const char *why = json_string_value(json_object_get(answer, "message"));

    etcd->refused = status >= HTTP_BAD && status < HTTP_BROKEN;
    etcd->denied = etcd_is_denied(status, why);
    if (why == NULL && buf_append(&etcd->answer, "", 1)) {
        why = etcd->answer.data;
    }
    etcd_fail(etcd, "%s answers %ld: %.*s", etcd->endpoints[etcd->endpoint], status, QUOTED_MAX,
              why != NULL ? why : "");
    json_decref(answer);
    return NULL;
}

/* Of the endpoints the first that answers well. NULL: none does. */
static json_t *etcd_ask(struct agent_etcd *etcd, const char *path, const char *body)
{
    etcd->denied = false;
    for (size_t tries = 0; tries < etcd->endpoint_count; tries++) {
        json_t *answer = NULL;
        long status = 0;

        etcd_bound(etcd, etcd->endpoint_count - tries);
        if (etcd_post(etcd, path, body, &status)) {
            answer = etcd_parse(etcd, status);
        }
        if (answer != NULL || etcd->denied) {
            return answer;
        }
        etcd->endpoint = (etcd->endpoint + 1) % etcd->endpoint_count;
    }
    return NULL;
}

static bool etcd_log_in(struct agent_etcd *etcd)
{
    const char *colon = strchr(etcd->login, ':');
    json_t *words = json_pack("{s:s%, s:s}", "name", etcd->login, (size_t)(colon - etcd->login),
                              "password", colon + 1);
    char *body = json_dumps(words, JSON_COMPACT); /* NULL of NULL */

    etcd->token[0] = '\0';
    etcd_begin(etcd); /* etcd makes it dear, so that nobody tries many passwords */
    if (body == NULL) {
        json_decref(words);
        return etcd_fail(etcd, "--etcd-auth: the name or password is no UTF-8, or memory is short");
    }
    json_t *answer = etcd_ask(etcd, "/v3/auth/authenticate", body);
    const char *token = json_string_value(json_object_get(answer, "token"));

    if (token != NULL) {
        snprintf(etcd->token, sizeof(etcd->token), "%s", token);
    }
    etcd_begin(etcd);
    explicit_bzero(body, strlen(body));
    free(body);
    json_decref(words);
    json_decref(answer);
    return token != NULL;
}

/* Takes `request` over. With a login it logs in first, and once again when the token has ended. */
static json_t *etcd_call(struct agent_etcd *etcd, const char *path, json_t *request)
{
    char *body = json_dumps(request, JSON_COMPACT);
    json_t *answer = NULL;

    etcd->denied = true;
    etcd_begin(etcd);
    json_decref(request);
    if (body == NULL) {
        (void)etcd_fail(etcd, "%s cannot be asked: a key is no UTF-8, or memory is short", path);
        return NULL;
    }
    if (etcd->login[0] == '\0' || etcd->token[0] != '\0') {
        answer = etcd_ask(etcd, path, body);
    }
    if (answer == NULL && etcd->denied && etcd->login[0] != '\0' && etcd_log_in(etcd)) {
        answer = etcd_ask(etcd, path, body);
    }
    free(body);
    return answer;
}

/* ---- what is in it ---- */

/* A 64-bit number is a string; what is not there is 0. */
static int64_t etcd_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value)  ? json_integer_value(value)
           : json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                   : 0;
}

static json_t *etcd_from_number(int64_t number)
{
    char text[NUMBER_MAX];

    snprintf(text, sizeof(text), "%" PRId64, number);
    return json_string(text);
}

static json_t *etcd_from_text(const char *text)
{
    char encoded[BASE64_MAX];

    base64_encode(text, strlen(text), encoded);
    return json_string(encoded);
}

/* Text with its NUL, "" if it is not there or none. */
static void etcd_text(const json_t *object, const char *key, char *to, size_t room)
{
    const char *encoded = json_string_value(json_object_get(object, key));
    size_t length = 0;

    if (encoded == NULL || !base64_decode(encoded, to, room - 1, &length)) {
        length = 0;
    }
    to[length] = '\0';
}

/* ---- leases ---- */

bool agent_etcd_grant(struct agent_etcd *etcd, uint64_t wanted_s, int64_t *lease, uint64_t *ttl_s)
{
    json_t *answer = etcd_call(etcd, "/v3/lease/grant",
                               json_pack("{s:o}", "TTL", etcd_from_number((int64_t)wanted_s)));

    *lease = etcd_number(answer, "ID");
    *ttl_s = (uint64_t)etcd_number(answer, "TTL");
    bool good =
        answer != NULL && ((*lease != 0 && *ttl_s > 0) || etcd_fail(etcd, "etcd grants no lease"));

    json_decref(answer);
    return good;
}

bool agent_etcd_keep(struct agent_etcd *etcd, int64_t lease, uint64_t *ttl_s)
{
    json_t *answer =
        etcd_call(etcd, "/v3/lease/keepalive", json_pack("{s:o}", "ID", etcd_from_number(lease)));
    const json_t *result = json_object_get(answer, "result");

    *ttl_s = (uint64_t)etcd_number(result, "TTL");
    bool good = result != NULL;

    if (answer != NULL && !good) {
        etcd_fail(etcd, "etcd does not say what became of a lease");
    }
    json_decref(answer);
    return good;
}

bool agent_etcd_revoke(struct agent_etcd *etcd, int64_t lease)
{
    json_t *answer =
        etcd_call(etcd, "/v3/lease/revoke", json_pack("{s:o}", "ID", etcd_from_number(lease)));
    bool good = answer != NULL;

    json_decref(answer);
    return good;
}

/* ---- keys ---- */

/* The first key after all that begin so. */
static void etcd_range_end(const char *prefix, char end[AGENT_ETCD_KEY_MAX])
{
    snprintf(end, AGENT_ETCD_KEY_MAX, "%s", prefix);
    end[strlen(end) - 1]++;
}

bool agent_etcd_read(struct agent_etcd *etcd, const char *prefix, agent_etcd_fn *take,
                     void *context)
{
    char end[AGENT_ETCD_KEY_MAX], key[AGENT_ETCD_KEY_MAX], value[BASE64_MAX];
    size_t i;
    json_t *item;

    etcd_range_end(prefix, end);
    json_t *answer = etcd_call(
        etcd, "/v3/kv/range",
        json_pack("{s:o, s:o}", "key", etcd_from_text(prefix), "range_end", etcd_from_text(end)));

    json_array_foreach(json_object_get(answer, "kvs"), i, item)
    {
        const struct agent_etcd_item found = {.key = key,
                                              .value = value,
                                              .lease = etcd_number(item, "lease"),
                                              .revision = etcd_number(item, "mod_revision")};

        etcd_text(item, "key", key, sizeof(key));
        etcd_text(item, "value", value, sizeof(value));
        if (strncmp(key, prefix, strlen(prefix)) == 0) { /* not if it is too long for us */
            take(context, &found);
        }
    }
    bool good = answer != NULL;

    json_decref(answer);
    return good;
}

bool agent_etcd_commit(struct agent_etcd *etcd, const struct agent_etcd_txn *txn, int64_t *revision)
{
    json_t *compares = json_array();
    json_t *puts = json_array();

    for (size_t i = 0; i < txn->compare_count; i++) {
        json_array_append_new(compares, json_pack("{s:o, s:s, s:s, s:o}", "key",
                                                  etcd_from_text(txn->compares[i].key), "target",
                                                  "MOD", "result", "EQUAL", "mod_revision",
                                                  etcd_from_number(txn->compares[i].revision)));
    }
    for (size_t i = 0; i < txn->put_count; i++) {
        json_array_append_new(puts, json_pack("{s:{s:o, s:o, s:o}}", "request_put", "key",
                                              etcd_from_text(txn->puts[i].key), "value",
                                              etcd_from_text(txn->puts[i].value), "lease",
                                              etcd_from_number(txn->puts[i].lease)));
    }
    json_t *answer = etcd_call(etcd, "/v3/kv/txn",
                               json_pack("{s:o, s:o}", "compare", compares, "success", puts));

    bool done = json_is_true(json_object_get(answer, "succeeded"));
    bool good = answer != NULL;

    *revision = done ? etcd_number(json_object_get(answer, "header"), "revision") : 0;

    json_decref(answer);
    return good;
}
