#include "tests/load/cpus.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define ALLOWED_TEXT_MAX 300u /* of a list in a message; what is longer is cut */

/* The set as a list: "0-3,7". */
static void print_set(const cpu_set_t *set, char text[ALLOWED_TEXT_MAX])
{
    size_t at = 0;

    text[0] = '\0';
    for (size_t first = 0; first < CPU_SETSIZE && at < ALLOWED_TEXT_MAX; first++) {
        size_t last = first;
        if (!CPU_ISSET(first, set)) {
            continue;
        }
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set)) {
            last++;
        }
        at +=
            (size_t)snprintf(text + at, ALLOWED_TEXT_MAX - at, "%s%zu", at != 0 ? "," : "", first);
        if (last > first && at < ALLOWED_TEXT_MAX) {
            at += (size_t)snprintf(text + at, ALLOWED_TEXT_MAX - at, "-%zu", last);
        }
        first = last;
    }
}

/* Appends first to last, if all of them are allowed. */
static bool add_range(const char *list, uint64_t first, uint64_t last, const cpu_set_t *allowed,
                      struct load_cpus *cpus, char error[LOAD_CPUS_ERROR_MAX])
{
    for (uint64_t cpu = first; cpu <= last; cpu++) {
        if (cpu > LOAD_CPU_LAST || !CPU_ISSET((size_t)cpu, allowed)) {
            char right[ALLOWED_TEXT_MAX];
            print_set(allowed, right);
            snprintf(error, LOAD_CPUS_ERROR_MAX,
                     "\"%.80s\": there is no processor %" PRIu64 " that this process may use; "
                     "there are %s",
                     list, cpu, right);
            return false;
        }
        if (cpus->count == LOAD_CPUS_MAX) {
            snprintf(error, LOAD_CPUS_ERROR_MAX, "\"%.80s\": more than %u processors", list,
                     LOAD_CPUS_MAX);
            return false;
        }
        cpus->cpus[cpus->count++] = (uint16_t)cpu;
    }
    return true;
}

/* "3" or "2-5". */
static bool parse_range(const char *text, size_t length, uint64_t *first, uint64_t *last)
{
    const char *dash = memchr(text, '-', length);
    size_t left = dash != NULL ? (size_t)(dash - text) : length;

    if (!num_parse(text, left, first)) {
        return false;
    }
    *last = *first;
    return dash == NULL || (num_parse(dash + 1, length - left - 1, last) && *first <= *last);
}

bool load_cpus_parse(const char *list, const cpu_set_t *allowed, struct load_cpus *cpus,
                     char error[LOAD_CPUS_ERROR_MAX])
{
    cpus->count = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        uint64_t first = 0, last = 0;

        if (!parse_range(at, length, &first, &last)) {
            snprintf(error, LOAD_CPUS_ERROR_MAX,
                     "\"%.80s\" is no list of processors, as in 1, 0,1 or 2-5", list);
            return false;
        }
        if (!add_range(list, first, last, allowed, cpus, error)) {
            return false;
        }
        at += length;
        if (*at == '\0') {
            return true;
        }
    }
}

bool load_cpus_parse_here(const char *list, struct load_cpus *cpus, char error[LOAD_CPUS_ERROR_MAX])
{
    cpu_set_t allowed;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
        return load_cpus_parse(list, &allowed, cpus, error);
    }
    snprintf(error, LOAD_CPUS_ERROR_MAX, "the processors cannot be asked for: %s", strerror(errno));
    return false;
}

int load_cpus_pin(const struct load_cpus *cpus, uint64_t thread)
{
    cpu_set_t one;

    if (cpus == NULL || cpus->count == 0) {
        return 0;
    }
    CPU_ZERO(&one);
    CPU_SET(cpus->cpus[thread % cpus->count], &one);
    return pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
}
