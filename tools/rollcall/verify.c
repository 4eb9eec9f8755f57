/* verify.c: the verb: options, the order of the checks, and what is printed. */
#include "tools/rollcall/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memory.h"
#include "base/size.h"
#include "store/dir_lock.h"
#include "store/journal_format.h"
#include "tools/rollcall/arguments.h"
#include "tools/rollcall/verify_private.h"

/* Beside a daemon files come and go: what is found is only said if it is found again. */
#define ATTEMPTS_BESIDE_DAEMON 3
#define RENEWALS_MAX           100 /* of MANIFEST, in one look */
#define CLEAR_LINE             "\r\033[K"

/* ---- what is printed ---- */

void verify_progress(struct verify *verify, const char *format, ...)
{
    if (!verify->options->progress) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    fputs(CLEAR_LINE, verify->errors);
    vfprintf(verify->errors, format, arguments);
    fflush(verify->errors);
    va_end(arguments);
}

static void end_progress(struct verify *verify)
{
    if (verify->options->progress) {
        fputs(CLEAR_LINE, verify->errors);
        fflush(verify->errors);
    }
}

void verify_begin(struct verify *verify, const char *name)
{
    if (verify->count.file_findings > VERIFY_FINDINGS_MAX) {
        end_progress(verify);
        fprintf(verify->out, "%" PRIu64 " more findings in the same file\n",
                verify->count.file_findings - VERIFY_FINDINGS_MAX);
    }
    verify->count.file_findings = 0;
    verify_progress(verify, "checking %s/%s", verify->options->directory, name);
}

static void verify_say(struct verify *verify, const char *format, va_list arguments)
{
    end_progress(verify);
    vfprintf(verify->out, format, arguments);
    fputc('\n', verify->out);
}

void verify_finding(struct verify *verify, const char *format, ...)
{
    verify->count.findings++;
    if (++verify->count.file_findings > VERIFY_FINDINGS_MAX) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    verify_say(verify, format, arguments);
    va_end(arguments);
}

void verify_unjudged(struct verify *verify, const char *text)
{
    verify->count.unjudged++;
    end_progress(verify);
    fprintf(verify->out, "%s\n", text);
}

void verify_note(struct verify *verify, const char *format, ...)
{
    if (verify->options->quiet) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    verify_say(verify, format, arguments);
    va_end(arguments);
}

static enum verb_exit summarise(struct verify *verify)
{
    char size[SIZE_TEXT_MAX];
    enum verb_exit status = verify->count.findings > 0   ? VERB_DAMAGED
                            : verify->count.unjudged > 0 ? VERB_USAGE
                                                         : VERB_SOUND;
    if (verify->options->quiet) {
        return status;
    }
    if (verify->count.findings > 0) {
        fprintf(verify->out, "damaged: %" PRIu64 " finding%s in ", verify->count.findings,
                verify->count.findings == 1 ? "" : "s");
    } else {
        fputs(status == VERB_SOUND ? "sound: " : "not all can be judged: ", verify->out);
    }
    fprintf(verify->out, "%" PRIu64 " file%s, %s, journal %" PRIu64 " record%s\n",
            verify->count.files, verify->count.files == 1 ? "" : "s",
            size_text(size, verify->count.bytes), verify->count.records,
            verify->count.records == 1 ? "" : "s");
    return status;
}

/* ---- the directory ---- */

bool verify_path(struct verify *verify, char path[VFS_PATH_MAX], const char *name)
{
    if (vfs_path(path, verify->options->directory, name)) {
        return true;
    }
    verify_finding(verify, "%s/%s: the name is too long", verify->options->directory, name);
    return false;
}

void verify_count_file(struct verify *verify, const char *name)
{
    int64_t size = vfs_size_in(verify->vfs, verify->options->directory, name);
    if (size >= 0) {
        verify->count.files++;
        verify->count.bytes += (uint64_t)size;
    }
}

