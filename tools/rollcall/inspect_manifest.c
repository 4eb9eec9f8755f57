/* inspect_manifest.c: a manifest, its lines as they are meant. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/manifest.h"
#include "tools/rollcall/inspect_private.h"

static int widest_name(const struct manifest_space *space)
{
    size_t widest = strlen("file");
    for (size_t i = 0; i < space->files_count; i++) {
        size_t length = strlen(space->files[i].name);
        widest = length > widest ? length : widest;
    }
    return (int)widest;
}

static void print_file(FILE *out, const struct manifest_file *file, int width)
{
    fprintf(out,
            "  %-*s  %-5s %8" PRIu64 " %5" PRIu64 " %10" PRIu64 " %14" PRIu64 " %14" PRIu64
            " %19" PRIu64 " %19" PRIu64 " %13" PRIu64 "\n",
            width, file->name, file->role == MANIFEST_IMAGE ? "image" : "dump", file->serial,
            file->layer, file->generation, file->start_lsn, file->end_lsn, file->first_id,
            file->last_id, file->bytes);
}

/* A label of eight bytes is an LSN. */
static void print_data(FILE *out, const struct manifest_data *data)
{
    uint64_t lsn;
    if (data->length == sizeof(lsn)) {
        memcpy(&lsn, data->bytes, sizeof(lsn));
        fprintf(out, "  data %s: LSN %" PRIu64 "\n", data->label, lsn);
        return;
    }
    fprintf(out, "  data %s, %zu bytes: ", data->label, data->length);
    inspect_hex(out, data->bytes, data->length);
    fputc('\n', out);
}

static void print_space(const struct inspect *inspect, const struct manifest_space *space)
{
    FILE *out = inspect->out;
    int width = widest_name(space);
    fprintf(out, "\nspace %s: number %" PRIu64 ", kind %s, %zu file%s\n", space->name,
            space->number, space->kind, space->files_count, space->files_count == 1 ? "" : "s");
    for (size_t i = 0; i < space->data_count; i++) {
        print_data(out, &space->data[i]);
    }
    if (space->files_count > 0) {
        fprintf(out, "  %-*s  %-5s %8s %5s %10s %14s %14s %19s %19s %13s\n", width, "file", "role",
                "serial", "layer", "generation", "S", "E", "first id", "last id", "bytes");
    }
    size_t shown = 0;
    while (shown < space->files_count && inspect_wants(inspect, shown)) {
        print_file(out, &space->files[shown++], width);
    }
    if (shown < space->files_count) {
        fprintf(out, "  ... (%zu more; --limit 0 shows all)\n", space->files_count - shown);
    }
}

static void print(const struct inspect *inspect, const struct manifest *manifest)
{
    inspect_field(inspect, "manifest", "format %u", MANIFEST_VERSION);
    inspect_field(inspect, "epoch", "%" PRIu64, manifest->epoch);
    inspect_field(inspect, "stop", "%s",
                  manifest->clean_stop ? "clean" : "no: killed, or running still");
    inspect_field(inspect, "table event", "the last one in it: LSN %" PRIu64,
                  manifest->table_event_lsn);
    inspect_field(inspect, "journal", "replay begins at LSN %" PRIu64, manifest->journal_lsn);
    inspect_field(inspect, "stream", "%016" PRIx64 "%016" PRIx64, manifest->stream[0],
                  manifest->stream[1]);
    for (size_t i = 0; i < manifest->history_count; i++) {
        inspect_field(inspect, "reign", "epoch %" PRIu64 " from LSN %" PRIu64,
                      manifest->history[i].epoch, manifest->history[i].lsn);
    }
    for (size_t i = 0; i < manifest->spaces_count; i++) {
        print_space(inspect, &manifest->spaces[i]);
    }
}

enum verb_exit inspect_manifest(const struct inspect *inspect)
{
    char error[MANIFEST_ERROR_MAX];
    const char *path = inspect->options->path;
    struct manifest *manifest = NULL;
    size_t length = 0;
    char *text = vfs_read_file(inspect->vfs, path, MANIFEST_BYTES_MAX, &length);
    if (!text) {
        int reason = errno;
        verb_complain(inspect->errors, "%s: %s", path, strerror(reason));
        return reason == EFBIG ? VERB_DAMAGED : VERB_USAGE;
    }
    enum manifest_state state = manifest_parse(text, length, path, &manifest, error);
    free(text);
    if (state != MANIFEST_SOUND) {
        verb_complain(inspect->errors, "%s", error);
        return state == MANIFEST_NEWER ? VERB_USAGE : VERB_DAMAGED;
    }
    print(inspect, manifest);
    manifest_destroy(manifest);
    return VERB_SOUND;
}
