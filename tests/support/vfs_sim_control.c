/* vfs_sim_control.c: what a test sets and asks of a simulated file system. */
#include "tests/support/vfs_sim_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define GROW_BY 64

static void lock(struct vfs_sim *sim)
{
    CHECK(pthread_mutex_lock(&sim->mutex) == 0);
}

static void unlock(struct vfs_sim *sim)
{
    CHECK(pthread_mutex_unlock(&sim->mutex) == 0);
}

struct vfs_sim *vfs_sim_create(uint64_t seed)
{
    struct vfs_sim *sim = sim_grow(NULL, 0, sizeof(*sim));
    CHECK(pthread_mutex_init(&sim->mutex, NULL) == 0);
    sim->random.state = seed;
    sim->capacity = UINT64_MAX;
    sim->direct = true;
    sim_disk_init(&sim->disk);
    vfs_sim_process_start(sim);
    return sim;
}

void vfs_sim_destroy(struct vfs_sim *sim)
{
    if (!sim) {
        return;
    }
    sim_disk_fini(&sim->disk);
    while (sim->processes) {
        struct sim_process *process = sim->processes;
        sim->processes = process->next;
        free(process);
    }
    for (size_t i = 0; i < sim->paths_count; i++) {
        free(sim->paths[i].text);
    }
    for (size_t i = 0; i < sim->rules_count; i++) {
        free(sim->rules[i].path);
    }
    free(sim->paths);
    free(sim->rules);
    free(sim->opens);
    pthread_mutex_destroy(&sim->mutex);
    free(sim);
}

struct vfs *vfs_sim_vfs(struct vfs_sim *sim)
{
    lock(sim);
    struct vfs *vfs = &sim->processes->vfs;
    unlock(sim);
    return vfs;
}

const char *vfs_sim_op_name(enum vfs_sim_op op)
{
    static const char *const names[VFS_SIM_OPS + 1] = {
        [VFS_SIM_OPEN] = "open",           [VFS_SIM_CLOSE] = "close",
        [VFS_SIM_PREAD] = "pread",         [VFS_SIM_PWRITE] = "pwrite",
        [VFS_SIM_FDATASYNC] = "fdatasync", [VFS_SIM_WRITEBACK] = "writeback",
        [VFS_SIM_READAHEAD] = "readahead", [VFS_SIM_ALLOCATE] = "allocate",
        [VFS_SIM_TRUNCATE] = "truncate",   [VFS_SIM_SIZE] = "size",
        [VFS_SIM_RENAME] = "rename",       [VFS_SIM_LINK] = "link",
        [VFS_SIM_UNLINK] = "unlink",       [VFS_SIM_MKDIR] = "mkdir",
        [VFS_SIM_SYNC_DIR] = "sync_dir",   [VFS_SIM_LIST] = "list",
        [VFS_SIM_LOCK] = "lock",           [VFS_SIM_ANY] = "any",
    };
    CHECK(op <= VFS_SIM_ANY);
    return names[op];
}

struct sim_process *vfs_sim_process_start(struct vfs_sim *sim)
{
    struct sim_process *process = sim_grow(NULL, 0, sizeof(*process));
    process->vfs.functions = &vfs_sim_functions;
    process->sim = sim;
    process->next = sim->processes;
    sim->processes = process;
    return process;
}

/* The present process is no more; the next one begins. */
static void end_process(struct vfs_sim *sim)
{
    for (size_t i = 0; i < sim->opens_count; i++) {
        if (sim->opens[i].node) {
            vfs_sim_close_open(sim, SIM_FD_FIRST + (int)i);
        }
    }
    sim_disk_clean(&sim->disk);
    vfs_sim_process_start(sim);
}

void vfs_sim_power_cut(struct vfs_sim *sim, uint64_t seed)
{
    lock(sim);
    end_process(sim);
    struct test_random random = {seed};
    sim_disk_cut(&sim->disk, &random);
    sim->boots++;
    sim->boot_unknown = false;
    unlock(sim);
}

void vfs_sim_kill(struct vfs_sim *sim)
{
    lock(sim);
    end_process(sim);
    unlock(sim);
}

/* ---- paths and counters ---- */

unsigned vfs_sim_path(struct vfs_sim *sim, const char *known)
{
    for (size_t i = 0; i < sim->paths_count; i++) {
        if (strcmp(sim->paths[i].text, known) == 0) {
            return (unsigned)i;
        }
    }
    if (sim->paths_count == sim->paths_capacity) {
        size_t capacity = sim->paths_capacity + GROW_BY;
        sim->paths = sim_grow(sim->paths, sim->paths_capacity * sizeof(*sim->paths),
                              capacity * sizeof(*sim->paths));
        sim->paths_capacity = capacity;
    }
    sim->paths[sim->paths_count].text = strdup(known);
    CHECK(sim->paths[sim->paths_count].text != NULL);
    return (unsigned)sim->paths_count++;
}

static bool is_on(const char *text, const char *part)
{
    return !part || strstr(text, part) != NULL;
}

static uint64_t sum(const uint64_t figures[VFS_SIM_OPS], enum vfs_sim_op op)
{
    if (op != VFS_SIM_ANY) {
        return figures[op];
    }
    uint64_t total = 0;
    for (int i = 0; i < VFS_SIM_OPS; i++) {
        total += figures[i];
    }
    return total;
}

uint64_t vfs_sim_calls(struct vfs_sim *sim, enum vfs_sim_op op, const char *path)
{
    uint64_t total = 0;
    lock(sim);
    for (size_t i = 0; i < sim->paths_count; i++) {
        total += is_on(sim->paths[i].text, path) ? sum(sim->paths[i].calls, op) : 0;
    }
    unlock(sim);
    return total;
}

