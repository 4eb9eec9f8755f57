/*
 * vfs_sim.c: the calls of a simulated file system.
 *
 * Every call has one shape: begin_fd() or begin_path() finds its object, counts it, gives the hook
 * its chance and draws a fault; true means the mutex is held and the call is to be carried out;
 * leave() or refuse() ends it.
 */
#include "tests/support/vfs_sim_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define GROW_BY 64

struct call {
    struct sim_process *process;
    struct vfs_sim *sim;
    enum vfs_sim_op op;
    unsigned path;
    char known[VFS_PATH_MAX];   /* of a call by path */
    struct vfs_sim_fault fault; /* error 0: none */
    struct sim_open *open;      /* of a call by descriptor */
};

/* ---- descriptors ---- */

static int open_add(struct vfs_sim *sim, struct sim_node *node, int flags)
{
    if (sim->opens_count == sim->opens_capacity) {
        size_t capacity = sim->opens_capacity + GROW_BY;
        sim->opens = sim_grow(sim->opens, sim->opens_capacity * sizeof(*sim->opens),
                              capacity * sizeof(*sim->opens));
        sim->opens_capacity = capacity;
    }
    sim->opens[sim->opens_count] = (struct sim_open){node, flags};
    node->opened++;
    return SIM_FD_FIRST + (int)sim->opens_count++;
}

struct sim_open *vfs_sim_find_open(struct vfs_sim *sim, int fd)
{
    if (fd < SIM_FD_FIRST || (size_t)(fd - SIM_FD_FIRST) >= sim->opens_count) {
        return NULL;
    }
    struct sim_open *open = &sim->opens[fd - SIM_FD_FIRST];
    return open->node ? open : NULL;
}

void vfs_sim_close_open(struct vfs_sim *sim, int fd)
{
    struct sim_open *open = vfs_sim_find_open(sim, fd);
    CHECK(open && open->node->opened > 0);
    if (open->node->lock_fd == fd) {
        open->node->lock_fd = -1;
    }
    open->node->opened--;
    open->node = NULL;
}

/* ---- the frame of a call ---- */

static int64_t leave(struct call *call, int64_t result)
{
    CHECK(pthread_mutex_unlock(&call->sim->mutex) == 0);
    return result;
}

static int refuse(struct call *call, int error)
{
    leave(call, -1);
    errno = error;
    return -1;
}

/* The same where a call begins. */
static bool deny(struct call *call, int error)
{
    refuse(call, error);
    return false;
}

static bool begin(struct call *call, struct vfs *vfs, enum vfs_sim_op op)
{
    call->process = (struct sim_process *)vfs;
    call->sim = call->process->sim;
    call->op = op;
    call->open = NULL;
    call->fault = (struct vfs_sim_fault){0};
    CHECK(pthread_mutex_lock(&call->sim->mutex) == 0);
    return call->process == call->sim->processes || deny(call, EBADF);
}

/* Gives way to the hook. False: the process has ended meanwhile. */
static bool pass_hook(struct call *call)
{
    struct vfs_sim *sim = call->sim;
    vfs_sim_hook_fn *hook = sim->hook;
    void *context = sim->hook_context;
    const char *path = sim->paths[call->path].text;
    if (!hook) {
        return true;
    }
    CHECK(pthread_mutex_unlock(&sim->mutex) == 0);
    hook(context, call->op, path);
    CHECK(pthread_mutex_lock(&sim->mutex) == 0);
    return call->process == sim->processes || deny(call, EBADF);
}

static bool enter(struct call *call)
{
    call->sim->paths[call->path].calls[call->op]++;
    if (!pass_hook(call)) {
        return false;
    }
    const struct vfs_sim_fault *fault = vfs_sim_draw_fault(call->sim, call->op, call->path);
    if (!fault) {
        return true;
    }
    call->fault = *fault;
    bool fails = fault->kind == VFS_SIM_FAIL && call->op != VFS_SIM_CLOSE;
    return !fails || deny(call, fault->error);
}

