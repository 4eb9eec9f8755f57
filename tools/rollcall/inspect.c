/* inspect.c: the verb: options, and which kind of file it is. */
#include "tools/rollcall/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "store/dir_lock.h"
#include "store/journal.h"
#include "store/journal_format.h"
#include "store/manifest.h"
#include "store/table_file_format.h"
#include "tools/rollcall/arguments.h"
#include "tools/rollcall/inspect_private.h"

#define HEAD_BYTES    32 /* of a file: enough to tell its kind */
#define MANIFEST_HEAD "rollcall-manifest "

/* ---- which kind ---- */

static bool has_magic(const unsigned char *head, uint64_t magic)
{
    return memcmp(head, &magic, sizeof(magic)) == 0;
}

static bool is_manifest(const unsigned char *head)
{
    return memcmp(head, MANIFEST_HEAD, sizeof(MANIFEST_HEAD) - 1) == 0;
}

static bool is_journal(const unsigned char *head)
{
    return has_magic(head, JOURNAL_MAGIC);
}

static bool inspect_is_table(const unsigned char *head)
{
    return has_magic(head, TABLE_FILE_MAGIC);
}

/* Returns whether the name is that of a manifest: a file with a damaged beginning still has its
 * name. */
static bool called_manifest(const char *name)
{
    return strcmp(name, MANIFEST_NAME) == 0;
}

static bool called_journal(const char *name)
{
    uint64_t start;
    return journal_name_parse(name, &start);
}

static bool called_table(const char *name)
{
    return verb_ends_with(name, MANIFEST_TABLE_SUFFIX);
}

static const struct {
    bool (*begins)(const unsigned char *head);
    bool (*called)(const char *name);
    enum verb_exit (*print)(const struct inspect *inspect);
} formats[] = {
    {is_manifest, called_manifest, inspect_manifest},
    {is_journal, called_journal, inspect_journal},
    {inspect_is_table, called_table, inspect_table},
};
#define FORMATS (sizeof(formats) / sizeof(*formats))

/* Its index; FORMATS: none of ours. */
static size_t format_of(const unsigned char *head, const char *name)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].begins(head)) {
            return i;
        }
    }
    for (size_t i = 0; i < FORMATS; i++) {
        if (formats[i].called(name)) {
            return i;
        }
    }
    return FORMATS;
}

static bool read_head(const struct inspect *inspect, unsigned char head[HEAD_BYTES])
{
    const char *path = inspect->options->path;
    /* something strange, as a FIFO, must not hold it up */
    int fd = inspect->vfs->functions->open(inspect->vfs, path, O_RDONLY | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : vfs_read_all(inspect->vfs, fd, head, HEAD_BYTES, 0);
    if (got < 0) {
        verb_complain(inspect->errors, "%s: %s", path, strerror(errno));
    }
    vfs_close(inspect->vfs, fd);
    return got >= 0;
}

/* ---- those that hold nothing ---- */

static const struct {
    const char *name, *what;
} marks[] = {
    {DIR_LOCK_NAME, "the process id of the daemon that used the directory last"},
    {JOURNAL_BALLAST_NAME, "room kept for a start on a full disk; it holds nothing"},
    {JOURNAL_SPARE_NAME, "the next segment of the journal; it holds nothing yet"},
};

/* NULL: it is none. */
static const char *mark_of(const char *name)
{
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        if (strcmp(marks[i].name, name) == 0) {
            return marks[i].what;
        }
    }
    return NULL;
}

static enum verb_exit tell_mark(const struct inspect *inspect, const char *what)
{
    fprintf(inspect->out, "%s: %s\n", inspect->options->path, what);
    return VERB_SOUND;
}

enum verb_exit inspect_file(struct vfs *vfs, const struct inspect_options *options, FILE *out,
                            FILE *errors)
{
    struct inspect inspect = {.vfs = vfs, .options = options, .out = out, .errors = errors};
    unsigned char head[HEAD_BYTES] = {0};
    if (!read_head(&inspect, head)) {
        return VERB_USAGE;
    }
    const char *name = verb_base_name(options->path);
    size_t format = format_of(head, name);
    if (format == FORMATS && mark_of(name)) {
        return tell_mark(&inspect, mark_of(name));
    }
    if (format == FORMATS) {
        return verb_complain(errors,
                             "%s: not a " MANIFEST_NAME ", a segment of a journal or a table file",
                             options->path);
    }
    if (options->page != INSPECT_NO_PAGE && formats[format].print != inspect_table) {
        return verb_complain(errors, "%s: not a table file: it has no pages", options->path);
    }
    return formats[format].print(&inspect);
}

/* ---- the command line ---- */

static const struct option_row inspect_rows[] = {
    {"limit", ARGUMENTS_NUMBER(struct inspect_options, limit, 0, UINT64_MAX), .initial = "100",
     .help = "records of a segment, files of a space, entries of a section that are shown; 0: all"},
    {"page", ARGUMENTS_NUMBER(struct inspect_options, page, 0, INSPECT_NO_PAGE - 1),
     .help = "one page of a table file, from 0, in hex, sound or not"},
    {.name = NULL},
};

static const struct arguments inspect_line = {
    .name = "inspect",
    .words = "FILE",
    .examples = "  rollcall inspect /var/lib/rollcall/MANIFEST\n",
    .does =
        "Prints a file of a data directory as text: MANIFEST, a segment of the journal, a table\n"
        "file. What it reads is checked; rollcall verify checks the whole directory.",
    .ends =
        "Exit status: 0 sound, 1 damaged, 2 bad options, or a file that is none of these or of\n"
        "a newer version.",
    .rows = inspect_rows,
    .words_least = 1,
    .words_most = 1,
};

int inspect_main(int argc, char **argv)
{
    struct inspect_options options = {.page = INSPECT_NO_PAGE};
    int status = arguments_take(&inspect_line, argc, argv, &options);

    if (status >= 0) {
        return status;
    }
    options.path = argv[optind];
    return (int)inspect_file(vfs_real(), &options, stdout, stderr);
}
