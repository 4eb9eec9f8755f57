/* sim_disk.c: the tree of simulated files and directories. */
#include "tests/support/sim_disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* Zeroes by hand are cheaper than those of the system, a page fault each 4096 bytes, up to here. */
#define ZEROED_MAX (4u << 20)

void *sim_grow(void *memory, size_t bytes_before, size_t bytes)
{
    CHECK(bytes >= bytes_before);
    void *grown;
    if (bytes > ZEROED_MAX) {
        grown = calloc(1, bytes); /* large zeroes cost no memory until they are used */
        CHECK(grown != NULL);
        if (bytes_before > 0) {
            memcpy(grown, memory, bytes_before);
        }
        free(memory);
    } else {
        grown = realloc(memory, bytes ? bytes : 1);
        CHECK(grown != NULL);
        memset((char *)grown + bytes_before, 0, bytes - bytes_before);
    }
    return grown;
}

struct sim_fate sim_fate_draw(struct test_random *random, uint64_t count)
{
    static const unsigned char eighths[] = {0, 1, 4, 7, 8};
    uint64_t pick = test_random_below(random, sizeof(eighths) + 1);
    if (pick == sizeof(eighths)) {
        return (struct sim_fate){.until = test_random_below(random, count + 1)};
    }
    return (struct sim_fate){.eighths = eighths[pick]};
}

bool sim_fate_survives(const struct sim_fate *fate, struct test_random *random, uint64_t index)
{
    return index < fate->until || test_random_below(random, 8) < fate->eighths;
}

static struct sim_node *node_create(struct sim_disk *disk, bool directory)
{
    struct sim_node *node = sim_grow(NULL, 0, sizeof(*node));
    node->file = directory ? NULL : sim_file_create();
    node->lock_fd = -1;
    *disk->last = node;
    disk->last = &node->next;
    return node;
}

static void node_destroy(struct sim_node *node)
{
    sim_file_destroy(node->file);
    sim_names_fini(&node->names);
    free(node);
}

void sim_disk_init(struct sim_disk *disk)
{
    disk->nodes = NULL;
    disk->last = &disk->nodes;
    disk->root = node_create(disk, true);
}

void sim_disk_fini(struct sim_disk *disk)
{
    while (disk->nodes) {
        struct sim_node *node = disk->nodes;
        disk->nodes = node->next;
        node_destroy(node);
    }
}

bool sim_disk_path(const char *path, char known[VFS_PATH_MAX])
{
    size_t length = 0;
    while (*path) {
        path += strspn(path, "/");
        size_t part = strcspn(path, "/");
        if (part == 0 || (part == 1 && *path == '.')) {
            path += part;
            continue;
        }
        if (length + part + 2 > VFS_PATH_MAX) {
            errno = ENAMETOOLONG;
            return false;
        }
        known[length++] = '/';
        memcpy(known + length, path, part);
        length += part;
        path += part;
    }
    if (length == 0) {
        known[length++] = '/';
    }
    known[length] = '\0';
    return true;
}

bool sim_disk_find(struct sim_disk *disk, const char *path, struct sim_place *place)
{
    *place = (struct sim_place){.node = disk->root, .name = path + 1};
    while (*place->name) {
        char part[VFS_PATH_MAX];
        if (!place->node || place->node->file) {
            errno = place->node ? ENOTDIR : ENOENT;
            return false;
        }
        size_t length = strcspn(place->name, "/");
        memcpy(part, place->name, length);
        part[length] = '\0';
        place->parent = place->node;
        place->node = sim_names_find(&place->parent->names, part);
        if (place->name[length] == '\0') {
            break;
        }
        place->name += length + 1;
    }
    return true;
}

struct sim_node *sim_disk_add(struct sim_disk *disk, const struct sim_place *place, bool directory)
{
    CHECK(place->parent && !place->node);
    struct sim_node *node = node_create(disk, directory);
    sim_names_change(&place->parent->names, NULL, place->name, node);
    return node;
}

static void mark(struct sim_node *node, bool now_only);

static void mark_map(const struct sim_map *map, bool now_only)
{
    for (size_t i = 0; i < map->count; i++) {
        mark(map->names[i].node, now_only);
    }
}

/* Notes what a node leads to; now_only: by the names a program sees. */
static void mark(struct sim_node *node, bool now_only)
{
    if (node->found) {
        return;
    }
    node->found = true;
    mark_map(&node->names.current, now_only);
    if (now_only) {
        return;
    }
    mark_map(&node->names.durable, now_only);
    for (size_t i = 0; i < node->names.changes_count; i++) {
        mark(node->names.changes[i].node, now_only);
    }
}

static void mark_all(struct sim_disk *disk, bool now_only)
{
    for (struct sim_node *node = disk->nodes; node; node = node->next) {
        node->found = false;
    }
    mark(disk->root, now_only);
    for (struct sim_node *node = disk->nodes; node; node = node->next) {
        if (node->opened > 0) {
            mark(node, now_only);
        }
    }
}

void sim_disk_clean(struct sim_disk *disk)
{
    mark_all(disk, false);
    disk->last = &disk->nodes;
    while (*disk->last) {
        struct sim_node *node = *disk->last;
        if (node->found) {
            disk->last = &node->next;
            continue;
        }
        *disk->last = node->next;
        node_destroy(node);
    }
}

uint64_t sim_disk_used(struct sim_disk *disk)
{
    uint64_t used = 0;
    mark_all(disk, true);
    for (struct sim_node *node = disk->nodes; node; node = node->next) {
        used += node->found && node->file ? sim_file_room(node->file) : 0;
    }
    return used;
}

void sim_disk_cut(struct sim_disk *disk, struct test_random *random)
{
    for (struct sim_node *node = disk->nodes; node; node = node->next) {
        CHECK(node->opened == 0);
        if (node->file) {
            sim_file_cut(node->file, random);
        } else {
            sim_names_cut(&node->names, random);
        }
    }
    sim_disk_clean(disk);
}
