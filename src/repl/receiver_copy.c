/*
 * receiver_copy.c: fetches a copy of the other's data directory: its manifest, then the files that
 * are not here yet, several asked for at a time so that the link is never idle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/copy_dir.h"
#include "repl/receiver_private.h"

#define AHEAD_MAX   16 /* files that are asked for before they come */
#define PIECE_BYTES (256u << 10)

struct receiver_copy {
    struct repl_receiver *receiver;
    struct copy_dir dir;
    char *text; /* of the manifest */
    size_t length;
    struct manifest *manifest;
    struct manifest *own;    /* DIR's; NULL: none */
    struct copy_file *files; /* that are not here */
    size_t count, asked, come;
    char *piece; /* PIECE_BYTES */
};

static bool fetch_fail(struct receiver_copy *copy)
{
    receiver_trouble(copy->receiver, "its copy cannot be stored: %.200s", copy->dir.error);
    return false;
}

/* ---- the manifest ---- */

/* What is here of another stream is somebody's data, and not to be thrown away for a mistake. */
static bool fetch_is_wanted(struct receiver_copy *copy)
{
    const struct repl_receiver *receiver = copy->receiver;
    const uint64_t *here = receiver->position.stream, *there = copy->manifest->stream;

    if ((here[0] | here[1]) == 0 || memcmp(here, there, sizeof(receiver->position.stream)) == 0) {
        return true;
    }
    receiver_trouble(copy->receiver,
                     "its stream is %016llx%016llx, and the data directory here holds another one, "
                     "%016llx%016llx: to follow it, begin with an empty directory",
                     (unsigned long long)there[0], (unsigned long long)there[1],
                     (unsigned long long)here[0], (unsigned long long)here[1]);
    return false;
}

/*
 * Nor is what a later reign has written: this node led, or followed a leader that came after this
 * one. Who is the leader is for an operator to say.
 */
static bool fetch_is_later(struct receiver_copy *copy)
{
    const struct manifest *manifest = copy->manifest;
    size_t count = manifest->history_count;
    uint64_t there = count > 0 ? manifest->history[count - 1].epoch : 0;
    uint64_t here = copy->receiver->position.epoch;

    if (there >= here) {
        return true;
    }
    receiver_trouble(
        copy->receiver,
        "it is in epoch %llu, and this node has records of epoch %llu: follow the node "
        "that led then, or begin with an empty directory",
        (unsigned long long)there, (unsigned long long)here);
    return false;
}

/* Before anything is fetched for nothing. */
static bool fetch_has_memory(struct receiver_copy *copy)
{
    char error[DATA_ERROR_MAX];
    bool has = data_has_memory(copy->receiver->data, copy->manifest, error);

    if (!has) {
        receiver_trouble(copy->receiver, "%.230s", error);
    }
    return has;
}

/* Returns the reign of the other's history that has the epoch; NULL: none has. */
static const struct manifest_reign *fetch_find_reign(const struct receiver_copy *copy,
                                                     uint64_t epoch)
{
    for (size_t i = 0; i < copy->manifest->history_count; i++) {
        if (copy->manifest->history[i].epoch == epoch) {
            return &copy->manifest->history[i];
        }
    }
    return NULL;
}

/* Nor what was written here under an epoch in which the other one led, too. The journals may be too
 * short to tell, as the sums of a stream would. *next: that it is over. */
static bool fetch_is_one_history(struct receiver_copy *copy, enum receiver_next *next)
{
    struct repl_receiver *receiver = copy->receiver;
    size_t count = copy->own != NULL ? copy->own->history_count : 0;

    for (size_t i = 0; i < count; i++) {
        const struct manifest_reign *here = &copy->own->history[i];
        const struct manifest_reign *there = fetch_find_reign(copy, here->epoch);

        if (there != NULL && there->lsn != here->lsn) {
            receiver_trouble(receiver,
                             "epoch %llu begins at LSN %llu there and at LSN %llu here: two have "
                             "led at one time; nothing is taken: empty the data directory of the "
                             "one that is wrong",
                             (unsigned long long)here->epoch, (unsigned long long)there->lsn,
                             (unsigned long long)here->lsn);
            receiver_set_state(receiver, REPL_RECEIVER_DIVERGED);
            *next = RECEIVER_OVER;
            return false;
        }
    }
    return true;
}

