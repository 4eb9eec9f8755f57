/*
 * sim.h: a server's data directory with the real engines, journal, checkpoints and recovery, on a
 * simulated disk, all driven by one thread and one seed, and killed at a point drawn from it.
 *
 * Points. Each call of the file system, each record that is put, each time a checkpoint comes out
 * of the barrier while it copies a table, and each POINT() of the code (base/point.h, where it was
 * built with them) is a point. sim_arm() says at which one the process ends: by a kill or a power
 * cut. From there on all its calls fail, it winds itself up, and sim_begin() recovers with fresh
 * objects and compares with the history.
 * At points where nothing is locked (files of tables, the manifest, the barrier, the sync of the
 * journal) the workers do something first: so changes, openings and recycling happen in the midst
 * of a checkpoint. So they do while a write of the journal hangs that one of them waits for: what
 * it holds must be in nobody's way.
 * No file is touched inside the barrier, nor with the world stopped: whoever does fails the test.
 *
 * What must hold after the end of a process, with `end` being where the journal ends that is found:
 *     all that was acknowledged, and after a kill all that was written, is below `end`; after a
 *     power cut all that was durable is;
 *     the journal holds what was put, record by record, up to `end`, and nothing else;
 *     every key is exactly as the history up to `end` says, no id is lost or held twice, and the
 *     engines' own checks hold.
 *
 * Threads. Workers, keeper and checkpoint are this one thread. The journal's own threads run only
 * while this one waits for them: they are asked for a write or a sync and waited for until they are
 * at rest again (calm). The advice it gives the system about pages it gives when it likes: that is
 * no point. The threads that load tables are waited for by data_recover. So one seed does the same
 * again, random bits (sim_clock.h) and clock included. Not the same again: how many calls a process
 * that has ended still makes in vain. EVERYSEC has no second that passes: it is synced when asked.
 *
 * Dumped tables are read by one thread, and whoever waits for a page waits until it has come.
 * Workers ask for rounds of dumps between two operations, as the thread of checkpoints would.
 *
 * One of two nodes (pair.h) has functions of its own for what it does beside that.
 *
 * Thread rule: the thread that called sim_init, but for the points, which any thread comes to.
 */
#ifndef ROLLCALL_TESTS_SIM_SIM_H
#define ROLLCALL_TESTS_SIM_SIM_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/barrier.h"
#include "data/data.h"
#include "data/journal_sink.h"
#include "space/spaces.h"
#include "store/vfs.h"
#include "tests/sim/history.h"
#include "tests/sim/sim_keeper.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"

#define SIM_WORKERS     3
#define SIM_SPACES      2
#define SIM_DIRECTORY   "/data"
#define SIM_MEMBERS_MAX 32 /* bytes of a member's text */
#define SIM_RECENT      64 /* members added shortly before */
#define SIM_CODES       32 /* points with names */
#define SIM_CODES_ENDS  31 /* the first of them: where processes are made to end */
#define SIM_CODE_ANY    SIM_CODES

enum sim_point {
    SIM_POINT_PUT,      /* a record: before and after */
    SIM_POINT_LEFT,     /* a checkpoint came out of the barrier */
    SIM_POINT_TABLE,    /* a call for a table's file */
    SIM_POINT_MANIFEST, /* for the manifest, or the directory */
    SIM_POINT_JOURNAL,  /* for a segment */
    SIM_POINT_CODE,     /* POINT() */
    SIM_POINTS,
    SIM_POINT_ANY = SIM_POINTS,
};

enum sim_stage { SIM_NOTHING, SIM_RECOVERING, SIM_RUNNING, SIM_CHECKPOINT, SIM_STOPPING };

struct sim;

struct sim_sink {
    struct change_sink sink; /* first */
    struct sim *sim;
    struct journal_sink journal;
};

struct sim_log {
    struct change_log log; /* first */
    struct sim *sim;
};

