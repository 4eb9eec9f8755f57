/* test_manifest.c: the manifest's text both ways, and its file, whatever happens to it. */
#include "store/manifest.h"

#include "tests/unit/store/files.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "tests/support/random.h"
#include "tests/support/vfs_sim.h"

#define DIRECTORY "data"
#define PATH      DIRECTORY "/" MANIFEST_NAME
#define ROUNDS    300
#define SEEDS     300

/* As the format says; a change of it must be meant. */
#define CHECKSUM_SEED 0x54534546494e414dull

static int sim_setup(void **state)
{
    struct vfs_sim *sim = vfs_sim_create(1);
    struct vfs *vfs = vfs_sim_vfs(sim);
    assert_int_equal(vfs->functions->mkdir(vfs, DIRECTORY), 0);
    files_sync_dir(vfs, "/");
    *state = sim;
    return 0;
}

static int sim_teardown(void **state)
{
    vfs_sim_destroy(*state);
    return 0;
}

static void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("`%s` is not in: %s", part, text);
    }
}

/* ---- making some ---- */

static struct manifest *sample(uint64_t epoch)
{
    struct manifest *manifest = manifest_create();
    manifest->epoch = epoch;
    manifest->clean_stop = true;
    manifest->table_event_lsn = 123456;
    manifest->journal_lsn = 65536;
    manifest->stream[0] = 0xab;
    manifest->stream[1] = 0xcd;
    if (epoch > 3) {
        assert_true(manifest_add_reign(manifest, 3, 0));
        assert_true(manifest_add_reign(manifest, epoch, 65600));
    }
    struct manifest_space *feed = manifest_add_space(manifest, "feed", 1, "counter");
    assert_non_null(feed);
    assert_true(manifest_set_data(feed, "secrets", "\x00\x9f\xa0\xff", 4));
    assert_true(manifest_set_data(feed, "row", "", 0));
    struct manifest_file file = {.name = "feed-2.table",
                                 .role = MANIFEST_DUMP,
                                 .serial = 2,
                                 .layer = 1,
                                 .generation = 4,
                                 .start_lsn = 10,
                                 .end_lsn = 20,
                                 .first_id = 30,
                                 .last_id = UINT64_MAX,
                                 .bytes = 16781312};
    assert_true(manifest_add_file(manifest, feed, &file));
    memcpy(file.name, "feed-1.table", 12);
    file.role = MANIFEST_IMAGE;
    assert_true(manifest_add_file(manifest, feed, &file));
    assert_non_null(manifest_add_space(manifest, "liked", 2, "phantom"));
    return manifest;
}

static char *text_of(const struct manifest *manifest, size_t *length)
{
    struct buf text;
    buf_init(&text, 2 * MANIFEST_BYTES_MAX, NULL);
    assert_true(manifest_compose(manifest, &text));
    assert_true(buf_append(&text, "", 1));
    *length = text.length - 1;
    return text.data;
}

static enum manifest_state parse(const char *text, size_t length, char *error)
{
    struct manifest *manifest = NULL;
    enum manifest_state state = manifest_parse(text, length, "M", &manifest, error);
    assert_int_equal(state == MANIFEST_SOUND, manifest != NULL);
    manifest_destroy(manifest);
    return state;
}

/* Parsed and composed again it is the same text; so it is the same content. */
static void assert_round_trip(const struct manifest *manifest)
{
    char error[MANIFEST_ERROR_MAX] = "";
    struct manifest *again = NULL;
    size_t length, length_again;
    char *text = text_of(manifest, &length);
    if (manifest_parse(text, length, "M", &again, error) != MANIFEST_SOUND) {
        fail_msg("%s", error);
    }
    char *text_again = text_of(again, &length_again);
    assert_string_equal(text, text_again);
    assert_int_equal(length, length_again);
    manifest_destroy(again);
    free(text_again);
    free(text);
}

