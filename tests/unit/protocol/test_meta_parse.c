/*
 * test_meta_parse.c: meta lines to requests: every flag of every command, every refusal, any split.
 *
 * Requests are compared as traces (support/request_trace.h); <…> is the line that answers read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/meta.h"
#include "protocol/text.h"
#include "tests/support/random.h"
#include "tests/support/request_trace.h"

#define TEN        "0123456789"
#define FIFTY      TEN TEN TEN TEN TEN
#define KEY_250    FIFTY FIFTY FIFTY FIFTY FIFTY
#define KEY_251    KEY_250 "k"
#define OPAQUE_32  TEN TEN TEN "32"
#define BAD_FORMAT "refuse client [bad command line format]"
#define INVALID    "refuse client [invalid flag]"
#define DUPLICATE  "refuse client [duplicate flag]"
#define BAD_TOKEN  "refuse client [bad token in command line format]"
#define BAD_KEY    "refuse client [error decoding key]"

struct row {
    const char *input;
    const char *trace;
};

static void check_splits(const char *input, const char *expected)
{
    size_t length = strlen(input);
    for (size_t split = 1; split < length; split++) {
        struct request_trace trace;
        request_trace_open(&trace, text_codec());
        request_trace_split(&trace, input, length, split);
        if (strcmp(trace.text, expected) != 0) {
            print_error("split at %zu:\n%s\nexpected:\n%s\ngot:\n%s\n", split, input, expected,
                        trace.text);
        }
        assert_string_equal(trace.text, expected);
        request_trace_close(&trace);
    }
}

/* Each row whole, and cut in two at every byte. */
static void expect_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        request_trace_expect(text_codec(), rows[i].input, rows[i].trace, PROTOCOL_MORE,
                             strlen(rows[i].input));
        check_splits(rows[i].input, rows[i].trace);
    }
}

#define EXPECT_ROWS(rows) expect_rows(rows, sizeof(rows) / sizeof(rows)[0])

