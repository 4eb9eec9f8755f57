/* fuzz_meta.c: the meta commands: each line of the input, with `m` put in front, so that most of
 * them are one. */
#include "base/buf.h"
#include "protocol/text.h"
#include "tests/fuzz/codec_run.h"
#include "tests/fuzz/fuzz.h"

#define BYTES_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data;
    const char *end = at + size;
    struct buf bytes;

    buf_init(&bytes, BYTES_MAX, NULL);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline != NULL ? newline + 1 : end;

        CHECK(buf_append(&bytes, "m", 1) && buf_append(&bytes, at, (size_t)(next - at)));
        at = next;
    }
    codec_run(text_codec(), bytes.data, bytes.length);
    buf_fini(&bytes);
    return 0;
}
