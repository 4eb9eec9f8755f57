"""malformed.py: requests no client would send; each is refused, and what follows is answered."""
import os
import random
import ssl
import struct

import wire
from wire import Peer, header, packet, protocol, store

OPCODES = range(256)
QUITS = (wire.QUIT, wire.QUITQ)
KEYS = (b"feed:7.like", b"feed:7", b"liked:7:u9", b"anything")
STORES = (b"set", b"add", b"replace", b"append", b"prepend")
FORMAT = b"CLIENT_ERROR bad command line format\r\n"
NOOP_MARK = 0xFEEDFACE


def repeated(count):
    """So many, or the share of them ROLLCALL_TEST_SCALE asks for."""
    return max(1, count * min(100, int(os.environ.get("ROLLCALL_TEST_SCALE", "100"))) // 100)


def refused(peer, request, opcode, opaque, what):
    """One answer, that is a refusal of this request."""
    peer.send([request])
    found = peer.read_packet()
    if found[0] != opcode or found[1] == 0 or found[2] != opaque:
        raise protocol.Mismatch("%s: answered by opcode 0x%02x status %d opaque %d" % (
            (what,) + found[:3]))


def each_refused(target, cases):
    """cases: opcode, key, extras and body lengths, the body that comes. All on one connection."""
    with Peer(target.address) as peer:
        for opaque, (opcode, key, extras, body, data) in enumerate(cases, 1):
            what = "opcode 0x%02x, key %d, extras %d, body %d" % (opcode, key, extras, body)
            refused(peer, header(opcode, key, extras, body, opaque) + data, opcode, opaque, what)
        peer.ask(packet(wire.NOOP, opaque=NOOP_MARK), wire.answer(wire.NOOP, opaque=NOOP_MARK))


# ---- binary ----


def binary_body_length(target, lengths):
    junk = b"\x80\x0a" + bytes(22) + b"set feed:666.like 0 0 1\r\n1\r\n"
    for length in lengths:
        for opcode in OPCODES:
            with Peer(target.address) as peer:
                what = "opcode 0x%02x, body 0x%08x" % (opcode, length)
                front = bytes(15)  # a set is refused behind its key
                refused(peer, header(opcode, 7, 8, length, 5) + front, opcode, 5, what)
                peer.send([junk])  # part of that body: no request
                peer.finish()
                if peer.read_all() != b"":
                    raise protocol.Mismatch(what + ": its body was answered")
        target.check_bounded(0)


def test_binary_body_0xffffffe8(target):
    """24 more bytes wrap to 0."""
    binary_body_length(target, (0xFFFFFFE8,))


def test_binary_body_0xffffffff(target):
    binary_body_length(target, (0xFFFFFFFF, 0x80000000, 0x7FFFFFFF))


def test_binary_body_that_comes(target):
    """A body too large is dropped as it comes, however much of it does; then all is well."""
    front = bytes(15)  # a set is refused behind its key
    size = 64 * repeated(100) << 16
    with Peer(target.address) as peer:
        refused(peer, header(wire.SET, 7, 8, len(front) + size, 5) + front, wire.SET, 5,
                "a large body")
        piece = packet(wire.QUIT) * (1 << 12)
        for at in range(0, size, len(piece)):
            peer.send([piece[: size - at]])
        target.check_bounded(0)
        peer.ask(packet(wire.NOOP, opaque=6), wire.answer(wire.NOOP, opaque=6))


def set_too_large(target, opcode, cas, step):
    """Sends it in pieces; True: what was there before is gone."""
    key, old = b"out_of_date", b"VALUE out_of_date 0 3\r\nold\r\nEND\r\n"
    request = store(opcode, key, bytes(2 << 20), cas=cas)
    front = request[: 24 + 8 + len(key)]
    with Peer(target.address) as text, Peer(target.address) as binary:
        text.ask(b"set %s 0 0 3\r\nold\r\n" % key, b"STORED\r\n")
        binary.send([front[i : i + step] for i in range(0, len(front), step)])
        binary.expect_bytes(wire.answer(opcode, 3, value=b"Too large."))
        binary.send([request[len(front) :]])
        binary.ask(packet(wire.NOOP), wire.answer(wire.NOOP))
        text.send([b"get %s\r\n" % key])
        gone = text.read_all(5) == b"END\r\n"
        text.expect_bytes(b"END\r\n" if gone else old)
        return gone


def test_binary_set_too_large(target):
    """The older value is out of date and goes, as in text; any other verb leaves it."""
    for opcode in (wire.SET, wire.SETQ, wire.ADD, wire.ADDQ, wire.REPLACE):
        for cas in (0, 1):
            for step in (1, 25, 100):
                gone = set_too_large(target, opcode, cas, step)
                if gone != (opcode in (wire.SET, wire.SETQ)):
                    raise protocol.Mismatch("opcode 0x%02x: the older value is %s" % (
                        opcode, "gone" if gone else "still there"))


def test_binary_key_over_body(target):
    each_refused(target, [
        (opcode, key, extras, body, b"x" * body)
        for opcode in OPCODES
        for key, extras, body in ((250, 0, 10), (0xFFFF, 0, 10), (8, 8, 15), (8, 20, 27), (1, 4, 0),
                                  (250, 255, 250), (0xFFFF, 0xFF, 0))])


def test_binary_extras_0xff(target):
    each_refused(target, [
        (opcode, key, 0xFF, 0xFF + key + value, bytes(0xFF + key + value))
        for opcode in OPCODES for key in (0, 1, 250) for value in (0, 1, 100)])


def test_binary_key_lengths(target):
    """Keys of no bytes, of 251 and of 64 KiB, with bodies that hold them; a value where none is."""
    takes = {wire.SET: 8, wire.ADD: 8, wire.REPLACE: 8, wire.GET: 0, wire.GETQ: 0, wire.GETK: 0,
             wire.DELETE: 0, wire.INCR: 20, 0x06: 20, 0x0E: 0, 0x0F: 0, 0x1C: 4, 0x1D: 4}
    each_refused(target, [(opcode, key, extras, extras + key, bytes(extras + key))
                          for opcode, extras in takes.items() for key in (0, 251, 0xFFFF)])
    each_refused(target, [(opcode, 1, extras, extras + 9, bytes(extras + 9))
                          for opcode, extras in takes.items()
                          if opcode not in (wire.SET, wire.ADD, wire.REPLACE, 0x0E, 0x0F)])


def test_binary_noise(target):
    """Headers of chance, on keys the good client does not use; the daemon may close."""
    rng = random.Random("binary noise")
    lengths = (0, 1, 4, 8, 20, 24, 250, 251, 255, 0xFFFF, 1 << 20, 0x7FFFFFFF,
               0xFFFFFFE8, 0xFFFFFFFF)
    for _ in range(repeated(400)):
        with Peer(target.address) as peer:
            for _ in range(rng.randrange(1, 30)):
                data = header(rng.randrange(64), rng.choice(lengths) & 0xFFFF,
                              rng.choice((0, 4, 8, 20, 255)), rng.choice(lengths),
                              rng.getrandbits(32))
                data = data[: rng.choice((24, 24, 24, rng.randrange(1, 24)))]
                peer.send([data + rng.randbytes(rng.choice((0, 8, 30)))])
            peer.reset() if rng.randrange(2) else peer.finish()


# ---- text ----


def text_length(target, lengths, answers):
    """A storage command of each length on each kind of key: refused, what follows is answered."""
    with Peer(target.address) as peer:
        for length in lengths:
            for key in KEYS:
                for verb in STORES + (b"cas",):
                    tail = b" 1" if verb == b"cas" else b""
                    line = b"%s %s 0 0 %s%s\r\n" % (verb, key, length, tail)
                    peer.send([line])
                    text = peer.read_line() + b"\r\n"
                    if text not in answers:
                        raise protocol.Mismatch("%s answered %s" % (
                            protocol.shown(line), protocol.shown(text)))
                peer.ask(b"ms %s %s\r\n" % (key, length), FORMAT)
        peer.ask(b"mn\r\n", b"MN\r\n")


def test_text_negative_lengths(target):
    text_length(target, (b"-1", b"-0", b"-2147483648", b"-2147483649", b"-9223372036854775808",
                         b"--1", b"-"), (FORMAT,))


def test_text_lengths_of_2_to_the_31(target):
    text_length(target, (b"2147483647", b"2147483648", b"4294967295", b"4294967296", b"4294967304",
                         b"9223372036854775807", b"9223372036854775808", b"18446744073709551615",
                         b"18446744073709551616", b"9" * 100, b"0x10", b"1e9"), (FORMAT,))


def test_text_negative_numbers(target):
    """Flags, expiry, unique and deltas that are out of range, on each kind of key."""
    with Peer(target.address) as peer:
        for key in KEYS:
            for flags in (b"-1", b"4294967296", b"99999999999999999999", b"x"):
                peer.ask(b"set %s %s 0 1\r\n1\r\n" % (key, flags), FORMAT)
            peer.ask(b"cas %s 0 0 1 -1\r\n1\r\n" % key, FORMAT)
            peer.ask(b"cas %s 0 0 1 18446744073709551616\r\n1\r\n" % key, FORMAT)
            for delta in (b"-1", b"18446744073709551616", b"1e3", b"0x1"):
                if key.startswith(b"feed:7.") or key == b"anything":  # others have none, or a list
                    peer.ask(b"incr %s %s\r\n" % (key, delta),
                             b"CLIENT_ERROR invalid numeric delta argument\r\n")
        peer.ask(b"mn\r\n", b"MN\r\n")


def test_text_64_kib_of_spaces(target):
    spaces = b" " * (64 << 10)
    for line in (spaces, spaces + b"\r\n", spaces + b"get feed:7\r\n", b"set feed:7.like" + spaces,
                 b"incr feed:7.like" + spaces + b"1\r\n", b"mg feed:7" + spaces + b"\r\n",
                 b"mn" + spaces + b"\r\n", b"stats" + spaces + b"\r\n",
                 b"gat 0" + spaces + b"a\r\n"):
        with Peer(target.address) as peer:
            peer.send([b"mn\r\n"])
            peer.expect_bytes(b"MN\r\n")
            peer.send([line])
            peer.expect_closed()
    with Peer(target.address) as peer:
        peer.ask(b"get" + spaces + b"\r\n", b"ERROR\r\n")
        peer.ask(b"get" + spaces + b"feed:7" + spaces + b"nobody\r\n", b"END\r\n")
        peer.ask(b"get " + b" " * ((1 << 20) - 10) + b"a\r\n", b"END\r\n")


def test_text_noise(target):
    """Words of chance, with values of chance behind them; the daemon may close."""
    rng = random.Random("text noise")
    words = [b"get", b"gets", b"set", b"cas", b"incr", b"delete", b"touch", b"gat", b"mg", b"ms",
             b"md", b"ma", b"me", b"mn", b"stats", b"verbosity", b"noreply", b"0", b"1", b"-1",
             b"4294967296",
             b"feed:7.like", b"feed:7", b"feed:", b"liked:7:u9", b"k", b"T0", b"q", b"MS", b"b",
             b"\0",
             b"\xff" * 30, b"\r", b"", b"%s%n"]
    for _ in range(repeated(400)):
        with Peer(target.address) as peer:
            for _ in range(rng.randrange(1, 20)):
                line = b" ".join(rng.choice(words) for _ in range(rng.randrange(1, 9)))
                peer.send([line + rng.choice((b"\r\n", b"\r\n", b"\n", b""))])
            peer.reset() if rng.randrange(2) else peer.finish()


# ---- meta ----


def meta_lines(peer, lines):
    """Whatever is answered, all of it is whole lines, and then the mn."""
    peer.send([lines + b"mn\r\n"])
    answers = 0
    while peer.read_line() != b"MN":
        answers += 1
    return answers


def test_meta_bare_flags(target):
    """Each flag with nothing behind it, last on its line, of each command."""
    with Peer(target.address) as peer:
        for key in KEYS + (b"not-yet",):
            for verb, data in ((b"mg %s", b""), (b"md %s", b""), (b"ma %s", b""), (b"me %s", b""),
                               (b"ms %s 1", b"1\r\n")):
                for flag in range(0x21, 0x7F):
                    line = verb % key + b" v %c" % flag if flag % 2 else verb % key + b" %c" % flag
                    for end in (b"\r\n", b" \r\n", b"\n"):
                        answers = meta_lines(peer, line + end + data)
                        if answers > 2:
                            raise protocol.Mismatch("%s: %d answers" % (line, answers))


def test_meta_opaque_of_33_bytes(target):
    with Peer(target.address) as peer:
        for verb, data in ((b"mg feed:8", b""), (b"md feed:8", b""), (b"ma feed:8.like", b""),
                           (b"ms feed:8.like 1", b"1\r\n")):
            for size in (33, 34, 255, 1000):
                peer.ask(b"%s O%s\r\n%smn\r\n" % (verb, b"o" * size, data),
                         b"CLIENT_ERROR opaque token too long\r\nMN\r\n")
        peer.ask(b"mg feed:8 O%s k\r\n" % (b"o" * 32), b"EN O%s kfeed:8\r\n" % (b"o" * 32))


def test_meta_tokens_without_end(target):
    with Peer(target.address) as peer:
        for verb in (b"mg feed:8", b"md feed:8", b"ma feed:8.like"):
            for count in (20, 21, 24, 25, 26, 100, 1000):
                peer.ask(verb + b" k" * count + b"\r\nmn\r\n",
                         (b"CLIENT_ERROR options flags are too long\r\n" if count > 18 else
                          b"CLIENT_ERROR duplicate flag\r\n") + b"MN\r\n")


# ---- other commands, other protocols ----


def test_watch(target):
    with Peer(target.address) as peer:
        for line in (b"watch", b"watch fetchers", b"watch mutations evictions connevents"):
            peer.ask(line + b"\r\n", b"ERROR\r\n")
        with Peer(target.address) as other:
            for i in range(100):
                other.ask(b"get feed:%d\r\n" % i, b"END\r\n")
        peer.ask(b"mn\r\n", b"MN\r\n")


def test_other_commands(target):
    """What reaches into memcached's memory, files or threads is not there."""
    with Peer(target.address) as peer:
        for line in (b"lru_crawler", b"lru_crawler walk all",
                     b"lru_crawler dump hash",
                     b"lru tune 10 25 0.1 2.0", b"slabs reassign 1 2", b"slabs automove 2",
                     b"debug",
                     b"cache_memlimit 1", b"extstore recache 1", b"misbehave"):
            peer.ask(line + b"\r\nmn\r\n", b"ERROR\r\nMN\r\n")
        peer.ask(b"shutdown\r\nshutdown graceful\r\n", 2 * b"ERROR: shutdown not enabled\r\n")
        peer.ask(b"flush_all\r\nflush_all 0\r\n", 2 * b"CLIENT_ERROR flush_all not allowed\r\n")


def test_http(target):
    """A browser, or a fetcher that was sent here: closed at its first line, the rest never read."""
    commands = b"set feed:666.like 0 0 1\r\n6\r\nset good 0 0 3\r\nbad\r\nflush_all\r\n"
    for method in (b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"DELETE", b"PATCH", b"TRACE",
                   b"CONNECT", b"PROPFIND"):
        for line in (b" / HTTP/1.1", b" /feed:7 HTTP/1.0", b" http://a.b/%0d%0aset HTTP/1.1",
                     b" /a b c HTTP/1.1", b" / HTTP/1.1 ", b" * HTTP/2.0",
                     b" /a b c d e f g h i j k l m n o p HTTP/1.1"):
            data = (method + line + b"\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % (
                len(commands)) + commands)
            with Peer(target.address) as peer:
                step = 1 if method == b"PUT" else len(data)
                peer.send([data[i : i + step] for i in range(0, len(data), step)])
                if peer.read_all() != b"":
                    raise protocol.Mismatch("%s was answered" % protocol.shown(data, 60))
    with Peer(target.address) as peer:
        peer.ask(b"get feed:666.like\r\n", b"END\r\n")