static void test_get(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"mg a\r\n", "get a <a>\n"},
        {"mg a\n", "get a <a>\n"},
        {" mg  a \r\n", "get a <a>\n"},
        {"mg a v\r\n", "get a <a v>\n"},
        {"mg a  v   k \r\n", "get a <a  v   k>\n"},
        {"mg a s v t f k O1\r\n", "get a <a s v t f k O1>\n"},
        {"mg a c\r\n", "get a +cas <a c>\n"},
        {"mg a q\r\n", "get a usual <a q>\n"},
        {"mg a O\r\n", "get a <a O>\n"},
        {"mg a O" OPAQUE_32 "\r\n", "get a <a O" OPAQUE_32 ">\n"},
        {"mg a vfoo k5\r\n", "get a <a vfoo k5>\n"},
        {"mg a P/x Ly\r\n", "get a <a P/x Ly>\n"},
        {"mg a C5\r\n", "get a cas=5 +cas <a C5>\n"},
        {"mg a T30 v\r\n", "gat a exptime=30 <a T30 v>\n"},
        {"mg a T0\r\n", "gat a <a T0>\n"},
        {"mg a T-1\r\n", "gat a exptime=-1 <a T-1>\n"},
        {"mg noreply\r\n", "get noreply <noreply>\n"},
        {"mg " KEY_250 "\r\n", "get " KEY_250 " <" KEY_250 ">\n"},
        {"mg a v\r\nmg b v\r\n", "get a <a v>\nget b <b v>\n"},
        {"mg a v k q\r\nmg bc v k q\r\nmg d v k q\n", /* lines end alike, or nearly so */
         "get a usual <a v k q>\nget bc usual <bc v k q>\nget d usual <d v k q>\n"},
        {"mg a v\r\nmg b v k\r\nma c v\r\nmg d v\n\nmg e v\r\n",
         "get a <a v>\nget b <b v k>\nincr c (1) <c v>\nget d <d v>\nrefuse error\n"
         "get e <e v>\n"},
        {"mg a v\r\nmg b q\rx\r\nmg c v\r\nmn\r\n",
         "get a <a v>\nget b usual <b q\rx>\nget c <c v>\nnoop\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_get_refused(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"mg\r\n", "refuse error\n"},
        {"mg \r\n", "refuse error\n"},
        {"MG a\r\n", "refuse error\n"},
        {"mg " KEY_251 " v\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"mg a v v\r\n", DUPLICATE "\n"},
        {"mg a k kx\r\n", DUPLICATE "\n"},
        {"mg a O1 O2\r\n", DUPLICATE "\n"},
        {"mg a O" OPAQUE_32 "x\r\n", "refuse client [opaque token too long]\n"},
        {"mg a Z\r\n", INVALID "\n"},
        {"mg a z\r\n", INVALID "\n"},
        {"mg a 1\r\n", INVALID "\n"},
        {"mg a - v\r\n", INVALID "\n"},
        {"mg a \x01\r\n", INVALID "\n"},
        {"mg a \x7f\r\n", INVALID "\n"},
        {"mg a \x80\r\n", INVALID "\n"},
        {"mg a \xff\r\n", INVALID "\n"},
        {"mg a v @\r\n", INVALID "\n"},
        {"mg a v noreply\r\n", INVALID "\n"},
        {"mg a Rx\r\n", BAD_TOKEN "\n"},
        {"mg a N\r\n", BAD_TOKEN "\n"},
        {"mg a E-1\r\n", BAD_TOKEN "\n"},
        {"mg a i\r\n", INVALID "\n"},
        {"mg a S1\r\n", INVALID "\n"},
        {"mg a T\r\n", BAD_TOKEN "\n"},
        {"mg a T v\r\n", BAD_TOKEN "\n"},
        {"mg a T+\r\n", BAD_TOKEN "\n"},
        {"mg a Tx\r\n", BAD_TOKEN "\n"},
        {"mg a T2147483648\r\n", BAD_TOKEN "\n"},
        {"mg a Cx\r\n", BAD_TOKEN "\n"},
        {"mg a q Tx v\r\n", BAD_TOKEN "\n"}, /* q silences no error */
        {"mg a Tx Z\r\n", INVALID "\n"},     /* what is unknown comes before what is bad */
        {"mg a Tx v v\r\n", DUPLICATE "\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_base64(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"mg YQ== b v\r\n", "get a <YQ== b v>\n"},
        {"mg YWI= v b\r\n", "get ab <YWI= v b>\n"},
        {"mg YWJj b\r\n", "get abc <YWJj b>\n"},
        {"mg ZmVlZDoxMjMubGlrZQ== b\r\n", "get feed:123.like <ZmVlZDoxMjMubGlrZQ== b>\n"},
        {"mg /+8= b\r\n", "get \xff\xef </+8= b>\n"},
        {"mg IAo= b\r\n", "get  \n <IAo= b>\n"},
        {"md YWI= b\r\n", "delete ab <YWI= b>\n"},
        {"ma YWI= b\r\n", "incr ab (1) <YWI= b>\n"},
        {"ms YWI= 1 b\r\nx\r\n", "set ab (x) <YWI= 1 b>\n"},
        {"me YWI= b\r\n", "get ab +cas +unnoticed <YWI= b> +info\n"},
        {"mg YQ b\r\n", BAD_KEY "\n"},
        {"mg Y b\r\n", BAD_KEY "\n"},
        {"mg YQ= b\r\n", BAD_KEY "\n"},
        {"mg Y=== b\r\n", BAD_KEY "\n"},
        {"mg ==== b\r\n", BAD_KEY "\n"},
        {"mg YQ=a b\r\n", BAD_KEY "\n"},
        {"mg !!!! b\r\n", BAD_KEY "\n"},
        {"mg YW_j b\r\n", BAD_KEY "\n"},
        {"mg YWJ\xe1 b\r\n", BAD_KEY "\n"},
        {"mg a: b k\r\n", BAD_KEY "\n"},
        {"mg YQ== b b\r\n", DUPLICATE "\n"},
        {"ms Y 1 b\r\nx\r\nmn\r\n", BAD_KEY " +swallow\nnoop\n"},
        {"md Y b\r\n", BAD_KEY "\n"},
        {"ma Y b\r\n", BAD_KEY "\n"},
        {"me Y b\r\n", BAD_FORMAT "\n"},
        {"mg " KEY_251 "x b\r\n", BAD_FORMAT "\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_set(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"ms a 1\r\nx\r\n", "set a (x) <a 1>\n"},
        {"ms a 0\r\n\r\n", "set a () <a 0>\n"},
        {"ms a 3\na\nb\r\n", "set a (a\nb) <a 3>\n"},
        {"ms a +1 k\r\nx\r\n", "set a (x) <a +1 k>\n"},
        {"ms a 1 F7 T60 k O1 s\r\nx\r\n", "set a (x) flags=7 exptime=60 <a 1 F7 T60 k O1 s>\n"},
        {"ms a 1 F4294967295 T-1\r\nx\r\n",
         "set a (x) flags=4294967295 exptime=-1 <a 1 F4294967295 T-1>\n"},
        {"ms a 1 c q\r\nx\r\n", "set a (x) +cas usual <a 1 c q>\n"},
        {"ms a 1 MS\r\nx\r\n", "set a (x) <a 1 MS>\n"},
        {"ms a 1 Mset\r\nx\r\n", "refuse client [invalid mode for ms M token] +swallow\n"},
        {"ms a 1 MSET\r\nx\r\n", "set a (x) <a 1 MSET>\n"},
        {"ms a 1 ME\r\nx\r\n", "add a (x) <a 1 ME>\n"},
        {"ms a 1 MR\r\nx\r\n", "replace a (x) <a 1 MR>\n"},
        {"ms a 1 MA\r\nx\r\n", "append a (x) <a 1 MA>\n"},
        {"ms a 1 MP\r\nx\r\n", "prepend a (x) <a 1 MP>\n"},
        {"ms a 1 C5\r\nx\r\n", "cas a (x) cas=5 <a 1 C5>\n"},
        {"ms a 1 C0\r\nx\r\n", "cas a (x) <a 1 C0>\n"},
        {"ms a 1 C18446744073709551615 MS\r\nx\r\n",
         "cas a (x) cas=18446744073709551615 <a 1 C18446744073709551615 MS>\n"},
        {"ms a 1 C5 MR\r\nx\r\n", "cas a (x) cas=5 <a 1 C5 MR>\n"},
        {"ms a 1 C5 ME\r\nx\r\n", "add a (x) <a 1 C5 ME>\n"},
        {"ms a 1 C5 MA\r\nx\r\n", "append a (x) cas=5 +compare <a 1 C5 MA>\n"},
        {"ms a 1 C0 MP\r\nx\r\n", "prepend a (x) <a 1 C0 MP>\n"},
        {"ms a 1 P L1\r\nx\r\n", "set a (x) <a 1 P L1>\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_set_refused(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        /* the block is swallowed when its length could be read … */
        {"ms " KEY_251 " 1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"ms a 1 Z\r\nx\r\nmn\r\n", INVALID " +swallow\nnoop\n"},
        {"ms a 4 Z\r\nmn\r\n\r\nmn\r\n", INVALID " +swallow\nnoop\n"},
        {"ms a 1 k k\r\nx\r\nmn\r\n", DUPLICATE " +swallow\nnoop\n"},
        {"ms a 1 F\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"ms a 1 Fx\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"ms a 1 F-1\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"ms a 1 F4294967296\r\nx\r\nmn\r\n", BAD_FORMAT " +swallow\nnoop\n"},
        {"ms a 1 T\r\nx\r\nmn\r\n", BAD_TOKEN " +swallow\nnoop\n"},
        {"ms a 1 Tx q\r\nx\r\nmn\r\n", BAD_TOKEN " +swallow\nnoop\n"},
        {"ms a 1 C\r\nx\r\nmn\r\n", BAD_TOKEN " +swallow\nnoop\n"},
        {"ms a 1 C-1\r\nx\r\nmn\r\n", BAD_TOKEN " +swallow\nnoop\n"},
        {"ms a 1 M\r\nx\r\nmn\r\n", "refuse client [invalid mode for ms M token] +swallow\nnoop\n"},
        {"ms a 1 M k\r\nx\r\nmn\r\n",
         "refuse client [invalid mode for ms M token] +swallow\nnoop\n"},
        {"ms a 1 MZ\r\nx\r\nmn\r\n",
         "refuse client [invalid mode for ms M token] +swallow\nnoop\n"},
        {"ms a 1 O" OPAQUE_32 "x\r\nx\r\nmn\r\n",
         "refuse client [opaque token too long] +swallow\nnoop\n"},
        {"ms a 1 noreply\r\nx\r\nmn\r\n", INVALID " +swallow\nnoop\n"},
        /* … and only then */
        {"ms\r\n", "refuse error\n"},
        {"ms a\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"ms a x\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"ms a S1\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"ms a -1\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"ms a 1x\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"ms a 2147483647\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        {"ms a 99999999999999999999999 q\r\nmn\r\n", BAD_FORMAT "\nnoop\n"},
        /* the block itself */
        {"ms a 1\r\nxyz\r\n", "refuse client [bad data chunk]\nrefuse error\n"},
        {"ms a 1 q\r\nxyzmn\r\n", "refuse client [bad data chunk]\nnoop\n"},
        {"ms a 1\r\nx\nymn\r\n", "refuse client [bad data chunk]\nnoop\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_delete(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"md a\r\n", "delete a <a>\n"},
        {"md a k O1 q\r\n", "delete a usual <a k O1 q>\n"},
        {"md a C5\r\n", "delete a cas=5 +compare <a C5>\n"},
        {"md a C0\r\n", "delete a +compare <a C0>\n"},
        {"md\r\n", "refuse error\n"},
        {"md " KEY_251 "\r\n", BAD_FORMAT "\n"},
        {"md a 0\r\n", INVALID "\n"},
        {"md a k k\r\n", DUPLICATE "\n"},
        {"md a Cx\r\n", BAD_TOKEN "\n"},
        {"md a O" OPAQUE_32 "x\r\n", "refuse client [opaque token too long]\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_arithmetic(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"ma a\r\n", "incr a (1) <a>\n"},
        {"ma a v k O1 t\r\n", "incr a (1) <a v k O1 t>\n"},
        {"ma a c q\r\n", "incr a (1) +cas usual <a c q>\n"},
        {"ma a D5\r\n", "incr a (5) <a D5>\n"},
        {"ma a D+5 v\r\n", "incr a (5) <a D+5 v>\n"},
        {"ma a D0\r\n", "incr a (0) <a D0>\n"},
        {"ma a D18446744073709551615\r\n",
         "incr a (18446744073709551615) <a D18446744073709551615>\n"},
        {"ma a MI\r\n", "incr a (1) <a MI>\n"},
        {"ma a M+\r\n", "incr a (1) <a M+>\n"},
        {"ma a MINCR\r\n", "incr a (1) <a MINCR>\n"},
        {"ma a MD D3\r\n", "decr a (3) <a MD D3>\n"},
        {"ma a M-\r\n", "decr a (1) <a M->\n"},
        {"ma a MDECR\r\n", "decr a (1) <a MDECR>\n"},
        {"ma a N0\r\n", "incr a (1) create <a N0>\n"},
        {"ma a N60 J13 D2\r\n", "incr a (2) exptime=60 initial=13 create <a N60 J13 D2>\n"},
        {"ma a J18446744073709551615 N-1\r\n",
         "incr a (1) exptime=-1 initial=18446744073709551615 create "
         "<a J18446744073709551615 N-1>\n"},
        {"ma a J13\r\n", "incr a (1) <a J13>\n"},
        {"ma a T30\r\n", "incr a (1) touch=30 <a T30>\n"},
        {"ma a N60 T30\r\n",
         "incr a (1) exptime=60 touch=30 create vivify=60-first +touch <a N60 T30>\n"},
        {"ma a C5 MD\r\n", "decr a (1) cas=5 +compare <a C5 MD>\n"},
        {"ma a C0\r\n", "incr a (1) <a C0>\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_arithmetic_refused(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"ma\r\n", "refuse error\n"},
        {"ma " KEY_251 "\r\n", BAD_FORMAT "\n"},
        {"ma a 1\r\n", INVALID "\n"},
        {"ma a v v\r\n", DUPLICATE "\n"},
        {"ma a D\r\n", "refuse client [invalid numeric delta value]\n"},
        {"ma a D+\r\n", "refuse client [invalid numeric delta value]\n"},
        {"ma a Dx\r\n", "refuse client [invalid numeric delta value]\n"},
        {"ma a D-1\r\n", "refuse client [invalid numeric delta value]\n"},
        {"ma a D1,,3,\r\n", "refuse client [invalid numeric delta value]\n"},
        {"ma a D18446744073709551616\r\n", "refuse client [invalid numeric delta value]\n"},
        {"ma a J\r\n", "refuse client [invalid numeric initial value]\n"},
        {"ma a Jx q\r\n", "refuse client [invalid numeric initial value]\n"},
        {"ma a N\r\n", BAD_TOKEN "\n"},
        {"ma a Nx\r\n", BAD_TOKEN "\n"},
        {"ma a Tx\r\n", BAD_TOKEN "\n"},
        {"ma a Cx\r\n", BAD_TOKEN "\n"},
        {"ma a M\r\n", "refuse client [invalid mode for ma M token]\n"},
        {"ma a Mi\r\n", "refuse client [invalid mode for ma M token]\n"},
        {"ma a MS\r\n", "refuse client [invalid mode for ma M token]\n"},
        {"ma a Jx Dx\r\n", "refuse client [invalid numeric delta value]\n"}, /* the last one */
    };
    EXPECT_ROWS(rows);
}

/* What only plain values honour, and how much of it they are asked. */
static void test_plain_only(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"mg a u\r\n", "get a +unnoticed <a u>\n"},
        {"mg a h l\r\n", "get a +plain <a h l>\n"},
        {"mg a M J1 F2 D3\r\n", "get a +plain <a M J1 F2 D3>\n"},
        {"mg a N30\r\n", "get a +plain vivify=30 <a N30>\n"},
        {"mg a R-5 q\r\n", "get a usual +plain recache=-5 <a R-5 q>\n"},
        {"mg a E9 N0\r\n", "get a +plain vivify=0 token=9 <a E9 N0>\n"},
        {"mg a N1 R2 T3\r\n",
         "gat a exptime=3 +plain vivify=1-first recache=2-first +touch <a N1 R2 T3>\n"},
        {"mg a T3 N1 R2\r\n", "gat a exptime=3 +plain vivify=1 recache=2 +touch <a T3 N1 R2>\n"},
        {"ms a 1 t v h\r\nx\r\n", "set a (x) +plain <a 1 t v h>\n"},
        {"ms a 1 I C5\r\nx\r\n", "cas a (x) cas=5 +plain +invalidate <a 1 I C5>\n"},
        {"ms a 1 E5\r\nx\r\n", "set a (x) +plain token=5 <a 1 E5>\n"},
        {"ms a 1 N5 MA\r\nx\r\n", "append a (x) +plain vivify=5 <a 1 N5 MA>\n"},
        {"ms a 1 s MA\r\nx\r\n", "append a (x) <a 1 s MA>\n"},
        {"md a I T30\r\n", "delete a exptime=30 +plain +invalidate +touch <a I T30>\n"},
        {"md a x F7 E5\r\n", "delete a flags=7 +plain token=5 +empty <a x F7 E5>\n"},
        {"md a v\r\n", "delete a +plain <a v>\n"},
        {"ma a E5\r\n", "incr a (1) +plain token=5 <a E5>\n"},
        {"ma a s F1\r\n", "incr a (1) +plain <a s F1>\n"},
        {"ma a T30 N60\r\n",
         "incr a (1) exptime=60 touch=30 create vivify=60 +touch <a T30 N60>\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_info_and_noop(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"me a\r\n", "get a +cas +unnoticed <a> +info\n"},
        {"me a k O5 q\r\n", "get a +cas +unnoticed <a k O5 q> +info\n"},
        {"me a k k Z\r\n", "get a +cas +unnoticed <a k k Z> +info\n"},
        {"me a k b\r\n",
         "get a +cas +unnoticed <a k b> +info\n"}, /* b is looked for in one place */
        {"me\r\n", BAD_FORMAT "\n"},
        {"me " KEY_251 "\r\n", BAD_FORMAT "\n"},
        {"mn\r\n", "noop\n"},
        {"mn a b\r\n", "noop (a b)\n"},
    };
    EXPECT_ROWS(rows);
}

/* META_TOKENS_MAX tokens are taken, one more is not; nor is what the fixed seven do not hold. */
static void test_tokens(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {"mg a A B D E F G H I J K L M N P Q R S U\r\n", INVALID "\n"}, /* 20 */
        {"mg a A B D E F G H I J K L M N P Q R S U V\r\n",
         "refuse client [options flags are too long]\n"},
        {"md a A B D E F G H I J K L M N P Q R S U V\r\n",
         "refuse client [options flags are too long]\n"},
        {"ma a A B D E F G H I J K L M N P Q R S U V\r\n",
         "refuse client [options flags are too long]\n"},
        {"ms a 1 A B D E F G H I J K L M N P Q R S\r\nx\r\nmn\r\n", INVALID " +swallow\nnoop\n"},
        {"ms a 1 A B D E F G H I J K L M N P Q R S U\r\nx\r\nmn\r\n",
         "refuse client [options flags are too long] +swallow\nnoop\n"},
        {"ma a b N1 J2 D3 MI v k Ox c t q C4 T5 P L\r\n", BAD_KEY "\n"},
        {"ma YQ== b N1 J2 D3 MD v k Ox c t q C4 T5 P L\r\n",
         "decr a (3) exptime=1 touch=5 cas=4 initial=2 create +cas +compare usual vivify=1-first "
         "+touch "
         "<YQ== b N1 J2 D3 MD v k Ox c t q C4 T5 P L>\n"},
        {"mg a v k s f c C1 t O1 q Z Z\r\n", INVALID "\n"},
        {"mg a v k s f c C1 t O1 q v\r\n", DUPLICATE "\n"},
    };
    EXPECT_ROWS(rows);
}

static void test_value_limit(void **unused)
{
    (void)unused;
    static char input[PROTOCOL_VALUE_MAX + 64];
    for (size_t over = 0; over < 2; over++) {
        struct request_trace trace;
        struct protocol_state state = {0};
        size_t length = (size_t)sprintf(input, "ms a %zu\r\n", PROTOCOL_VALUE_MAX + over);
        memset(input + length, 'x', PROTOCOL_VALUE_MAX + over);
        length += PROTOCOL_VALUE_MAX + over;
        length += (size_t)sprintf(input + length, "\r\nmn\r\n");
        request_trace_open(&trace, text_codec());
        assert_int_equal(request_trace_parse(&trace, &state, input, length), PROTOCOL_MORE);
        assert_int_equal(trace.batch->request_count, 2);
        assert_int_equal(trace.batch->requests[0].verb, over ? VERB_ERROR : VERB_SET);
        if (over) {
            assert_int_equal(trace.batch->requests[0].refusal, REPLY_SERVER_ERROR);
            assert_string_equal(trace.batch->requests[0].text, "object too large for cache");
        }
        assert_int_equal(trace.batch->requests[1].verb, VERB_NOOP);
        request_trace_close(&trace);
    }
}

/* Keys in base64 fill the scratch before the requests fill the batch: the rest waits for the next.
 */
static void test_scratch_is_full(void **unused)
{
    (void)unused;
    static const char line[] = "mg " FIFTY FIFTY FIFTY FIFTY TEN TEN TEN TEN "01234567 b\r\n";
    const size_t decoded = 248 / 4 * 3;
    struct request_trace input, whole;
    size_t consumed;
    size_t n = PROTOCOL_BATCH_REQUESTS;
    request_trace_open(&input, NULL);
    request_trace_open(&whole, text_codec());
    for (size_t i = 0; i < n; i++) {
        request_trace_say(&input, "%s", line);
    }
    struct protocol_state state = {0};
    assert_int_equal(request_trace_parse(&whole, &state, input.text, input.length), PROTOCOL_FULL);
    const struct request_batch *batch = whole.batch;
    assert_int_equal(batch->scratch_used, batch->request_count * decoded);
    assert_true(batch->scratch_used + PROTOCOL_KEY_MAX > PROTOCOL_SCRATCH_BYTES);
    for (uint32_t i = 0; i < batch->key_count; i++) {
        assert_int_equal(batch->keys[i].length, decoded);
        assert_memory_equal(batch->keys[i].bytes, batch->keys[0].bytes, decoded);
        assert_ptr_equal(batch->keys[i].bytes, batch->scratch + i * decoded);
    }
    assert_int_equal(request_trace_whole(&whole, input.text, input.length, &consumed),
                     PROTOCOL_MORE);
    assert_int_equal(consumed, input.length);
    request_trace_close(&whole);
    request_trace_close(&input);
}

/* Of values that are too large the keys are kept: older values of them are to go. */
static void test_keys_of_too_large(void **unused)
{
    (void)unused;
    static char input[2 * PROTOCOL_VALUE_MAX + 256];
    struct request_trace trace;
    struct protocol_state state = {0};
    size_t length = 0;
    for (unsigned i = 0; i < 2; i++) {
        length += (size_t)sprintf(input + length, "ms %s %u b\r\n", i == 0 ? "YWFh" : "YmJi",
                                  PROTOCOL_VALUE_MAX + 1);
        memset(input + length, 'x', PROTOCOL_VALUE_MAX + 1);
        length += PROTOCOL_VALUE_MAX + 1;
        length += (size_t)sprintf(input + length, "\r\n");
    }
    request_trace_open(&trace, text_codec());
    assert_int_equal(request_trace_parse(&trace, &state, input, length), PROTOCOL_MORE);
    assert_int_equal(trace.batch->request_count, 2);
    assert_int_equal(trace.batch->key_count, 2);
    assert_memory_equal(trace.batch->keys[0].bytes, "aaa", 3);
    assert_memory_equal(trace.batch->keys[1].bytes, "bbb", 3);
    request_trace_close(&trace);
}

/* What is refused or not whole takes nothing of the scratch. */
static void test_scratch_of_refusals(void **unused)
{
    (void)unused;
    static const char input[] = "mg YQ== b v v\r\nms YQ== 1 b MZ\r\nx\r\nms YQ== 1 b\r\nxyz"
                                "mg !Q== b\r\nms YQ== 1 b\r\nx";
    struct request_trace trace;
    struct protocol_state state = {0};
    request_trace_open(&trace, text_codec());
    assert_int_equal(request_trace_parse(&trace, &state, input, sizeof(input) - 1), PROTOCOL_MORE);
    assert_int_equal(trace.batch->request_count, 4);
    assert_int_equal(trace.batch->scratch_used, 0);
    request_trace_close(&trace);
}

static void say_random_line(struct request_trace *out, struct test_random *random)
{
    static const char *const verbs[] = {"mg", "ma", "md", "ms", "me"};
    static const char *const keys[] = {"feed:1.like", "ZmVlZDox", "YQ==", "a", KEY_251};
    static const char *const flags[] = {"v",  "k",  "s", "f",  "c", "C7", "t",  "O123", "q", "b",
                                        "T9", "MI", "D", "D2", "J", "N0", "ME", "MA",   "F1"};
    size_t verb = test_random_below(random, 5);
    request_trace_say(out, "%s %s", verbs[verb], keys[test_random_below(random, 5)]);
    if (verb == 3) {
        request_trace_say(out, " 3");
    }
    for (uint64_t n = test_random_below(random, 5); n > 0; n--) {
        request_trace_say(out, " %s", flags[test_random_below(random, 19)]);
    }
    request_trace_say(out, "%s", test_random_once_in(random, 4) ? " \n" : "\r\n");
    if (verb == 3) {
        request_trace_say(out, "1\r2%s", test_random_once_in(random, 8) ? "x\n" : "\r\n");
    }
}

static void test_any_split(void **unused)
{
    (void)unused;
    static const uint32_t pieces[] = {1, 7, 100, 65536};
    const uint64_t first = test_seed();
    for (uint64_t round = 0; round < 40; round++) {
        struct test_random random = {first + round};
        struct request_trace input;
        request_trace_open(&input, NULL);
        for (uint32_t i = 0; i < 400; i++) {
            say_random_line(&input, &random);
        }
        request_trace_expect_same_in_pieces(text_codec(), &input, &random, pieces[round % 4]);
        request_trace_close(&input);
    }
}

/* Flags that are letters alone are read in one walk: after a space the same line is not. */
static void test_letters(void **unused)
{
    (void)unused;
    static const char *const parts[] = {" v", " k",  " q", " c", " t", " s",  " f", " N", " O1",
                                        " b", "  v", " Z", " ",  " T", " v1", "\r", " u"};
    static const char *const verbs[] = {"g ", "a ", "s "};
    static const char *const sizes[] = {" 2",  " 2",  " 2", " 1", " 3",
                                        " +2", " 2x", " ",  "",   " 9999"};
    struct test_random random = {test_seed()};
    for (unsigned round = 0; round < 500; round++) {
        const char *verb = verbs[test_random_below(&random, sizeof(verbs) / sizeof(verbs[0]))];
        char line[128] = " m";
        strcat(line, verb);
        strcat(line, test_random_once_in(&random, 20) ? "" : "key");
        if (*verb == 's') {
            strcat(line, sizes[test_random_below(&random, sizeof(sizes) / sizeof(sizes[0]))]);
        }
        for (uint64_t i = test_random_below(&random, 5); i > 0; i--) {
            size_t most = test_random_once_in(&random, 2) ? 7 : sizeof(parts) / sizeof(parts[0]);
            strcat(line, parts[test_random_below(&random, most)]);
        }
        strcat(line, test_random_once_in(&random, 2) ? "\r\n" : "\n");
        strcat(line, *verb == 's' ? "ab\r\n" : "");
        struct request_trace expected;
        request_trace_open(&expected, text_codec());
        request_trace_split(&expected, line, strlen(line), 1);
        check_splits(line + 1, expected.text);
        request_trace_close(&expected);
    }
}

/* Increments that follow each other are what each is alone. */
static void test_increments_in_a_row(void **unused)
{
    static const char input[] = "ma a v q\r\nma bb v q\r\nma " KEY_250 " v q\r\nma " KEY_251
                                " v q\r\nma c v\nma dd v\nma e v k c q\r\nma f v k c q\r\n"
                                "mg g v k c q\r\nma h v k c q\r\nma i v\r\nma j v";
    struct request_trace trace;
    size_t consumed;
    (void)unused;
    request_trace_open(&trace, text_codec());
    request_trace_whole(&trace, input, sizeof(input) - 1, &consumed);
    assert_string_equal(trace.text, "incr a (1) usual <a v q>\nincr bb (1) usual <bb v q>\n"
                                    "incr " KEY_250 " (1) usual <" KEY_250 " v q>\n" BAD_FORMAT
                                    "\nincr c (1) <c v>\nincr dd (1) <dd v>\n"
                                    "incr e (1) +cas usual <e v k c q>\n"
                                    "incr f (1) +cas usual <f v k c q>\n"
                                    "get g +cas usual <g v k c q>\n"
                                    "incr h (1) +cas usual <h v k c q>\nincr i (1) <i v>\n");
    assert_int_equal(consumed, sizeof(input) - sizeof("ma j v"));
    assert_true(trace.batch->requests[2].bare && trace.batch->requests[5].bare);
    assert_int_equal(trace.batch->requests[1].meta.key_length, 2);
    request_trace_close(&trace);
}

/* Gets whose lines end alike are one request, up to the most that are joined. */
static void test_joined(void **unused)
{
    static const char input[] = "mg a v k q\r\nmg bb v k q\r\nmg " KEY_250 " v k q\r\n"
                                "mg " KEY_251 " v k q\r\n"
                                "mg c v q\nmg dd v q\nmg e v q\r\nma e v\r\nmg f v q T0\r\nmg g v";
    struct request_trace trace;
    size_t consumed;
    (void)unused;
    request_trace_open(&trace, text_codec());
    trace.batch->joins = true;
    request_trace_whole(&trace, input, sizeof(input) - 1, &consumed);
    assert_string_equal(trace.text, "get joined a bb " KEY_250 " usual <a v k q>\n" BAD_FORMAT "\n"
                                    "get joined c dd usual <c v q>\nget e usual <e v q>\n"
                                    "incr e (1) <e v>\ngat f usual <f v q T0>\n");
    assert_int_equal(consumed, sizeof(input) - sizeof("mg g v"));
    const struct protocol_state state = {0};
    request_trace_parse(&trace, &state, input, sizeof(input) - 1);
    const struct request *joined = &trace.batch->requests[2];
    struct request one;
    text_codec()->part(trace.batch, joined, 1, input, &one);
    assert_int_equal(one.begin, joined->begin + sizeof("mg c v q\n") - 1);
    assert_int_equal(one.end, joined->end);
    assert_int_equal(one.first_key, joined->first_key + 1);
    assert_int_equal(one.meta.length, sizeof("dd v q") - 1);
    assert_int_equal(one.meta.key_length, 2);
    assert_true(one.keys == 1 && !one.joined);
    request_trace_close(&trace);
}

static void test_most_joined(void **unused)
{
    struct request_trace trace;
    struct request_trace input;
    struct protocol_state state = {0};
    (void)unused;
    request_trace_open(&trace, text_codec());
    request_trace_open(&input, text_codec());
    for (int i = 0; i < PROTOCOL_JOINED_MAX + 3; i++) {
        request_trace_say(&input, "mg k%d v\r\n", i);
    }
    trace.batch->joins = true;
    request_trace_parse(&trace, &state, input.text, input.length);
    assert_int_equal(trace.batch->request_count, 2);
    assert_int_equal(trace.batch->requests[0].keys, PROTOCOL_JOINED_MAX);
    assert_int_equal(trace.batch->requests[1].keys, 3);
    request_trace_close(&trace);
    request_trace_close(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get),
        cmocka_unit_test(test_get_refused),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_most_joined),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_refused),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_increments_in_a_row),
        cmocka_unit_test(test_arithmetic_refused),
        cmocka_unit_test(test_plain_only),
        cmocka_unit_test(test_info_and_noop),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_value_limit),
        cmocka_unit_test(test_scratch_is_full),
        cmocka_unit_test(test_keys_of_too_large),
        cmocka_unit_test(test_scratch_of_refusals),
        cmocka_unit_test(test_any_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
