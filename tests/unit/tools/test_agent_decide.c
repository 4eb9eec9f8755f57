/* What an agent does next: each rule by itself. test_agent_walk.c has them all together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tools/rollcall/agent_decide.h"

#define PATIENCE 1000u
#define EPOCH    7u

static struct agent_view view;
static struct agent_memory memory;

/* Node b, whose daemon follows a; state: epoch 7, a leads, b is in sync; nobody is alive. */
static int set_up(void **unused)
{
    (void)unused;
    view = (struct agent_view){
        .now_ms = 100,
        .self = {.name = "b", .address = "b:1", .boot = "boot-b", .may_lead = true, .alone = true},
        .keys = {.known = true, .has_state = true, .state_revision = 5, .node_count = 3},
        .daemon = {
            .known = true, .epoch = EPOCH, .written = 900, .caught_up = true, .can_lead = true}};
    memory = (struct agent_memory){.patience_ms = PATIENCE};
    view.keys.state = (struct agent_state){
        .epoch = EPOCH, .from = 500, .leader = "a", .sync = "b", .boot = "boot-a"};
    snprintf(view.daemon.leader, sizeof(view.daemon.leader), "a:1");
    for (size_t i = 0; i < 3; i++) {
        struct agent_node *node = &view.keys.nodes[i];

        *node = (struct agent_node){.may_lead = true, .in_sync = true, .word = "in-sync"};
        snprintf(node->name, sizeof(node->name), "%c", (int)('a' + i));
        snprintf(node->address, sizeof(node->address), "%c:1", (int)('a' + i));
    }
    return 0;
}

static void set_alive(const char *name)
{
    snprintf(view.keys.alive, sizeof(view.keys.alive), "%s", name);
    view.keys.alive_mine = strcmp(name, "b") == 0;
    view.keys.alive_revision = 6;
}

/* Node b leads in epoch 7; `followers` stream. */
static void set_leader(const char *sync, const char *followers)
{
    snprintf(view.keys.state.leader, sizeof(view.keys.state.leader), "b");
    snprintf(view.keys.state.sync, sizeof(view.keys.state.sync), "%s", sync);
    set_alive("b");
    view.daemon.leads = true;
    view.daemon.leader[0] = '\0';
    view.daemon.follower_count = strlen(followers);
    for (size_t i = 0; followers[i] != '\0'; i++) {
        snprintf(view.daemon.followers[i], sizeof(view.daemon.followers[i]), "%c", followers[i]);
    }
}

static struct agent_action expect(enum agent_act act)
{
    struct agent_action action = agent_decide(&view, &memory);

    assert_int_equal(action.act, act);
    return action;
}

static void expect_hold(const char *waits)
{
    struct agent_action action = expect(AGENT_HOLD);

    assert_string_equal(action.waits, waits);
    view.held = true;
    if (memory.adding[0] != '\0') {
        memory.mark = memory.marked ? memory.mark : view.daemon.written;
        memory.marked = true;
    }
}

/* ---- who takes the lead ---- */

static void test_take(void **unused)
{
    (void)unused;
    struct agent_action action = expect(AGENT_TAKE);

    assert_int_equal(action.state.claim.epoch, EPOCH + 1);
    assert_string_equal(action.state.claim.name, "b");
    assert_string_equal(action.state.claim.boot, "boot-b");
    action.state.claim = view.keys.state.claim;
    assert_memory_equal(&action.state, &view.keys.state, sizeof(action.state));

    view.daemon.epoch = 12; /* etcd was wiped, and its state is older than the journal */
    action = expect(AGENT_TAKE);
    assert_int_equal(action.state.claim.epoch, 13);

    view.keys.state = action.state; /* it has the word: now its daemon */
    set_alive("b");
    action = expect(AGENT_PROMOTE);
    assert_int_equal(action.state.claim.epoch, 13);
    view.daemon.leads = true;
    view.daemon.epoch = 13;
    action = expect(AGENT_CHANGE);
    assert_int_equal(action.state.epoch, 13);
    assert_string_equal(action.state.leader, "b");
    assert_string_equal(action.state.sync, "");
    assert_string_equal(action.state.boot, "boot-b");
    assert_int_equal(action.state.from, 900);
    assert_int_equal(action.state.claim.epoch, 0);
    view.keys.state = action.state;
    expect_hold("-");
    expect(AGENT_REST);
}

