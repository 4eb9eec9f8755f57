/* load_input.c: lines of files and stdin, one file after the other. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "tools/rollcall/load_private.h"
#include "tools/rollcall/verb.h"

#define READ_BYTES (1u << 20)

static bool is_stdin(const char *name)
{
    return strcmp(name, "-") == 0;
}

static bool input_fail(struct load_input *input, const char *what)
{
    return fail_with(input->error, sizeof(input->error), "%.200s: %.200s",
                     input->files[input->place.file], what);
}

/* Zero unless all are ordinary files. */
static uint64_t input_bytes(char **files, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        struct stat is;

        if (is_stdin(files[i]) || stat(files[i], &is) != 0 || !S_ISREG(is.st_mode)) {
            return 0;
        }
        bytes += (uint64_t)is.st_size;
    }
    return bytes;
}

bool load_input_there(char **files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!is_stdin(files[i]) && access(files[i], R_OK) != 0) {
            verb_complain(stderr, "%s: %s", files[i], strerror(errno));
            return false;
        }
    }
    return true;
}

void load_input_init(struct load_input *input, char **files, size_t count)
{
    *input = (struct load_input){.files = files, .count = count, .fd = -1};
    input->bytes_whole = input_bytes(files, count);
    input->room = READ_BYTES + LOAD_LINE_MAX + 1;
    input->data = memory_zalloc(input->room);
}

static void close_file(struct load_input *input)
{
    if (input->fd > STDIN_FILENO) {
        close(input->fd);
    }
    input->fd = -1;
    input->at = input->length = 0;
    input->file_ended = false;
    input->noted = false;
}

void load_input_fini(struct load_input *input)
{
    close_file(input);
    free(input->data);
}

static bool input_open(struct load_input *input)
{
    const char *name = input->files[input->place.file];

    input->fd = is_stdin(name) ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC);
    input->mistaken = input->fd < 0;
    return input->fd >= 0 || input_fail(input, strerror(errno));
}

/* Skips bytes of what cannot be sought in. */
static bool skip_bytes(struct load_input *input, uint64_t bytes)
{
    while (bytes > 0) {
        size_t piece = bytes < READ_BYTES ? (size_t)bytes : READ_BYTES;
        ssize_t got = read(input->fd, input->data, piece);

        if (got <= 0) {
            return input_fail(input, LOAD_SHORTER);
        }
        bytes -= (uint64_t)got;
    }
    return true;
}

bool load_input_seek(struct load_input *input, const struct load_place *place)
{
    input->place = *place;
    input->bytes_before = input_bytes(input->files, (size_t)place->file);
    if (place->file == input->count || place->offset == 0) {
        return true;
    }
    if (!input_open(input)) {
        return false;
    }
    struct stat is;

    if (fstat(input->fd, &is) == 0 && S_ISREG(is.st_mode)) {
        return (uint64_t)is.st_size >= place->offset &&
                       lseek(input->fd, (off_t)place->offset, SEEK_SET) >= 0
                   ? true
                   : input_fail(input, LOAD_SHORTER);
    }
    return skip_bytes(input, place->offset);
}

/* Reads more after what is left. False: an error. */
static bool read_more(struct load_input *input)
{
    input->length -= input->at;
    memmove(input->data, input->data + input->at, input->length);
    input->at = 0;
    ssize_t got = read(input->fd, input->data + input->length, READ_BYTES);

    if (got < 0) {
        return errno == EINTR || input_fail(input, strerror(errno));
    }
    input->length += (size_t)got;
    input->file_ended = got == 0;
    return true;
}

static void next_file(struct load_input *input)
{
    input->bytes_before += input->place.offset;
    close_file(input);
    input->place = (struct load_place){.file = input->place.file + 1};
}

/* The line there, if it is whole. */
static char *line_there(struct load_input *input, size_t *length)
{
    char *start = input->data + input->at;
    size_t left = input->length - input->at;
    char *end = left > 0 ? memchr(start, '\n', left) : NULL;

    if (end == NULL && !(input->file_ended && left > 0)) {
        return NULL;
    }
    size_t taken = end != NULL ? (size_t)(end - start) + 1 : left;

    *length = end != NULL ? taken - 1 : left;
    input->at += taken;
    input->place.offset += taken;
    input->place.line++;
    if (*length > 0 && start[*length - 1] == '\r') {
        (*length)--;
    }
    start[*length] = '\0'; /* after the last line there is room for it */
    return start;
}

/* What an export of a part says of itself is no row. */
static bool line_is_note(const struct load_input *input, const char *line)
{
    return input->place.line == 1 && strncmp(line, VERB_EXPORT_NOTE, strlen(VERB_EXPORT_NOTE)) == 0;
}

char *load_input_line(struct load_input *input, size_t *length, bool *first)
{
    while (input->place.file < input->count) {
        if (input->fd < 0 && !input_open(input)) {
            return NULL;
        }
        char *line = line_there(input, length);

        if (line != NULL && line_is_note(input, line)) {
            input->noted = true;
            continue;
        }
        if (line != NULL) {
            *first = input->place.line == 1 + (uint64_t)input->noted;
            return line;
        }
        if (input->file_ended) {
            next_file(input);
        } else if (input->length - input->at > LOAD_LINE_MAX) {
            input_fail(input, "a line is longer than 64 KiB");
            return NULL;
        } else if (!read_more(input)) {
            return NULL;
        }
    }
    input->error[0] = '\0';
    return NULL;
}