static void test_text(void **state)
{
    (void)state;
    static const char lines[] =
        "rollcall-manifest 2\n"
        "epoch 7\n"
        "stop clean\n"
        "table-event 123456\n"
        "journal 65536\n"
        "stream 00000000000000ab00000000000000cd\n"
        "history 3 0\n"
        "history 7 65600\n"
        "space feed number 1 kind counter\n"
        "data secrets 009fa0ff\n"
        "data row -\n"
        "file feed-1.table role image serial 2 layer 1 generation 4 start 10 end 20 first 30 last "
        "18446744073709551615 bytes 16781312\n"
        "file feed-2.table role dump serial 2 layer 1 generation 4 start 10 end 20 first 30 last "
        "18446744073709551615 bytes 16781312\n"
        "space liked number 2 kind phantom\n";
    char expected[2048];
    size_t length;
    snprintf(expected, sizeof(expected), "%schecksum %016" PRIx64 "\n", lines,
             hash_bytes(lines, sizeof(lines) - 1, CHECKSUM_SEED));
    struct manifest *manifest = sample(7);
    char *text = text_of(manifest, &length);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
    assert_round_trip(manifest);
    manifest_destroy(manifest);
    free(text);
}

/* Two files of the first space, none of the second, one of a third. */
static void assert_files_walked(struct manifest *manifest)
{
    struct manifest_space *last = manifest_add_space(manifest, "last", 3, "counter");
    struct manifest_file added = *manifest_find_file(manifest, "feed-2.table");
    struct manifest_at at = {0};
    strcpy(added.name, "last-1.table");
    added.generation = 9;
    assert_true(manifest_add_file(manifest, last, &added));
    assert_string_equal(manifest_next_file(manifest, &at)->name, "feed-1.table");
    assert_int_equal(at.space, 0);
    assert_string_equal(manifest_next_file(manifest, &at)->name, "feed-2.table");
    assert_int_equal(at.space, 0);
    assert_string_equal(manifest_next_file(manifest, &at)->name, "last-1.table");
    assert_int_equal(at.space, 2);
    assert_null(manifest_next_file(manifest, &at));
    assert_null(manifest_next_file(manifest, &at)); /* it stays at its end */
    assert_int_equal(manifest_count_files(manifest), 3);
    assert_int_equal(manifest_generation(manifest), 9);
    assert_true(manifest_remove_file(last, "last-1.table"));
    assert_int_equal(manifest_generation(manifest), 4);
}

static void test_content(void **state)
{
    (void)state;
    char error[MANIFEST_ERROR_MAX];
    struct manifest *written = sample(7), *manifest = NULL;
    size_t length;
    char *text = text_of(written, &length);
    assert_int_equal(manifest_parse(text, length, "M", &manifest, error), MANIFEST_SOUND);
    assert_int_equal(manifest->epoch, 7);
    assert_true(manifest->clean_stop);
    assert_int_equal(manifest->table_event_lsn, 123456);
    assert_int_equal(manifest->journal_lsn, 65536);
    assert_int_equal(manifest->spaces_count, 2);
    struct manifest_space *feed = manifest_find_space(manifest, "feed");
    assert_ptr_equal(feed, &manifest->spaces[0]);
    assert_int_equal(feed->number, 1);
    assert_string_equal(feed->kind, "counter");
    const struct manifest_data *data = manifest_find_data(feed, "secrets");
    assert_int_equal(data->length, 4);
    assert_memory_equal(data->bytes, "\x00\x9f\xa0\xff", 4);
    assert_int_equal(manifest_find_data(feed, "row")->length, 0);
    assert_null(manifest_find_data(feed, "none"));
    assert_int_equal(feed->files_count, 2);
    const struct manifest_file *file = manifest_find_file(manifest, "feed-2.table");
    assert_int_equal(file->role, MANIFEST_DUMP);
    assert_int_equal(file->last_id, UINT64_MAX);
    assert_int_equal(file->bytes, 16781312);
    assert_null(manifest_find_file(manifest, "feed-3.table"));
    assert_null(manifest_find_space(manifest, "none"));
    assert_files_walked(manifest);

    assert_true(manifest_set_data(feed, "secrets", "abc", 3)); /* in its place */
    assert_int_equal(feed->data_count, 2);
    assert_memory_equal(manifest_find_data(feed, "secrets")->bytes, "abc", 3);
    assert_true(manifest_remove_file(feed, "feed-1.table"));
    assert_false(manifest_remove_file(feed, "feed-1.table"));
    assert_int_equal(feed->files_count, 1);
    assert_non_null(manifest_find_file(manifest, "feed-2.table"));
    assert_round_trip(manifest);
    manifest_destroy(manifest);
    manifest_destroy(written);
    manifest_destroy(NULL);
    free(text);
}

