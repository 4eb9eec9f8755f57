/* sim_file.c: the content of a simulated file, and what of it is durable. */
#include "tests/support/sim_disk.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define OLDER_MAX 7 /* versions between the durable and the latest: of a sector, of the size */

/* A sector that is not durable; its latest version is in the file's data. */
struct sector {
    bool lost;         /* counts as clean: no sync makes it durable */
    uint64_t versions; /* between, ever; the last OLDER_MAX are kept */
    unsigned char durable[SIM_SECTOR_BYTES];
    unsigned char (*older)[SIM_SECTOR_BYTES];
};

/*
 * Invariants: 1. data from size to capacity is zero. 2. sectors[i] is NULL where the durable
 * version is that in data. 3. sizes == 0: size is durable.
 */
struct sim_file {
    unsigned char *data;
    struct sector **sectors;
    uint64_t capacity; /* of both, in bytes: a multiple of a sector */
    uint64_t size;
    uint64_t room;
    uint64_t sizes; /* changes of the size since it was durable */
    uint64_t size_durable;
    uint64_t size_older[OLDER_MAX];
};

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static uint64_t sectors_of(uint64_t bytes)
{
    return round_up(bytes, SIM_SECTOR_BYTES) / SIM_SECTOR_BYTES;
}

static void sector_free(struct sim_file *file, uint64_t index)
{
    struct sector *sector = file->sectors[index];
    if (sector) {
        free(sector->older);
        free(sector);
        file->sectors[index] = NULL;
    }
}

struct sim_file *sim_file_create(void)
{
    return sim_grow(NULL, 0, sizeof(struct sim_file));
}

void sim_file_destroy(struct sim_file *file)
{
    if (!file) {
        return;
    }
    for (uint64_t i = 0; i < sectors_of(file->capacity); i++) {
        sector_free(file, i);
    }
    free(file->sectors);
    free(file->data);
    free(file);
}

uint64_t sim_file_size(const struct sim_file *file)
{
    return file->size;
}

uint64_t sim_file_room(const struct sim_file *file)
{
    return file->room;
}

static void reserve(struct sim_file *file, uint64_t bytes)
{
    if (bytes <= file->capacity) {
        return;
    }
    uint64_t capacity = file->capacity * 2 > bytes ? file->capacity * 2 : bytes;
    capacity = round_up(capacity, SIM_SECTOR_BYTES);
    file->data = sim_grow(file->data, file->capacity, capacity);
    file->sectors = sim_grow(file->sectors, sectors_of(file->capacity) * sizeof(*file->sectors),
                             sectors_of(capacity) * sizeof(*file->sectors));
    file->capacity = capacity;
}

/* The sector is about to change: keeps the version it has. */
static void sector_keep(struct sim_file *file, uint64_t index)
{
    const unsigned char *latest = file->data + index * SIM_SECTOR_BYTES;
    struct sector *sector = file->sectors[index];
    if (!sector) {
        sector = file->sectors[index] = sim_grow(NULL, 0, sizeof(*sector));
        memcpy(sector->durable, latest, SIM_SECTOR_BYTES);
        return;
    }
    if (sector->lost) { /* the version it has was never on its way to the disk */
        sector->lost = false;
        return;
    }
    if (!sector->older) {
        sector->older = sim_grow(NULL, 0, OLDER_MAX * sizeof(*sector->older));
    }
    memcpy(sector->older[sector->versions++ % OLDER_MAX], latest, SIM_SECTOR_BYTES);
}

static void change_size(struct sim_file *file, uint64_t size)
{
    if (size == file->size) {
        return;
    }
    if (file->sizes == 0) {
        file->size_durable = file->size;
    } else {
        file->size_older[(file->sizes - 1) % OLDER_MAX] = file->size;
    }
    file->sizes++;
    file->size = size;
}

size_t sim_file_read(const struct sim_file *file, void *to, size_t bytes, uint64_t offset)
{
    if (offset >= file->size) {
        return 0;
    }
    uint64_t left = file->size - offset;
    size_t got = left < bytes ? (size_t)left : bytes;
    memcpy(to, file->data + offset, got);
    return got;
}

size_t sim_file_read_disk(const struct sim_file *file, void *to, size_t bytes, uint64_t offset)
{
    size_t got = sim_file_read(file, to, bytes, offset);
    for (size_t at = 0; at < got; at += SIM_SECTOR_BYTES) {
        const struct sector *sector = file->sectors[(offset + at) / SIM_SECTOR_BYTES];
        if (sector && sector->lost) {
            size_t left = got - at;
            memcpy((unsigned char *)to + at, sector->durable,
                   left < SIM_SECTOR_BYTES ? left : SIM_SECTOR_BYTES);
        }
    }
    return got;
}

