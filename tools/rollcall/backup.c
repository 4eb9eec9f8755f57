/* backup.c: the verb backup: its command line, and the order of its steps. */
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
#include "tools/rollcall/dial.h"
#include "tools/rollcall/verb.h"
#include "tools/rollcall/wire.h"

#define PATIENCE_MS 5000 /* for the daemon's word where its data lies */

struct backup {
    struct wire_target target;
    char *data_named;        /* by the option; NULL: the daemon says */
    char data[VFS_PATH_MAX]; /* "": not known yet */
    char *to;
    bool copies, unverified, quiet;
    struct copy copy;
    struct backup_set set;
    struct dir_lock lock;
    uint64_t lsn;
};

/* ---- where from, where to ---- */

static enum exit_status ask_daemon(struct backup *backup)
{
    struct wire wire = {.fd = -1};
    struct wire_peer *peer = wire_peer_create(&backup->target, DIAL_PORT, wire.error);

    if (peer == NULL) {
        verb_complain(stderr, "%s", wire.error);
        return EXIT_STATUS_USAGE;
    }
    wire_init(&wire, peer, PATIENCE_MS);
    bool told = wire_connect(&wire, NULL, NULL) &&
                wire_stat(&wire, "settings", "data", backup->data, sizeof(backup->data));
    enum exit_status status = told ? EXIT_STATUS_DONE : wire_status(&wire);

    if (told && backup->data[0] != '/') {
        status = EXIT_STATUS_USAGE;
        snprintf(wire.error, sizeof(wire.error), "%.200s: it has no data directory", peer->address);
    }
    if (status != EXIT_STATUS_DONE) {
        verb_complain(stderr, "%s; --data names the directory without a daemon", wire.error);
    }
    wire_fini(&wire);
    wire_peer_destroy(peer);
    return status;
}

/* Where from is known, and there is a data directory: else it was said. */
static enum exit_status backup_find(struct backup *backup)
{
    enum exit_status status = backup->data[0] == '\0' ? ask_daemon(backup) : EXIT_STATUS_DONE;

    if (status == EXIT_STATUS_DONE && !copy_begin(&backup->copy, backup->data, backup->to)) {
        status = (enum exit_status)verb_complain(stderr, "%s", backup->copy.error);
    }
    return status;
}

static bool backup_may_begin(const struct backup *backup)
{
    char path[VFS_PATH_MAX];
    struct backup_list list;
    bool begun = vfs_path(path, backup->to, BACKUP_BEGUN) && access(path, F_OK) == 0;

    if (!begun && backup_list_read(backup->to, &list) == BACKUP_WHOLE) {
        verb_complain(stderr,
                      "%s: it holds a whole backup up to %" PRIu64 "; name another directory",
                      backup->to, list.lsn);
        backup_list_fini(&list);
        return false;
    }
    if (!begun && !copy_is_empty(backup->to, BACKUP_BEGUN)) {
        verb_complain(stderr,
                      "%s: it is not empty, and holds no backup that was begun; name another "
                      "directory",
                      backup->to);
        return false;
    }
    return true;
}

/* ---- steps ---- */

static bool backup_write_begun(struct backup *backup)
{
    char text[BACKUP_NOTE_MAX];
    int length = snprintf(text, sizeof(text), "from %.2000s\n", backup->data);

    return copy_write(&backup->copy, BACKUP_BEGUN, text, (size_t)length, 0);
}

static bool lock_directory(struct backup *backup)
{
    switch (dir_lock_take(vfs_real(), backup->to, &backup->lock)) {
    case DIR_LOCK_TAKEN:
        return true;
    case DIR_LOCK_HELD:
        return copy_fail(&backup->copy, NULL, "another backup, or a daemon, is at work in it");
    default:
        return copy_fail(&backup->copy, NULL, strerror(errno));
    }
}

static bool backup_begin(struct backup *backup)
{
    struct copy *copy = &backup->copy;

    copy->link = !backup->copies;
    return copy_make_directory(copy) && lock_directory(backup) && backup_write_begun(backup) &&
           copy_remove(copy, BACKUP_NAME) && copy_remove(copy, MANIFEST_NAME) && copy_sync(copy) &&
           backup_take(copy, &backup->set);
}