static bool fetch_manifest(struct receiver_copy *copy, uint64_t bytes, enum receiver_next *next)
{
    struct repl_receiver *receiver = copy->receiver;
    char error[MANIFEST_ERROR_MAX];

    copy->length = (size_t)bytes;
    copy->text = memory_zalloc(copy->length);
    if (!receiver_await_bytes(receiver, REPL_PAUSE_S, copy->text, copy->length)) {
        return false;
    }
    if (manifest_parse(copy->text, copy->length, "its " MANIFEST_NAME, &copy->manifest, error) !=
        MANIFEST_SOUND) {
        receiver_trouble(receiver, "%.230s", error);
        return false;
    }
    if (manifest_load(receiver->vfs, receiver->directory, &copy->own, error) != MANIFEST_SOUND) {
        copy->own = NULL;
    }
    return fetch_is_wanted(copy) && fetch_is_later(copy) && fetch_is_one_history(copy, next) &&
           fetch_has_memory(copy);
}

/* ---- what is needed ---- */

static void fetch_look_at(struct receiver_copy *copy, const struct manifest_space *space,
                          const struct manifest_file *named, struct repl_receiver_stats *figures)
{
    struct copy_file *file = &copy->files[copy->count];

    *file = (struct copy_file){.space = space, .named = named};
    if (copy_dir_look(&copy->dir, copy->manifest, copy->own, file)) {
        file->have = named->bytes;
    } else {
        copy->count++;
    }
    figures->copy_bytes += named->bytes;
    figures->copied_bytes += file->have;
}

static bool fetch_plan(struct receiver_copy *copy)
{
    struct repl_receiver *receiver = copy->receiver;
    struct repl_receiver_stats figures = {.copy_bytes = 0};
    size_t count = manifest_count_files(copy->manifest);
    struct manifest_at at = {0};
    const struct manifest_file *file;

    if (!copy_dir_begin(&copy->dir, receiver->vfs, receiver->directory, copy->manifest)) {
        return fetch_fail(copy);
    }
    copy->files = memory_zalloc((count + 1) * sizeof(*copy->files));
    while ((file = manifest_next_file(copy->manifest, &at)) != NULL) {
        fetch_look_at(copy, &copy->manifest->spaces[at.space], file, &figures);
    }
    pthread_mutex_lock(&receiver->lock);
    receiver->figures.copy_bytes = figures.copy_bytes;
    receiver->figures.copied_bytes = figures.copied_bytes;
    pthread_mutex_unlock(&receiver->lock);
    log_info("following %s: a copy files=%zu missing=%zu bytes=%llu missing_bytes=%llu "
             "journal=%llu",
             receiver->address, count, copy->count, (unsigned long long)figures.copy_bytes,
             (unsigned long long)(figures.copy_bytes - figures.copied_bytes),
             (unsigned long long)copy->manifest->journal_lsn);
    return true;
}

/* ---- the files ---- */

static bool fetch_ask(struct receiver_copy *copy)
{
    while (copy->asked < copy->count && copy->asked < copy->come + AHEAD_MAX) {
        const struct copy_file *file = &copy->files[copy->asked++];
        struct repl_line line = {.kind = REPL_FILE_REQUEST, .offset = file->have};

        snprintf(line.file, sizeof(line.file), "%s", file->named->name);
        if (!receiver_say(copy->receiver, &line)) {
            return false;
        }
    }
    return true;
}