static void take_name(void *context, const char *name)
{
    struct verify *verify = context;

    verify->names =
        array_room(verify->names, verify->names_count, &verify->names_room, sizeof(*verify->names));
    verify->names[verify->names_count++] = memory_strdup(name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool verify_list(struct verify *verify)
{
    const char *directory = verify->options->directory;
    if (verify->vfs->functions->list(verify->vfs, directory, take_name, verify) != 0) {
        verb_complain(verify->errors, "%s: %s", directory, strerror(errno));
        return false;
    }
    if (verify->names_count > 0) {
        qsort(verify->names, verify->names_count, sizeof(*verify->names), by_text);
    }
    return true;
}

/* Anything a daemon would have made. */
static bool is_data_directory(struct verify *verify)
{
    uint64_t start;
    for (size_t i = 0; i < verify->names_count; i++) {
        const char *name = verify->names[i];
        if (strcmp(name, MANIFEST_NAME) == 0 || journal_name_parse(name, &start) ||
            verify_is_table(verify, name)) {
            return true;
        }
    }
    verb_complain(verify->errors,
                  "%s: not a data directory: it has no " MANIFEST_NAME ", no journal, no table",
                  verify->options->directory);
    return false;
}

static void verify_manifest(struct verify *verify)
{
    char error[MANIFEST_ERROR_MAX];
    const char *directory = verify->options->directory;
    verify_begin(verify, MANIFEST_NAME);
    verify->manifest_state = manifest_load(verify->vfs, directory, &verify->manifest, error);
    switch (verify->manifest_state) {
    case MANIFEST_SOUND:
        break;
    case MANIFEST_NONE:
        verify_finding(verify, "%s/" MANIFEST_NAME ": is missing; restore the file from a copy",
                       directory);
        return;
    case MANIFEST_NEWER:
        verify_unjudged(verify, error);
        break;
    case MANIFEST_DAMAGED:
    case MANIFEST_FAILED:
        verify_finding(verify, "%s", error);
        break;
    }
    verify_count_file(verify, MANIFEST_NAME);
}

/* ---- beside a daemon, which replaces files ---- */

void verify_part_begin(struct verify *verify, struct verify_part *part)
{
    *part = (struct verify_part){.out = verify->out, .count = verify->count};
    part->memory = verify->running ? open_memstream(&part->text, &part->length) : NULL;
    verify->out = part->memory ? part->memory : part->out;
}

void verify_part_end(struct verify *verify, struct verify_part *part, bool said)
{
    verify->out = part->out;
    if (!part->memory) {
        return;
    }
    fclose(part->memory);
    if (said) {
        fputs(part->text, verify->out);
    } else {
        verify->count = part->count;
    }
    free(part->text);
}

struct manifest *verify_manifest_now(struct verify *verify)
{
    char error[MANIFEST_ERROR_MAX];
    struct manifest *now = NULL;
    if (!verify->running || !verify->manifest || verify->renewals >= RENEWALS_MAX ||
        manifest_load(verify->vfs, verify->options->directory, &now, error) != MANIFEST_SOUND) {
        manifest_destroy(now);
        return NULL;
    }
    return now;
}

void verify_renew(struct verify *verify, struct manifest *now)
{
    manifest_destroy(verify->manifest);
    verify->manifest = now;
    verify->renewals++;
    verify->journal_known = false; /* it has gone on since */
}

static enum verb_exit verify_look(struct verify *verify)
{
    if (!verify_list(verify) || !is_data_directory(verify)) {
        return VERB_USAGE;
    }
    verify_manifest(verify);
    verify_journal(verify);
    verify_tables(verify);
    verify_begin(verify, "");
    verify_leftovers(verify);
    end_progress(verify);
    return summarise(verify);
}

static enum verb_exit verify_attempt(struct vfs *vfs, const struct verify_options *options,
                                     bool running, FILE *out, FILE *errors)
{
    struct verify verify = {
        .vfs = vfs, .options = options, .out = out, .errors = errors, .running = running};
    enum verb_exit status = verify_look(&verify);
    for (size_t i = 0; i < verify.names_count; i++) {
        free(verify.names[i]);
    }
    free(verify.names);
    manifest_destroy(verify.manifest);
    return status;
}

/* What the last attempt printed is what is printed. */
static enum verb_exit beside_daemon(struct vfs *vfs, const struct verify_options *options,
                                    FILE *out, FILE *errors)
{
    enum verb_exit status = VERB_DAMAGED;
    char *text = NULL;
    for (unsigned i = 0; i < ATTEMPTS_BESIDE_DAEMON && status == VERB_DAMAGED; i++) {
        size_t length;
        free(text);
        text = NULL;
        FILE *memory = open_memstream(&text, &length);
        if (!memory) {
            return verify_attempt(vfs, options, true, out, errors);
        }
        status = verify_attempt(vfs, options, true, memory, errors);
        fclose(memory);
    }
    fputs(text, out);
    free(text);
    return status;
}

enum verb_exit verify_locked(struct vfs *vfs, const struct verify_options *options, FILE *out,
                             FILE *errors)
{
    return verify_attempt(vfs, options, false, out, errors);
}

enum verb_exit verify_directory(struct vfs *vfs, const struct verify_options *options, FILE *out,
                                FILE *errors)
{
    struct dir_lock lock;
    char words[DIR_LOCK_WORDS_MAX];

    switch (dir_lock_take_reading(vfs, options->directory, &lock)) {
    case DIR_LOCK_TAKEN: /* a daemon that began now would change what is looked at */
        break;
    case DIR_LOCK_HELD:
        if (!options->quiet) {
            verb_complain(errors,
                          "%s %s: this is a look at what is changing; stop it for a verdict that "
                          "lasts",
                          options->directory, dir_lock_words(&lock, words));
        }
        return beside_daemon(vfs, options, out, errors);
    case DIR_LOCK_FAILED: /* it may be looked at all the same */
        return verify_locked(vfs, options, out, errors);
    }
    enum verb_exit status = verify_locked(lock.vfs, options, out, errors);

    dir_lock_give(&lock);
    return status;
}

/* ---- the command line ---- */

static const struct option_row verify_rows[] = {
    {"quiet", ARGUMENTS_FLAG(struct verify_options, quiet), .help = "findings only"},
    {.name = NULL},
};

static const struct arguments verify_line = {
    .name = "verify",
    .words = "DIR",
    .examples = "  rollcall verify /var/lib/rollcall\n",
    .does =
        "Reads a data directory whole and checks every checksum, order and count: MANIFEST, the\n"
        "files it names, the journal. Changes nothing. A line for each finding, then a summary.\n"
        "A daemon that is started meanwhile is refused; one that runs is not disturbed.",
    .ends =
        "A torn end of the journal is no damage: a kill or a power cut leaves it, the next start\n"
        "cuts it off. Files that are left over are none either: the next start deletes them.\n"
        "Exit status: 0 sound, 1 damage found, 2 bad options, no data directory, or (without\n"
        "damage) a file of a newer version.",
    .rows = verify_rows,
    .words_least = 1,
    .words_most = 1,
};

int verify_main(int argc, char **argv)
{
    struct verify_options options = {.progress = isatty(STDERR_FILENO)};
    int status = arguments_take(&verify_line, argc, argv, &options);

    if (status >= 0) {
        return status;
    }
    options.directory = argv[optind];
    return (int)verify_directory(vfs_real(), &options, stdout, stderr);
}
