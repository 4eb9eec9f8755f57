/*
 * segment.c: makes a journal's segment of records that were received: header page with a mark that
 * all are durable, records as they come on standard input.
 *
 *     tests/repl/segment DIRECTORY LSN EPOCH < RECORDS
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/journal_format.h"

#define PIECE_BYTES 65536

static uint64_t number_of(const char *text)
{
    return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
    static char page[JOURNAL_PAGE_BYTES], piece[PIECE_BYTES];
    char name[JOURNAL_NAME_MAX], path[4096];
    unsigned char mark_bytes[JOURNAL_MARK_BYTES];
    size_t got;

    if (argc != 4) {
        fprintf(stderr, "usage: segment DIRECTORY LSN EPOCH < RECORDS\n");
        return 2;
    }
    struct journal_header header = {.epoch = number_of(argv[3]),
                                    .number = 1,
                                    .start = number_of(argv[2]),
                                    .bytes = JOURNAL_SEGMENT_BYTES_MAX};
    journal_name(name, header.start);
    snprintf(path, sizeof(path), "%s/%s", argv[1], name);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    journal_page_encode(&header, page);
    fwrite(page, 1, sizeof(page), file);
    struct journal_mark mark = {.durable = header.start, .serial = 1};
    while ((got = fread(piece, 1, sizeof(piece), stdin)) > 0) {
        fwrite(piece, 1, got, file);
        mark.durable += got;
    }
    uint64_t offset = journal_mark_encode(&header, &mark, mark_bytes);
    fseek(file, (long)offset, SEEK_SET);
    fwrite(mark_bytes, 1, sizeof(mark_bytes), file);
    return fclose(file) == 0 ? 0 : 1;
}
