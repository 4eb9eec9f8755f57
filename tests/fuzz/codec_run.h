/*
 * codec_run.h: bytes through a codec, whole and in pieces. CHECKed: offsets rise and stay in the
 * bytes, keys and values lie in them (or in the batch's scratch), answers fit reply_bytes_max, and
 * any splits, batches cut short, gets cut short and gets joined make the same requests and answers
 * of them.
 */
#ifndef ROLLCALL_TESTS_FUZZ_CODEC_RUN_H
#define ROLLCALL_TESTS_FUZZ_CODEC_RUN_H

#include "protocol/codec.h"

void codec_run(const struct codec *codec, const char *bytes, size_t length);

#endif