static void keep_range(struct sim_file *file, uint64_t offset, uint64_t end)
{
    for (uint64_t i = offset / SIM_SECTOR_BYTES; i < sectors_of(end); i++) {
        sector_keep(file, i);
    }
}

void sim_file_write(struct sim_file *file, const void *from, size_t bytes, uint64_t offset)
{
    if (bytes == 0) {
        return;
    }
    uint64_t end = offset + bytes;
    CHECK(end > offset);
    reserve(file, end);
    keep_range(file, offset, end);
    memcpy(file->data + offset, from, bytes);
    if (end > file->size) {
        change_size(file, end);
    }
    if (end > file->room) {
        file->room = round_up(end, SIM_BLOCK_BYTES);
    }
}

void sim_file_resize(struct sim_file *file, uint64_t bytes)
{
    if (bytes < file->size) {
        keep_range(file, bytes, file->size);
        memset(file->data + bytes, 0, file->size - bytes);
        uint64_t room = round_up(bytes, SIM_BLOCK_BYTES);
        file->room = room < file->room ? room : file->room;
    }
    reserve(file, bytes);
    change_size(file, bytes);
}

void sim_file_allocate(struct sim_file *file, uint64_t bytes)
{
    reserve(file, bytes);
    if (bytes > file->size) {
        change_size(file, bytes);
    }
    if (bytes > file->room) {
        file->room = round_up(bytes, SIM_BLOCK_BYTES);
    }
}

void sim_file_sync(struct sim_file *file)
{
    for (uint64_t i = 0; i < sectors_of(file->capacity); i++) {
        if (file->sectors[i] && !file->sectors[i]->lost) {
            sector_free(file, i);
        }
    }
    file->sizes = 0;
}

void sim_file_lose(struct sim_file *file, struct test_random *random, bool partly)
{
    for (uint64_t i = 0; i < sectors_of(file->capacity); i++) {
        struct sector *sector = file->sectors[i];
        if (!sector || sector->lost) {
            continue;
        }
        if (partly && test_random_once_in(random, 2)) {
            sector_free(file, i);
            continue;
        }
        free(sector->older);
        sector->older = NULL;
        sector->versions = 0;
        sector->lost = true;
    }
}

/* Which version of a sector that is not durable is left; NULL: the latest. */
static const unsigned char *sector_left(const struct sector *sector, const struct sim_fate *fate,
                                        struct test_random *random, uint64_t index)
{
    if (sector->lost) {
        return sector->durable;
    }
    if (sim_fate_survives(fate, random, index)) {
        return NULL;
    }
    if (sector->versions > 0 && test_random_once_in(random, 2)) {
        uint64_t kept = sector->versions < OLDER_MAX ? sector->versions : OLDER_MAX;
        return sector->older[test_random_below(random, kept)];
    }
    return sector->durable;
}

static uint64_t size_left(const struct sim_file *file, const struct sim_fate *fate,
                          struct test_random *random)
{
    if (file->sizes == 0 || fate->eighths == 8) {
        return file->size;
    }
    uint64_t between = file->sizes - 1 < OLDER_MAX ? file->sizes - 1 : OLDER_MAX;
    uint64_t pick = test_random_below(random, between + 2);
    if (pick < between) {
        return file->size_older[pick];
    }
    return pick == between ? file->size : file->size_durable;
}

void sim_file_cut(struct sim_file *file, struct test_random *random)
{
    uint64_t count = sectors_of(file->capacity);
    struct sim_fate fate = sim_fate_draw(random, sectors_of(file->size));
    uint64_t size = size_left(file, &fate, random);
    for (uint64_t i = 0; i < count; i++) {
        if (!file->sectors[i]) {
            continue;
        }
        const unsigned char *left = sector_left(file->sectors[i], &fate, random, i);
        if (left) {
            memcpy(file->data + i * SIM_SECTOR_BYTES, left, SIM_SECTOR_BYTES);
        }
        sector_free(file, i);
    }
    if (size < file->capacity) {
        memset(file->data + size, 0, file->capacity - size);
    }
    file->size = size;
    file->sizes = 0;
    file->room = round_up(size, SIM_BLOCK_BYTES);
}

bool sim_file_flip(struct sim_file *file, uint64_t offset, unsigned bit)
{
    CHECK(bit < 8);
    if (offset >= file->size) {
        return false;
    }
    unsigned char mask = (unsigned char)(1u << bit);
    file->data[offset] ^= mask;
    struct sector *sector = file->sectors[offset / SIM_SECTOR_BYTES];
    if (!sector) {
        return true;
    }
    uint64_t at = offset % SIM_SECTOR_BYTES;
    sector->durable[at] ^= mask;
    for (unsigned i = 0; sector->older && i < OLDER_MAX; i++) {
        sector->older[i][at] ^= mask;
    }
    return true;
}
