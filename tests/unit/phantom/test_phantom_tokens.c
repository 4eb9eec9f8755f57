/* test_phantom_tokens.c: the token of a member, which is always 1: deletes that compare it, and the
 * one a change hands out; in memory, in tables that left it, below the oldest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/phantom/cold_space.h"

#define ID          1
#define TOKEN       1
#define OVERLAY_MAX (1u << 20)
#define CACHE       (1u << 20)

/* Where members of ID lie: in `space` if there is one, else in memory. */
struct place {
    struct engine *engine;
    struct cold_space *space;
    struct phantoms_call call;
};

static enum engine_status run(struct place *place)
{
    place->call.op.want_cas = true;
    place->call.op.cas_now = UINT64_MAX; /* of nothing */
    return place->space ? phantom_dumps_run(&place->space->dumps, place->engine, &place->call,
                                            &place->space->sink.sink)
                        : phantoms_run(place->engine, &place->call, change_sink_null());
}

static enum engine_status plain(struct place *place, enum engine_verb verb)
{
    phantoms_call_init(&place->call, verb, ID, "u0", "1");
    return run(place);
}

static enum engine_status delete_by(struct place *place, uint64_t token)
{
    phantoms_call_init(&place->call, ENGINE_DELETE, ID, "u0", "");
    place->call.op.compare = true;
    place->call.op.cas = token;
    return run(place);
}

static void expect_deletes(struct place *place)
{
    static const uint64_t others[] = {0, 2, UINT64_MAX};
    (void)plain(place, ENGINE_SET);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_int_equal(delete_by(place, others[i]), ENGINE_EXISTS);
        assert_int_equal(plain(place, ENGINE_READ), ENGINE_DONE);
        assert_int_equal(place->call.op.cas_now, TOKEN);
    }
    assert_int_equal(delete_by(place, TOKEN), ENGINE_DONE);
    assert_int_equal(place->call.op.cas_now, 0);
    assert_int_equal(plain(place, ENGINE_READ), ENGINE_ABSENT);
    assert_int_equal(delete_by(place, TOKEN), ENGINE_ABSENT);
    assert_int_equal(delete_by(place, TOKEN + 1), ENGINE_ABSENT);
}

static void expect_tokens(struct place *place)
{
    static const enum engine_verb verbs[] = {ENGINE_ADD, ENGINE_SET, ENGINE_REPLACE, ENGINE_CAS};
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        assert_int_equal(plain(place, verbs[i]), ENGINE_DONE);
        assert_int_equal(place->call.op.cas_now, TOKEN);
    }
    phantoms_call_init(&place->call, ENGINE_SET, ID, "u0", "1");
    place->call.op.expires = true;
    assert_int_equal(run(place), ENGINE_DONE);
    assert_int_equal(place->call.op.cas_now, 0); /* it is gone */
    assert_int_equal(plain(place, ENGINE_READ), ENGINE_ABSENT);
}

static void test_in_memory(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(true);
    struct place place = {.engine = phantoms_create(&config)};
    expect_deletes(&place);
    expect_tokens(&place);
    phantoms_settle(place.engine, ID); /* from apart to in place */
    expect_deletes(&place);
    expect_tokens(&place);
    phantoms_destroy(place.engine);
}

static void test_cold(void **unused)
{
    (void)unused;
    static struct cold_space space;
    struct phantom_config config = cold_config();
    cold_begin(&space, &config, CACHE, OVERLAY_MAX);
    cold_roll(&space, 1);
    struct place place = {.engine = space.engine, .space = &space};
    assert_int_equal(plain(&place, ENGINE_READ), ENGINE_DONE);
    expect_deletes(&place);
    expect_tokens(&place);
    cold_end(&space);
}

/* That deletes are off is said whatever the token. */
static void test_deletes_off(void **unused)
{
    (void)unused;
    struct phantom_config config = phantoms_config(false);
    struct place place = {.engine = phantoms_create(&config)};
    (void)plain(&place, ENGINE_SET);
    for (uint64_t token = 0; token < 3; token++) {
        assert_int_equal(delete_by(&place, token), ENGINE_ERROR);
        assert_int_equal(place.call.op.error, ENGINE_E_DELETES_OFF);
    }
    assert_int_equal(plain(&place, ENGINE_READ), ENGINE_DONE);
    phantoms_destroy(place.engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_memory),
        cmocka_unit_test(test_cold),
        cmocka_unit_test(test_deletes_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
