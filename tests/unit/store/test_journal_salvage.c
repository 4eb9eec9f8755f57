/*
 * test_journal_salvage.c: one segment, made byte by byte, read over its bad places: what is a
 * record, how far what is none goes, where it ends, and what the segment says of how far it came.
 */
#include "store/journal_salvage.h"

#include "tests/unit/store/files.h"

#include <stdio.h>

#define DIRECTORY    "journal"
#define PATH         DIRECTORY "/journal-0000000000010000"
#define START        0x10000u
#define DURABLE      (START + 64u)
#define SEGMENT      (256u << 10)
#define TYPE         77u
#define WORDS_MAX    255u
#define WINDOW_BYTES (1u << 20) /* journal_salvage.c */
#define ZEROES_BYTES (64u << 20)

struct world {
    struct vfs_sim *sim;
    struct vfs *vfs;
    int fd;
    struct journal_header header;
    struct salvage salvage;
};

static void write_at(struct world *world, uint64_t offset, const void *bytes, size_t length)
{
    assert_true(vfs_write_all(world->vfs, world->fd, bytes, length, offset));
}

static void write_header(struct world *world)
{
    _Alignas(uint64_t) unsigned char page[JOURNAL_PAGE_BYTES];
    journal_page_encode(&world->header, page);
    write_at(world, 0, page, sizeof(page));
}

static void write_mark(struct world *world, uint64_t serial, uint64_t durable, uint64_t written)
{
    unsigned char bytes[JOURNAL_MARK_BYTES];
    struct journal_mark mark = {.durable = durable, .written = written, .serial = serial};
    uint64_t offset = journal_mark_encode(&world->header, &mark, bytes);
    write_at(world, offset, bytes, sizeof(bytes));
}

static void begin_sized(struct world *world, uint64_t bytes)
{
    *world = (struct world){.sim = vfs_sim_create(1)};
    world->vfs = vfs_sim_vfs(world->sim);
    assert_int_equal(world->vfs->functions->mkdir(world->vfs, DIRECTORY), 0);
    world->fd = files_open(world->vfs, PATH, O_RDWR | O_CREAT);
    world->header = (struct journal_header){.epoch = 1,
                                            .number = 1,
                                            .start = START,
                                            .bytes = bytes,
                                            .durable = DURABLE,
                                            .boot = world->vfs->functions->boot(world->vfs)};
    write_header(world);
}

static void begin(struct world *world)
{
    begin_sized(world, SEGMENT);
}

static void end(struct world *world)
{
    files_close(world->vfs, world->fd);
    vfs_sim_destroy(world->sim);
}

/* A record of so many words, of a type, at an LSN. Returns the LSN after it. */
static uint64_t record_at(struct world *world, uint64_t lsn, uint8_t type, unsigned words)
{
    uint64_t record[WORDS_MAX];
    for (unsigned i = 1; i < words; i++) {
        record[i] = lsn + i;
    }
    record[0] = journal_record_word(0, type, (uint8_t)words, (uint8_t)lsn, 9);
    record[0] |= journal_record_checksum(record, lsn);
    write_at(world, journal_offset_of(&world->header, lsn), record, words * sizeof(*record));
    return lsn + words * sizeof(*record);
}

/* Bytes of no record: every word's length is one that ends in the segment. */
static uint64_t rubbish_at(struct world *world, uint64_t lsn, unsigned words)
{
    for (unsigned i = 0; i < words; i++) {
        uint64_t word = journal_record_word(0xbad, TYPE, 2, 0, 0);
        write_at(world, journal_offset_of(&world->header, lsn) + i * 8, &word, sizeof(word));
    }
    return lsn + words * 8;
}

static void open_segment(struct world *world)
{
    assert_true(salvage_init(&world->salvage, world->vfs, PATH));
    assert_int_equal(world->salvage.state, JOURNAL_PAGE_SOUND);
}

