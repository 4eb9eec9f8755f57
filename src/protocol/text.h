/*
 * text.h: the text dialect of the memcached protocol as a codec.
 *
 * protocol.md is the contract: verbs, limits and the exact error lines. Tokenised first, then a
 * table of commands. Pure; any thread; the state is the caller's. Cost: about half a ns a byte of
 * command line; data blocks are not looked at.
 */
#ifndef ROLLCALL_PROTOCOL_TEXT_H
#define ROLLCALL_PROTOCOL_TEXT_H

#include "protocol/codec.h"

const struct codec *text_codec(void);

#endif
