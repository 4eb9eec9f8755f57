/* fuzz_binary.c: the binary dialect's codec. */
#include "protocol/binary.h"
#include "tests/fuzz/codec_run.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    codec_run(binary_codec(), (const char *)data, size);
    return 0;
}