static bool begin_fd(struct call *call, struct vfs *vfs, enum vfs_sim_op op, int fd)
{
    if (!begin(call, vfs, op)) {
        return false;
    }
    call->open = vfs_sim_find_open(call->sim, fd);
    if (!call->open) {
        return deny(call, EBADF);
    }
    call->path = call->open->node->path;
    if (!enter(call)) {
        return false;
    }
    call->open = vfs_sim_find_open(call->sim, fd); /* another thread may have closed it */
    return call->open || deny(call, EBADF);
}

static bool begin_path(struct call *call, struct vfs *vfs, enum vfs_sim_op op, const char *path)
{
    if (!begin(call, vfs, op)) {
        return false;
    }
    if (!sim_disk_path(path, call->known)) {
        return deny(call, ENAMETOOLONG);
    }
    call->path = vfs_sim_path(call->sim, call->known);
    return enter(call);
}

static void count_bytes(struct call *call, size_t bytes)
{
    call->sim->paths[call->path].bytes[call->op] += bytes;
}

/* ---- calls by descriptor ---- */

static int sim_close(struct vfs *vfs, int fd)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_CLOSE, fd)) {
        return -1;
    }
    vfs_sim_close_open(call.sim, fd);
    sim_disk_clean(&call.sim->disk);
    bool fails = call.fault.kind == VFS_SIM_FAIL && call.fault.error;
    return fails ? refuse(&call, call.fault.error) : (int)leave(&call, 0);
}

/* What is wrong with a transfer; 0: nothing. */
static int transfer_error(const struct call *call, const void *memory, size_t bytes,
                          uint64_t offset)
{
    int access = call->open->flags & O_ACCMODE;
    if (!call->open->node->file) {
        return EISDIR;
    }
    if (access == (call->op == VFS_SIM_PREAD ? O_WRONLY : O_RDONLY)) {
        return EBADF;
    }
    if (offset > INT64_MAX || bytes > (uint64_t)INT64_MAX - offset) {
        return EINVAL;
    }
    bool aligned = ((uintptr_t)memory | bytes | offset) % SIM_BLOCK_BYTES == 0;
    return (call->open->flags & O_DIRECT) && !aligned ? EINVAL : 0;
}

static size_t transfer_bytes(const struct call *call, size_t bytes)
{
    return call->fault.kind == VFS_SIM_SHORT && call->fault.bytes < bytes ? call->fault.bytes
                                                                          : bytes;
}

static ssize_t sim_pread(struct vfs *vfs, int fd, void *to, size_t bytes, uint64_t offset)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_PREAD, fd)) {
        return -1;
    }
    int error = transfer_error(&call, to, bytes, offset);
    if (error) {
        return refuse(&call, error);
    }
    bool direct = call.open->flags & O_DIRECT;
    size_t got = (direct ? sim_file_read_disk : sim_file_read)(
        call.open->node->file, to, transfer_bytes(&call, bytes), offset);
    count_bytes(&call, got);
    return leave(&call, (int64_t)got);
}

/* How far the file may reach: what it has, and what the disk has room for. */
static uint64_t reach(const struct call *call, uint64_t end)
{
    uint64_t room = sim_file_room(call->open->node->file);
    if (end <= room || call->sim->capacity == UINT64_MAX) {
        return end;
    }
    uint64_t used = sim_disk_used(&call->sim->disk);
    uint64_t left = used < call->sim->capacity ? call->sim->capacity - used : 0;
    uint64_t most = room + left / SIM_BLOCK_BYTES * SIM_BLOCK_BYTES;
    return end < most ? end : most;
}