uint64_t vfs_sim_bytes(struct vfs_sim *sim, enum vfs_sim_op op, const char *path)
{
    uint64_t total = 0;
    lock(sim);
    for (size_t i = 0; i < sim->paths_count; i++) {
        total += is_on(sim->paths[i].text, path) ? sum(sim->paths[i].bytes, op) : 0;
    }
    unlock(sim);
    return total;
}

void vfs_sim_counts_clear(struct vfs_sim *sim)
{
    lock(sim);
    for (size_t i = 0; i < sim->paths_count; i++) {
        memset(sim->paths[i].calls, 0, sizeof(sim->paths[i].calls));
        memset(sim->paths[i].bytes, 0, sizeof(sim->paths[i].bytes));
    }
    unlock(sim);
}

/* ---- faults ---- */

unsigned vfs_sim_fault(struct vfs_sim *sim, const struct vfs_sim_fault *fault)
{
    CHECK(fault->op <= VFS_SIM_ANY);
    lock(sim);
    unsigned number = (unsigned)sim->rules_count++;
    sim->rules =
        sim_grow(sim->rules, number * sizeof(*sim->rules), sim->rules_count * sizeof(*sim->rules));
    struct sim_rule *rule = &sim->rules[number];
    rule->fault = *fault;
    rule->fault.error = fault->error ? fault->error : EIO;
    rule->path = fault->path ? strdup(fault->path) : NULL;
    CHECK(!fault->path || rule->path);
    rule->fault.path = rule->path;
    unlock(sim);
    return number;
}

uint64_t vfs_sim_fault_hits(struct vfs_sim *sim, unsigned number)
{
    lock(sim);
    CHECK(number < sim->rules_count);
    uint64_t hits = sim->rules[number].hits;
    unlock(sim);
    return hits;
}

void vfs_sim_fault_end(struct vfs_sim *sim, unsigned number)
{
    lock(sim);
    CHECK(number < sim->rules_count);
    sim->rules[number].ended = true;
    unlock(sim);
}

void vfs_sim_faults_end(struct vfs_sim *sim)
{
    lock(sim);
    for (size_t i = 0; i < sim->rules_count; i++) {
        sim->rules[i].ended = true;
    }
    unlock(sim);
}

static bool rule_hits(struct vfs_sim *sim, struct sim_rule *rule, enum vfs_sim_op op,
                      const char *path)
{
    const struct vfs_sim_fault *fault = &rule->fault;
    if (rule->ended || (fault->op != op && fault->op != VFS_SIM_ANY) || !is_on(path, rule->path)) {
        return false;
    }
    if (++rule->matched < fault->first || (fault->times > 0 && rule->hits >= fault->times)) {
        return false;
    }
    return fault->one_in == 0 || test_random_once_in(&sim->random, fault->one_in);
}

const struct vfs_sim_fault *vfs_sim_draw_fault(struct vfs_sim *sim, enum vfs_sim_op op,
                                               unsigned path)
{
    for (size_t i = 0; i < sim->rules_count; i++) {
        if (rule_hits(sim, &sim->rules[i], op, sim->paths[path].text)) {
            sim->rules[i].hits++;
            return &sim->rules[i].fault;
        }
    }
    return NULL;
}

/* ---- the rest ---- */

void vfs_sim_set_capacity(struct vfs_sim *sim, uint64_t bytes)
{
    lock(sim);
    sim->capacity = bytes;
    unlock(sim);
}

uint64_t vfs_sim_used(struct vfs_sim *sim)
{
    lock(sim);
    uint64_t used = sim_disk_used(&sim->disk);
    unlock(sim);
    return used;
}

uint64_t vfs_sim_free_bytes(struct vfs *vfs, const char *path, uint64_t *all)
{
    struct vfs_sim *sim = ((struct sim_process *)vfs)->sim;
    (void)path;
    lock(sim);
    uint64_t used = sim_disk_used(&sim->disk);
    uint64_t bytes = sim->capacity > used ? sim->capacity - used : 0;
    *all = sim->capacity;
    unlock(sim);
    return bytes;
}

bool vfs_sim_flip(struct vfs_sim *sim, const char *path, uint64_t offset, unsigned bit)
{
    char known[VFS_PATH_MAX];
    struct sim_place place;
    lock(sim);
    bool done = sim_disk_path(path, known) && sim_disk_find(&sim->disk, known, &place) &&
                place.node && place.node->file && sim_file_flip(place.node->file, offset, bit);
    unlock(sim);
    return done;
}

void vfs_sim_set_direct(struct vfs_sim *sim, bool can)
{
    lock(sim);
    sim->direct = can;
    unlock(sim);
}

void vfs_sim_hook(struct vfs_sim *sim, vfs_sim_hook_fn *hook, void *context)
{
    lock(sim);
    sim->hook = hook;
    sim->hook_context = context;
    unlock(sim);
}

void vfs_sim_forget_boot(struct vfs_sim *sim)
{
    lock(sim);
    sim->boot_unknown = true;
    unlock(sim);
}

void vfs_sim_set_clock(struct vfs_sim *sim, uint64_t us)
{
    lock(sim);
    sim->clock_set = true;
    sim->clock_us = us;
    unlock(sim);
}

void vfs_sim_advance(struct vfs_sim *sim, uint64_t us)
{
    lock(sim);
    if (!sim->clock_set) {
        sim->clock_set = true;
        sim->clock_us = clock_monotonic_us();
    }
    sim->clock_us += us;
    unlock(sim);
}