static void random_file(struct test_random *random, struct manifest_file *file)
{
    *file = (struct manifest_file){
        .role = test_random_below(random, 2) ? MANIFEST_DUMP : MANIFEST_IMAGE,
        .serial = test_random_next(random),
        .layer = test_random_below(random, 2),
        .generation = test_random_next(random) >> test_random_below(random, 64),
        .start_lsn = test_random_next(random) >> 1,
        .first_id = test_random_next(random) >> 1,
        .bytes = test_random_next(random),
    };
    file->end_lsn = file->start_lsn + (test_random_next(random) >> 1);
    file->last_id = file->first_id + (test_random_next(random) >> 1);
    snprintf(file->name, sizeof(file->name), "t%" PRIu64, test_random_next(random));
}

static void test_random_round_trips(void **state)
{
    (void)state;
    struct test_random random = {test_seed()};
    unsigned char bytes[300];
    for (uint64_t round = 0; round < test_scaled(ROUNDS); round++) {
        struct manifest *manifest = manifest_create();
        manifest->epoch = test_random_next(&random);
        manifest->clean_stop = test_random_below(&random, 2);
        manifest->journal_lsn = test_random_next(&random);
        manifest->stream[test_random_below(&random, 2)] = test_random_next(&random) | 1;
        for (uint64_t i = 1; i < test_random_below(&random, 9); i++) {
            (void)manifest_add_reign(manifest, i, test_random_next(&random));
        }
        uint64_t spaces = test_random_below(&random, 6);
        for (uint64_t i = 0; i < spaces; i++) {
            char word[24];
            snprintf(word, sizeof(word), "s%" PRIu64, i);
            struct manifest_space *space = manifest_add_space(manifest, word, 100 - i, "kind");
            for (uint64_t k = test_random_below(&random, MANIFEST_DATA_MAX + 1); k-- > 0;) {
                size_t length = test_random_below(&random, sizeof(bytes));
                for (size_t b = 0; b < length; b++) {
                    bytes[b] = (unsigned char)test_random_next(&random);
                }
                snprintf(word, sizeof(word), "d%" PRIu64, k);
                assert_true(manifest_set_data(space, word, bytes, length));
            }
            for (uint64_t k = test_random_below(&random, 100); k-- > 0;) {
                struct manifest_file file;
                random_file(&random, &file);
                assert_true(manifest_add_file(manifest, space, &file));
                assert_int_equal(manifest_find_file(manifest, file.name)->serial, file.serial);
            }
        }
        assert_round_trip(manifest);
        manifest_destroy(manifest);
    }
}

/* ---- damage ---- */

static void test_every_byte(void **state)
{
    (void)state;
    char error[MANIFEST_ERROR_MAX];
    size_t length;
    struct manifest *manifest = sample(7);
    char *text = text_of(manifest, &length);
    for (size_t at = 0; at < length; at++) {
        char right = text[at];
        for (unsigned value = 0; value < 256; value++) {
            if (!test_chosen(256 * at + value)) {
                continue;
            }
            text[at] = (char)value;
            enum manifest_state expected = text[at] == right ? MANIFEST_SOUND : MANIFEST_DAMAGED;
            error[0] = '\0';
            if (parse(text, length, error) != expected) {
                fail_msg("byte %zu as %u", at, value);
            }
            assert_int_equal(strncmp(error, "M:", 2) == 0, expected == MANIFEST_DAMAGED);
        }
        text[at] = right;
    }
    manifest_destroy(manifest);
    free(text);
}