static ssize_t sim_pwrite(struct vfs *vfs, int fd, const void *from, size_t bytes, uint64_t offset)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_PWRITE, fd)) {
        return -1;
    }
    int error = transfer_error(&call, from, bytes, offset);
    if (error) {
        return refuse(&call, error);
    }
    if (call.fault.kind == VFS_SIM_LOSE) {
        return leave(&call, (int64_t)bytes);
    }
    size_t put = transfer_bytes(&call, bytes);
    if (put == 0) {
        return leave(&call, 0);
    }
    uint64_t end = reach(&call, offset + put);
    if (end <= offset) {
        return refuse(&call, ENOSPC);
    }
    put = (size_t)(end - offset);
    sim_file_write(call.open->node->file, from, put, offset);
    count_bytes(&call, put);
    return leave(&call, (int64_t)put);
}

static int sim_fdatasync(struct vfs *vfs, int fd)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_FDATASYNC, fd)) {
        return -1;
    }
    struct sim_file *file = call.open->node->file;
    if (!file) {
        return refuse(&call, EINVAL); /* directories have sync_dir */
    }
    bool partly = call.fault.kind == VFS_SIM_SYNC_PARTLY_LOST;
    if (partly || call.fault.kind == VFS_SIM_SYNC_LOST) {
        sim_file_lose(file, &call.sim->random, partly);
        return refuse(&call, call.fault.error);
    }
    sim_file_sync(file);
    return (int)leave(&call, 0);
}

static int sim_writeback(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes)
{
    (void)offset;
    (void)bytes;
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_WRITEBACK, fd)) {
        return -1;
    }
    return (int)leave(&call, 0); /* advice: it promises nothing */
}

/* All of it is in memory. The system takes any range; none of ours has a use beyond the end. */
static int sim_readahead(struct vfs *vfs, int fd, uint64_t offset, uint64_t bytes)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_READAHEAD, fd)) {
        return -1;
    }
    struct sim_file *file = call.open->node->file;
    if (!file || bytes > sim_file_size(file) || offset > sim_file_size(file) - bytes) {
        return refuse(&call, EINVAL);
    }
    count_bytes(&call, bytes);
    return (int)leave(&call, 0);
}

/* What is wrong with a change of size; 0: nothing. */
static int resize_error(const struct call *call, uint64_t bytes)
{
    if (!call->open->node->file || bytes > INT64_MAX) {
        return EINVAL;
    }
    return (call->open->flags & O_ACCMODE) == O_RDONLY ? EBADF : 0;
}

static int sim_allocate(struct vfs *vfs, int fd, uint64_t bytes)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_ALLOCATE, fd)) {
        return -1;
    }
    int error = resize_error(&call, bytes);
    if (!error && bytes == 0) {
        error = EINVAL;
    }
    if (!error && reach(&call, bytes) < bytes) {
        error = ENOSPC;
    }
    if (error) {
        return refuse(&call, error);
    }
    sim_file_allocate(call.open->node->file, bytes);
    return (int)leave(&call, 0);
}

static int sim_truncate(struct vfs *vfs, int fd, uint64_t bytes)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_TRUNCATE, fd)) {
        return -1;
    }
    int error = resize_error(&call, bytes);
    if (error) {
        return refuse(&call, error);
    }
    sim_file_resize(call.open->node->file, bytes);
    return (int)leave(&call, 0);
}

static int64_t sim_size(struct vfs *vfs, int fd)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_SIZE, fd)) {
        return -1;
    }
    struct sim_file *file = call.open->node->file;
    return leave(&call, file ? (int64_t)sim_file_size(file) : 0);
}

static int sim_lock(struct vfs *vfs, int fd)
{
    struct call call;
    if (!begin_fd(&call, vfs, VFS_SIM_LOCK, fd)) {
        return -1;
    }
    struct sim_node *node = call.open->node;
    if (node->lock_fd >= 0 && node->lock_fd != fd) {
        return refuse(&call, EWOULDBLOCK);
    }
    node->lock_fd = fd;
    return (int)leave(&call, 0);
}

/* ---- calls by path ---- */

