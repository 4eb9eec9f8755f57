/*
 * binary_private.h: what the files of the binary codec share.
 *
 * A packet, asked or answered, is a header of BINARY_HEADER_BYTES, then extras, key and value,
 * which together are its body. Every number is big-endian.
 *
 *     offset  bytes  request                      answer
 *     0       1      BINARY_MAGIC                 0x81
 *     1       1      opcode                       the request's
 *     2       2      length of the key            the same
 *     4       1      length of the extras         the same
 *     5       1      data type, not looked at     0
 *     6       2      bucket, not looked at        enum binary_status
 *     8       4      length of the body           the same
 *     12      4      opaque                       the request's
 *     16      8      cas to compare with; 0: none cas of what is stored; 0: none
 *
 * Pure; any thread.
 */
#ifndef ROLLCALL_PROTOCOL_BINARY_PRIVATE_H
#define ROLLCALL_PROTOCOL_BINARY_PRIVATE_H

#include <endian.h>
#include <string.h>

#include "protocol/binary.h"

#define BINARY_FLAGS_BYTES  4 /* extras of a hit */
#define BINARY_NUMBER_BYTES 8 /* value of an answered incr or decr */

enum binary_opcode {
    BINARY_GET = 0x00,
    BINARY_SET = 0x01,
    BINARY_ADD = 0x02,
    BINARY_REPLACE = 0x03,
    BINARY_DELETE = 0x04,
    BINARY_INCR = 0x05,
    BINARY_DECR = 0x06,
    BINARY_QUIT = 0x07,
    BINARY_FLUSH = 0x08,
    BINARY_GETQ = 0x09,
    BINARY_NOOP = 0x0a,
    BINARY_VERSION = 0x0b,
    BINARY_GETK = 0x0c,
    BINARY_GETKQ = 0x0d,
    BINARY_APPEND = 0x0e,
    BINARY_PREPEND = 0x0f,
    BINARY_STAT = 0x10,
    BINARY_SETQ = 0x11,
    BINARY_ADDQ = 0x12,
    BINARY_REPLACEQ = 0x13,
    BINARY_DELETEQ = 0x14,
    BINARY_INCRQ = 0x15,
    BINARY_DECRQ = 0x16,
    BINARY_QUITQ = 0x17,
    BINARY_FLUSHQ = 0x18,
    BINARY_APPENDQ = 0x19,
    BINARY_PREPENDQ = 0x1a,
    BINARY_VERBOSITY = 0x1b,
    BINARY_TOUCH = 0x1c,
    BINARY_GAT = 0x1d,
    BINARY_GATQ = 0x1e,
    BINARY_SASL_LIST = 0x20,
    BINARY_SASL_START = 0x21,
    BINARY_SASL_STEP = 0x22,
    BINARY_GATK = 0x23,
    BINARY_GATKQ = 0x24,
    BINARY_GETS = 0x48,  /* as BINARY_GET; proxies of one family send it */
    BINARY_GETSQ = 0x49, /* as BINARY_GETQ */
};

enum binary_status {
    BINARY_OK = 0x00,
    BINARY_NOT_FOUND = 0x01,
    BINARY_EXISTS = 0x02,
    BINARY_TOO_LARGE = 0x03,
    BINARY_INVALID = 0x04,
    BINARY_NOT_STORED = 0x05,
    BINARY_NON_NUMERIC = 0x06,
    BINARY_AUTH = 0x20,
    BINARY_UNKNOWN_COMMAND = 0x81,
    BINARY_OUT_OF_MEMORY = 0x82,
    BINARY_INTERNAL = 0x84,
    BINARY_BUSY = 0x85,
};

/* Reads a number at any address. */
static inline uint16_t binary_read16(const char *from)
{
    uint16_t number;
    memcpy(&number, from, sizeof(number));
    return be16toh(number);
}

static inline uint32_t binary_read32(const char *from)
{
    uint32_t number;
    memcpy(&number, from, sizeof(number));
    return be32toh(number);
}

static inline uint64_t binary_read64(const char *from)
{
    uint64_t number;
    memcpy(&number, from, sizeof(number));
    return be64toh(number);
}

/* Fills what a packet's answer needs of its header. */
static inline void binary_fill_asked(struct request_binary *asked, const char *header)
{
    asked->opcode = (uint8_t)header[1];
    memcpy(&asked->opaque, header + 12, sizeof(asked->opaque));
}

/* binary_auth.c, binary_compose.c: the functions of struct codec. */

enum auth_wish binary_auth_read(const char *bytes, size_t length, struct auth_request *request);

size_t binary_compose_bytes_max(const struct request *request);
void binary_compose_value(struct buf *out, const struct request *request,
                          const struct request_key *key, const struct hit *hit);
void binary_compose_values(struct buf *out, const struct request *request,
                           const struct request_key *keys, const struct found *found, size_t count,
                           size_t value_bytes, uint32_t flags);
bool binary_compose_alike(struct buf *out, const struct request *request,
                          const struct request_key *keys, const struct found *found, size_t count,
                          uint32_t flags);
void binary_compose_miss(struct buf *out, const struct request *request,
                         const struct request_key *key);
void binary_compose_end(struct buf *out, const struct request *request);
bool binary_compose_stat(struct buf *out, const struct request *request, const char *name,
                         const char *text);
void binary_compose_stats_end(struct buf *out, const struct request *request);
void binary_compose(struct buf *out, const struct request *request, const struct reply *reply);
void binary_compose_numbers(struct buf *out, const struct request *requests,
                            const uint64_t *numbers, const uint64_t *tokens, size_t count);

#endif