static void test_every_length(void **state)
{
    (void)state;
    char error[MANIFEST_ERROR_MAX];
    size_t length;
    struct manifest *manifest = sample(7);
    char *text = text_of(manifest, &length);
    for (size_t cut = 0; cut < length; cut++) {
        char *copy = malloc(cut + 1); /* of its own, so that a byte too many is seen */
        assert_non_null(copy);
        memcpy(copy, text, cut);
        assert_int_equal(parse(copy, cut, error), MANIFEST_DAMAGED);
        assert_says(error, "restore");
        free(copy);
    }
    assert_int_equal(parse(text, length + 1, error), MANIFEST_DAMAGED); /* a NUL after it */
    manifest_destroy(manifest);
    free(text);
}

/* ---- texts with a right checksum ---- */

#define STREAM        "stream 000000000000000a0000000000000b01\n"
#define HEAD          "rollcall-manifest 2\nepoch 7\nstop no\ntable-event 1\njournal 2\n" STREAM
#define FILE_OF(name) "file " name " role dump serial 2 layer 1 generation 4 start 10 end 20"
#define REST          " first 30 last 40 bytes 50\n"
#define SPACE         "space feed number 1 kind counter\n"

static enum manifest_state parse_sealed(const char *lines, char *error)
{
    static char text[4 * MANIFEST_DATA_BYTES_MAX];
    int length = snprintf(text, sizeof(text), "%schecksum %016" PRIx64 "\n", lines,
                          hash_bytes(lines, strlen(lines), CHECKSUM_SEED));
    assert_true(length > 0 && (size_t)length < sizeof(text));
    return parse(text, (size_t)length, error);
}