def client_hello():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def test_tls_hello(target):
    """Refused and closed at its first byte, whatever it holds: the client waits for an answer."""
    for _ in range(repeated(50)):
        hello = client_hello()
        for data in (hello, hello + b"\n", hello * 10, hello[:1], b"\x16\r\nversion\r\n"):
            with Peer(target.address) as peer:
                peer.send([data])
                came = peer.read_all()
                if came != b"ERROR no TLS on this port\r\n":
                    raise protocol.Mismatch("answered " + protocol.shown(came))


def test_other_protocols(target):
    """First bytes of others: an answer of binary's magic, Redis, a proxy's preface, all bytes."""
    for data in (wire.answer(wire.NOOP), b"*1\r\n$4\r\nPING\r\n",
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", b"\r\n\r\n\0\r\nQUIT\n", bytes(range(256)),
                 bytes(3000), struct.pack(">HHHH", 1, 0, 1, 0) + b"get feed:7\r\n"):
        with Peer(target.address) as peer:
            peer.send([data])
            peer.finish()
            came = peer.read_all()
            for word in (b"ERROR\r\n", b"CLIENT_ERROR "):
                came = came.replace(word, b"")
            if b"VALUE" in came or b"STORED" in came:
                raise protocol.Mismatch("%s answered %s" % (
                    protocol.shown(data), protocol.shown(came)))


TESTS = (
    test_binary_body_0xffffffe8, test_binary_body_0xffffffff, test_binary_body_that_comes,
    test_binary_set_too_large, test_binary_key_over_body, test_binary_extras_0xff, test_binary_key_lengths, test_binary_noise,
    test_text_negative_lengths, test_text_lengths_of_2_to_the_31, test_text_negative_numbers,
    test_text_64_kib_of_spaces, test_text_noise, test_meta_bare_flags, test_meta_opaque_of_33_bytes,
    test_meta_tokens_without_end, test_watch, test_other_commands, test_http, test_tls_hello,
    test_other_protocols)