static bool backup_copy(struct backup *backup)
{
    struct copy *copy = &backup->copy;

    copy->whole = backup_bytes(&backup->set) * (backup->unverified ? 1 : 2); /* and read again */
    progress_init(&copy->progress, backup->quiet ? NULL : stderr, "bytes", 0);
    return backup_copy_tables(copy, &backup->set) &&
           backup_journal_copy(copy, &backup->set, &backup->lsn) &&
           backup_sweep(copy, &backup->set) &&
           copy_write(copy, MANIFEST_NAME, backup->set.manifest_text, backup->set.manifest_length,
                      0) &&
           copy_sync(copy);
}

static bool backup_end(struct backup *backup)
{
    struct copy *copy = &backup->copy;

    progress_clear(&copy->progress);
    if (!backup->unverified && !backup_verify(copy, backup->quiet)) {
        return copy_fail(copy, NULL, "it is not sound; remove it and begin anew");
    }
    bool listed = backup_list_write(copy, &backup->set, backup->lsn, !backup->unverified);

    progress_clear(&copy->progress);
    return listed && copy_sync(copy) && copy_remove(copy, BACKUP_BEGUN) && copy_sync(copy);
}

static void say_done(const struct backup *backup)
{
    char size[SIZE_TEXT_MAX];
    const struct copy *copy = &backup->copy;

    printf("%s: up to LSN %" PRIu64 ", %" PRIu64 " tables linked, %" PRIu64 " copied, %" PRIu64
           " there already, %zu segments, %s%s\n",
           backup->to, backup->lsn, copy->linked, copy->copied, copy->kept,
           backup->set.segment_count, size_text(size, backup_bytes(&backup->set)),
           backup->unverified ? "" : ", verified");
}

/* ---- the command line ---- */

static const struct option_row backup_rows[] = {
    {"server", ARGUMENTS_TEXT(struct backup, target.server), .initial = WIRE_SERVER,
     .help = "of the daemon"},
    WIRE_ROWS(struct backup, target),
    {"data", ARGUMENTS_TEXT(struct backup, data_named),
     .help = "its data directory, without asking; it need not run"},
    {"copy", ARGUMENTS_FLAG(struct backup, copies), .help = "no hard links"},
    {"no-verify", ARGUMENTS_FLAG(struct backup, unverified), .help = "not to read it once more"},
    {"quiet", ARGUMENTS_FLAG(struct backup, quiet), .help = "no progress"},
    {.name = NULL},
};

static const struct arguments backup_line = {
    .name = "backup",
    .words = "DIR",
    .examples = "  rollcall backup /backup/monday\n"
                "  rollcall backup --data /var/lib/rollcall /backup/monday\n",
    .does =
        "Makes a backup of a running daemon's data directory in DIR: table files by hard link on\n"
        "the same file system, else copied, and the journal up to one LSN. The daemon is not held\n"
        "up. Then DIR is verified, and BACKUP lists its files with their checksums. A backup that\n"
        "was killed goes on when it is made again.\n"
        "Started as the daemon's user or root, on its machine.",
    .ends =
        "DIR is a data directory: rollcall restore DIR NEW makes one of it that is apart from it.\n"
        "Exit status: 0 done and sound, 1 not, 2 bad options, no data directory, or DIR is not\n"
        "for it, 3 no answer, 4 the daemon refuses the user.",
    .rows = backup_rows,
    .words_least = 1,
    .words_most = 1,
};

static int backup_run(struct backup *backup)
{
    int status = backup_may_begin(backup) ? (int)backup_find(backup) : VERB_USAGE;

    if (status != EXIT_STATUS_DONE) {
        return status;
    }
    bool done = backup_begin(backup) && backup_copy(backup) && backup_end(backup);

    if (done && !backup->quiet) {
        say_done(backup);
    }
    if (!done) {
        progress_clear(&backup->copy.progress);
        verb_complain(stderr, "%s", backup->copy.error);
    }
    backup_let_go(&backup->set);
    dir_lock_give(&backup->lock);
    return done ? VERB_SOUND : VERB_DAMAGED;
}

int backup_main(int argc, char **argv)
{
    struct backup backup = {0};

    wire_target_init(&backup.target);
    int status = arguments_take(&backup_line, argc, argv, &backup);

    if (status < 0) {
        snprintf(backup.data, sizeof(backup.data), "%s",
                 backup.data_named != NULL ? backup.data_named : "");
        backup.to = argv[optind];
        status = backup_run(&backup);
    }
    arguments_clear(&backup_line, &backup);
    return status;
}