static void test_wrong_lines(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *says;
    } wrongs[] = {
        {"", "M:1: "},
        {"rollcall-manifest 2\n", "M:2: it ends"},
        {"rollcall-manifest 0\n", "M:1: an unknown version"},
        {"rollcall-manifest x\n", "M:1: a number"},
        {"something 1\n", "M:1: not the line"},
        {"rollcall-manifest 2\nstop no\n", "M:2: not the line"},
        {"rollcall-manifest 2\nepoch 18446744073709551616\n", "M:2: a number"},
        {"rollcall-manifest 2\nepoch -1\n", "M:2: a number"},
        {"rollcall-manifest 2\nepoch 1 1\n", "M:2: not the line"},
        {"rollcall-manifest 2\nepoch  1\n", "M:2: words"},
        {"rollcall-manifest 2\nepoch 1 \n", "M:2: words"},
        {"rollcall-manifest 2\nepoch 1\nstop maybe\n", "M:3: `stop` is"},
        {HEAD "\n", "M:7: words"},
        {HEAD "epoch 8\n", "M:7: not the line"},
        {HEAD "a b c d e f g h i j k l m n o p q r s t u v w x y\n", "M:7: words"},
        {HEAD "space feed number 1 kind\n", "M:7: not the line"},
        {HEAD "space feed nummer 1 kind counter\n", "M:7: `space NAME"},
        {HEAD "space feed number one kind counter\n", "M:7: a number"},
        {HEAD "space Feed number 1 kind counter\n", "M:7: a space that is not allowed"},
        {HEAD "space feed number 1 kind a/b\n", "M:7: a space that is not allowed"},
        {HEAD "space a23456789012345678901234567890123 number 1 kind counter\n", "M:7: `space"},
        {HEAD "space feed number 1 kind a234567890123456\n", "M:7: `space"},
        {HEAD SPACE SPACE, "M:8: a space that is not allowed, there already"},
        {HEAD SPACE "space like number 1 kind counter\n", "M:8: a space that is not allowed"},
        {HEAD "data row 00\n", "M:7: `data"},
        {HEAD SPACE "data row 0\n", "M:8: pairs of digits"},
        {HEAD SPACE "data row 0g\n", "M:8: pairs of digits"},
        {HEAD SPACE "data row 0A\n", "M:8: pairs of digits"},
        {HEAD SPACE "data R 00\n", "M:8: a label"},
        {HEAD SPACE "data a234567890123456 00\n", "M:8: `data"},
        {HEAD SPACE "data row 00\ndata row 00\n", "M:9: the space has that label"},
        {HEAD FILE_OF("f") REST, "M:7: `file"},
        {HEAD SPACE FILE_OF("f") "\n", "M:8: not the line"},
        {HEAD SPACE FILE_OF("f") REST FILE_OF("f") REST, "M:9: a file that is not allowed"},
        {HEAD SPACE FILE_OF("f") REST "space like number 2 kind k\n" FILE_OF("f") REST,
         "M:10: a file that is not allowed"},
        {HEAD SPACE FILE_OF("..") REST, "M:8: a file that is not allowed"},
        {HEAD SPACE FILE_OF("a/b") REST, "M:8: a file that is not allowed"},
        {HEAD SPACE FILE_OF("MANIFEST") REST, "M:8: a file that is not allowed"},
        {HEAD SPACE FILE_OF("f") " first 41 last 40 bytes 50\n", "M:8: a file that is not"},
        {HEAD SPACE FILE_OF("f") "1 first 30 last 40 bytes x\n", "M:8: a number"},
        {HEAD SPACE FILE_OF("f") "1 last 30 first 40 bytes 1\n", "M:8: a name of"},
        {HEAD SPACE "file f role else serial 2 layer 1 generation 4 start 10 end 20" REST,
         "M:8: `file"},
        {HEAD SPACE "file f role dump serial 2 layer 1 generation 4 start 21 end 20" REST,
         "M:8: a file that is not allowed"},
        {HEAD SPACE "history 1 5\n", "M:8: a `history` after a space"},
        {HEAD "history 1\n", "M:7: not the line"},
        {HEAD "history 0 5\n", "M:7: epochs and LSNs"},
        {HEAD "history 8 5\n", "M:7: epochs and LSNs"},
        {HEAD "history 2 5\nhistory 2 6\n", "M:8: epochs and LSNs"},
        {HEAD "history 2 5\nhistory 3 5\n", "M:8: epochs and LSNs"},
        {"rollcall-manifest 2\nepoch 7\nstop no\ntable-event 1\njournal 2\nstream 0a\n",
         "M:6: 32 digits"},
        {"rollcall-manifest 2\nepoch 7\nstop no\ntable-event 1\njournal 2\n"
         "stream 00000000000000000000000000000000\n",
         "M:6: 32 digits"},
        {"rollcall-manifest 2\nepoch 7\nstop no\ntable-event 1\njournal 2\n"
         "stream 0000000000000000000000000000000G\n",
         "M:6: 32 digits"},
    };
    char error[MANIFEST_ERROR_MAX];
    assert_int_equal(parse_sealed(HEAD, error), MANIFEST_SOUND);
    assert_int_equal(parse_sealed(HEAD "history 2 0\nhistory 7 16\n" SPACE, error), MANIFEST_SOUND);
    assert_int_equal(parse_sealed(HEAD SPACE "data row 00ff\n" FILE_OF("f") REST, error),
                     MANIFEST_SOUND);
    for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
        error[0] = '\0';
        if (parse_sealed(wrongs[i].lines, error) != MANIFEST_DAMAGED) {
            fail_msg("not refused: %s", wrongs[i].lines);
        }
        assert_says(error, wrongs[i].says);
        assert_says(error, "restore");
    }
}

static void test_long_data(void **state)
{
    (void)state;
    static char lines[3 * MANIFEST_DATA_BYTES_MAX];
    char error[MANIFEST_ERROR_MAX];
    for (unsigned more = 0; more < 2; more++) {
        int begin = snprintf(lines, sizeof(lines), HEAD SPACE "data row ");
        size_t digits = 2 * (MANIFEST_DATA_BYTES_MAX + more);
        memset(lines + begin, 'a', digits);
        lines[(size_t)begin + digits] = '\n';
        assert_int_equal(parse_sealed(lines, error), more ? MANIFEST_DAMAGED : MANIFEST_SOUND);
    }
}

