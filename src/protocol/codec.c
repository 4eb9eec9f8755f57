#include "protocol/codec.h"

#include "protocol/binary.h"
#include "protocol/text.h"

#define TLS_HELLO 0x16 /* the first byte of a client's handshake */

const struct codec *codec_of(unsigned char first)
{
    const struct codec *const codecs[] = {binary_codec(), text_codec()}; /* FIRST_ANY: the last */

    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]) && first != TLS_HELLO; i++) {
        if (codecs[i]->first_byte == first || codecs[i]->first_byte == CODEC_FIRST_ANY) {
            return codecs[i];
        }
    }
    return NULL;
}
