/* open_files.c: which files are open, and which one is closed for the next. */
#include "store/open_files.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

#define OPEN_FILES_CLASS 0x6f70656eu

struct open_files {
    uint32_t class;
    struct vfs *vfs;
    pthread_mutex_t lock;   /* of all that follows, and of every file's struct */
    pthread_cond_t changed; /* a file was opened, closed or let go, and somebody waits */
    unsigned waiting;
    struct cold_link idle; /* open, not being read; the one read longest ago first */
    struct open_files_stats stats;
};

struct open_files *open_files_create(struct vfs *vfs, unsigned limit)
{
    CHECK(limit >= 1);
    struct open_files *files = memory_zalloc(sizeof *files);
    files->class = OPEN_FILES_CLASS;
    files->vfs = vfs;
    files->stats.limit = limit;
    cold_list_init(&files->idle);
    CHECK(pthread_mutex_init(&files->lock, NULL) == 0);
    CHECK(pthread_cond_init(&files->changed, NULL) == 0);
    return files;
}

void open_files_destroy(struct open_files *files)
{
    if (!files) {
        return;
    }
    CHECK(files->class == OPEN_FILES_CLASS && files->stats.open == 0);
    pthread_cond_destroy(&files->changed);
    pthread_mutex_destroy(&files->lock);
    files->class = 0;
    free(files);
}

static void close_fd(const struct open_files *files, int fd)
{
    if (fd >= 0) {
        files->vfs->functions->close(files->vfs, fd);
    }
}

/* ---- under the lock ---- */

/* Whoever waits looks again: there are more readers than descriptors, so each may be who goes on.
 */
static void tell(struct open_files *files)
{
    if (files->waiting > 0) {
        pthread_cond_broadcast(&files->changed);
    }
}

static bool has_room(const struct open_files *files)
{
    return files->stats.open < files->stats.limit || !cold_list_empty(&files->idle);
}

/* Room for one more; *victim is to be closed before that is opened (-1: nothing). */
static void take_room(struct open_files *files, int *victim)
{
    *victim = -1;
    if (files->stats.open < files->stats.limit) {
        files->stats.open++;
        return;
    }
    struct open_file *oldest = COLD_OWNER(struct open_file, link, files->idle.next);
    CHECK(oldest->state == OPEN_FILE_OPEN && oldest->readers == 0);
    cold_list_remove(&oldest->link);
    oldest->state = OPEN_FILE_CLOSED;
    *victim = oldest->fd;
}

static void read_begins(struct open_file *file)
{
    if (file->readers++ == 0 && file->link.next) {
        cold_list_remove(&file->link);
    }
}

/* ---- files come and go ---- */

void open_files_add(struct open_files *files, struct open_file *file, int fd)
{
    int victim = fd;
    CHECK(files->class == OPEN_FILES_CLASS && fd >= 0);
    pthread_mutex_lock(&files->lock);
    CHECK(file->state == OPEN_FILE_CLOSED);
    if (has_room(files)) {
        take_room(files, &victim);
        file->state = OPEN_FILE_OPEN;
        file->fd = fd;
        cold_list_add(&files->idle, &file->link);
        tell(files);
    }
    pthread_mutex_unlock(&files->lock);
    close_fd(files, victim);
}

void open_files_remove(struct open_files *files, struct open_file *file)
{
    int fd = -1;
    CHECK(files->class == OPEN_FILES_CLASS);
    pthread_mutex_lock(&files->lock);
    CHECK(file->readers == 0 && file->state != OPEN_FILE_OPENING);
    if (file->state == OPEN_FILE_OPEN) {
        fd = file->fd;
        cold_list_remove(&file->link);
        file->state = OPEN_FILE_CLOSED;
    }
    pthread_mutex_unlock(&files->lock);
    if (fd < 0) {
        return;
    }
    close_fd(files, fd);
    pthread_mutex_lock(&files->lock);
    files->stats.open--; /* not earlier: the bound is one of descriptors */
    tell(files);
    pthread_mutex_unlock(&files->lock);
}

/* ---- reading ---- */

/* Under the lock, which it gives up while it waits. True: it is open; false: the caller opens it,
 * and has room for that. */
static bool await(struct open_files *files, struct open_file *file, int *victim)
{
    while (file->state != OPEN_FILE_OPEN) {
        if (file->state == OPEN_FILE_CLOSED && has_room(files)) {
            file->state = OPEN_FILE_OPENING;
            take_room(files, victim);
            return false;
        }
        files->stats.waits += file->state == OPEN_FILE_CLOSED;
        files->waiting++;
        pthread_cond_wait(&files->changed, &files->lock);
        files->waiting--;
    }
    return true;
}

int open_files_hold(struct open_files *files, struct open_file *file, open_file_fn *open,
                    void *context)
{
    int victim = -1;
    CHECK(files->class == OPEN_FILES_CLASS);
    pthread_mutex_lock(&files->lock);
    if (!await(files, file, &victim)) {
        files->stats.opened++;
        pthread_mutex_unlock(&files->lock);
        close_fd(files, victim);
        int fd = open(context);
        pthread_mutex_lock(&files->lock);
        file->fd = fd;
        file->state = fd >= 0 ? OPEN_FILE_OPEN : OPEN_FILE_CLOSED;
        files->stats.open -= fd < 0;
        tell(files);
    }
    int fd = file->state == OPEN_FILE_OPEN ? file->fd : -1;
    if (fd >= 0) {
        read_begins(file);
    }
    pthread_mutex_unlock(&files->lock);
    return fd;
}

void open_files_let_go(struct open_files *files, struct open_file *file)
{
    int error = errno;
    CHECK(files->class == OPEN_FILES_CLASS);
    pthread_mutex_lock(&files->lock);
    CHECK(file->state == OPEN_FILE_OPEN && file->readers > 0);
    if (--file->readers == 0) {
        cold_list_add(&files->idle, &file->link);
        tell(files);
    }
    pthread_mutex_unlock(&files->lock);
    errno = error;
}

void open_files_stats(struct open_files *files, struct open_files_stats *stats)
{
    CHECK(files->class == OPEN_FILES_CLASS);
    pthread_mutex_lock(&files->lock);
    *stats = files->stats;
    pthread_mutex_unlock(&files->lock);
}