static void test_newer(void **state)
{
    (void)state;
    char error[MANIFEST_ERROR_MAX];
    assert_int_equal(parse_sealed("rollcall-manifest 3\nwhatever comes\n", error), MANIFEST_NEWER);
    assert_says(error, "version 3, this program knows 2");
    /* nor one of before */
    assert_int_equal(parse_sealed("rollcall-manifest 1\nepoch 7\n", error), MANIFEST_NEWER);
    assert_says(error, "version 1, this program knows 2; use the one that wrote it");
}

/* A text cut together at random is never more than damaged. */
static void test_fuzz(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "space",           "feed", " ",  " ",          "\n",  "number 1",   "kind counter",
        "data row ",       "00",   "ff", "-",          SPACE, FILE_OF("f"), REST,
        FILE_OF("g") REST, "file", "x",  "data a 00\n"};
    struct test_random random = {test_seed()};
    char lines[4096], error[MANIFEST_ERROR_MAX];
    for (uint64_t round = 0; round < test_scaled(20000); round++) {
        size_t length = (size_t)snprintf(lines, sizeof(lines), HEAD);
        for (uint64_t i = test_random_below(&random, 12); i-- > 0;) {
            const char *part = parts[test_random_below(&random, sizeof(parts) / sizeof(*parts))];
            length += (size_t)snprintf(lines + length, sizeof(lines) - length, "%s", part);
        }
        enum manifest_state result = parse_sealed(lines, error);
        assert_true(result == MANIFEST_SOUND || result == MANIFEST_DAMAGED);
    }
}

/* ---- limits ---- */

/* Of more reigns than there is place for the oldest go. */
static void test_history_limit(void **state)
{
    (void)state;
    struct manifest *manifest = manifest_create();
    manifest->stream[1] = 1;
    for (uint64_t i = 1; i <= MANIFEST_HISTORY_MAX + 2; i++) {
        assert_true(manifest_add_reign(manifest, 2 * i, 100 * i));
        assert_false(manifest_add_reign(manifest, 2 * i, 100 * i + 1));
        assert_false(manifest_add_reign(manifest, 2 * i + 1, 100 * i));
        assert_int_equal(manifest->epoch, 2 * i);
    }
    assert_int_equal(manifest->history_count, MANIFEST_HISTORY_MAX);
    assert_int_equal(manifest->history[0].epoch, 6);
    assert_int_equal(manifest->history[MANIFEST_HISTORY_MAX - 1].lsn,
                     100 * (MANIFEST_HISTORY_MAX + 2));
    assert_round_trip(manifest);
    manifest_destroy(manifest);
}

static void test_limits(void **state)
{
    (void)state;
    struct manifest *manifest = manifest_create();
    manifest->stream[1] = 1;
    char name[MANIFEST_FILE_NAME_MAX + 2];
    static unsigned char bytes[MANIFEST_DATA_BYTES_MAX + 1];
    memset(bytes, 0xa5, sizeof(bytes));
    for (unsigned i = 0; i < MANIFEST_SPACES_MAX; i++) {
        snprintf(name, sizeof(name), "%032u", i);
        assert_non_null(manifest_add_space(manifest, name, i, "a23456789012345"));
    }
    assert_null(manifest_add_space(manifest, "more", 99, "k"));
    struct manifest_space *space = &manifest->spaces[0];
    for (unsigned i = 0; i < MANIFEST_DATA_MAX; i++) {
        snprintf(name, sizeof(name), "%015u", i);
        assert_false(manifest_set_data(space, name, bytes, MANIFEST_DATA_BYTES_MAX + 1));
        assert_true(manifest_set_data(space, name, bytes, MANIFEST_DATA_BYTES_MAX));
    }
    assert_false(manifest_set_data(space, "more", bytes, 1));
    assert_true(manifest_set_data(space, name, bytes, 1));
    struct manifest_file file = {.role = MANIFEST_IMAGE};
    memset(file.name, 'x', MANIFEST_FILE_NAME_MAX);
    assert_true(manifest_add_file(manifest, space, &file));
    file.name[0] = '\0';
    assert_false(manifest_add_file(manifest, space, &file));
    for (unsigned i = 0; i < MANIFEST_FILES_MAX - 1; i++) {
        snprintf(file.name, sizeof(file.name), "%06u", i);
        assert_true(manifest_add_file(manifest, space, &file));
    }
    file.name[0] = 'y';
    assert_false(manifest_add_file(manifest, space, &file));
    assert_round_trip(manifest);
    manifest_destroy(manifest);
}

