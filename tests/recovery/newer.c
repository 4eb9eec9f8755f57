/*
 * newer.c: makes a manifest one of the next format version, sound in all else, as a newer rollcalld
 * would leave it.
 *
 * usage: newer MANIFEST. Exit 1: it could not be done. store/manifest.h has the lines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FIRST_LINE    "rollcall-manifest "
#define CHECKSUM_LINE "checksum "
#define CHECKSUM_SEED 0x54534546494e414dull /* as store/manifest_text.c */
#define BYTES_MAX     (1u << 20)

int main(int argc, char **argv)
{
    static char text[BYTES_MAX + 1], changed[BYTES_MAX + 64];
    FILE *file = argc == 2 ? fopen(argv[1], "r+") : NULL;
    size_t length = file != NULL ? fread(text, 1, BYTES_MAX, file) : 0;
    char *rest = strchr(text, '\n');
    char *last = strstr(text, "\n" CHECKSUM_LINE);
    if (length == 0 || rest == NULL || last == NULL ||
        strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) != 0) {
        fprintf(stderr, "newer: no manifest\n");
        return 1;
    }
    unsigned long version = strtoul(text + strlen(FIRST_LINE), NULL, 10);
    last[1] = '\0';
    int size = snprintf(changed, sizeof(changed), FIRST_LINE "%lu%s", version + 1, rest);
    uint64_t sum = hash_bytes(changed, (size_t)size, CHECKSUM_SEED);
    rewind(file);
    fprintf(file, "%s" CHECKSUM_LINE "%016" PRIx64 "\n", changed, sum);
    return fclose(file) == 0 ? 0 : 1;
}