static void expect_record(struct world *world, uint64_t lsn, uint64_t end)
{
    struct salvage_item item;
    uint64_t first;
    assert_int_equal(salvage_next(&world->salvage, &item), SALVAGE_RECORD);
    assert_int_equal(item.lsn, lsn);
    assert_int_equal(item.bytes, end - lsn);
    assert_null(item.why);
    assert_int_equal(vfs_read_all(world->vfs, world->fd, &first, sizeof(first),
                                  journal_offset_of(&world->header, lsn)),
                     sizeof(first));
    assert_int_equal(item.word, first);
    assert_int_equal(item.record.lsn, lsn);
    assert_int_equal(item.record.bytes, item.bytes - JOURNAL_HEADER_BYTES);
    assert_int_equal(item.record.a, (uint8_t)lsn);
    assert_int_equal(item.record.b, 9);
    for (uint64_t i = 1; i < item.bytes / 8; i++) {
        uint64_t word;
        memcpy(&word, (const char *)item.record.payload + (i - 1) * 8, sizeof(word));
        assert_int_equal(word, lsn + i);
    }
}

static void expect_gap(struct world *world, uint64_t lsn, uint64_t end, bool resumes,
                       const char *why)
{
    struct salvage_item item;
    assert_int_equal(salvage_next(&world->salvage, &item), SALVAGE_GAP);
    assert_int_equal(item.lsn, lsn);
    assert_int_equal(item.bytes, end - lsn);
    assert_int_equal(item.resumes, resumes);
    assert_string_equal(item.why, why);
}

static void expect_end(struct world *world)
{
    struct salvage_item item;
    assert_int_equal(salvage_next(&world->salvage, &item), SALVAGE_END);
    assert_int_equal(salvage_next(&world->salvage, &item), SALVAGE_END);
}

/* ---- the header ---- */

/* A file that cannot be opened, measured or read is not kept open. */
static void test_init_fails(void **state)
{
    (void)state;
    struct world world;
    static const enum vfs_sim_op ops[] = {VFS_SIM_OPEN, VFS_SIM_SIZE, VFS_SIM_PREAD};
    begin(&world);
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct vfs_sim_fault fault = {.op = ops[i], .times = 1, .error = EIO};
        vfs_sim_counts_clear(world.sim);
        vfs_sim_fault(world.sim, &fault);
        errno = 0;
        assert_false(salvage_init(&world.salvage, world.vfs, PATH));
        assert_int_equal(errno, EIO);
        assert_int_equal(vfs_sim_calls(world.sim, VFS_SIM_CLOSE, NULL), ops[i] != VFS_SIM_OPEN);
    }
    vfs_sim_counts_clear(world.sim);
    open_segment(&world);
    salvage_fini(&world.salvage);
    assert_int_equal(vfs_sim_calls(world.sim, VFS_SIM_CLOSE, NULL), 1);
    end(&world);
}

/* Without a header of its own it is read by another one, from that one's beginning to its end. */
static void test_trust(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    uint64_t first = record_at(&world, START, TYPE, 3);
    assert_true(vfs_sim_flip(world.sim, PATH, 0, 3));
    assert_true(salvage_init(&world.salvage, world.vfs, PATH));
    assert_int_equal(world.salvage.state, JOURNAL_PAGE_BAD);
    assert_string_equal(world.salvage.why, "not a segment of a journal");
    salvage_trust(&world.salvage, &world.header);
    assert_int_equal(world.salvage.end, START + SEGMENT - JOURNAL_PAGE_BYTES);
    expect_record(&world, START, first);
    expect_end(&world);
    salvage_fini(&world.salvage);
    end(&world);
}

/* The later of header and mark; what was written counts too, in the run that wrote it. */
static void test_reach(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    write_mark(&world, 1, DURABLE - 8, DURABLE - 8);
    open_segment(&world);
    assert_int_equal(salvage_durable(&world.salvage), DURABLE);
    assert_int_equal(salvage_reach(&world.salvage), DURABLE);
    salvage_fini(&world.salvage);
    write_mark(&world, 2, DURABLE + 8, DURABLE + 80);
    open_segment(&world);
    assert_int_equal(salvage_durable(&world.salvage), DURABLE + 8);
    assert_int_equal(salvage_reach(&world.salvage), DURABLE + 80);
    world.salvage.header.boot++; /* another run */
    assert_int_equal(salvage_reach(&world.salvage), DURABLE + 8);
    world.salvage.header.boot--;
    vfs_sim_forget_boot(world.sim); /* not known which run this is */
    assert_int_equal(salvage_reach(&world.salvage), DURABLE + 8);
    world.salvage.header.boot = 0; /* nor which one wrote it */
    assert_int_equal(salvage_reach(&world.salvage), DURABLE + 8);
    salvage_fini(&world.salvage);
    end(&world);
}

/* ---- records and gaps ---- */