static void test_too_large(void **state)
{
    struct vfs_sim *sim = *state;
    char error[MANIFEST_ERROR_MAX];
    static unsigned char bytes[MANIFEST_DATA_BYTES_MAX];
    struct manifest *manifest = manifest_create();
    manifest->stream[1] = 1;
    for (unsigned i = 0; i < MANIFEST_SPACES_MAX; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%u", i);
        struct manifest_space *space = manifest_add_space(manifest, name, i, "k");
        for (unsigned k = 0; k < MANIFEST_DATA_MAX; k++) {
            snprintf(name, sizeof(name), "%u", k);
            assert_true(manifest_set_data(space, name, bytes, sizeof(bytes)));
        }
    }
    assert_false(manifest_store(vfs_sim_vfs(sim), DIRECTORY, manifest, error));
    assert_int_equal(errno, EFBIG);
    assert_says(error, PATH ": larger than");
    assert_false(files_exist(vfs_sim_vfs(sim), PATH));
    manifest_destroy(manifest);
}

/* ---- the file ---- */

/* The epoch tells which one it is; 0: none. Anything but these ends the test. */
static uint64_t load_epoch(struct vfs_sim *sim)
{
    char error[MANIFEST_ERROR_MAX] = "";
    struct manifest *manifest = NULL;
    enum manifest_state state = manifest_load(vfs_sim_vfs(sim), DIRECTORY, &manifest, error);
    if (state == MANIFEST_NONE) {
        return 0;
    }
    if (state != MANIFEST_SOUND) {
        fail_msg("%d: %s", state, error);
    }
    uint64_t epoch = manifest->epoch;
    manifest_destroy(manifest);
    return epoch;
}

static bool store(struct vfs_sim *sim, uint64_t epoch, char *error)
{
    struct manifest *manifest = sample(epoch);
    bool stored = manifest_store(vfs_sim_vfs(sim), DIRECTORY, manifest, error);
    int reason = errno;
    manifest_destroy(manifest);
    errno = reason;
    return stored;
}

static void test_load(void **state)
{
    struct vfs_sim *sim = *state;
    struct vfs *vfs = vfs_sim_vfs(sim);
    struct manifest *manifest = NULL;
    char error[MANIFEST_ERROR_MAX] = "";
    assert_int_equal(load_epoch(sim), 0);
    assert_true(store(sim, 3, error));
    assert_int_equal(load_epoch(sim), 3);
    assert_true(store(sim, 4, error));
    vfs_sim_power_cut(sim, 1);
    vfs = vfs_sim_vfs(sim);
    assert_int_equal(load_epoch(sim), 4);
    vfs_sim_fault(sim, &(struct vfs_sim_fault){.op = VFS_SIM_PREAD, .times = 1});
    assert_int_equal(manifest_load(vfs, DIRECTORY, &manifest, error), MANIFEST_FAILED);
    assert_says(error, PATH ": cannot read");
    assert_true(vfs_sim_flip(sim, PATH, 30, 2));
    assert_int_equal(manifest_load(vfs, DIRECTORY, &manifest, error), MANIFEST_DAMAGED);
    assert_says(error, PATH ":");
    int fd = files_open(vfs, PATH, O_RDWR | O_TRUNC);
    assert_int_equal(manifest_load(vfs, DIRECTORY, &manifest, error), MANIFEST_DAMAGED);
    assert_int_equal(vfs->functions->allocate(vfs, fd, MANIFEST_BYTES_MAX + 1), 0);
    files_close(vfs, fd);
    assert_int_equal(manifest_load(vfs, DIRECTORY, &manifest, error), MANIFEST_DAMAGED);
    assert_null(manifest);
}

