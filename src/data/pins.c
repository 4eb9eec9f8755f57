/*
 * pins.c: which files stay for a copy.
 *
 * The lock is held from reading a manifest to having its pin in the list, and by who deletes what a
 * newer one does not name: so all that a pin names is there.
 *
 * The end of a pin deletes only what was discarded meanwhile. What else the manifest of now lacks a
 * checkpoint may be about to discard: the engine reads it until it was handed the newer file.
 */
#include "data/pins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/data_private.h"

/* ---- taking ---- */

static bool pin_read(const struct data *data, struct data_pin *pin, char error[DATA_ERROR_MAX])
{
    char why[MANIFEST_ERROR_MAX];

    pin->text = vfs_read_in(data->vfs, data->directory, MANIFEST_NAME, MANIFEST_BYTES_MAX,
                            &pin->text_length);
    if (pin->text == NULL) {
        return data_refuse(error, "%s/" MANIFEST_NAME ": %s", data->directory, strerror(errno));
    }
    return manifest_parse(pin->text, pin->text_length, MANIFEST_NAME, &pin->manifest, why) ==
               MANIFEST_SOUND ||
           data_refuse(error, "%s", why);
}

static void pin_free(struct data_pin *pin)
{
    manifest_destroy(pin->manifest);
    free(pin->text);
    free(pin);
}

struct data_pin *data_pin_take(struct data *data, char error[DATA_ERROR_MAX])
{
    struct data_pin *pin = memory_zalloc(sizeof(*pin));

    pthread_mutex_lock(&data->lock);
    bool taken = pin_read(data, pin, error);

    if (taken) {
        pin->next = data->pins;
        data->pins = pin;
    }
    pthread_mutex_unlock(&data->lock);
    if (!taken) {
        pin_free(pin);
        return NULL;
    }
    return pin;
}

/* ---- deleting ---- */

/* Under the lock. NULL: no pin names it. */
static const struct manifest_file *pins_find(const struct data *data, const char *name)
{
    const struct manifest_file *file = NULL;

    for (const struct data_pin *pin = data->pins; pin != NULL && file == NULL; pin = pin->next) {
        file = manifest_find_file(pin->manifest, name);
    }
    return file;
}

void data_discard_file(struct data *data, const char *name)
{
    const struct manifest_file *file = pins_find(data, name);

    if (file == NULL) {
        data_delete_file(data, name);
        return;
    }
    data->kept = array_room(data->kept, data->kept_count, &data->kept_room, sizeof(*data->kept));
    struct data_kept *kept = &data->kept[data->kept_count++];

    memcpy(kept->name, file->name, sizeof(kept->name));
    kept->bytes = file->bytes;
}

/* Under the lock: takes those out of data->kept that no pin names any more. Returns them and their
 * number; the caller frees them. */
static struct data_kept *pins_take_unnamed(struct data *data, size_t *count)
{
    struct data_kept *unnamed = memory_zalloc((data->kept_count + 1) * sizeof(*unnamed));
    size_t left = 0;

    *count = 0;
    for (size_t i = 0; i < data->kept_count; i++) {
        if (pins_find(data, data->kept[i].name) == NULL) {
            unnamed[(*count)++] = data->kept[i];
        } else {
            data->kept[left++] = data->kept[i];
        }
    }
    data->kept_count = left;
    return unnamed;
}

static void pins_delete(struct data *data, const struct data_kept *unnamed, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        data_delete_file(data, unnamed[i].name); /* no name is used twice */
        bytes += unnamed[i].bytes;
    }
    if (count > 0) {
        log_info("table files that stayed for a copy are deleted files=%zu bytes=%llu", count,
                 (unsigned long long)bytes);
    }
}

void data_pin_give(struct data *data, struct data_pin *pin)
{
    if (pin == NULL) {
        return;
    }
    size_t count;

    pthread_mutex_lock(&data->lock);
    struct data_pin **at = &data->pins;

    while (*at != pin) {
        CHECK(*at != NULL);
        at = &(*at)->next;
    }
    *at = pin->next;
    struct data_kept *unnamed = pins_take_unnamed(data, &count);

    data_count_files(data);
    pthread_mutex_unlock(&data->lock);
    pins_delete(data, unnamed, count);
    free(unnamed);
    pin_free(pin);
}
