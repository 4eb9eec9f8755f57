/* fuzz_text.c: the text dialect's codec, as clients of old send it. */
#include "protocol/text.h"
#include "tests/fuzz/codec_run.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    codec_run(text_codec(), (const char *)data, size);
    return 0;
}