static void test_store_fails(void **state)
{
    struct vfs_sim *sim = *state;
    char error[MANIFEST_ERROR_MAX] = "";
    static const enum vfs_sim_op ops[] = {VFS_SIM_OPEN, VFS_SIM_PWRITE, VFS_SIM_FDATASYNC,
                                          VFS_SIM_RENAME, VFS_SIM_SYNC_DIR};
    assert_true(store(sim, 3, error));
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
        bool full = ops[i] == VFS_SIM_PWRITE;
        vfs_sim_fault(
            sim, &(struct vfs_sim_fault){.op = ops[i], .times = 1, .error = full ? ENOSPC : EIO});
        assert_false(store(sim, 4, error));
        assert_int_equal(errno, full ? ENOSPC : EIO);
        assert_says(error, PATH ": cannot replace: ");
        assert_says(error, full ? "make room" : "check the disk");
        assert_int_equal(load_epoch(sim), ops[i] == VFS_SIM_SYNC_DIR ? 4 : 3);
        assert_false(files_exist(vfs_sim_vfs(sim), PATH VFS_TEMPORARY));
    }
}

/* Before each of its calls: the old one or the new one, and both are seen; so with the first. */
static void test_power_cut(void **state)
{
    (void)state;
    unsigned counts[3] = {0};
    for (uint64_t seed = 0; seed < test_scaled(SEEDS); seed++) {
        void *made;
        char error[MANIFEST_ERROR_MAX];
        sim_setup(&made);
        struct vfs_sim *sim = made;
        uint64_t old = seed / 8 % 2;
        assert_true(old == 0 || store(sim, old, error));
        struct files_cutter cutter = {sim, 1 + (unsigned)(seed % 7), seed};
        vfs_sim_hook(sim, files_cut, &cutter);
        bool stored = store(sim, 2, error);
        vfs_sim_hook(sim, NULL, NULL);
        if (stored) {
            vfs_sim_power_cut(sim, seed);
        }
        uint64_t found = load_epoch(sim);
        assert_true(found == 2 || (found == old && !stored));
        counts[found]++;
        vfs_sim_destroy(sim);
    }
    printf("none %u, old %u, new %u\n", counts[0], counts[1], counts[2]);
    assert_true(counts[0] > 0 && counts[1] > 0 && counts[2] > 0);
}

static void test_names(void **state)
{
    static const char *const others[] = {"MANIFEST",     "a.tmp",        "0-0-0.table",
                                         "a-0-0.table",  "a-0--0.table", "A-0-0-0.table",
                                         "a-0-0-0.tabl", "-0-0-0.table"};
    char name[MANIFEST_FILE_NAME_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_false(manifest_name_ours(others[i]));
    }
    manifest_table_name(name, "a-32-characters-long-name-of-it-", UINT64_MAX, 3, UINT64_MAX);
    assert_true(manifest_name_ours(name) && manifest_name_ours("MANIFEST.tmp"));
}

#define SIM(test)  cmocka_unit_test_setup_teardown(test, sim_setup, sim_teardown)
#define UNIT(test) cmocka_unit_test(test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_text),          UNIT(test_content),      UNIT(test_random_round_trips),
        UNIT(test_every_byte),    UNIT(test_every_length), UNIT(test_wrong_lines),
        UNIT(test_long_data),     UNIT(test_newer),        UNIT(test_fuzz),
        UNIT(test_history_limit), UNIT(test_limits),       SIM(test_too_large),
        SIM(test_load),           SIM(test_store_fails),   UNIT(test_power_cut),
        UNIT(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
