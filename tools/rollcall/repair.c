/* repair.c: the verb: options, the order of repairs, what is kept of what is replaced. */
#include "tools/rollcall/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/num.h"
#include "data/fill.h"
#include "store/dir_lock.h"
#include "store/one_bit.h"
#include "tools/rollcall/arguments.h"
#include "tools/rollcall/repair_private.h"
#include "tools/rollcall/verify.h"

#define KEPT_MAX        1000         /* files of one name */
#define MEND_TEXT_BYTES (128u << 10) /* of a MANIFEST whose bits are tried: some seconds */

/* ---- what is said ---- */

void repair_say(struct repair *repair, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(repair->out, format, arguments);
    fputc('\n', repair->out);
    va_end(arguments);
}

void repair_cannot(struct repair *repair, const char *format, ...)
{
    va_list arguments;
    repair->hopeless++;
    fputs("cannot be repaired: ", repair->out);
    va_start(arguments, format);
    vfprintf(repair->out, format, arguments);
    fputc('\n', repair->out);
    va_end(arguments);
}

bool repair_fail(struct repair *repair, const char *name, const char *doing)
{
    verb_complain(repair->errors, "%s/%s: cannot be %s: %s", repair->options->directory, name,
                  doing, strerror(errno));
    repair->failed = true;
    return false;
}

/* ---- what is kept ---- */

/* DIR/lost, made if it is not there. */
static bool kept_directory(struct repair *repair, char path[VFS_PATH_MAX])
{
    const struct vfs_functions *file = repair->vfs->functions;
    return vfs_path(path, repair->options->directory, REPAIR_KEPT_NAME) &&
           (file->mkdir(repair->vfs, path) == 0 || errno == EEXIST) &&
           file->sync_dir(repair->vfs, repair->options->directory) == 0;
}

/* A name in it that is free: NAME, NAME.1, ... */
static bool free_name(struct repair *repair, const char *directory, const char *name,
                      char path[VFS_PATH_MAX])
{
    char numbered[VFS_PATH_MAX];
    for (unsigned i = 0; i < KEPT_MAX; i++) {
        snprintf(numbered, sizeof(numbered), i == 0 ? "%s" : "%s.%u", name, i);
        if (!vfs_path(path, directory, numbered)) {
            return false;
        }
        int fd = repair->vfs->functions->open(repair->vfs, path, O_RDONLY);
        if (fd < 0) {
            return errno == ENOENT;
        }
        repair->vfs->functions->close(repair->vfs, fd);
    }
    errno = EEXIST;
    return false;
}

bool repair_keep(struct repair *repair, const char *name)
{
    const struct vfs_functions *file = repair->vfs->functions;
    char directory[VFS_PATH_MAX], from[VFS_PATH_MAX], to[VFS_PATH_MAX];
    bool kept =
        kept_directory(repair, directory) && vfs_path(from, repair->options->directory, name) &&
        free_name(repair, directory, name, to) && file->rename(repair->vfs, from, to) == 0 &&
        file->sync_dir(repair->vfs, directory) == 0 &&
        file->sync_dir(repair->vfs, repair->options->directory) == 0;
    return kept || repair_fail(repair, name, "moved to " REPAIR_KEPT_NAME);
}

bool repair_keep_bytes(struct repair *repair, const char *name, uint64_t offset, const void *bytes,
                       size_t length)
{
    const struct vfs_functions *file = repair->vfs->functions;
    char directory[VFS_PATH_MAX], to[VFS_PATH_MAX], called[VFS_PATH_MAX];
    snprintf(called, sizeof(called), "%s.%" PRIu64, name, offset);
    int fd = kept_directory(repair, directory) && free_name(repair, directory, called, to)
                 ? file->open(repair->vfs, to, O_RDWR | O_CREAT | O_EXCL)
                 : -1;
    bool kept = fd >= 0 && vfs_write_all(repair->vfs, fd, bytes, length, 0) &&
                file->fdatasync(repair->vfs, fd) == 0;
    vfs_close(repair->vfs, fd);
    return kept || repair_fail(repair, called, "kept in " REPAIR_KEPT_NAME);
}

/* ---- MANIFEST ---- */

struct text {
    size_t length;
};

static bool text_fits(void *context, const void *bytes)
{
    const struct text *text = context;
    return manifest_checksum_fits(bytes, text->length);
}

static void no_manifest(struct repair *repair, const char *why)
{
    repair_cannot(repair,
                  "%s: what it knows (which files count, and the secrets of the spaces) is "
                  "nowhere else: restore it, with all files it names, from a copy of the directory",
                  why);
}

static bool store_text(struct repair *repair, const char *damaged, const char *text, size_t length)
{
    if (!repair_keep_bytes(repair, MANIFEST_NAME, 0, damaged, length)) {
        return false;
    }
    return vfs_replace_file(repair->vfs, repair->options->directory, MANIFEST_NAME, text, length) ||
           repair_fail(repair, MANIFEST_NAME, "replaced");
}

/* One bit of it may have turned over. */
static void mend_manifest(struct repair *repair, const char *why)
{
    char path[VFS_PATH_MAX], error[MANIFEST_ERROR_MAX];
    struct text text = {0};
    char *damaged = vfs_path(path, repair->options->directory, MANIFEST_NAME)
                        ? vfs_read_file(repair->vfs, path, MEND_TEXT_BYTES, &text.length)
                        : NULL;
    char *mended = damaged ? memory_zalloc(text.length + 1) : NULL;
    if (damaged) {
        memcpy(mended, damaged, text.length);
    }
    if (!damaged || !one_bit_mend(mended, text.length, text_fits, &text) ||
        manifest_parse(mended, text.length, path, &repair->manifest, error) != MANIFEST_SOUND) {
        no_manifest(repair, why);
    } else {
        repair->repairs++;
        repair_say(repair, "%s: one bit had turned over; it is turned back, nothing is lost", path);
        if (repair->options->yes) {
            store_text(repair, damaged, mended, text.length);
        }
    }
    free(mended);
    free(damaged);
}

