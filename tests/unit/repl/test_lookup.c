/* A look-up of a name that no answer comes to: nobody waits for it longer than he likes. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "repl/lookup.h"

#define LONG_US 3600000000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool answered;
static unsigned asked, freed;
static struct addrinfo address;

/* ---- the system's, which this test is ---- */

int getaddrinfo(const char *host, const char *port, const struct addrinfo *wanted,
                struct addrinfo **found)
{
    (void)wanted;
    pthread_mutex_lock(&lock);
    asked++;
    pthread_cond_broadcast(&changed);
    while (!answered) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    *found = &address;
    return strcmp(host, "there") == 0 && strcmp(port, "11211") == 0 ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *found)
{
    assert_ptr_equal(found, &address);
    pthread_mutex_lock(&lock);
    freed++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void set_answered(bool to)
{
    pthread_mutex_lock(&lock);
    answered = to;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void await(const unsigned *count, unsigned least)
{
    pthread_mutex_lock(&lock);
    while (*count < least) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static int begin(void **state)
{
    (void)state;
    asked = freed = 0;
    set_answered(false);
    return 0;
}

/* ---- tests ---- */

static void test_found(void **state)
{
    static const _Atomic bool goes_on = false;
    const struct addrinfo *found;
    struct repl_lookup *lookup = repl_lookup_start("there", "11211");

    (void)state;
    set_answered(true);
    assert_true(repl_lookup_ended(lookup, clock_monotonic_us() + LONG_US, &goes_on));
    assert_int_equal(repl_lookup_found(lookup, &found), 0);
    assert_ptr_equal(found, &address);
    repl_lookup_drop(lookup);
    assert_int_equal(freed, 1);
}

static void test_not_found(void **state)
{
    static const _Atomic bool goes_on = false;
    const struct addrinfo *found;
    struct repl_lookup *lookup = repl_lookup_start("nowhere", "11211");

    (void)state;
    set_answered(true);
    assert_true(repl_lookup_ended(lookup, clock_monotonic_us() + LONG_US, &goes_on));
    assert_int_equal(repl_lookup_found(lookup, &found), EAI_NONAME);
    assert_null(found);
    repl_lookup_drop(lookup);
    assert_int_equal(freed, 0);
}

/* It hangs: the time is over, then somebody stops; and it ends when nobody asks any more. */
static void test_hangs(void **state)
{
    _Atomic bool stop = false;
    struct repl_lookup *lookup = repl_lookup_start("there", "11211");

    (void)state;
    await(&asked, 1);
    assert_false(repl_lookup_ended(lookup, clock_monotonic_us() + 1000, &stop));
    atomic_store(&stop, true);
    assert_false(repl_lookup_ended(lookup, clock_monotonic_us() + LONG_US, &stop));
    repl_lookup_drop(lookup);
    assert_int_equal(freed, 0);
    set_answered(true);
    await(&freed, 1);
}

static void test_nothing(void **state)
{
    (void)state;
    repl_lookup_drop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_found, begin),
        cmocka_unit_test_setup(test_not_found, begin),
        cmocka_unit_test_setup(test_hangs, begin),
        cmocka_unit_test(test_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
