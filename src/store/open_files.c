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
    struct open_files *files = memory_zalloc(sizeof(*files));
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

/* ---- under the lock ---- */

/* All that wait look again: there are more readers than descriptors, and any of them may go on. */
static void open_files_tell(struct open_files *files)
{
    if (files->waiting > 0) {
        pthread_cond_broadcast(&files->changed);
    }
}

static bool open_files_has_room(const struct open_files *files)
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
    CHECK(oldest->open && oldest->readers == 0);
    cold_list_remove(&oldest->link);
    oldest->open = false;
    *victim = oldest->fd;
}

static void install(struct open_file *file, int fd)
{
    file->open = true;
    file->fd = fd;
    file->readers = 0;
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
    CHECK(!file->open);
    if (open_files_has_room(files)) {
        take_room(files, &victim);
        install(file, fd);
        cold_list_add(&files->idle, &file->link);
        open_files_tell(files);
    }
    pthread_mutex_unlock(&files->lock);
    vfs_close(files->vfs, victim);
}

/* What nobody uses is closed; not counted as closed earlier, as the bound is one of descriptors. */
static void open_files_close_counted(struct open_files *files, int fd)
{
    vfs_close(files->vfs, fd);
    pthread_mutex_lock(&files->lock);
    files->stats.open--;
    open_files_tell(files);
    pthread_mutex_unlock(&files->lock);
}

void open_files_remove(struct open_files *files, struct open_file *file)
{
    CHECK(files->class == OPEN_FILES_CLASS);
    pthread_mutex_lock(&files->lock);
    bool open = file->open;
    CHECK(!open || file->readers == 0);
    if (open) {
        cold_list_remove(&file->link);
        file->open = false;
    }
    pthread_mutex_unlock(&files->lock);
    if (open) {
        open_files_close_counted(files, file->fd);
    }
}

/* ---- reading ---- */

/* Under the lock, which it gives up while it waits. True: it is open; false: there is room to open
 * it, and that is the caller's. */
static bool await(struct open_files *files, const struct open_file *file, int *victim)
{
    while (!file->open && !open_files_has_room(files)) {
        files->stats.waits++;
        files->waiting++;
        pthread_cond_wait(&files->changed, &files->lock);
        files->waiting--;
    }
    if (!file->open) {
        files->stats.opened++;
        take_room(files, victim);
    }
    return file->open;
}

/* False with *fd: the caller has opened it, or could not (-1). */
static bool find_open(struct open_files *files, struct open_file *file, open_file_fn *open,
                      void *context, int *fd)
{
    int victim = -1;
    pthread_mutex_lock(&files->lock);
    bool found = await(files, file, &victim);
    if (found) {
        read_begins(file);
        *fd = file->fd;
    }
    pthread_mutex_unlock(&files->lock);
    if (!found) {
        vfs_close(files->vfs, victim);
        *fd = open(context);
    }
    return found;
}

int open_files_hold(struct open_files *files, struct open_file *file, open_file_fn *open,
                    void *context)
{
    int fd = -1;
    CHECK(files->class == OPEN_FILES_CLASS);
    if (find_open(files, file, open, context, &fd)) {
        return fd;
    }
    pthread_mutex_lock(&files->lock);
    if (fd < 0) {
        files->stats.open--;
    } else if (!file->open) { /* else another one was faster, and this is for one read */
        install(file, fd);
        read_begins(file);
    }
    open_files_tell(files);
    pthread_mutex_unlock(&files->lock);
    return fd;
}

void open_files_let_go(struct open_files *files, struct open_file *file, int fd)
{
    int error = errno;
    CHECK(files->class == OPEN_FILES_CLASS);
    pthread_mutex_lock(&files->lock);
    bool shared = file->open && file->fd == fd;
    if (shared && --file->readers == 0) {
        cold_list_add(&files->idle, &file->link);
        open_files_tell(files);
    }
    pthread_mutex_unlock(&files->lock);
    if (!shared) {
        open_files_close_counted(files, fd);
    }
    errno = error;
}

void open_files_stats(struct open_files *files, struct open_files_stats *stats)
{
    CHECK(files->class == OPEN_FILES_CLASS);
    pthread_mutex_lock(&files->lock);
    *stats = files->stats;
    pthread_mutex_unlock(&files->lock);
}