/* Why a place cannot be opened; 0: it can. */
static int open_error(const struct call *call, const struct sim_place *place, int flags)
{
    const struct sim_node *node = place->node;
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
    if ((flags & O_DIRECT) && !call->sim->direct) {
        return EINVAL;
    }
    if (!node) {
        return flags & O_CREAT ? 0 : ENOENT;
    }
    if ((flags & O_CREAT) && (flags & O_EXCL)) {
        return EEXIST;
    }
    if (!node->file && (writes || (flags & O_CREAT))) {
        return EISDIR;
    }
    return node->file && (flags & O_DIRECTORY) ? ENOTDIR : 0;
}

static int sim_open(struct vfs *vfs, const char *path, int flags)
{
    struct call call;
    struct sim_place place;
    if (!begin_path(&call, vfs, VFS_SIM_OPEN, path)) {
        return -1;
    }
    if (!sim_disk_find(&call.sim->disk, call.known, &place)) {
        return refuse(&call, errno);
    }
    int error = open_error(&call, &place, flags);
    if (error) {
        return refuse(&call, error);
    }
    if (!place.node) {
        place.node = sim_disk_add(&call.sim->disk, &place, false);
    } else if (flags & O_TRUNC) {
        sim_file_resize(place.node->file, 0);
    }
    place.node->path = call.path;
    return (int)leave(&call, open_add(call.sim, place.node, flags));
}

/* A rename stays in its directory, a link leaves it. */
static int name_again(struct vfs *vfs, enum vfs_sim_op op, const char *from, const char *to)
{
    struct call call;
    struct sim_place old, new;
    char known[VFS_PATH_MAX];
    bool links = op == VFS_SIM_LINK;
    if (!begin_path(&call, vfs, op, to)) {
        return -1;
    }
    if (!sim_disk_path(from, known) || !sim_disk_find(&call.sim->disk, known, &old) ||
        !sim_disk_find(&call.sim->disk, call.known, &new)) {
        return refuse(&call, errno);
    }
    if (!old.node || (links && new.node)) {
        return refuse(&call, old.node ? EEXIST : ENOENT);
    }
    if (!old.node->file || (new.node && !new.node->file)) {
        return refuse(&call, EISDIR);
    }
    if ((old.parent == new.parent) == links) {
        return refuse(&call, links ? EPERM : EXDEV);
    }
    if (old.node != new.node) {
        sim_names_change(&new.parent->names, links ? NULL : old.name, new.name, old.node);
        old.node->path = call.path;
    }
    return (int)leave(&call, 0);
}

static int sim_rename(struct vfs *vfs, const char *from, const char *to)
{
    return name_again(vfs, VFS_SIM_RENAME, from, to);
}

static int sim_link(struct vfs *vfs, const char *from, const char *to)
{
    return name_again(vfs, VFS_SIM_LINK, from, to);
}

static int sim_unlink(struct vfs *vfs, const char *path)
{
    struct call call;
    struct sim_place place;
    if (!begin_path(&call, vfs, VFS_SIM_UNLINK, path)) {
        return -1;
    }
    if (!sim_disk_find(&call.sim->disk, call.known, &place)) {
        return refuse(&call, errno);
    }
    if (!place.node || !place.node->file) {
        return refuse(&call, place.node ? EISDIR : ENOENT);
    }
    sim_names_change(&place.parent->names, place.name, NULL, place.node);
    return (int)leave(&call, 0);
}

static int sim_mkdir(struct vfs *vfs, const char *path)
{
    struct call call;
    struct sim_place place;
    if (!begin_path(&call, vfs, VFS_SIM_MKDIR, path)) {
        return -1;
    }
    if (!sim_disk_find(&call.sim->disk, call.known, &place)) {
        return refuse(&call, errno);
    }
    if (place.node) {
        return refuse(&call, EEXIST);
    }
    sim_disk_add(&call.sim->disk, &place, true)->path = call.path;
    return (int)leave(&call, 0);
}