static void test_gaps(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    uint64_t lsn[8] = {START};
    lsn[1] = record_at(&world, lsn[0], TYPE, 3);
    lsn[2] = rubbish_at(&world, lsn[1], 4);
    lsn[3] = record_at(&world, lsn[2], JOURNAL_PAD, WORDS_MAX); /* the journal's own */
    lsn[4] = lsn[3] + 80;                                       /* zeroes */
    lsn[5] = record_at(&world, lsn[4], TYPE, 2);
    lsn[6] = record_at(&world, lsn[5], JOURNAL_TYPES_RESERVED - 1, 2); /* of a newer version */
    lsn[7] = record_at(&world, lsn[6], TYPE, 2);
    uint64_t last = rubbish_at(&world, lsn[7], 1);
    open_segment(&world);
    expect_record(&world, lsn[0], lsn[1]);
    expect_gap(&world, lsn[1], lsn[2], true, "a record's checksum does not fit");
    expect_record(&world, lsn[2], lsn[3]);
    expect_gap(&world, lsn[3], lsn[4], true, "nothing was written here");
    expect_record(&world, lsn[4], lsn[5]);
    expect_gap(&world, lsn[5], lsn[6], true, "a record's type is unknown");
    expect_record(&world, lsn[6], lsn[7]);
    expect_gap(&world, lsn[7], last, false, "a record's checksum does not fit");
    expect_end(&world);
    salvage_fini(&world.salvage);
    open_segment(&world);
    salvage_seek(&world.salvage, lsn[4]);
    expect_record(&world, lsn[4], lsn[5]);
    salvage_seek(&world.salvage, lsn[2]); /* back, before what was read */
    expect_record(&world, lsn[2], lsn[3]);
    salvage_fini(&world.salvage);
    end(&world);
}

/* More than is read at once, to a file's end: what is missing there is zero, not what was read
 * before. */
static void test_windows(void **state)
{
    (void)state;
    struct world world;
    struct salvage_item item;
    const unsigned records = WINDOW_BYTES / (WORDS_MAX * 8) + 2;
    uint64_t lsn = START;
    begin_sized(&world, 4 * WINDOW_BYTES);
    for (unsigned i = 0; i < records; i++) {
        lsn = record_at(&world, lsn, TYPE, WORDS_MAX);
    }
    uint64_t cut[3] = {journal_record_word(0, TYPE, 3, 0, 0)};
    cut[0] |= journal_record_checksum(cut, lsn);
    write_at(&world, journal_offset_of(&world.header, lsn), cut, sizeof(*cut));
    open_segment(&world);
    lsn = START;
    for (unsigned i = 0; i < records; i++, lsn += WORDS_MAX * 8) {
        expect_record(&world, lsn, lsn + WORDS_MAX * 8);
    }
    assert_int_equal(salvage_next(&world.salvage, &item), SALVAGE_RECORD);
    assert_int_equal(item.bytes, sizeof(cut));
    expect_end(&world);
    salvage_fini(&world.salvage);
    end(&world);
}

/* The last record ends with the segment; one that would end after it is none. */
static void test_end(void **state)
{
    (void)state;
    for (unsigned words = 2; words <= 3; words++) {
        struct world world;
        begin(&world);
        uint64_t end_lsn = START + SEGMENT - JOURNAL_PAGE_BYTES;
        uint64_t last = end_lsn - 16;
        record_at(&world, last, TYPE, words);
        open_segment(&world);
        salvage_seek(&world.salvage, last);
        if (words == 2) {
            expect_record(&world, last, end_lsn);
        } else {
            expect_gap(&world, last, end_lsn, false, "a record is longer than what is left");
        }
        expect_end(&world);
        salvage_seek(&world.salvage, last);
        world.salvage.end = last; /* lowered: nothing from there on */
        expect_end(&world);
        salvage_fini(&world.salvage);
        end(&world);
    }
}

/* A word without a length, and a file that ends early. */
static void test_no_length(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    uint64_t first = record_at(&world, START, TYPE, 3);
    uint64_t word = journal_record_word(7, TYPE, 0, 0, 0);
    write_at(&world, journal_offset_of(&world.header, first), &word, sizeof(word));
    open_segment(&world);
    assert_int_equal(world.salvage.size, journal_offset_of(&world.header, first) + 8);
    expect_record(&world, START, first);
    expect_gap(&world, first, first + 8, false, "a record has no length");
    expect_end(&world);
    salvage_fini(&world.salvage);
    end(&world);
}