/* When the process is to end. */
struct sim_end {
    bool armed, cut;
    enum sim_point point;
    unsigned code;  /* of that name alone, or SIM_CODE_ANY */
    uint64_t count; /* points of that kind to go */
};

struct sim_pair {
    uint64_t id;
    uint32_t member;
};

struct sim_figures {
    uint64_t operations, pending, refused, checkpoints, failed_checkpoints, images;
    uint64_t kills, cuts, recovery_kills, clean_stops, recoveries, keys, lost, dropped;
    uint64_t ends[SIM_POINTS + 1];
    uint64_t dumps, merges, cold_reads, cold_waits, hangs;
    uint64_t code_passed[SIM_CODES], code_ends[SIM_CODES];
};

/* A point with a name. */
struct sim_code {
    const char *name;
    uint64_t usual; /* so many times a process comes there, more or less */
    bool of_dumps;  /* only where tables leave memory */
    bool open;      /* inside the barrier, but nothing is locked: others come between */
};

/* A clock for the threads that read dumped tables. */
struct sim_cold_clock {
    struct vfs vfs; /* first */
    struct vfs_functions functions;
    struct sim *sim;
    _Atomic uint64_t us;
};

/* What one of two nodes does, each with that context. */
struct sim_node {
    void *context;
    void (*opening)(void *context); /* before data_open */
    void (*opened)(void *context);  /* before data_recover; *end is where the journal ends */
    void (*found)(void *context, uint64_t *end);
    /* A record of the journal, before it is met: it may be the other's. */
    void (*learn)(void *context, const struct journal_record *record);
    void (*recovered)(void *context);
    void (*between)(void *context);  /* in the midst of a checkpoint, with nothing locked */
    void (*stopping)(void *context); /* its threads are to end */
    void (*stopped)(void *context);
    bool (*acts)(
        void); /* is this thread one of it, that waits for no file with the world stopped? */
};

struct sim {
    uint64_t seed;
    const struct sim_node *node; /* NULL: it is alone */
    struct test_random random;
    struct test_random ends_random; /* apart: of ends */
    struct vfs_sim *disk;
    struct settings settings;
    bool fill;  /* keys come in large numbers, so that tables roll */
    bool dumps; /* tables leave memory */
    enum sim_stage stage;
    bool occupied; /* an operation is under way */
    bool leads;    /* it has sinks: changes may be put */
    bool surge;    /* of new ids alone */
    /* A commit waits for the journal's thread, whose next write may hang; while it does, nobody
     * commits. */
    _Atomic bool may_hang, hangs;
    struct sim_end end;
    bool unmet;         /* a process was to end at end.code, and never came there */
    _Atomic bool ended; /* the process is dead, its objects are not yet gone */
    _Atomic bool stop;  /* the checkpoint, in the midst */
    pthread_t main;
    /* What must be found. */
    uint64_t acknowledged; /* all below is promised to clients */
    uint64_t durable;      /* at the end of the last process that ran */
    uint64_t must;         /* the journal that is found next ends here or after */
    bool broken;           /* something was acknowledged that was not kept */
    uint64_t found;        /* where the journal ended */
    struct history history;
    /* The process. */
    struct data *data;
    struct spaces *spaces;
    struct barrier *barrier;
    struct barrier_member *member;
    struct keeper *keeper; /* who plays it asks whether it is held */
    struct sim_cold_clock cold_clock;
    _Atomic uint64_t woken;  /* times */
    _Atomic uint64_t ticket; /* of the last operation */
    struct sim_sink sinks[SIM_WORKERS];
    struct sim_log log;
    bool asked[SIM_SPACES]; /* for maintain */
    uint32_t member_now;    /* of the operation under way */
    /* The workers' (workers.c). */
    uint64_t newest[SIM_SPACES];
    struct sim_pair recent[SIM_RECENT];
    char error[DATA_ERROR_MAX];
    struct sim_figures figures;
};

/* Everything of it follows from the seed. */
void sim_init(struct sim *sim, uint64_t seed);
void sim_fini(struct sim *sim);

