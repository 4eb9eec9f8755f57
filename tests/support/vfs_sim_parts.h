/*
 * vfs_sim_parts.h: what the two halves of vfs_sim share: vfs_sim.c carries out the calls,
 * vfs_sim_control.c is what a test sets and asks. Included by these two only.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_VFS_SIM_PARTS_H
#define ROLLCALL_TESTS_SUPPORT_VFS_SIM_PARTS_H

#include <pthread.h>

#include "tests/support/sim_disk.h"
#include "tests/support/vfs_sim.h"

/* A process: its calls count while it is the present one. */
struct sim_process {
    struct vfs vfs; /* first: the functions get a pointer to it */
    struct vfs_sim *sim;
    struct sim_process *next;
};

struct sim_open {
    struct sim_node *node; /* NULL: closed */
    int flags;
};

/* A path ever seen; never freed before the end, so hooks may keep it. */
struct sim_path {
    char *text;
    uint64_t calls[VFS_SIM_OPS];
    uint64_t bytes[VFS_SIM_OPS];
};

struct sim_rule {
    struct vfs_sim_fault fault;
    char *path;
    uint64_t matched, hits;
    bool ended;
};

struct vfs_sim {
    pthread_mutex_t mutex; /* guards all below */
    struct test_random random;
    struct sim_disk disk;
    uint64_t capacity;
    bool direct;
    struct sim_process *processes; /* the first is the present one */
    struct sim_open *opens;        /* index = fd - SIM_FD_FIRST */
    size_t opens_count, opens_capacity;
    struct sim_path *paths;
    size_t paths_count, paths_capacity;
    struct sim_rule *rules;
    size_t rules_count;
    vfs_sim_hook_fn *hook;
    void *hook_context;
    uint64_t boots; /* power cuts */
    bool boot_unknown;
    bool clock_set;
    uint64_t clock_us;
};

#define SIM_FD_FIRST (1 << 20) /* none of the system's: one that strays there does no harm */

extern const struct vfs_functions vfs_sim_functions;

/* A function of the table, which takes the mutex. */
uint64_t vfs_sim_free_bytes(struct vfs *vfs, const char *path, uint64_t *all);

/* All with the mutex held. */
struct sim_process *vfs_sim_process_start(struct vfs_sim *sim);
unsigned vfs_sim_path(struct vfs_sim *sim, const char *known);   /* its number */
struct sim_open *vfs_sim_find_open(struct vfs_sim *sim, int fd); /* NULL: EBADF */
void vfs_sim_close_open(struct vfs_sim *sim, int fd);
/* The fault that hits this call; NULL: none. Valid while the mutex is held. */
const struct vfs_sim_fault *vfs_sim_draw_fault(struct vfs_sim *sim, enum vfs_sim_op op,
                                               unsigned path);

#endif
