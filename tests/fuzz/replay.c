/* replay.c: the main of a target without a fuzzer: runs every file of the folders it is given, or
 * of its own corpus. */
#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define PATH_BYTES 4096
#define FILE_MAX   (16u << 20)
#define PREFIX     "fuzz_"

static void run_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *bytes = memory_zalloc(FILE_MAX);

    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t length = fread(bytes, 1, FILE_MAX, file);
    char *copy = fuzz_copy(bytes, length);

    fclose(file);
    free(bytes);
    LLVMFuzzerTestOneInput((const uint8_t *)copy, length);
    free(copy);
}

static unsigned run_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    char path[PATH_BYTES];
    unsigned count = 0;

    if (directory == NULL) {
        perror(folder);
        exit(1);
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            run_file(path);
            count++;
        }
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv)
{
    const char *source = getenv("ROLLCALL_SOURCE");
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash != NULL ? slash + 1 : argv[0];
    char folder[PATH_BYTES];
    unsigned count = 0;

    for (int i = 1; i < argc; i++) {
        count += run_folder(argv[i]);
    }
    if (argc == 1) {
        CHECK(strncmp(name, PREFIX, strlen(PREFIX)) == 0);
        snprintf(folder, sizeof(folder), "%s/tests/fuzz/corpus/%s", source != NULL ? source : ".",
                 name + strlen(PREFIX));
        count = run_folder(folder);
    }
    printf("%s: %u inputs\n", name, count);
    return count > 0 ? 0 : 1;
}