/* Node b has claimed epoch 8, and is alive. */
static void set_claim(void)
{
    view.keys.state.claim = (struct agent_claim){.epoch = EPOCH + 1, .name = "b", .boot = "boot-b"};
    set_alive("b");
}

/* A claim that comes to nothing leaves the others their places. */
static void test_refused(void **unused)
{
    (void)unused;
    view.daemon.can_lead = false; /* it does not even claim */
    expect(AGENT_REST);
    set_claim();
    expect(AGENT_RESIGN);
    view.daemon.can_lead = true; /* as it says: it refuses all the same */
    memory.refusals = AGENT_REFUSALS_MAX - 1;
    expect(AGENT_PROMOTE);
    memory.refusals++;
    expect(AGENT_RESIGN);
    set_alive("");
    expect(AGENT_REST); /* others first */
    view.now_ms += 3 * PATIENCE;
    struct agent_action action = expect(AGENT_TAKE);

    assert_int_equal(action.state.claim.epoch, EPOCH + 2);
    assert_int_equal(memory.refusals, 0);
}

/* A reign that was claimed may have begun. */
static void test_claimed(void **unused)
{
    (void)unused;
    set_claim();
    view.daemon.leads = true; /* in another epoch */
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    view.daemon.epoch = EPOCH + 1;
    expect(AGENT_CHANGE);
    set_alive(""); /* its lease ended: nobody has claimed since */
    struct agent_action action = expect(AGENT_TAKE);

    assert_memory_equal(&action.state, &view.keys.state, sizeof(action.state));
    view.daemon.leads = view.daemon.caught_up = false; /* started again, with all it had */
    action = expect(AGENT_TAKE);
    assert_int_equal(action.state.claim.epoch, EPOCH + 2);
    set_alive("b");
    expect(AGENT_TAKE);
    assert_true(agent_may_adopt(&view));
    view.self.boot = "boot-c"; /* of a machine that crashed */
    assert_false(agent_may_lead(&view));
    assert_false(agent_may_adopt(&view));
}

/* Another node has claimed, and is gone: who led reigns on only in a higher epoch. */
static void test_claimed_by_other(void **unused)
{
    (void)unused;
    set_leader("c", "c");
    snprintf(view.keys.state.boot, sizeof(view.keys.state.boot), "boot-b");
    view.keys.state.claim = (struct agent_claim){.epoch = EPOCH + 1, .name = "c", .boot = "boot-c"};
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    set_alive("c");
    expect(AGENT_REST); /* it may come to nothing */
    set_alive("");
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    view.daemon.leads = view.daemon.caught_up = false;
    struct agent_action action = expect(AGENT_TAKE);

    assert_int_equal(action.state.claim.epoch, EPOCH + 2);
    assert_string_equal(action.state.claim.name, "b");
}

/* A lease is gone on with by the node that had it, on the machine's same run, and nobody else. */
static void test_adopt(void **unused)
{
    (void)unused;
    set_leader("a", "");
    snprintf(view.keys.state.boot, sizeof(view.keys.state.boot), "boot-b");
    assert_true(agent_may_adopt(&view));
    view.self.boot = "boot-c"; /* its configuration was copied to another machine */
    assert_false(agent_may_adopt(&view));
    view.self.boot = view.keys.state.boot;
    view.keys.state.boot[0] = '\0'; /* neither machine's is known */
    assert_false(agent_may_adopt(&view));
    snprintf(view.keys.state.boot, sizeof(view.keys.state.boot), "boot-b");
    set_alive("a");
    assert_false(agent_may_adopt(&view));
    set_alive("b");
    snprintf(view.keys.state.leader, sizeof(view.keys.state.leader), "a");
    assert_false(agent_may_adopt(&view));
    snprintf(view.keys.state.leader, sizeof(view.keys.state.leader), "b");
    view.keys.has_state = false;
    assert_false(agent_may_adopt(&view));
}

