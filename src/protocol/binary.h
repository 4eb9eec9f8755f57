/*
 * binary.h: the binary dialect of the memcached protocol as a codec.
 *
 * protocol.md is the contract: opcodes, statuses, what is silent. One bounds check at the door:
 * 24 bytes of header, extras + key <= body <= what the opcode may have, extras exactly what it
 * takes; nothing is computed in a signed type. An unknown opcode skips exactly its body
 * (state.swallow_bytes). Deltas are put into the batch's scratch as digits. Pure; any thread.
 */
#ifndef ROLLCALL_PROTOCOL_BINARY_H
#define ROLLCALL_PROTOCOL_BINARY_H

#include "protocol/codec.h"

#define BINARY_MAGIC        0x80 /* the first byte of a request, 0x81 that of an answer */
#define BINARY_HEADER_BYTES 24

const struct codec *binary_codec(void);

#endif
