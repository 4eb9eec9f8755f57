/* test_lead.c: what an operator or an agent hears that asks a node to change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "daemon/lead.h"
#include "data/data_private.h"
#include "data/follow_private.h"
#include "repl/control.h"
#include "repl/feed_private.h"
#include "repl/receiver_private.h"
#include "row/row.h"
#include "space/populate.h"
#include "store/journal_private.h"

#define HERE         4096u
#define REGION_BYTES (2ull << 30)
#define SMALL_BYTES  (4ull << 20)
#define PATIENCE_MS  60000

static struct node {
    struct repl_feeds feeds;
    struct settings settings;
    struct server server;
    struct data data;
    struct follow follow;
    struct journal journal;
    struct lead *lead;
    char said[REPL_TEXT_MAX + 1];
} node;

static void begin(bool follows)
{
    static char leader[] = "10.0.0.1:11211", name[] = "two", group[] = "feed", directory[] = "/";
    const struct lead_owner owner = {.context = NULL};

    node = (struct node){.settings = {.data = directory}};
    node.settings.replication.name = name;
    node.settings.replication.group = group;
    node.settings.replication.follow = follows ? leader : NULL;
    node.server.settings = &node.settings;
    node.server.feeds = &node.feeds;
    node.server.follows = follows;
    node.data.manifest = manifest_create();
    node.data.journal = &node.journal;
    node.data.follow = &node.follow;
    node.feeds.data = &node.data;
    atomic_store(&node.journal.written, HERE);
    assert_int_equal(pthread_mutex_init(&node.data.lock, NULL), 0);
    assert_int_equal(pthread_mutex_init(&node.feeds.lock, NULL), 0);
    node.lead = lead_create(&node.server, &node.data, &owner);
}

static void end(void)
{
    lead_destroy(node.lead);
    pthread_mutex_destroy(&node.feeds.lock);
    pthread_mutex_destroy(&node.data.lock);
    manifest_destroy(node.data.manifest);
}

static void expect_no_promotion(bool force, const char *why)
{
    struct repl_promotion promotion = {.force = force};

    assert_false(node.feeds.control->promote(node.lead, &promotion, node.said));
    assert_string_equal(node.said, why);
}

/* What would be lost is said first, or that it is not known. */
static void test_may_lose(void **state)
{
    (void)state;
    begin(true);
    struct repl_receiver_stats *figures = &node.server.receiver->figures;

    expect_no_promotion(false, "since it began this node has not heard how far the leader is: what "
                               "would be lost is not known; `force` promotes it all the same");
    figures->leader_written = HERE + 100 * REPL_CHANGE_BYTES;
    expect_no_promotion(false, "2400 bytes of the leader's journal are not here, about 100 "
                               "changes; `force` promotes it all the same, and they are lost");
    end();
}

/* One that ends says so: who tries again would wait for it in vain. */
static void test_ends(void **state)
{
    const char *why = "this node ends";
    const struct repl_waits waits = {.count = 0};
    uint64_t written, acked[REPL_WAITS_MAX];
    bool again = false;

    (void)state;
    begin(false);
    node.server.leased = true;
    lead_end(node.lead);
    expect_no_promotion(true, why);
    const struct repl_control *control = node.feeds.control;

    assert_false(control->follow(node.lead, "127.0.0.1:1", true, &again, node.said));
    assert_string_equal(node.said, why);
    assert_false(again);
    assert_false(control->lead(node.lead, 1, 1, &waits, &written, acked, node.said));
    assert_string_equal(node.said, why);
    end();
}

/* ---- memory that is made resident ---- */

static struct row_region region;
static struct row row = {.regions = {&region}, .region_count = 1};
static struct engine engine = {.row = &row};
static struct space space = {.engine = &engine};
static struct spaces spaces = {.count = 1, .at = {&space}};

static void begin_populate(uint64_t bytes)
{
    region = (struct row_region){.bytes = bytes};
    region.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(region.memory, MAP_FAILED);
    begin(true);
    node.server.populate = populate_create();
    node.server.spaces = &spaces;
}

static void end_populate(void)
{
    populate_destroy(node.server.populate);
    munmap(region.memory, region.bytes);
    end();
}

/* A copy comes: nothing is made resident that it replaces. The region would take a second. */
static void test_copy_comes(void **state)
{
    (void)state;
    begin_populate(REGION_BYTES);
    struct populate *populate = node.server.populate;
    const struct repl_receiver_owner *owner = &node.server.receiver->owner;

    populate_stop(populate);
    populate_go(populate, &spaces);
    owner->copies(owner->context);
    populate_wait(populate, PATIENCE_MS); /* if it goes on */
    assert_true(region.resident < REGION_BYTES);
    end_populate();
}

enum data_promoted __wrap_data_promote(struct data *data, uint64_t epoch, bool new_stream,
                                       uint64_t until_us, char error[DATA_ERROR_MAX]);

/* In place of data/promote.c: the directory is none. */
enum data_promoted __wrap_data_promote(struct data *data, uint64_t epoch, bool new_stream,
                                       uint64_t until_us, char error[DATA_ERROR_MAX])
{
    (void)epoch;
    (void)new_stream;
    (void)until_us;
    assert_ptr_equal(data, &node.data);
    error[0] = '\0';
    return DATA_PROMOTED;
}

/* One that leads before its copy has come gets no other: what was left out is made resident. */
static void test_promoted_without_copy(void **state)
{
    struct repl_promotion promotion = {.force = true};

    (void)state;
    begin_populate(SMALL_BYTES);
    node.server.barrier = barrier_create();
    assert_true(node.feeds.control->promote(node.lead, &promotion, node.said));
    populate_wait(node.server.populate, PATIENCE_MS);
    assert_int_equal(region.resident, SMALL_BYTES);
    barrier_destroy(node.server.barrier);
    end_populate();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_may_lose),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_copy_comes),
        cmocka_unit_test(test_promoted_without_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
