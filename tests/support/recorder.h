/*
 * recorder.h: a journal in memory for tests: the sinks of any number of workers and the log of any
 * number of spaces, which keep each change and event as the record it would be on disk, in order,
 * with an LSN that counts their bytes. It checks what a journal relies on: nothing is put without
 * room that was asked for. recorder_replay() gives the records to an engine again.
 *
 * Thread rule: sinks as change.h says (each by one thread); the rest with nobody else there.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_RECORDER_H
#define ROLLCALL_TESTS_SUPPORT_RECORDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/change.h"
#include "engine/change_record.h"
#include "engine/engine.h"

struct recorder_record {
    uint64_t lsn;
    uint8_t type, a, b;
    uint64_t *words; /* the payload */
    size_t bytes;
};

struct recorder {
    struct change_log log;
    pthread_mutex_t lock; /* of the rest */
    size_t count, room;
    struct recorder_record *records;
    uint64_t head;        /* LSN of the next record */
    size_t event_bytes;   /* that may still be put, since the last reserve */
    uint64_t events_room; /* times the log was asked for room */
    _Atomic bool refuse;  /* no sink and no log has room */
    bool narrow;          /* what the log has not used is room; more comes only if it is awaited */
    bool awaited;
    char error[ENGINE_ERROR_MAX];
};

struct recorder_sink {
    struct change_sink sink; /* first */
    struct recorder *recorder;
    unsigned reserved; /* changes that may be put */
};

void recorder_init(struct recorder *recorder);
void recorder_fini(struct recorder *recorder);
/* A worker's: give &sink->sink away. Nothing to undo. */
void recorder_sink_init(struct recorder_sink *sink, struct recorder *recorder);

/* Forgets all records at or above lsn, as a crash would: the end is there. */
void recorder_cut(struct recorder *recorder, uint64_t lsn);

/*
 * Gives the records of engine->space from from_lsn on to its replay and replay_event, changes in
 * batches of so many; events of tables from rows_from_lsn on. False: recorder->error says why.
 */
bool recorder_replay(struct recorder *recorder, struct engine *engine, uint64_t from_lsn,
                     uint64_t rows_from_lsn, size_t batch);

#endif
