"""writeback.py: a proxy writes back what it read, quietly, with flags and an expiry."""
import base64

import wire
from wire import Peer, packet, protocol, store

EXPIRY = 3600
MARK = 77

# key, what is stored first, flags it is stored with: of each kind of value and space.
VALUES = (
    (b"feed:31.like", b"5", 0),
    (b"feed:32.read", b"18446744073709551615", 0),  # wider than its slot
    (b"feed:33.", b"0,0,0,0", 0),
    (b"feed:34", b"12,,30,4000000000", 0),
    (b"feed:35", b",,,1", 0),
    (b"cache:31.like", b"5", 0),
    (b"cache:34", b"12,0,30,400", 0),
    (b"{feed:36}.read", b"7", 0),
    (b"liked:31:u9", b"1", 0),
    (b"liked:31:any bytes but spaces".replace(b" ", b"_"), b"1", 0),
    (b"plain", b"\r\nEND\r\n\0\xff", 4294967295),
    (b"empty", b"", 1),
    (b"digits", b"42  ", 2),
    (b"large", b"y" * 300000, 5),
)


def read(peer, key):
    """Value, flags and token, as `gets` says."""
    peer.send([b"gets %s\r\n" % key])
    words = peer.read_line().split(b" ")
    if words[0] != b"VALUE":
        raise protocol.Mismatch("%s is not there" % key.decode())
    size = int(words[3])
    peer.fill(size + 7)
    value = bytes(peer.came[:size])
    peer.came[:size] = b""
    peer.expect_bytes(b"\r\nEND\r\n")
    return value, int(words[2]), int(words[4])


def delete(peer, key):
    """The other tier does not have it yet."""
    peer.ask(b"delete %s\r\n" % key, b"DELETED\r\n")


def silent(peer, request, key):
    peer.ask(request + b"mn\r\n", b"MN\r\n", "write-back of %s:" % key.decode())


def silent_binary(peer, request, key):
    peer.ask(request + packet(wire.NOOP, opaque=MARK), wire.answer(wire.NOOP, opaque=MARK),
             "binary write-back of %s:" % key.decode())


def by_text(text, _, key, value, flags, unique, absent):
    tail = b" %d %d %d" % (flags, EXPIRY, len(value))
    if absent:
        text.ask(b"add %s%s\r\n%s\r\n" % (key, tail, value), b"STORED\r\n",
                 "add of %s:" % key.decode())
        delete(text, key)
        silent(text, b"add %s%s noreply\r\n%s\r\n" % (key, tail, value), key)
        return
    silent(text, b"set %s%s noreply\r\n%s\r\n" % (key, tail, value), key)
    text.ask(b"set %s%s\r\n%s\r\n" % (key, tail, value), b"STORED\r\n")
    silent(text, b"replace %s%s noreply\r\n%s\r\n" % (key, tail, value), key)
    unique = read(text, key)[2]
    silent(text, b"cas %s%s %d noreply\r\n%s\r\n" % (key, tail, unique, value), key)
    silent(text, b"touch %s %d noreply\r\n" % (key, EXPIRY), key)


def by_meta(text, _, key, value, flags, unique, absent):
    coded = base64.b64encode(key)
    tail = b" %d T%d F%d q" % (len(value), EXPIRY, flags)
    if absent:
        silent(text, b"ms %s%s ME\r\n%s\r\n" % (key, tail, value), key)
        delete(text, key)
        silent(text, b"ms %s%s b ME\r\n%s\r\n" % (coded, tail, value), key)
        return
    silent(text, b"ms %s%s\r\n%s\r\n" % (key, tail, value), key)
    silent(text, b"ms %s%s MR\r\n%s\r\n" % (key, tail, value), key)
    silent(text, b"ms %s%s C%d\r\n%s\r\n" % (key, tail, read(text, key)[2], value), key)


def by_binary(text, binary, key, value, flags, unique, absent):
    if absent:
        silent_binary(binary, store(wire.ADDQ, key, value, flags, EXPIRY), key)
        delete(text, key)
        binary.send([store(wire.ADD, key, value, flags, EXPIRY)])
        if binary.read_packet()[1] != 0:
            raise protocol.Mismatch("binary add of %s is refused" % key.decode())
        return
    silent_binary(binary, store(wire.SETQ, key, value, flags, EXPIRY), key)
    silent_binary(binary, store(0x13, key, value, flags, EXPIRY), key)  # REPLACEQ
    silent_binary(binary, store(wire.SETQ, key, value, flags, EXPIRY, read(text, key)[2]), key)


def write_back(target, how, absent):
    """Of each value, as it was read; then it is there, and is what it was."""
    refusals = target.figure("refused_noreply")
    with Peer(target.address) as text, Peer(target.address) as binary:
        for key, value, flags in VALUES:
            text.ask(b"set %s %d 0 %d\r\n%s\r\n" % (key, flags, len(value), value), b"STORED\r\n")
            before = read(text, key)
            if before[0] != value:
                raise protocol.Mismatch("%s is %s" % (key.decode(), protocol.shown(before[0])))
            if absent:
                delete(text, key)
            how(text, binary, key, *before, absent)
            after = read(text, key)
            if after[:2] != before[:2]:
                raise protocol.Mismatch("%s became %s" % (key.decode(), protocol.shown(after[0])))
            delete(text, key)
    if target.figure("refused_noreply") != refusals:
        raise protocol.Mismatch("something was refused and not said")


def test_write_back_text(target):
    write_back(target, by_text, False)


def test_write_back_text_add(target):
    write_back(target, by_text, True)


def test_write_back_meta(target):
    write_back(target, by_meta, False)


def test_write_back_meta_add(target):
    write_back(target, by_meta, True)


def test_write_back_binary(target):
    write_back(target, by_binary, False)


def test_write_back_binary_add(target):
    write_back(target, by_binary, True)


TESTS = (
    test_write_back_text, test_write_back_text_add, test_write_back_meta, test_write_back_meta_add,
    test_write_back_binary, test_write_back_binary_add)
