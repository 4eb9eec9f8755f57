/* test_verify_beside.c: `rollcall verify` beside a daemon that replaces files, and deletes
 * segments, in the middle of each look: what MANIFEST names no more is no finding; what it names is
 * looked at.
 */
#include "tests/unit/tools/data_directory.h"

#include <string.h>
#include <sys/file.h>

#include "store/journal_format.h"
#include "tools/rollcall/verify.h"

#define AWAY "away.tmp"

/* What the daemon does when a file is opened, once a look (`often`: each time). */
static struct daemon {
    struct data *data;
    bool replaces, often, damages;
    unsigned trims_at; /* the n-th time that the first segment is opened; 0: never */
    bool replaced;
    bool away; /* the first segment is deleted */
    unsigned opened, generation;
} daemon_now;

static void replace_table(struct daemon *daemon)
{
    struct manifest_file *file = &daemon->data->file[1];
    char before[MANIFEST_FILE_NAME_MAX + 1];
    memcpy(before, file->name, sizeof(before));
    snprintf(file->name, sizeof(file->name), "liked-2-0-%u.table", ++daemon->generation);
    data_rename(daemon->data, before, file->name);
    if (daemon->damages) {
        data_flip(daemon->data, file->name, 4096);
        daemon->damages = false; /* a second time would undo it */
    }
    daemon->replaced = true;
    data_store_manifest(daemon->data);
}

static void trim(struct daemon *daemon)
{
    data_rename(daemon->data, daemon->data->segment[0], AWAY);
    daemon->away = true;
    daemon->data->journal_lsn += JOURNAL_UNIT;
    data_store_manifest(daemon->data);
}

static bool ends_with(const char *path, const char *name)
{
    size_t length = strlen(path), part = strlen(name);
    return length > part && strcmp(path + length - part, name) == 0;
}

/* A look ends with what is left over: `lock` is opened for nothing else. */
static void end_look(struct daemon *daemon)
{
    daemon->replaced = false;
    daemon->opened = 0;
    if (daemon->away) {
        data_rename(daemon->data, AWAY, daemon->data->segment[0]);
        daemon->away = false;
    }
}

static int open_beside(struct vfs *vfs, const char *path, int flags)
{
    struct daemon *daemon = &daemon_now;
    if (daemon->replaces && (daemon->often || !daemon->replaced) &&
        ends_with(path, daemon->data->file[1].name)) {
        replace_table(daemon);
    }
    if (ends_with(path, daemon->data->segment[0]) && ++daemon->opened == daemon->trims_at) {
        trim(daemon);
    }
    if (ends_with(path, "/lock")) {
        end_look(daemon);
    }
    return data_only_read()->functions->open(vfs, path, flags);
}

static enum verb_exit verify_beside(struct said_run *run, struct daemon daemon)
{
    const struct verify_options options = {.directory = run->data->directory};
    struct vfs_functions functions = *data_only_read()->functions;
    struct vfs vfs = {&functions};
    FILE *held = fopen(run->data->directory, "r");
    assert_non_null(held);
    assert_int_equal(flock(fileno(held), LOCK_EX | LOCK_NB), 0);
    daemon.generation = daemon_now.generation; /* no name comes again */
    daemon_now = daemon;
    daemon_now.data = run->data;
    functions.open = open_beside;
    said_free(&run->said);
    said_begin(&run->said);
    enum verb_exit status = verify_directory(&vfs, &options, run->said.out, run->said.errors);
    said_end(&run->said);
    fclose(held);
    return status;
}

static void assert_sound_beside(struct said_run *run, struct daemon daemon)
{
    char text[80];
    if (verify_beside(run, daemon) != VERB_SOUND) {
        fail_msg("not sound: %s%s", run->said.out_text, run->said.errors_text);
    }
    snprintf(text, sizeof(text), "sound: 6 files, 2.3 MiB, journal %llu records\n",
             (unsigned long long)run->data->records);
    said_has(run->said.out_text, text); /* each once */
    said_lacks(run->said.out_text, "is missing");
}

static void test_replaced_table(void **state)
{
    struct said_run *run = *state;
    assert_sound_beside(run, (struct daemon){.replaces = true});
    assert_true(daemon_now.generation > 0);
}

/* What takes the place of a file is looked at. */
static void test_replaced_by_damage(void **state)
{
    struct said_run *run = *state;
    assert_int_equal(verify_beside(run, (struct daemon){.replaces = true, .damages = true}),
                     VERB_DAMAGED);
    said_has(run->said.out_text, "damaged: 1 finding in 6 files");
    said_has(run->said.out_text, run->data->file[1].name);
}

/* What is still named stays damaged, whatever else is replaced. */
static void test_damage_stays(void **state)
{
    struct said_run *run = *state;
    data_flip(run->data, run->data->table[0], 4096);
    assert_int_equal(verify_beside(run, (struct daemon){.replaces = true}), VERB_DAMAGED);
    said_has(run->said.out_text, "damaged: 1 finding in 6 files");
    said_has(run->said.out_text, run->data->table[0]);
    said_has_times(run->said.out_text, "page 0 at offset 4096", 1);
}

/* It gives up at some time. */
static void test_replaced_for_ever(void **state)
{
    struct said_run *run = *state;
    assert_int_equal(verify_beside(run, (struct daemon){.replaces = true, .often = true}),
                     VERB_DAMAGED);
    assert_true(daemon_now.generation < 1000);
}

/* Before each time that a segment is opened which a checkpoint makes unneeded. */
static void test_trimmed(void **state)
{
    struct said_run *run = *state;
    unsigned at = 0;
    bool trimmed = true;
    while (trimmed) {
        uint64_t before = run->data->journal_lsn;
        verify_beside(run, (struct daemon){.trims_at = ++at});
        said_has(run->said.out_text, "sound: ");
        trimmed = run->data->journal_lsn > before;
    }
    assert_true(at > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAID_RUN_TEST(test_replaced_table), SAID_RUN_TEST(test_replaced_by_damage),
        SAID_RUN_TEST(test_damage_stays),   SAID_RUN_TEST(test_replaced_for_ever),
        SAID_RUN_TEST(test_trimmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