/* A copied machine has the name and the address, too, but another daemon. */
static void test_namesake(void **unused)
{
    (void)unused;
    struct agent_node own = view.keys.nodes[1];

    view.self.identity = "";
    assert_false(agent_is_namesake(&own, &view.self));
    view.self.identity = "0001";
    assert_false(agent_is_namesake(&own, &view.self)); /* of an earlier version */
    snprintf(own.address, sizeof(own.address), "x:1");
    assert_true(agent_is_namesake(&own, &view.self));
    view.self.address = NULL;
    assert_false(agent_is_namesake(&own, &view.self));
    snprintf(own.identity, sizeof(own.identity), "0001");
    assert_false(agent_is_namesake(&own, &view.self));
    view.self.address = "b:1";
    assert_false(agent_is_namesake(&own, &view.self)); /* it has moved */
    snprintf(own.identity, sizeof(own.identity), "0002");
    assert_true(agent_is_namesake(&own, &view.self));
    snprintf(own.address, sizeof(own.address), "b:1");
    assert_true(agent_is_namesake(&own, &view.self));
    assert_false(agent_is_namesake(&(struct agent_node){.address = ""}, &view.self)); /* no key */
}

/* A daemon started again leads on, but for a machine that was, or may have been. */
static void test_boot(void **unused)
{
    (void)unused;
    set_leader("a", "");
    view.daemon.leads = view.daemon.caught_up = false;
    snprintf(view.keys.state.boot, sizeof(view.keys.state.boot), "boot-b");
    assert_true(agent_may_lead(&view));
    view.self.boot = "boot-c";
    assert_false(agent_may_lead(&view));
    view.self.boot = view.keys.state.boot;
    view.keys.state.boot[0] = '\0'; /* unknown is not the same */
    assert_false(agent_may_lead(&view));
}

static void test_not_take(void **unused)
{
    (void)unused;
    set_alive("a");
    expect(AGENT_REST);
    set_up(NULL);
    snprintf(view.keys.state.sync, sizeof(view.keys.state.sync), "c"); /* it is not named */
    expect(AGENT_REST);
    set_up(NULL);
    view.daemon.caught_up = false; /* it was, before it was started again */
    expect(AGENT_REST);
    set_up(NULL);
    view.daemon.written = 499; /* less than a had when it began to lead: a new disk */
    expect(AGENT_REST);
    set_up(NULL);
    view.self.may_lead = false;
    expect(AGENT_REST);
    set_up(NULL);
    view.keys.has_state = false;
    expect(AGENT_REST);
    set_up(NULL);
    view.keys.known = false;
    expect(AGENT_REST);
}

/* Who led last comes again with all it had, unless its machine was started anew. */
static void test_leader_again(void **unused)
{
    (void)unused;
    snprintf(view.keys.state.leader, sizeof(view.keys.state.leader), "b");
    snprintf(view.keys.state.sync, sizeof(view.keys.state.sync), "c");
    view.daemon.caught_up = false;
    expect(AGENT_REST);
    snprintf(view.keys.state.boot, sizeof(view.keys.state.boot), "boot-b");
    expect(AGENT_TAKE);
    view.daemon.epoch = EPOCH - 1; /* it is not that directory */
    expect(AGENT_REST);
    view.keys.state.sync[0] = '\0'; /* nobody else may have more */
    expect(AGENT_TAKE);

    set_alive("b"); /* the agent lived on */
    view.daemon.epoch = EPOCH;
    expect(AGENT_TAKE);
    snprintf(view.keys.state.sync, sizeof(view.keys.state.sync), "c");
    snprintf(view.keys.state.boot, sizeof(view.keys.state.boot), "other");
    expect(AGENT_RESIGN);
}

/* Its lease ended, and nobody took over: the reign goes on. */
static void test_lease_again(void **unused)
{
    (void)unused;
    set_leader("c", "c");
    set_alive("");
    struct agent_action action = expect(AGENT_TAKE);

    assert_int_equal(action.state.epoch, EPOCH);
    assert_string_equal(action.state.sync, "c");
}

/* ---- who follows ---- */

static void test_follow(void **unused)
{
    (void)unused;
    set_alive("c");
    snprintf(view.keys.state.leader, sizeof(view.keys.state.leader), "c");
    assert_string_equal(expect(AGENT_FOLLOW).address, "c:1");
    snprintf(view.daemon.leader, sizeof(view.daemon.leader), "c:1");
    expect(AGENT_REST);
    view.daemon.leads = true; /* it has slept */
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    view.daemon.leads = false;
    view.daemon.leader[0] = '\0';
    view.keys.node_count = 2; /* nobody knows where c is */
    expect(AGENT_REST);
}