/* A record after 64 MiB of zeroes is found, after more only if the segment says it was durable.
 */
static void test_zeroes(void **state)
{
    (void)state;
    for (unsigned more = 0; more <= 8; more += 8) {
        struct world world;
        begin_sized(&world, ZEROES_BYTES + SEGMENT);
        uint64_t first = record_at(&world, START, TYPE, 3);
        uint64_t far = first + ZEROES_BYTES + more;
        uint64_t last = record_at(&world, far, TYPE, 3);
        open_segment(&world);
        expect_record(&world, START, first);
        if (more == 0) {
            expect_gap(&world, first, far, true, "nothing was written here");
            expect_record(&world, far, last);
        }
        expect_end(&world);
        salvage_fini(&world.salvage);
        write_mark(&world, 1, last, last);
        open_segment(&world);
        expect_record(&world, START, first);
        expect_gap(&world, first, far, true, "nothing was written here");
        expect_record(&world, far, last);
        expect_end(&world);
        salvage_fini(&world.salvage);
        end(&world);
    }
}

/* What cannot be read is no end and no gap, and is read again. */
static void test_cannot_read(void **state)
{
    (void)state;
    struct world world;
    struct salvage_item item;
    struct salvage_found found = {0};
    begin(&world);
    uint64_t first = record_at(&world, START, TYPE, 3);
    open_segment(&world);
    vfs_sim_fault(world.sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .times = 1});
    errno = 0;
    assert_int_equal(salvage_next(&world.salvage, &item), SALVAGE_FAILED);
    assert_int_equal(errno, EIO);
    expect_record(&world, START, first);
    salvage_fini(&world.salvage);
    open_segment(&world);
    vfs_sim_fault(world.sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .times = 1});
    assert_false(salvage_count(&world.salvage, &found));
    assert_int_equal(found.records, 0);
    salvage_fini(&world.salvage);
    end(&world);
}

/* The extent of a bad place cannot be read: that is no place either, and it is measured again. */
static void test_cannot_measure(void **state)
{
    (void)state;
    struct world world;
    struct salvage_item item;
    begin_sized(&world, 4 * WINDOW_BYTES);
    rubbish_at(&world, START, 1);
    uint64_t far = rubbish_at(&world, START + WINDOW_BYTES - 8, 1); /* its rest is not read yet */
    open_segment(&world);
    vfs_sim_fault(world.sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .first = 2, .times = 1});
    errno = 0;
    assert_int_equal(salvage_next(&world.salvage, &item), SALVAGE_FAILED);
    assert_int_equal(errno, EIO);
    expect_gap(&world, START, far, false, "a record's checksum does not fit");
    expect_end(&world);
    salvage_fini(&world.salvage);
    end(&world);
}

/* Of several searches all records are counted, and the lowest LSN is kept. */
static void test_count(void **state)
{
    (void)state;
    struct world world;
    struct salvage_found found = {0};
    begin(&world);
    uint64_t first = rubbish_at(&world, START, 2);
    uint64_t second = record_at(&world, first, TYPE, 3);
    uint64_t third = rubbish_at(&world, second, 1);
    uint64_t last = record_at(&world, third, JOURNAL_PAD, 2);
    open_segment(&world);
    assert_true(salvage_count(&world.salvage, &found));
    assert_int_equal(found.records, 2);
    assert_int_equal(found.bytes, (second - first) + (last - third));
    assert_int_equal(found.first, first);
    salvage_seek(&world.salvage, third);
    assert_true(salvage_count(&world.salvage, &found));
    assert_int_equal(found.records, 3);
    assert_int_equal(found.first, first);
    found = (struct salvage_found){.records = 1, .first = third};
    salvage_seek(&world.salvage, START);
    assert_true(salvage_count(&world.salvage, &found));
    assert_int_equal(found.first, first);
    salvage_fini(&world.salvage);
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init_fails), cmocka_unit_test(test_trust),
        cmocka_unit_test(test_reach),      cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_windows),    cmocka_unit_test(test_cannot_measure),
        cmocka_unit_test(test_end),        cmocka_unit_test(test_no_length),
        cmocka_unit_test(test_zeroes),     cmocka_unit_test(test_cannot_read),
        cmocka_unit_test(test_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
