/* sim_journal.c: see sim_journal.h. */
#include "sim_journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Before each call to the disk. */
static void pass_gate(void *context, enum vfs_sim_op op, const char *path)
{
    struct sim_journal *from = context;

    (void)path;
    pthread_mutex_lock(&from->lock);
    while (from->closed[op]) {
        from->waiting++;
        pthread_cond_broadcast(&from->changed);
        pthread_cond_wait(&from->changed, &from->lock);
        from->waiting--;
    }
    pthread_mutex_unlock(&from->lock);
}

void sim_journal_open(struct sim_journal *from, enum journal_sync sync)
{
    char error[JOURNAL_ERROR_MAX];

    memset(from, 0, sizeof(*from));
    from->sim = vfs_sim_create(1);
    pthread_mutex_init(&from->lock, NULL);
    pthread_cond_init(&from->changed, NULL);
    struct vfs *vfs = vfs_sim_vfs(from->sim);
    const struct journal_config config = {
        .vfs = vfs,
        .directory = SIM_JOURNAL_DIRECTORY,
        .segment_bytes = SIM_JOURNAL_SEGMENT_BYTES,
        .buffer_bytes = SIM_JOURNAL_BUFFER_BYTES,
        .sync = sync,
        .epoch = 1,
    };

    assert_int_equal(vfs->functions->mkdir(vfs, SIM_JOURNAL_DIRECTORY), 0);
    from->journal = journal_open(&config, error);
    if (from->journal == NULL) {
        fail_msg("%s", error);
    }
    journal_log_init(&from->log, from->journal);
    vfs_sim_hook(from->sim, pass_gate, from);
}

void sim_journal_close(struct sim_journal *from)
{
    sim_journal_ungate(from);
    journal_log_fini(&from->log);
    journal_close(from->journal);
    vfs_sim_destroy(from->sim);
    pthread_cond_destroy(&from->changed);
    pthread_mutex_destroy(&from->lock);
}

void sim_journal_gate(struct sim_journal *from, enum vfs_sim_op op)
{
    pthread_mutex_lock(&from->lock);
    from->closed[op] = true;
    pthread_mutex_unlock(&from->lock);
}

void sim_journal_await(struct sim_journal *from)
{
    pthread_mutex_lock(&from->lock);
    while (from->waiting == 0) {
        pthread_cond_wait(&from->changed, &from->lock);
    }
    pthread_mutex_unlock(&from->lock);
}

void sim_journal_ungate(struct sim_journal *from)
{
    pthread_mutex_lock(&from->lock);
    memset(from->closed, 0, sizeof(from->closed));
    pthread_cond_broadcast(&from->changed);
    pthread_mutex_unlock(&from->lock);
}

void sim_journal_break(struct sim_journal *from)
{
    static const enum vfs_sim_op ops[] = {VFS_SIM_OPEN, VFS_SIM_PWRITE, VFS_SIM_FDATASYNC,
                                          VFS_SIM_ALLOCATE, VFS_SIM_RENAME};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        const struct vfs_sim_fault fault = {.op = ops[i], .kind = VFS_SIM_FAIL, .error = EIO};

        vfs_sim_fault(from->sim, &fault);
    }
}