/*
 * Begins processes until one has recovered (it may be killed in the midst, if that is armed), and
 * compares all with the history. Fails the test with what differs.
 */
void sim_begin(struct sim *sim);
void sim_arm(struct sim *sim, enum sim_point point, uint64_t within, bool cut);
/* At one of the points of that name. */
void sim_arm_code(struct sim *sim, unsigned code, bool cut);
/* Now, unless it has ended; then winds up. */
void sim_end(struct sim *sim, bool cut);
/* Of its own accord, with a last checkpoint or without; may end in the midst, too. */
void sim_stop_cleanly(struct sim *sim, bool checkpoint);
void sim_checkpoint(struct sim *sim);
void sim_dump(struct sim *sim); /* a round for dumps alone */
/* Every key as the history says, now. */
void sim_compare(struct sim *sim);
/* Nobody can stop the world now, or the keeper is held: no table is maintained. */
bool sim_is_held(const struct sim *sim);
/* The same for brackets: a keeper that is merely held does not wait for the owner of one. */
bool sim_is_bracketed(const struct sim *sim);
/* Does what the engine has asked for. False: it is held. */
bool sim_maintain(struct sim *sim, unsigned space);
struct engine *sim_engine(const struct sim *sim, unsigned space);

/* A point has come: the process may end here. */
void sim_pass(struct sim *sim, enum sim_point point);

bool sim_always(const struct sim *sim); /* its sync */

/* Every record of the journal is in the history, or an event that is added. No process is needed.
 */
void sim_meet(struct sim *sim);
bool sim_has_file(struct sim *sim, const char *path);

/* ---- sim_threads.c ---- */

/* How many seeds a run takes: what ROLLCALL_SIM_SEEDS says, or the usual ones, or those of a long
 * run. */
uint64_t sim_seeds_wanted(uint64_t seeds, uint64_t seeds_long);

/* Waits until the journal's threads are at rest, but for this one. Not where it is locked. */
void sim_calm(struct sim *sim);
/* Is this the thread that writes? It is not kicked in a recovery. */
bool sim_is_writer(const struct sim *sim);
/* By that thread, in the midst of a write that a commit waits for: it takes long, others go on. */
void sim_hang(struct sim *sim);
void sim_sync(struct sim *sim);
/* What is put so far is acknowledged when it returns true. */
bool sim_commit(struct sim *sim, unsigned worker);
/* False: the process has ended, or the journal has failed. */
bool sim_wait_written(struct sim *sim, uint64_t lsn);
bool sim_wait_durable(struct sim *sim, uint64_t lsn);

/* ---- sim_sinks.c ---- */

/* A process has recovered: its log, and a sink for each worker. */
void sim_sinks_begin(struct sim *sim);

/* ---- sim_points.c ---- */

const struct sim_code *sim_code(unsigned code);
/* Its number; fails the test if the simulation does not know it. */
unsigned sim_code_of(const char *name);
/* How often each was passed, and a process ended there. */
void sim_codes_print(const struct sim_figures *figures);

/* ---- sim_cold.c ---- */

/* Runs an operation, again as often as it has waited for the disk. PENDING: it waits for tables. */
void sim_run(struct sim *sim, unsigned space, struct engine_op *op, struct change_sink *sink);
void sim_cold_open(struct sim *sim);  /* before recovery */
void sim_cold_count(struct sim *sim); /* adds what a process has done, at its end */
void sim_cold_calm(struct sim *sim);  /* waits until no page is being read */
bool sim_wants_dump(struct sim *sim);
/* Dumps are wanted, but there was no checkpoint yet, and that comes first. */
bool sim_wants_checkpoint(struct sim *sim);
/* The rows' own checks, at any time with nothing locked. */
void sim_check_rows(const struct sim *sim);

/* ---- sim_settings.c ---- */

void sim_settings(struct sim *sim);

/* ---- workers.c ---- */

void workers_do(struct sim *sim, unsigned operations);
const char *workers_member(uint32_t member, char text[SIM_MEMBERS_MAX]);

#endif
