/* cold_run.c: a cold over files of a simulated disk. */
#include "tests/unit/store/cold_run.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#define PLACE_BYTES                                                                                \
    (TABLE_FILE_PAGE_BYTES + 100) /* of the cache, a little more than a page takes */

static void gate(void *context, enum vfs_sim_op op, const char *path)
{
    struct run *run = context;
    (void)path;
    if (op != VFS_SIM_PREAD) {
        return;
    }
    pthread_mutex_lock(&run->lock);
    run->at_gate++;
    pthread_cond_broadcast(&run->changed);
    while (run->closed) {
        pthread_cond_wait(&run->changed, &run->lock);
    }
    run->at_gate--;
    pthread_mutex_unlock(&run->lock);
    if (run->take_us > 0) {
        vfs_sim_advance(run->sim, run->take_us);
    }
}

static void count_failure(void *context, const char *error)
{
    struct run *run = context;
    assert_non_null(strstr(error, "page"));
    pthread_mutex_lock(&run->lock);
    run->failures++;
    pthread_mutex_unlock(&run->lock);
}

struct run *run_create(unsigned threads, unsigned queue, uint64_t cache_pages)
{
    struct run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    run->sim = table_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(run->sim);
    for (unsigned i = 0; i < 2; i++) {
        char path[64];
        run->files[i].shape = (struct table_shape){.salt = i + 1, .pages = RUN_PAGES};
        snprintf(path, sizeof(path), "feed-%u.table", i);
        table_write_sound(vfs, path, &run->files[i].shape);
        snprintf(path, sizeof(path), TABLE_DIRECTORY "/feed-%u.table", i);
        run->files[i].file = table_open_sound(vfs, path, true);
    }
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->changed, NULL);
    vfs_sim_counts_clear(run->sim);
    vfs_sim_hook(run->sim, gate, run);
    struct cold_config config = {.vfs = vfs,
                                 .threads = threads,
                                 .queue = queue,
                                 .cache_bytes = cache_pages * PLACE_BYTES,
                                 .first = run_ticket(run, RUN_FIRST),
                                 .failed = count_failure,
                                 .context = run};
    run->cold = cold_create(&config);
    assert_non_null(run->cold);
    return run;
}

void run_destroy(struct run *run)
{
    cold_destroy(run->cold);
    for (unsigned i = 0; i < 2; i++) {
        table_file_close(run->files[i].file);
    }
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    vfs_sim_destroy(run->sim);
    free(run);
}

/* ---- the gate ---- */

static void set_gate(struct run *run, bool closed)
{
    pthread_mutex_lock(&run->lock);
    run->closed = closed;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

void run_close_gate(struct run *run)
{
    set_gate(run, true);
}

void run_open_gate(struct run *run)
{
    set_gate(run, false);
}

void run_wait_at_gate(struct run *run, unsigned reads)
{
    pthread_mutex_lock(&run->lock);
    while (run->at_gate < reads) {
        pthread_cond_wait(&run->changed, &run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

/* ---- tickets ---- */

static void wake(void *target, uint64_t serial)
{
    struct run *run = target;
    pthread_mutex_lock(&run->lock);
    run->wakes[serial]++;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->lock);
}

struct ticket run_ticket(struct run *run, uint64_t serial)
{
    assert_true(serial < RUN_TICKETS);
    return (struct ticket){.wake = wake, .target = run, .serial = serial};
}

enum cold_result run_get_of(struct run *run, unsigned file, uint64_t serial, uint64_t number,
                            char *error)
{
    unsigned char page[TABLE_FILE_PAGE_BYTES], right[TABLE_FILE_PAGE_BYTES];
    char text[TABLE_FILE_ERROR_MAX];
    struct run_file *from = &run->files[file];
    struct ticket ticket = run_ticket(run, serial);
    enum cold_result result =
        cold_get(run->cold, from->file, number, &ticket, page, error ? error : text);
    if (result == COLD_HIT) {
        table_fill_page(&from->shape, number, right);
        assert_memory_equal(page, right, sizeof(right));
    }
    return result;
}

enum cold_result run_get(struct run *run, uint64_t serial, uint64_t number)
{
    return run_get_of(run, 0, serial, number, NULL);
}

void run_release(struct run *run, uint64_t serial)
{
    struct ticket ticket = run_ticket(run, serial);
    cold_release(run->cold, &ticket);
}

void run_wait_woken(struct run *run, uint64_t serial, unsigned times)
{
    pthread_mutex_lock(&run->lock);
    while (run->wakes[serial] < times) {
        pthread_cond_wait(&run->changed, &run->lock);
    }
    assert_int_equal(run->wakes[serial], times);
    pthread_mutex_unlock(&run->lock);
}

unsigned run_wakes(struct run *run, uint64_t serial)
{
    pthread_mutex_lock(&run->lock);
    unsigned wakes = run->wakes[serial];
    pthread_mutex_unlock(&run->lock);
    return wakes;
}

void run_read(struct run *run, uint64_t serial, uint64_t number)
{
    unsigned before = run_wakes(run, serial);
    assert_int_equal(run_get(run, serial, number), COLD_PENDING);
    run_wait_woken(run, serial, before + 1);
    assert_int_equal(run_get(run, serial, number), COLD_HIT);
    run_release(run, serial);
}

uint64_t run_preads(struct run *run)
{
    return vfs_sim_calls(run->sim, VFS_SIM_PREAD, NULL);
}

struct cold_stats run_stats(struct run *run)
{
    struct cold_stats stats;
    cold_check(run->cold);
    cold_stats(run->cold, &stats);
    return stats;
}
