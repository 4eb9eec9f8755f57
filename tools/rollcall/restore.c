/*
 * restore.c: the verb restore: a data directory of a backup. It is made beside its place, in
 * DIR.restoring, each file checked against the backup's list, verified, and gets its name last: a
 * daemon never finds half of one. RESTORE.begun in it names the backup by its list's checksum, so
 * that nothing but an unfinished restore of the same backup is gone on with.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "store/vfs.h"
#include "tools/rollcall/arguments.h"
#include "tools/rollcall/backup_private.h"
#include "tools/rollcall/verb.h"

#define RESTORING     ".restoring"
#define RESTORE_BEGUN "RESTORE.begun"
#define BEGUN_MAX     64 /* bytes of that */

struct restore {
    char *from, *to;
    bool links, quiet;
    char making[VFS_PATH_MAX]; /* DIR.restoring */
    struct backup_list list;
    struct copy copy;
    struct backup_set set;
    struct dir_lock lock;
};

static int print_begun(const struct restore *restore, char text[BEGUN_MAX])
{
    return snprintf(text, BEGUN_MAX, "rollcall-restore 1\nbackup %016" PRIx64 "\n",
                    restore->list.sum);
}

/* Returns whether a restore of this backup was begun in the directory. */
static bool is_begun(const struct restore *restore, const char *directory)
{
    char begun[BEGUN_MAX];
    size_t length;
    char *text = vfs_read_in(vfs_real(), directory, RESTORE_BEGUN, BEGUN_MAX, &length);
    size_t expected = (size_t)print_begun(restore, begun);
    bool same = text != NULL && length == expected && memcmp(text, begun, length) == 0;

    free(text);
    return same;
}

static bool read_list(struct restore *restore)
{
    switch (backup_list_read(restore->from, &restore->list)) {
    case BACKUP_WHOLE:
        return true;
    case BACKUP_NONE:
        verb_complain(stderr, "%s: no whole backup is there (no file " BACKUP_NAME ")",
                      restore->from);
        return false;
    default:
        verb_complain(stderr,
                      "%s/" BACKUP_NAME
                      ": it is damaged, or of another version: its checksum does not hold",
                      restore->from);
        return false;
    }
}

/* False: it was said. */
static bool restore_may_begin(struct restore *restore)
{
    size_t length = strlen(restore->to);

    while (length > 1 && restore->to[length - 1] == '/') {
        restore->to[--length] = '\0';
    }
    if (length + sizeof(RESTORING) > sizeof(restore->making)) {
        verb_complain(stderr, "%s: the name is too long", restore->to);
        return false;
    }
    snprintf(restore->making, sizeof(restore->making), "%s" RESTORING, restore->to);
    if (!copy_is_empty(restore->to, RESTORE_BEGUN) && !is_begun(restore, restore->to)) {
        verb_complain(stderr, "%s: it is there, and not empty; restore makes a new directory",
                      restore->to);
        return false;
    }
    if (!copy_is_empty(restore->making, RESTORE_BEGUN) && !is_begun(restore, restore->making)) {
        verb_complain(stderr,
                      "%s: it is not empty, and holds no unfinished restore of this backup; remove "
                      "it, or name another directory",
                      restore->making);
        return false;
    }
    return true;
}

static bool restore_lock(struct restore *restore)
{
    return dir_lock_take(vfs_real(), restore->making, &restore->lock) == DIR_LOCK_TAKEN ||
           copy_fail(&restore->copy, NULL, "another restore is at work in it");
}

static bool restore_write_begun(struct restore *restore)
{
    char text[BEGUN_MAX];
    size_t length = (size_t)print_begun(restore, text);

    return copy_write(&restore->copy, RESTORE_BEGUN, text, length, 0);
}

/* Returns whether the list has all that the manifest needs, and nothing else. */
static bool list_fits(struct restore *restore)
{
    const struct backup_set *set = &restore->set;
    bool fits = restore->list.count == set->table_count + set->segment_count + 1;

    for (size_t i = 0; i < set->table_count; i++) {
        fits = fits && backup_list_find(&restore->list, set->tables[i].name) != NULL;
    }
    for (size_t i = 0; i < set->segment_count; i++) {
        fits = fits && backup_list_find(&restore->list, set->segments[i].pin.name) != NULL;
    }
    if (!fits) {
        snprintf(restore->copy.error, sizeof(restore->copy.error),
                 "%.400s: its files are not those that " BACKUP_NAME
                 " lists: the backup was changed since it was made, by a daemon?",
                 restore->from);
    }
    return fits;
}

