/*
 * sim_disk.h: files and directories in memory, each with what a program sees of it and with what
 * would be left after a power cut. The part of vfs_sim that knows nothing of descriptors, faults
 * and threads; used by vfs_sim*.c only.
 *
 * A file is one run of bytes, the latest; a sector that is not durable keeps its durable version
 * and some of those between beside it, so that a sync only forgets. A directory keeps the names as
 * seen, those that are durable, and the changes since in their order.
 *
 * Thread rule: none of its own; the caller holds a lock.
 */
#ifndef ROLLCALL_TESTS_SUPPORT_SIM_DISK_H
#define ROLLCALL_TESTS_SUPPORT_SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/vfs.h"
#include "tests/support/random.h"

#define SIM_SECTOR_BYTES 512
#define SIM_BLOCK_BYTES  4096 /* in which files take room */

/* ---- what survives of a list of things in their order: drawn anew for each list ---- */

struct sim_fate {
    unsigned eighths; /* the chance of each */
    uint64_t until;   /* those before this index survive anyway */
};

struct sim_fate sim_fate_draw(struct test_random *random, uint64_t count);
bool sim_fate_survives(const struct sim_fate *fate, struct test_random *random, uint64_t index);

/* ---- the content of a file (sim_file.c) ---- */

struct sim_file;

struct sim_file *sim_file_create(void);
void sim_file_destroy(struct sim_file *file); /* NULL: no-op */

uint64_t sim_file_size(const struct sim_file *file);
uint64_t sim_file_room(const struct sim_file *file); /* bytes it takes on the disk */
size_t sim_file_read(const struct sim_file *file, void *to, size_t bytes, uint64_t offset);
/* The same as from the disk (O_DIRECT), for which what was lost never was: whole sectors. */
size_t sim_file_read_disk(const struct sim_file *file, void *to, size_t bytes, uint64_t offset);
void sim_file_write(struct sim_file *file, const void *from, size_t bytes, uint64_t offset);
void sim_file_resize(struct sim_file *file, uint64_t bytes);
/* Room and size, unless it is longer. */
void sim_file_allocate(struct sim_file *file, uint64_t bytes);

void sim_file_sync(struct sim_file *file);
/* What is not durable counts as clean from now; `partly`: each sector may become durable instead.
 */
void sim_file_lose(struct sim_file *file, struct test_random *random, bool partly);
void sim_file_cut(struct sim_file *file, struct test_random *random);
bool sim_file_flip(struct sim_file *file, uint64_t offset, unsigned bit);

/* ---- the names of a directory (sim_names.c) ---- */

struct sim_node;

struct sim_name {
    char *text;
    struct sim_node *node;
};

struct sim_map {
    struct sim_name *names;
    size_t count, capacity;
};

/* Name `from` goes, name `to` is the node; NULL: does not concern a name. */
struct sim_change {
    char *from, *to;
    struct sim_node *node;
};

struct sim_names {
    struct sim_map current, durable;
    struct sim_change *changes; /* since the last sync */
    size_t changes_count, changes_capacity;
};

void sim_names_fini(struct sim_names *names); /* init: zeroes */
struct sim_node *sim_names_find(const struct sim_names *names, const char *text);
/* Creates (from NULL), renames or unlinks (to NULL). The texts are copied. */
void sim_names_change(struct sim_names *names, const char *from, const char *to,
                      struct sim_node *node);
void sim_names_sync(struct sim_names *names);
void sim_names_cut(struct sim_names *names, struct test_random *random);

/* ---- the disk (sim_disk.c) ---- */

struct sim_node {
    struct sim_file *file;  /* NULL: a directory */
    struct sim_names names; /* of a directory */
    unsigned path;          /* the caller's number of the name it has or had last */
    unsigned opened;        /* by descriptors */
    int lock_fd;            /* that holds its lock; -1: none */
    bool found;             /* while the disk is walked */
    struct sim_node *next;
};

struct sim_disk {
    struct sim_node *root;
    struct sim_node *nodes; /* all, in the order they were made */
    struct sim_node **last;
};

/* Where a path leads. */
struct sim_place {
    struct sim_node *parent; /* NULL: the root itself */
    struct sim_node *node;   /* NULL: nothing has this name */
    const char *name;        /* the last part of the path */
};

void sim_disk_init(struct sim_disk *disk);
void sim_disk_fini(struct sim_disk *disk);
/* The path as it is known here: "/a/b". False: ENAMETOOLONG. */
bool sim_disk_path(const char *path, char known[VFS_PATH_MAX]);
/* `path` is a known one and borrowed by *place. False with errno: the directory is not there. */
bool sim_disk_find(struct sim_disk *disk, const char *path, struct sim_place *place);
/* A new file or directory at a place where nothing is. */
struct sim_node *sim_disk_add(struct sim_disk *disk, const struct sim_place *place, bool directory);
/* Frees what no name, durable or not, and no descriptor leads to. */
void sim_disk_clean(struct sim_disk *disk);
uint64_t sim_disk_used(struct sim_disk *disk); /* bytes, by what is named now or opened */
/* Nothing is opened. */
void sim_disk_cut(struct sim_disk *disk, struct test_random *random);

/* Memory for tests: never NULL. The new part is zeroed. */
void *sim_grow(void *memory, size_t bytes_before, size_t bytes);

#endif