static void test_other_reign(void **unused)
{
    (void)unused;
    set_leader("c", "c");
    view.keys.state.epoch = EPOCH + 2;
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    set_alive("");
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    set_leader("c", "c");
    snprintf(view.keys.state.leader, sizeof(view.keys.state.leader), "c");
    /* While the lease is held nobody else begins, so the daemon ends first. */
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    view.keys.state.sync[0] = '\0';
    view.daemon.known = false;
    memory.told_ms = view.now_ms + 2 * PATIENCE;
    expect(AGENT_REST);
    view.now_ms = memory.told_ms - 1;
    expect(AGENT_REST);
    view.now_ms++;
    expect(AGENT_RESIGN);
    view.daemon.known = true;
    view.daemon.leads = false;
    expect(AGENT_RESIGN);
}

/* ---- the sync follower ---- */

static void test_add(void **unused)
{
    (void)unused;
    set_leader("", "c");
    expect_hold("c"); /* the daemon waits for it before state names it */
    memory.acked = memory.mark - 1;
    expect(AGENT_REST);
    view.held = false; /* the next round */
    view.daemon.written += 100;
    expect_hold("c");
    assert_int_equal(memory.mark, 900);
    memory.acked = memory.mark;
    assert_string_equal(expect(AGENT_CHANGE).state.sync, "c");

    view.keys.state_revision++; /* somebody else changed it: it begins again */
    view.held = false;
    expect_hold("c");
    assert_int_equal(memory.mark, 1000);

    view.keys.nodes[2].in_sync = false;
    view.daemon.follower_count = 0; /* it went */
    view.held = false;
    expect_hold("-");
}

static void test_add_whom(void **unused)
{
    (void)unused;
    set_leader("", "ac");
    view.keys.nodes[0].may_lead = false;
    view.keys.nodes[2].in_sync = false;
    expect_hold("-");
    expect(AGENT_REST);
    view.keys.nodes[2].in_sync = true;
    view.keys.node_count = 2; /* its agent is gone */
    expect(AGENT_REST);
    view.keys.node_count = 3;
    expect_hold("c");
}

static void test_replace(void **unused)
{
    (void)unused;
    set_leader("a", "c");
    expect_hold("a");
    expect(AGENT_REST);
    view.now_ms += PATIENCE - 1;
    expect(AGENT_REST);
    view.now_ms++;
    view.held = false;
    expect_hold("a,c"); /* for both, until state has changed */
    memory.acked = memory.mark;
    view.keys.state = expect(AGENT_CHANGE).state;
    assert_string_equal(view.keys.state.sync, "c");
    view.keys.state_revision++;
    view.held = false;
    expect_hold("c");
    expect(AGENT_REST);
}

static void test_drop(void **unused)
{
    (void)unused;
    set_leader("a", "");
    expect_hold("a");
    view.now_ms += PATIENCE;
    struct agent_action action = expect(AGENT_CHANGE); /* state first, then the daemon */

    assert_string_equal(action.state.sync, "");
    assert_int_equal(action.state.epoch, EPOCH);
    view.self.alone = false;
    expect(AGENT_REST);
    view.held = false;
    expect_hold("a");
    view.keys.state.sync[0] = '\0';
    view.held = false;
    expect_hold("*");

    set_leader("a", "a"); /* it came back in time */
    memory.sync_gone_ms = 1;
    view.self.alone = true;
    expect(AGENT_REST);
    view.daemon.follower_count = 0;
    expect(AGENT_REST);
}

static void set_word(size_t node, const char *word)
{
    char text[AGENT_TEXT_MAX];

    snprintf(view.keys.nodes[node].word, sizeof(view.keys.nodes[node].word), "%s", word);
    agent_node_print(&view.keys.nodes[node], text);
    assert_true(agent_node_parse(text, &view.keys.nodes[node]));
}

/* One that could not lead is kept until another is in sync; one that takes nothing is not. */
static void test_no_room(void **unused)
{
    (void)unused;
    set_leader("a", "a");
    set_word(0, "cannot-lead");
    expect_hold("a");
    view.now_ms += PATIENCE;
    expect(AGENT_REST);
    set_word(0, "full");
    expect(AGENT_REST);
    view.now_ms += PATIENCE;
    assert_string_equal(expect(AGENT_CHANGE).state.sync, "");
    set_word(0, "cannot-lead");
    view.daemon.follower_count = 2;
    snprintf(view.daemon.followers[1], sizeof(view.daemon.followers[1]), "c");
    view.held = false;
    expect_hold("a,c");
    set_word(2, "full");
    view.held = false;
    expect_hold("a");
    set_word(0, "in-sync");
    set_word(2, "in-sync");
    expect(AGENT_REST);
}

