/* settings_text.c: the bytes of a configuration, as they are: of a file, or built in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "config/settings_draft.h"

char *settings_built_in_text(size_t *length)
{
    char *text = NULL;
    FILE *memory = open_memstream(&text, length);

    CHECK(memory != NULL);
    settings_print_sample(memory);
    CHECK(fclose(memory) == 0);
    return text;
}

char *settings_file_text(struct settings_draft *draft, const char *name, size_t *length)
{
    char *text = NULL;
    FILE *file = fopen(name, "re");

    if (file == NULL) {
        goto failed;
    }
    text = memory_zalloc(SETTINGS_FILE_BYTES_MAX + 2);
    *length = fread(text, 1, SETTINGS_FILE_BYTES_MAX + 1, file);
    if (ferror(file)) {
        goto failed_open;
    }
    fclose(file);
    if (*length <= SETTINGS_FILE_BYTES_MAX) {
        return text;
    }
    settings_error(draft, NULL, "%s: larger than 1MiB: is this a configuration?", name);
    free(text);
    return NULL;
failed_open:
    free(text);
    fclose(file);
failed:
    settings_error(draft, NULL, "cannot read %s: %s", name, strerror(errno));
    return NULL;
}