/* Begins a call on a directory that must exist. */
static struct sim_node *begin_directory(struct call *call, struct vfs *vfs, enum vfs_sim_op op,
                                        const char *path)
{
    struct sim_place place;
    if (!begin_path(call, vfs, op, path)) {
        return NULL;
    }
    if (!sim_disk_find(&call->sim->disk, call->known, &place)) {
        refuse(call, errno);
        return NULL;
    }
    if (!place.node || place.node->file) {
        refuse(call, place.node ? ENOTDIR : ENOENT);
        return NULL;
    }
    return place.node;
}

static int sim_mode(struct vfs *vfs, const char *path)
{
    struct call call;
    struct sim_place place;
    if (!begin(&call, vfs, VFS_SIM_OPEN)) { /* counted as nothing: no file is touched */
        return -1;
    }
    if (!sim_disk_path(path, call.known) || !sim_disk_find(&call.sim->disk, call.known, &place) ||
        !place.node) {
        return refuse(&call, ENOENT);
    }
    return (int)leave(&call, 0700); /* all are whose process it is */
}

static int sim_sync_dir(struct vfs *vfs, const char *path)
{
    struct call call;
    struct sim_node *directory = begin_directory(&call, vfs, VFS_SIM_SYNC_DIR, path);
    if (!directory) {
        return -1;
    }
    sim_names_sync(&directory->names);
    sim_disk_clean(&call.sim->disk);
    return (int)leave(&call, 0);
}

/* Copies of the names in an order of chance. */
static char **copy_names(const struct sim_map *map, struct test_random *random)
{
    char **names = sim_grow(NULL, 0, map->count * sizeof(*names));
    for (size_t i = 0; i < map->count; i++) {
        size_t at = test_random_below(random, i + 1);
        names[i] = names[at];
        names[at] = strdup(map->names[i].text);
        CHECK(names[at] != NULL);
    }
    return names;
}

static int sim_list(struct vfs *vfs, const char *path, vfs_entry_fn *entry, void *context)
{
    struct call call;
    struct sim_node *directory = begin_directory(&call, vfs, VFS_SIM_LIST, path);
    if (!directory) {
        return -1;
    }
    size_t count = directory->names.current.count;
    char **names = copy_names(&directory->names.current, &call.sim->random);
    leave(&call, 0);
    for (size_t i = 0; i < count; i++) { /* with nothing locked: it may call back here */
        entry(context, names[i]);
        free(names[i]);
    }
    free(names);
    return 0;
}

static uint64_t sim_now_us(struct vfs *vfs)
{
    struct vfs_sim *sim = ((struct sim_process *)vfs)->sim;
    CHECK(pthread_mutex_lock(&sim->mutex) == 0);
    uint64_t now = sim->clock_set ? sim->clock_us : clock_monotonic_us();
    CHECK(pthread_mutex_unlock(&sim->mutex) == 0);
    return now;
}

static uint64_t sim_boot(struct vfs *vfs)
{
    struct vfs_sim *sim = ((struct sim_process *)vfs)->sim;
    CHECK(pthread_mutex_lock(&sim->mutex) == 0);
    uint64_t boot = sim->boot_unknown ? 0 : sim->boots + 1;
    CHECK(pthread_mutex_unlock(&sim->mutex) == 0);
    return boot;
}

const struct vfs_functions vfs_sim_functions = {
    .open = sim_open,
    .close = sim_close,
    .pread = sim_pread,
    .pwrite = sim_pwrite,
    .fdatasync = sim_fdatasync,
    .writeback = sim_writeback,
    .readahead = sim_readahead,
    .allocate = sim_allocate,
    .truncate = sim_truncate,
    .size = sim_size,
    .rename = sim_rename,
    .link = sim_link,
    .unlink = sim_unlink,
    .mkdir = sim_mkdir,
    .mode = sim_mode,
    .sync_dir = sim_sync_dir,
    .list = sim_list,
    .lock = sim_lock,
    .now_us = sim_now_us,
    .free_bytes = vfs_sim_free_bytes,
    .boot = sim_boot,
};