/* Whose own disk is full gives way to one that has room. */
static void test_full_leader(void **unused)
{
    (void)unused;
    set_leader("a", "a");
    view.daemon.full = true;
    set_word(0, "cannot-lead");
    view.daemon.followers_written[0] = view.daemon.written;
    expect_hold("a");
    view.now_ms += 2 * PATIENCE;
    expect(AGENT_REST);
    set_word(0, "in-sync");
    view.daemon.followers_written[0] = view.daemon.written - 1; /* it lacks what was answered */
    expect(AGENT_REST);
    view.now_ms += PATIENCE;
    memory.told_ms = view.now_ms + 1;
    expect(AGENT_REST);
    view.daemon.followers_written[0] = view.daemon.written;
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    view.daemon.leads = view.daemon.can_lead = view.daemon.caught_up = false;
    expect(AGENT_RESIGN);
    set_leader("", "a"); /* nobody else may lead */
    expect_hold("a");
}

/* Its daemon has no room to begin anew: it leads on, but may take nothing, and takes nobody's
 * place.
 */
static void test_full_leader_stays(void **unused)
{
    (void)unused;
    set_leader("a", "a");
    view.daemon.full = true;
    set_word(0, "in-sync");
    view.daemon.followers_written[0] = view.daemon.written;
    expect_hold("a");
    view.now_ms += PATIENCE;
    memory.told_ms = view.now_ms + 1;
    assert_string_equal(expect(AGENT_FOLLOW).address, "-");
    view.now_ms++;
    expect(AGENT_RESIGN);
    view.keys.alive[0] = '\0';
    view.keys.alive_mine = false;
    expect(AGENT_REST);
    view.now_ms += 3 * PATIENCE; /* the other one is gone, too */
    expect(AGENT_TAKE);
}

/* Between a claim and the reign that begins nobody leads. */
static void test_settled(void **unused)
{
    (void)unused;
    set_leader("a", "a");
    assert_true(agent_is_settled(&view.keys));
    snprintf(view.keys.alive, sizeof(view.keys.alive), "a");
    assert_false(agent_is_settled(&view.keys));
    snprintf(view.keys.alive, sizeof(view.keys.alive), "%s", view.keys.state.leader);
    view.keys.state.claim.epoch = view.keys.state.epoch + 1;
    assert_false(agent_is_settled(&view.keys));
    view.keys.state.claim.epoch = view.keys.state.epoch;
    view.keys.alive[0] = '\0';
    assert_false(agent_is_settled(&view.keys));
}

static void test_word(void **unused)
{
    (void)unused;
    struct agent_daemon_view daemon = {.known = true};

    assert_string_equal(agent_word(&daemon), "behind");
    daemon.caught_up = true;
    assert_string_equal(agent_word(&daemon), "cannot-lead");
    daemon.can_lead = true;
    assert_string_equal(agent_word(&daemon), "in-sync");
    daemon.full = true;
    assert_string_equal(agent_word(&daemon), "full");
    daemon.leads = true;
    assert_string_equal(agent_word(&daemon), "in-sync");
}

/* ---- a daemon that does not answer ---- */

static void test_resign(void **unused)
{
    (void)unused;
    set_leader("a", "a");
    view.daemon.known = false;
    expect(AGENT_REST);
    view.now_ms += PATIENCE;
    expect(AGENT_RESIGN);
    view.keys.state.sync[0] = '\0'; /* nobody else could lead */
    expect(AGENT_REST);
    view.keys.state.sync[0] = 'a';
    view.daemon.known = true;
    expect_hold("a");
    view.daemon.known = false;
    expect(AGENT_REST);
    view.keys.alive_mine = false;
    view.now_ms += PATIENCE;
    expect(AGENT_REST);
}

/* One that hangs may lead on until its word ends; one that is not there does not. */
static void test_resign_after_word(void **unused)
{
    (void)unused;
    set_leader("a", "a");
    view.daemon.known = false;
    memory.told_ms = view.now_ms + 3 * PATIENCE;
    expect(AGENT_REST);
    view.now_ms = memory.told_ms - 1;
    expect(AGENT_REST);
    view.now_ms++;
    expect(AGENT_RESIGN);
    view.now_ms--;
    view.daemon.absent = true;
    expect(AGENT_RESIGN);
}

