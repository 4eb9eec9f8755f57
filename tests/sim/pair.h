/*
 * pair.h: two simulated servers (sim.h), of which one follows the other, by the product's own
 * feeds, receivers and appliers, over a simulated network (wires.h), all of one seed.
 *
 * The threads of feeds, receivers and appliers go on in turns (actors.h): between what the two
 * nodes are made to do, and in the midst of their checkpoints. Whoever loses power, is killed at a
 * point, or is to begin anew is started again: as the leader, or as a follower of the one that was
 * promoted meanwhile.
 *
 * What must hold, beside what sim.h has of each:
 *     what a follower answers is what the leader's history up to where it has come says, key by
 * key; where both have a journal it is the same, byte by byte; with ack: replica: what was
 * acknowledged is on the one that is promoted; and of an epoch no two nodes acknowledge anything.
 *
 * Thread rule: that of sim.h.
 */
#ifndef ROLLCALL_TESTS_SIM_PAIR_H
#define ROLLCALL_TESTS_SIM_PAIR_H

#include "repl/feed.h"
#include "repl/receiver.h"
#include "tests/sim/sim.h"

#define PAIR_NODES      2
#define PAIR_EPOCHS_MAX 256

struct pair;

struct pair_node {
    struct sim sim;
    struct sim_node hooks;
    struct pair *pair;
    unsigned number;
    struct repl_feeds *feeds;
    struct repl_receiver *receiver;
    struct repl_receiver_counts counts;
    struct journal_listener listener;
    uint64_t held_bytes[SIM_SPACES]; /* by tables, when it was started */
    bool up;
    bool follows;     /* so it was started last */
    bool again;       /* its receiver wants another start, with what follows */
    bool opened;      /* its directory, since it was started */
    bool cuts;        /* its journal is cut at cut_lsn */
    bool was_cutting; /* it was to be, by a process that ended in its start */
    uint64_t cut_lsn;
    bool in_sync; /* since both have started it once had all that the leader had written */
    bool adopts;  /* a whole copy was there at the last start that did not come through */
};

struct pair_figures {
    uint64_t steps, compared, promotions, refused, zombies, crashes, stops, promised, turned, links;
    uint64_t copies, rewinds;
    uint64_t lost; /* times that both have lost power, and what was acknowledged */
};

struct pair {
    uint64_t seed;
    struct test_random random;
    struct pair_node nodes[PAIR_NODES];
    unsigned leader;                /* which is meant to be */
    bool acks;                      /* ack: replica */
    bool parted;                    /* no connection can be made */
    uint64_t promised;              /* with ack: replica: acknowledged up to here */
    uint64_t epoch;                 /* the highest that was seen */
    uint8_t acker[PAIR_EPOCHS_MAX]; /* who acknowledged anything in that epoch: number + 1 */
    struct pair_figures figures;
};

/* Everything of it follows from the seed. Both are up. */
void pair_init(struct pair *pair, uint64_t seed);
void pair_fini(struct pair *pair); /* stops both */

struct pair_node *pair_leader(struct pair *pair);
struct pair_node *pair_follower(struct pair *pair);

/* Threads go on, so many turns, or until one node has ended or wants another start. */
void pair_run(struct pair *pair, unsigned turns);
/* Whoever has ended is wound up, whoever wants another start gets it; dumps that are due. */
void pair_tend(struct pair *pair);
void pair_start(struct pair_node *node); /* one that is down, as what it is meant to be */
void pair_crash(struct pair_node *node, bool cut);
/* Of its own accord; with no last checkpoint, as one that is to lead no more. */
void pair_stop(struct pair_node *node, bool checkpoint);
/*
 * As an operator does, or an agent: one that has lost what was acknowledged does not lead again.
 * The other, which has it, is promoted, and it follows.
 */
void pair_bring_up(struct pair_node *node);
/* Of one that follows: the keeper's part and the checkpoints', as far as they are asked for. */
void pair_keep(struct sim *sim);
/* Carries out what the follower has taken. */
void pair_catch_up(struct pair_node *node);
/* The follower leads from now on, in an epoch above all there were. The other may still be up.
 * False: it cannot, or was refused. */
bool pair_promote(struct pair *pair);

/* ---- pair_judge.c; fail the test ---- */

/* The follower's every answer, once it has carried out what it has. */
void pair_compare(struct pair *pair);
/* What was acknowledged meanwhile, and who is in sync. */
void pair_promise(struct pair *pair);
/* The network is good again, both are up: in the end both are the same. */
void pair_judge(struct pair *pair);

#endif
