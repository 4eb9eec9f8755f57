/*
 * restore.c: the verb restore: a data directory of a backup. It is made beside its place, in
 * DIR.restoring, verified, and gets its name last: a daemon never finds half of one.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "store/vfs.h"
#include "tools/rollcall/backup.h"
#include "tools/rollcall/backup_private.h"

#define RESTORING ".restoring"

struct restore {
    char *from, *to;
    bool links, quiet;
    char making[VFS_PATH_MAX]; /* DIR.restoring */
    uint64_t lsn;              /* of the backup */
    struct copy copy;
    struct backup_set set;
    struct dir_lock lock;
};

/* False: it was said. */
static bool restore_may_begin(struct restore *restore)
{
    if (!backup_is_whole(restore->from, &restore->lsn)) {
        verb_complain(stderr, "%s: no whole backup is there (no file " BACKUP_NAME ")",
                      restore->from);
        return false;
    }
    size_t length = strlen(restore->to);

    while (length > 1 && restore->to[length - 1] == '/') {
        restore->to[--length] = '\0';
    }
    if (length + sizeof(RESTORING) > sizeof(restore->making)) {
        verb_complain(stderr, "%s: the name is too long", restore->to);
        return false;
    }
    snprintf(restore->making, sizeof(restore->making), "%s" RESTORING, restore->to);
    if (rmdir(restore->to) != 0 && errno != ENOENT) {
        verb_complain(stderr, "%s: %s; restore makes a new directory", restore->to,
                      errno == ENOTEMPTY || errno == EEXIST ? "it is there, and not empty"
                                                            : strerror(errno));
        return false;
    }
    return true;
}

static bool restore_lock(struct restore *restore)
{
    return dir_lock_take(vfs_real(), restore->making, &restore->lock) == DIR_LOCK_TAKEN ||
           copy_fail(&restore->copy, NULL, "another restore is at work in it");
}

static bool restore_copy_tables(struct restore *restore)
{
    struct copy *copy = &restore->copy;

    for (size_t i = 0; i < restore->set.table_count; i++) {
        if (!copy_file(copy, &restore->set.tables[i], true)) {
            return false;
        }
        progress_tell(&copy->progress, copy->done, copy->whole, NULL);
    }
    return true;
}

static bool restore_copy(struct restore *restore)
{
    struct copy *copy = &restore->copy;
    const struct backup_set *set = &restore->set;
    uint64_t lsn = 0;

    copy->link = restore->links;
    if (!copy_begin(copy, restore->from, restore->making) || !copy_make_directory(copy) ||
        !restore_lock(restore) || !backup_take(copy, &restore->set)) {
        return false;
    }
    copy->whole = backup_bytes(set);
    progress_init(&copy->progress, restore->quiet ? NULL : stderr, "bytes", 0);
    if (!copy_remove(copy, MANIFEST_NAME) || !restore_copy_tables(restore) ||
        !backup_journal_copy(copy, set, &lsn)) {
        return false;
    }
    if (lsn != restore->lsn) {
        return copy_fail(copy, NULL, "the backup was changed since it was made, by a daemon?");
    }
    return backup_sweep(copy, set) &&
           copy_write(copy, MANIFEST_NAME, set->manifest_text, set->manifest_length, 0) &&
           copy_sync(copy);
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
    return (rename(restore->making, restore->to) == 0 &&
            vfs_real()->functions->sync_dir(vfs_real(), parent) == 0) ||
           copy_fail(copy, NULL, strerror(errno));
}

static void restore_help(void)
{
    puts(
        "usage: rollcall restore [options] BACKUP DIR\n"
        "Makes a new data directory DIR of a backup that rollcall backup made, and verifies it. A\n"
        "daemon that starts with it holds what was there at the backup's LSN. What was killed\n"
        "goes on when it is asked for again. DIR gets the owner of BACKUP.\n"
        "Exit status: 0 done and sound, 1 not, 2 bad options, or there is no backup, or DIR is.\n"
        "\n"
        "      --link    table files by hard link: no daemon ever changes them\n"
        "  -q, --quiet   no progress\n"
        "  -h, --help    this text");
}

/* -1: go on. */
static int restore_arguments(struct restore *restore, int argc, char **argv)
{
    static const struct option known[] = {{"link", no_argument, NULL, 'l'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    int got;

    opterr = 0;
    while ((got = getopt_long(argc, argv, "qh", known, NULL)) != -1) {
        switch (got) {
        case 'l':
            restore->links = true;
            break;
        case 'q':
            restore->quiet = true;
            break;
        case 'h':
            restore_help();
            return VERB_SOUND;
        default:
            return (int)verb_complain(stderr, "unknown option %s; see rollcall restore --help",
                                      argv[optind - 1]);
        }
    }
    if (optind + 2 != argc) {
        return (int)verb_complain(
            stderr, "restore takes a backup and a directory; see rollcall restore --help");
    }
    restore->from = argv[optind];
    restore->to = argv[optind + 1];
    return -1;
}

int restore_main(int argc, char **argv)
{
    struct restore restore = {.lock = {.fd = -1}};
    int status = restore_arguments(&restore, argc, argv);

    if (status >= 0) {
        return status;
    }
    if (!restore_may_begin(&restore)) {
        return VERB_USAGE;
    }
    bool done = restore_copy(&restore) && restore_name(&restore);

    if (done && !restore.quiet) {
        char size[SIZE_TEXT_MAX];

        printf("%s: as of LSN %" PRIu64 ", %s, verified\n", restore.to, restore.lsn,
               size_text(size, restore.copy.whole));
    }
    if (!done) {
        progress_clear(&restore.copy.progress);
        verb_complain(stderr, "%s", restore.copy.error);
    }
    backup_let_go(&restore.set);
    dir_lock_give(vfs_real(), &restore.lock);
    return done ? VERB_SOUND : VERB_DAMAGED;
}