/* False: nothing else can be done. */
static bool repair_manifest(struct repair *repair, enum verb_exit *status)
{
    char error[MANIFEST_ERROR_MAX] = "";
    const char *directory = repair->options->directory;
    switch (manifest_load(repair->vfs, directory, &repair->manifest, error)) {
    case MANIFEST_SOUND:
        return true;
    case MANIFEST_DAMAGED:
        mend_manifest(repair, error);
        return repair->manifest != NULL && !repair->failed;
    case MANIFEST_NONE:
        snprintf(error, sizeof(error), "%s/" MANIFEST_NAME " is missing", directory);
        no_manifest(repair, error);
        return false;
    case MANIFEST_NEWER:
    case MANIFEST_FAILED:
        break;
    }
    *status = verb_complain(repair->errors, "%s", error);
    return false;
}

/* ---- the whole ---- */

static enum verb_exit verdict(struct repair *repair)
{
    const struct repair_options *options = repair->options;
    const struct verify_options look = {.directory = options->directory};
    if (repair->failed) {
        return VERB_DAMAGED;
    }
    if (repair->repairs > 0 && !options->yes) {
        repair_say(repair,
                   "nothing was changed: `rollcall repair --yes %s` does all this, and keeps what "
                   "it replaces in %s/" REPAIR_KEPT_NAME,
                   options->directory, options->directory);
        return VERB_DAMAGED;
    }
    enum verb_exit status = verify_locked(repair->vfs, &look, repair->out, repair->errors);
    return repair->hopeless > 0 ? VERB_DAMAGED : status;
}

static enum verb_exit repair_run(struct repair *repair)
{
    enum verb_exit status = VERB_DAMAGED;
    if (!repair_manifest(repair, &status)) {
        return status;
    }
    repair_journal(repair);
    if (!repair->failed) {
        repair_tables(repair);
    }
    return verdict(repair);
}

enum verb_exit repair_directory(struct vfs *vfs, const struct repair_options *options, FILE *out,
                                FILE *errors)
{
    struct repair repair = {.options = options, .out = out, .errors = errors};
    struct dir_lock lock;
    char words[DIR_LOCK_WORDS_MAX];
    switch (dir_lock_take(vfs, options->directory, &lock)) {
    case DIR_LOCK_TAKEN:
        break;
    case DIR_LOCK_HELD:
        return verb_complain(errors, "%s %s: stop it first", options->directory,
                             dir_lock_words(&lock, words));
    case DIR_LOCK_FAILED:
        return verb_complain(errors, "%s: %s", options->directory, strerror(errno));
    }
    repair.vfs = lock.vfs;
    enum verb_exit status = data_is_filling(lock.vfs, options->directory)
                                ? verb_complain(errors, DATA_FILLING_WORDS, options->directory)
                                : repair_run(&repair);
    manifest_destroy(repair.manifest);
    dir_lock_give(&lock);
    return status;
}

/* ---- the command line ---- */

static const struct option_row repair_rows[] = {
    {"yes", ARGUMENTS_FLAG(struct repair_options, yes), .help = "do it"},
    {"drop-from", ARGUMENTS_NUMBER(struct repair_options, drop_from, 0, REPAIR_DROP_NOTHING - 1),
     .help = "give up the journal's records from this LSN on: for a start that refuses one of them "
             "after records before it were lost"},
    {.name = NULL},
};

static const struct arguments repair_line = {
    .name = "repair",
    .words = "DIR",
    .examples = "  rollcall repair /var/lib/rollcall\n"
                "  rollcall repair --yes /var/lib/rollcall\n",
    .does =
        "Finds what is damaged in a data directory that no daemon uses, and says what can be had\n"
        "again, what is lost, and which ids that concerns. With --yes it does what it says; the\n"
        "rest is never touched. What it replaces is kept in DIR/lost.",
    .ends =
        "A table file is written anew without its bad pages. Bad records of the journal become\n"
        "empty ones; later ones stay. A bit that has turned over is turned back.\n"
        "Exit status: 0 sound, or all repaired; 1 damage (without --yes it stays); 2 bad options,\n"
        "no data directory, in use, or of a newer version.",
    .rows = repair_rows,
    .words_least = 1,
    .words_most = 1,
};

/* Files that root makes would not be the daemon's: what is done is done as the directory's owner.
 */
static bool become_owner(const char *directory)
{
    struct stat status;
    if (geteuid() != 0 || stat(directory, &status) != 0 || status.st_uid == 0) {
        return true;
    }
    return setegid(status.st_gid) == 0 && seteuid(status.st_uid) == 0;
}

int repair_main(int argc, char **argv)
{
    struct repair_options options = {.drop_from = REPAIR_DROP_NOTHING};
    int status = arguments_take(&repair_line, argc, argv, &options);

    if (status >= 0) {
        return status;
    }
    options.directory = argv[optind];
    if (!become_owner(options.directory)) {
        return (int)verb_complain(stderr, "%s: cannot become its owner: %s", options.directory,
                                  strerror(errno));
    }
    return (int)repair_directory(vfs_real(), &options, stdout, stderr);
}