/* ---- text ---- */

static void test_text(void **unused)
{
    (void)unused;
    char text[AGENT_TEXT_MAX];
    struct agent_state state;
    struct agent_node node = {.name = "b"};

    agent_state_print(&view.keys.state, text);
    assert_string_equal(text, "epoch 7 leader a sync b from 500 boot boot-a");
    assert_true(agent_state_parse(text, &state));
    assert_memory_equal(&state, &view.keys.state, sizeof(state));
    state.sync[0] = state.boot[0] = '\0';
    agent_state_print(&state, text);
    assert_string_equal(text, "epoch 7 leader a sync - from 500 boot -");
    assert_true(agent_state_parse(text, &state));
    assert_string_equal(state.sync, "");
    assert_string_equal(state.boot, "");
    assert_false(agent_state_parse("epoch 7 leader a sync b", &state));
    assert_false(agent_state_parse("epoch 7 leader a sync b from 500 boot x more", &state));
    assert_false(agent_state_parse("", &state));
    state = view.keys.state;
    state.claim = (struct agent_claim){.epoch = 8, .name = "b", .boot = "boot-b"};
    agent_state_print(&state, text);
    assert_string_equal(text, "epoch 7 leader a sync b from 500 boot boot-a claim 8 b boot boot-b");
    assert_true(agent_state_parse(text, &view.keys.state));
    assert_memory_equal(&state, &view.keys.state, sizeof(state));
    assert_false(agent_state_parse(
        "epoch 7 leader a sync b from 500 boot boot-a claim 8 b boot boot-b more", &state));
    assert_false(agent_state_parse("epoch 7 leader a sync b from 500 boot boot-a claim 8", &state));

    view.keys.nodes[1].epoch = 7;
    view.keys.nodes[1].written = 900;
    agent_node_print(&view.keys.nodes[1], text);
    assert_string_equal(text, "b:1 epoch 7 written 900 in-sync may-lead identity - agent 0");
    assert_true(agent_node_parse(text, &node));
    assert_memory_equal(&node, &view.keys.nodes[1], sizeof(node));
    snprintf(view.keys.nodes[1].identity, sizeof(node.identity), "0123456789abcdef");
    view.keys.nodes[1].scope = 77;
    agent_node_print(&view.keys.nodes[1], text);
    assert_true(agent_node_parse(text, &node));
    assert_memory_equal(&node, &view.keys.nodes[1], sizeof(node));
    assert_true(agent_node_parse("b:1 epoch 7 written 900 behind follows-only", &node));
    assert_false(node.in_sync || node.may_lead || node.identity[0] != '\0' || node.scope != 0);
    assert_false(agent_node_parse("b:1 epoch 7 written 900 behind may-lead identity x", &node));
    assert_false(agent_node_parse("b:1 epoch 7", &node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_take, set_up),
        cmocka_unit_test_setup(test_refused, set_up),
        cmocka_unit_test_setup(test_claimed, set_up),
        cmocka_unit_test_setup(test_claimed_by_other, set_up),
        cmocka_unit_test_setup(test_adopt, set_up),
        cmocka_unit_test_setup(test_namesake, set_up),
        cmocka_unit_test_setup(test_boot, set_up),
        cmocka_unit_test_setup(test_not_take, set_up),
        cmocka_unit_test_setup(test_leader_again, set_up),
        cmocka_unit_test_setup(test_lease_again, set_up),
        cmocka_unit_test_setup(test_follow, set_up),
        cmocka_unit_test_setup(test_other_reign, set_up),
        cmocka_unit_test_setup(test_add, set_up),
        cmocka_unit_test_setup(test_add_whom, set_up),
        cmocka_unit_test_setup(test_replace, set_up),
        cmocka_unit_test_setup(test_drop, set_up),
        cmocka_unit_test_setup(test_no_room, set_up),
        cmocka_unit_test_setup(test_full_leader, set_up),
        cmocka_unit_test_setup(test_full_leader_stays, set_up),
        cmocka_unit_test_setup(test_settled, set_up),
        cmocka_unit_test_setup(test_word, set_up),
        cmocka_unit_test_setup(test_resign, set_up),
        cmocka_unit_test_setup(test_resign_after_word, set_up),
        cmocka_unit_test_setup(test_text, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
