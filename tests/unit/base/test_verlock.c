/*
 * test_verlock.c: writers and readers of a verlock on threads, with the fences that a release build
 * has (under ThreadSanitizer they are others, see verlock.h). tests/litmus/verlock.pml is the same
 * as a model, for processors that reorder more than the one at hand.
 */
#include "base/verlock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/words.h"
#include "tests/support/random.h"

#define WRITERS     2u
#define READERS     2u
#define WORDS       8u
#define VERSION_ONE 2u
#define UPDATES     4000000u /* of each writer */

/* Every word of `data` is the number of updates, and so is the version. */
struct place {
    verlock lock;
    shared_word data[WORDS];
    uint64_t updates;
    pthread_barrier_t start;
    _Atomic unsigned writing;
    _Atomic bool torn;
    _Atomic uint64_t whole;   /* readings that the version said belong together */
    _Atomic uint64_t changed; /* readings that it said do not */
};

/* Reads and writes in the order that `turn` says, so that no one order hides what another shows. */
static void update(struct place *place, uint64_t turn)
{
    uint32_t word = verlock_take(&place->lock);

    for (unsigned i = 0; i < WORDS; i++) {
        size_t at = (i + turn) % WORDS;
        words_store(place->data, 8 * at, 8, word_load(place->data, at) + 1);
    }
    verlock_release(&place->lock, word + VERSION_ONE);
}

static void *write_updates(void *context)
{
    struct place *place = context;

    (void)pthread_barrier_wait(&place->start);
    for (uint64_t i = 0; i < place->updates; i++) {
        update(place, i);
    }
    place->writing--;
    return NULL;
}

static void read_once(struct place *place, uint64_t turn)
{
    uint64_t values[WORDS];
    uint32_t word = verlock_read(&place->lock);

    for (unsigned i = 0; i < WORDS; i++) {
        size_t at = (i * 5 + turn) % WORDS;
        values[at] = word_load(place->data, at);
    }
    if (!verlock_unchanged(&place->lock, word)) {
        place->changed++;
        return;
    }
    place->whole++;
    for (unsigned i = 0; i < WORDS; i++) {
        if ((uint32_t)values[i] != word / VERSION_ONE) {
            place->torn = true;
        }
    }
}

static void *read_all_the_time(void *context)
{
    struct place *place = context;

    (void)pthread_barrier_wait(&place->start);
    for (uint64_t turn = 0; place->writing > 0; turn++) {
        read_once(place, turn);
    }
    return NULL;
}

static void test_readers_beside_writers(void **state)
{
    static struct place place;
    pthread_t threads[WRITERS + READERS];

    (void)state;
    place.updates = test_scaled(UPDATES);
    place.writing = WRITERS;
    assert_int_equal(pthread_barrier_init(&place.start, NULL, WRITERS + READERS), 0);
    for (unsigned i = 0; i < WRITERS + READERS; i++) {
        void *(*work)(void *) = i < WRITERS ? write_updates : read_all_the_time;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &place), 0);
    }
    for (unsigned i = 0; i < WRITERS + READERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    (void)pthread_barrier_destroy(&place.start);
    print_message("%llu readings whole, %llu seen to change\n", (unsigned long long)place.whole,
                  (unsigned long long)place.changed);
    assert_false(place.torn);
    for (unsigned i = 0; i < WORDS; i++) { /* no update is lost */
        assert_int_equal(word_load(place.data, i), WRITERS * place.updates);
    }
    assert_int_equal(verlock_read(&place.lock), WRITERS * place.updates * VERSION_ONE);
}

static void test_try_needs_the_word_seen(void **state)
{
    verlock lock = 6;

    (void)state;
    assert_false(verlock_try(&lock, 4));
    assert_true(verlock_try(&lock, 6));
    assert_int_equal(lock, 7);
    assert_false(verlock_try(&lock, 6)); /* it is locked */
    assert_false(verlock_unchanged(&lock, 6));
    verlock_release(&lock, 8);
    assert_true(verlock_unchanged(&lock, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_try_needs_the_word_seen),
        cmocka_unit_test(test_readers_beside_writers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
