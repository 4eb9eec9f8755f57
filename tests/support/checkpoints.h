/*
 * checkpoints.h: checkpoints of one space for tests, as the server takes them, with a recorder as
 * the journal; and an engine made of the last one and what was recorded since.
 *
 *     checkpoints_begin                              world stopped: C
 *     while (checkpoints_next)                       world stopped; false: M, and it is the last
 *         checkpoints_write, checkpoints_wrote       not stopped; stopped
 *     checkpoints_restore                            on a fresh engine without a log
 *
 * A checkpoint that is not carried to its end leaves the one before in force, as a crash would.
 * Expectations that do not hold end the test. Thread rule: one thread.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_CHECKPOINTS_H
#define ROLLCALL_TESTS_SUPPORT_CHECKPOINTS_H

#include "row/row_log.h"
#include "store/vfs.h"
#include "tests/support/recorder.h"

#define CHECKPOINTS_TABLES_MAX 1024 /* and layers, those that went meanwhile too */
#define CHECKPOINTS_NAME_MAX   64

struct checkpoints_file {
    uint64_t serial;
    unsigned layer;
    bool kept; /* its table is there */
    char name[CHECKPOINTS_NAME_MAX];
};

struct checkpoints_set {
    bool any; /* a state was taken; else the journal tells from its beginning */
    uint64_t c, m;
    size_t state_bytes;
    unsigned char state[ENGINE_STATE_MAX];
    size_t count;
    struct checkpoints_file files[CHECKPOINTS_TABLES_MAX];
};

struct checkpoints {
    struct vfs *vfs;
    const char *directory; /* of existing files none matters */
    struct checkpoints_set last, next;
    uint64_t numbers;       /* of files, so far */
    uint64_t images, gone;  /* made; abandoned as the table was touched */
    struct row_image image; /* under way */
    char error[ENGINE_ERROR_MAX];
};

/* The directory exists; the string lives as long. */
void checkpoints_init(struct checkpoints *checkpoints, struct vfs *vfs, const char *directory);

void checkpoints_begin(struct checkpoints *checkpoints, struct engine *engine, uint64_t head);
/* False: it is complete and in force; files that it does not name are gone. */
bool checkpoints_next(struct checkpoints *checkpoints, struct engine *engine, uint64_t head);
/* Writes the image under way. member as row_image_write. */
enum engine_image checkpoints_write(struct checkpoints *checkpoints, struct engine *engine,
                                    struct barrier_member *member, const _Atomic bool *stop);
/* Takes note of what became of it. */
void checkpoints_wrote(struct checkpoints *checkpoints, struct engine *engine,
                       enum engine_image result);

/*
 * Restores the last checkpoint, each table on a thread of its own, and replays what was recorded
 * since, in batches. False: checkpoints->error says why. `fresh`: as restore_end says.
 */
bool checkpoints_restore(struct checkpoints *checkpoints, struct engine *engine,
                         struct recorder *recorder, size_t batch, bool *fresh);

#endif