static bool fetch_bytes(struct receiver_copy *copy, struct copy_file *file)
{
    struct repl_receiver *receiver = copy->receiver;

    while (file->have < file->named->bytes) {
        uint64_t left = file->named->bytes - file->have;
        size_t length = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

        if (!receiver_await_bytes(receiver, REPL_PAUSE_S, copy->piece, length)) {
            return false;
        }
        if (!copy_dir_write(&copy->dir, file, copy->piece, length)) {
            return fetch_fail(copy);
        }
        pthread_mutex_lock(&receiver->lock);
        receiver->figures.copied_bytes += length;
        pthread_mutex_unlock(&receiver->lock);
    }
    return copy_dir_finish(&copy->dir, file) || fetch_fail(copy);
}

/* *next: what its refusal means. */
static bool fetch_file(struct receiver_copy *copy, struct copy_file *file, enum receiver_next *next)
{
    struct repl_receiver *receiver = copy->receiver;
    struct repl_line line;

    if (!receiver_await_line(receiver, REPL_PAUSE_S, &line)) {
        return false;
    }
    if (line.kind != REPL_FILE || strcmp(line.file, file->named->name) != 0 ||
        line.offset != file->have || line.bytes != file->named->bytes - file->have) {
        *next = receiver_refused(receiver, &line);
        return false;
    }
    bool good = copy_dir_open(&copy->dir, file) || fetch_fail(copy);

    good = good && fetch_bytes(copy, file);
    copy_dir_leave(&copy->dir, file);
    return good;
}

static bool fetch_files(struct receiver_copy *copy, enum receiver_next *next)
{
    for (; copy->come < copy->count; copy->come++) {
        if (!fetch_ask(copy) || !fetch_file(copy, &copy->files[copy->come], next)) {
            return false;
        }
    }
    /* A whole one is taken by the next start, whenever that is: so it is none before there can be
     * one. */
    return receiver_has_room(copy->receiver) &&
           (copy_dir_end(&copy->dir, copy->text, copy->length) || fetch_fail(copy));
}

/* ---- the whole ---- */

static bool fetch_run(struct receiver_copy *copy, enum receiver_next *next)
{
    struct repl_receiver *receiver = copy->receiver;
    struct repl_line line = {.kind = REPL_COPY_REQUEST};

    memcpy(line.group, receiver->group, sizeof(line.group));
    memcpy(line.name, receiver->name, sizeof(line.name));
    if (!receiver_say(receiver, &line) || !receiver_await_line(receiver, REPL_PAUSE_S, &line)) {
        return false;
    }
    if (line.kind != REPL_MANIFEST) {
        *next = receiver_refused(receiver, &line);
        return false;
    }
    pthread_mutex_lock(&receiver->lock);
    receiver->figures.state = REPL_RECEIVER_COPYING;
    receiver->figures.connects++;
    pthread_mutex_unlock(&receiver->lock);
    if (!fetch_manifest(copy, line.bytes, next) || !fetch_plan(copy)) {
        return false;
    }
    if (receiver->owner.copies != NULL) {
        receiver->owner.copies(receiver->owner.context);
    }
    return fetch_files(copy, next);
}

enum receiver_next receiver_copy(struct repl_receiver *receiver)
{
    struct receiver_copy copy = {.receiver = receiver};
    enum receiver_next next = RECEIVER_LATER;

    copy.piece = memory_zalloc(PIECE_BYTES);
    bool whole = fetch_run(&copy, &next);

    manifest_destroy(copy.manifest);
    manifest_destroy(copy.own);
    free(copy.files);
    free(copy.text);
    free(copy.piece);
    if (!whole) {
        return next;
    }
    log_info("following %s: the copy is whole", receiver->address);
    receiver_no_trouble(receiver);
    atomic_fetch_add(&receiver->owner.counts->copies, 1);
    receiver->owner.again(receiver->owner.context, 0, true);
    return RECEIVER_OVER;
}