static bool restore_copy(struct restore *restore)
{
    struct copy *copy = &restore->copy;
    const struct backup_set *set = &restore->set;
    uint64_t lsn = 0;

    copy->link = restore->links;
    if (!copy_begin(copy, restore->from, restore->making) || !copy_make_directory(copy) ||
        !restore_lock(restore) || !restore_write_begun(restore) || !copy_sync(copy) ||
        !backup_take(copy, &restore->set) || !list_fits(restore)) {
        return false;
    }
    copy->whole = 2 * backup_bytes(set); /* all is read again */
    progress_init(&copy->progress, restore->quiet ? NULL : stderr, "bytes", 0);
    if (!copy_remove(copy, MANIFEST_NAME) || !backup_copy_tables(copy, set) ||
        !backup_journal_copy(copy, set, &lsn)) {
        return false;
    }
    if (lsn != restore->list.lsn) {
        return copy_fail(copy, NULL, "the backup was changed since it was made, by a daemon?");
    }
    return backup_sweep(copy, set) &&
           copy_write(copy, MANIFEST_NAME, set->manifest_text, set->manifest_length, 0) &&
           backup_list_check(copy, &restore->list) && copy_sync(copy);
}

/* The directory gets its name. */
static bool restore_name(struct restore *restore)
{
    struct copy *copy = &restore->copy;
    char parent[VFS_PATH_MAX];

    progress_clear(&copy->progress);
    if (!backup_verify(copy, restore->quiet)) {
        return copy_fail(copy, NULL, "it is not sound; is the backup?");
    }
    snprintf(parent, sizeof(parent), "%s", restore->to);
    char *slash = strrchr(parent, '/');

    if (slash == NULL) {
        snprintf(parent, sizeof(parent), ".");
    } else {
        slash[slash == parent] = '\0';
    }
    if (rename(restore->making, restore->to) != 0 || /* takes the place of an empty directory */
        vfs_real()->functions->sync_dir(vfs_real(), parent) != 0) {
        return copy_fail(copy, NULL, strerror(errno));
    }
    copy->to = restore->to;
    return copy_remove(copy, RESTORE_BEGUN) && copy_sync(copy);
}

static uint64_t bytes_of(const struct backup_list *list)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < list->count; i++) {
        bytes += list->files[i].bytes;
    }
    return bytes;
}

static const struct option_row restore_rows[] = {
    {"link", ARGUMENTS_FLAG(struct restore, links),
     .help = "table files by hard link: no daemon ever changes them"},
    {"quiet", ARGUMENTS_FLAG(struct restore, quiet), .help = "no progress"},
    {.name = NULL},
};

static const struct arguments restore_line = {
    .name = "restore",
    .words = "BACKUP DIR",
    .examples = "  rollcall restore /backup/monday /var/lib/rollcall\n",
    .does =
        "Makes a new data directory DIR of a backup that rollcall backup made: every file must be\n"
        "as the backup's list has it (checksums), and all of it sound. A daemon that starts with\n"
        "it holds what was there at the backup's LSN. What was killed goes on when it is asked\n"
        "for again. A DIR that is there must be empty. DIR gets the owner of BACKUP.",
    .ends =
        "Exit status: 0 done and sound, 1 not, 2 bad options, or there is no backup, or DIR is.",
    .rows = restore_rows,
    .words_least = 2,
    .words_most = 2,
};

int restore_main(int argc, char **argv)
{
    struct restore restore = {0};
    int status = arguments_take(&restore_line, argc, argv, &restore);

    if (status >= 0) {
        return status;
    }
    restore.from = argv[optind];
    restore.to = argv[optind + 1];
    if (!read_list(&restore) || !restore_may_begin(&restore)) {
        backup_list_fini(&restore.list);
        return VERB_USAGE;
    }
    bool named = is_begun(&restore, restore.to); /* a kill came at its very end */

    restore.copy.to = restore.to;
    bool done = named ? copy_remove(&restore.copy, RESTORE_BEGUN)
                      : restore_copy(&restore) && restore_name(&restore);

    if (done && !restore.quiet) {
        char size[SIZE_TEXT_MAX];

        printf("%s: as of LSN %" PRIu64 ", %s, verified\n", restore.to, restore.list.lsn,
               size_text(size, bytes_of(&restore.list)));
    }
    if (!done) {
        progress_clear(&restore.copy.progress);
        verb_complain(stderr, "%s", restore.copy.error);
    }
    backup_let_go(&restore.set);
    backup_list_fini(&restore.list);
    dir_lock_give(&restore.lock);
    return done ? VERB_SOUND : VERB_DAMAGED;
}
