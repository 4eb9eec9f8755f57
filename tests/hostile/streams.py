"""streams.py: clients that do not read, write bytes singly, end in the middle, come in crowds."""
import struct
import time

import wire
from malformed import repeated
from target import BIG_BYTES, BUFFERS_BYTES, MIB
from wire import Peer, packet, protocol, store

UNREAD_BYTES = 64 << 10  # of a client that does not read, in its system
ROUNDS_BLOCKED = 20
GOOD_ROUNDS = 5  # of the good client, whose connections are both workers'
SLOW_CLIENTS = 48
SLOW_REQUESTS = 6
SLOW_READ = 6  # of them read in the end
CUT_FIRST = 100  # number of the first conversation
POLL_S = 0.005
HOARDERS = 60
# A quarter of the buffers is kept for each of both workers: the largest of its 30 hoarders has 136 KiB
# or more when that is full. A set holds its bytes and what came with one read (64 KiB) at most.
SERVED_BYTES = 70000
WORKERS_BYTES = 2 * MIB  # two workers' own buffers may have had smaller answers before


def pour(target, peers, pieces, room):
    """
    Each peer writes all of its bytes, as far as the server takes them, and reads nothing. Ends when
    nothing moves any more and the server has been round several times. Memory is looked at always.
    """
    left = {peer: memoryview(data) for peer, data in zip(peers, pieces)}
    blocked = 0
    while left and blocked < ROUNDS_BLOCKED:
        moved = False
        for peer in list(left):
            sent = peer.push(left[peer])
            if sent is None or sent == len(left[peer]):
                del left[peer]
            elif sent:
                left[peer] = left[peer][sent:]
            moved = moved or sent is None or sent > 0
        blocked = 0 if moved else blocked + 1
        target.check_bounded(room + WORKERS_BYTES)
        if not moved:
            time.sleep(POLL_S)
    rounds = target.good.rounds + GOOD_ROUNDS

    def been_round():
        target.check_bounded(room + WORKERS_BYTES)
        target.check_alive()
        return target.good.rounds > rounds

    target.await_true("the good client is not served", been_round)


def unread(target, count, data, room=BUFFERS_BYTES):
    """So many clients write data and read nothing; they are returned."""
    peers = [Peer(target.address, UNREAD_BYTES) for _ in range(count)]
    pour(target, peers, [data] * count, room)
    return peers


def end_all(peers, how="reset"):
    for peer in peers:
        getattr(peer, how)()


def check_begins(peer, whole, what):
    """What comes until the server closes is the beginning of `whole`."""
    peer.finish()
    came = peer.read_all()
    if came != whole[: len(came)]:
        raise protocol.Mismatch("%s: not what was asked for" % what)


def put_big(target, key):
    value = bytes(i % 251 for i in range(1000)) * (BIG_BYTES // 1000)
    with Peer(target.address) as peer:
        peer.ask(b"set %s 3 0 %d\r\n%s\r\n" % (key, BIG_BYTES, value), b"STORED\r\n")
    return value


# ---- who does not read ----


def slow_readers(target, request, answer_of):
    value = put_big(target, b"big")
    peers = unread(target, SLOW_CLIENTS, request * SLOW_REQUESTS)
    whole = answer_of(value) * SLOW_REQUESTS
    for peer in peers[:: SLOW_CLIENTS // SLOW_READ]:
        check_begins(peer, whole, protocol.shown(request))
    end_all(peers)


def test_slow_readers_text(target):
    slow_readers(target, b"get big\r\n",
                 lambda value: b"VALUE big 3 %d\r\n%s\r\nEND\r\n" % (BIG_BYTES, value))


def test_slow_readers_many_keys(target):
    slow_readers(target, b"get" + b" big" * 7 + b"\r\n",
                 lambda value: 7 * (b"VALUE big 3 %d\r\n%s\r\n" % (BIG_BYTES, value)) + b"END\r\n")


def test_slow_readers_meta(target):
    slow_readers(target, b"mg big v k f\r\n",
                 lambda value: b"VA %d kbig f3\r\n%s\r\n" % (BIG_BYTES, value))


def test_slow_readers_binary(target):
    """The token of the answer is the server's own: that part is left out."""
    value = put_big(target, b"big")
    peers = unread(target, SLOW_CLIENTS, packet(wire.GET, b"big") * SLOW_REQUESTS)
    whole = wire.hit(value, 3)
    for peer in peers[:: SLOW_CLIENTS // SLOW_READ]:
        peer.finish()
        came = peer.read_all()
        for at in range(0, len(came), len(whole)):
            one = came[at : at + 16] + bytes(8) + came[at + 24 : at + len(whole)]
            if one[: len(came) - at] != whole[: len(came) - at]:
                raise protocol.Mismatch("binary: not what was asked for")
    end_all(peers)


def test_slow_readers_slots(target):
    with Peer(target.address) as peer:
        peer.ask(b"set feed:20 0 0 11\r\n1,2,3,40000\r\n", b"STORED\r\n")
    lines = b"get" + b" feed:20" * 1000 + b"\r\n" + b"mg feed:20.read v\r\n" * 500
    end_all(unread(target, 40, lines), "close")
    requests = packet(wire.GET, b"feed:20") * 1000
    end_all(unread(target, 40, requests * 10))


def test_same_key_65536_times(target):
    """References to one value, once counted in 16 bits: in many requests, and in one."""
    value = put_big(target, b"big")
    for request in (b"get big\r\n" * 65536, b"get" + b" big" * 65536 + b"\r\n",
                    b"mg big v\r\n" * 65536, packet(wire.GETQ, b"big") * 65536):
        end_all(unread(target, 2, request))
    with Peer(target.address) as peer:
        peer.ask(b"set small 0 0 1\r\n5\r\nset big 0 0 1\r\n6\r\n", 2 * b"STORED\r\n")
        del value
        peer.ask(b"get" + b" small" * 65537 + b"\r\n",
                 65537 * b"VALUE small 0 1\r\n5\r\n" + b"END\r\n")
        peer.ask(b"get big\r\ndelete small\r\ndelete big\r\n",
                 b"VALUE big 0 1\r\n6\r\nEND\r\nDELETED\r\nDELETED\r\n")


def test_metadump_unread(target):
    for line in (b"lru_crawler metadump all\r\n", b"lru_crawler mgdump all\r\n", b"stats conns\r\n",
                 b"stats spaces\r\n", b"stats\r\n", b"watch\r\n", b"\r\n"):
        end_all(unread(target, 8, line * repeated(5000)))


def test_get_without_end(target):
    """Keys and never a newline: refused at 1 MiB, and little is kept of them meanwhile."""
    keys = b"feed:7.like " * 200000
    for verb in (b"get ", b"gets "):
        with Peer(target.address) as peer:
            peer.send([verb + keys])
            came = peer.read_all()
            if came != b"CLIENT_ERROR line too long\r\n"[: len(came)] or not peer.ended:
                raise protocol.Mismatch("answered " + protocol.shown(came))
    end_all(unread(target, 60, b"get " + keys[: MIB - 100]))
    end_all(unread(target, 60, b"get " + b"x" * (MIB - 100)))


def test_quiet_without_end(target):
    """Quiet requests and never a noop: those that miss keep nothing, others are answered."""
    end_all(unread(target, 4, packet(wire.GETQ, b"nobody") * repeated(100000)))
    end_all(unread(target, 4, b"mg nobody q\r\n" * repeated(100000)))
    end_all(unread(target, 40, packet(wire.GETQ, b"feed:20") * repeated(50000)))


def test_values_half_sent(target):
    """Sets of which the last byte never comes, by many: memory is that of the buffers at most."""
    half = b"x" * (BIG_BYTES - 1)
    end_all(unread(target, 40, b"set half 0 0 %d\r\n%s" % (BIG_BYTES, half)))
    end_all(unread(target, 40, b"ms half %d\r\n%s" % (BIG_BYTES, half)), "close")
    end_all(unread(target, 40, store(wire.SET, b"half", half + b"x")[:-1]))
    with Peer(target.address) as peer:
        peer.ask(b"get half\r\n", b"END\r\n")


def test_hoarders_make_room(target):
    """The buffers are full of what some do not read, or never end: others still are served, as
    long as they need less than the largest hoarder of their worker has."""
    put_big(target, b"big")
    value = b"z" * SERVED_BYTES
    for data in (b"get big\r\n" * 30, b"get " + b"x" * (MIB - 100)):
        peers = unread(target, HOARDERS, data)
        for _ in range(repeated(20)):
            with Peer(target.address) as peer:
                peer.ask(b"set mine 0 0 %d\r\n%s\r\nget mine\r\n" % (len(value), value),
                         b"STORED\r\nVALUE mine 0 %d\r\n%s\r\nEND\r\n" % (len(value), value))
        end_all(peers)


# ---- a conversation, in pieces and cut off ----

# Whole conversations: requests and their answers. %d is the number of the connection.
TEXT = (
    (b"set cut:%d 1 0 5\r\nab\r\nc\r\n", b"STORED\r\n"),
    (b"get cut:%d nobody\r\n", b"VALUE cut:%d 1 5\r\nab\r\nc\r\nEND\r\n"),
    (b"set feed:%d 0 0 8\r\n1,,3,400\r\n", b"STORED\r\n"),
    (b"get feed:x feed:%d.read\r\n", b"VALUE feed:%d.read 0 3\r\n400\r\nEND\r\n"),
    (b"set feed:%d.like 0 0 1 noreply\r\n7\r\n", b""),
    (b"get feed:%d\r\n", b"VALUE feed:%d 0 8\r\n1,,7,400\r\nEND\r\n"),
    (b"set liked:%d:u 0 0 1\r\n1\r\n", b"STORED\r\n"),
    (b"add liked:%d:u 0 0 1\r\n1\r\n", b"NOT_STORED\r\n"),
    (b"mg liked:%d:u O123 v\r\n", b"VA 1 O123\r\n1\r\n"),
    (b"ms cut:%d 3 q\r\nxyz\r\n", b""),
    (b"ma feed:%d.like D0 v\r\n", b"VA 1\r\n7\r\n"),
    (b"foo %d\r\n", b"ERROR\r\n"),
    (b"delete feed:%d\r\n", b"DELETED\r\n"),
    (b"md liked:%d:u\r\n", b"HD\r\n"),
    (b"mn\r\n", b"MN\r\n"),
)


def text_conversation(number):
    """(request, answer) each."""
    def filled(words):
        return words.replace(b"%d", b"%d" % number)
    for request, wanted in TEXT:
        yield filled(request), filled(wanted)


def binary_conversation(number):
    key, member = b"feed:%d" % number, b"liked:%d:b" % number
    extras = struct.pack(">QQI", 5, 9, 0)
    unique_free = packet(wire.NOOP, opaque=number), wire.answer(wire.NOOP, opaque=number)
    yield store(wire.SETQ, key, b"1,,3,400"), b""
    yield packet(wire.GETQ, b"liked:%d:nobody" % number), b""
    yield unique_free
    yield packet(wire.INCRQ, key + b".like", extras), b""
    yield packet(wire.DELETE, key + b".read"), wire.answer(wire.DELETE)
    yield store(wire.ADDQ, member, b"1"), b""
    yield packet(wire.DELETEQ, member), b""
    yield packet(wire.DELETE, member, opaque=3), wire.answer(
        wire.DELETE, 1, value=b"Not found", opaque=3)
    yield packet(wire.DELETEQ, key), b""
    yield packet(0x55, opaque=4), wire.answer(0x55, 0x81, value=b"Unknown command", opaque=4)
    yield unique_free


def clear(target, count):
    """What so many conversations left that were cut off, now or earlier."""
    with Peer(target.address) as peer:
        for number in range(CUT_FIRST, CUT_FIRST + count):
            peer.ask(b"delete feed:%d noreply\r\ndelete liked:%d:u noreply\r\n"
                     b"delete liked:%d:b noreply\r\nmn\r\n" % ((number,) * 3), b"MN\r\n")


def cut_at_every_byte(target, conversation, end):
    """At each offset: what was asked whole is answered, half a request is not."""
    length = sum(len(request) for request, _ in conversation(CUT_FIRST))
    clear(target, length)
    for at in range(0, length, 1 if repeated(100) == 100 else 3):
        sent, wanted = b"", b""
        for request, reply in conversation(CUT_FIRST + at):
            sent += request
            wanted += reply if len(sent) <= at else b""
        with Peer(target.address) as peer:
            peer.send([sent[:at]])
            if end == "reset":
                peer.reset()
                continue
            peer.finish()
            came = peer.read_all()
            if came != wanted:
                raise protocol.Mismatch("cut after %d bytes, behind %s: came %s, wanted %s" % (
                    at, protocol.shown(sent[:at][-60:]), protocol.shown(came),
                    protocol.shown(wanted)))
    target.check_alive()
    clear(target, length)


def test_fin_at_every_byte_text(target):
    cut_at_every_byte(target, text_conversation, "fin")


def test_fin_at_every_byte_binary(target):
    cut_at_every_byte(target, binary_conversation, "fin")


def test_reset_at_every_byte_text(target):
    cut_at_every_byte(target, text_conversation, "reset")


def test_reset_at_every_byte_binary(target):
    cut_at_every_byte(target, binary_conversation, "reset")


def test_reset_with_answers_unread(target):
    """A reset while the server sends, or is about to."""
    put_big(target, b"big")
    for count in range(repeated(100)):
        peer = Peer(target.address)
        peer.push(b"get big\r\n" * (1 + count % 20) + b"get feed:20 feed:21\r\n" * count)
        peer.fill(count * 1000)
        peer.reset()
    target.check_alive()


def byte_writers(target, conversation):
    """Fifty of them, a byte each in turn."""
    clear(target, 50)
    peers = [Peer(target.address) for _ in range(repeated(50))]
    scripts = [list(conversation(CUT_FIRST + i)) for i in range(len(peers))]
    asked = [b"".join(request for request, _ in script) for script in scripts]
    for at in range(max(map(len, asked))):
        for peer, data in zip(peers, asked):
            peer.send([data[at : at + 1]])
    for peer, script in zip(peers, scripts):
        peer.expect_bytes(b"".join(wanted for _, wanted in script), "a byte at a time:")
        peer.close()


def test_byte_writers_text(target):
    byte_writers(target, text_conversation)


def test_byte_writers_binary(target):
    byte_writers(target, binary_conversation)


# ---- crowds ----


def test_opened_and_closed(target):
    """Thousands, some of which say something, or half of something."""
    said = (b"", b"version\r\n", b"get fee", b"set x 0 0 100\r\nabc", b"\x80",
            wire.header(wire.SET, 5, 8, 99), b"ms x 5\r\n")
    total = 5000
    for begin in range(0, repeated(total), 500):
        peers = [Peer(target.address) for _ in range(500)]
        for i, peer in enumerate(peers):
            peer.push(said[(begin + i) % len(said)])
        for i, peer in enumerate(peers):
            peer.reset() if i % 2 else peer.close()
    target.check_bounded(BUFFERS_BYTES)


TESTS = (
    test_slow_readers_text, test_slow_readers_many_keys, test_slow_readers_meta,
    test_slow_readers_binary, test_slow_readers_slots, test_same_key_65536_times,
    test_metadump_unread, test_get_without_end, test_quiet_without_end, test_values_half_sent,
    test_hoarders_make_room, test_fin_at_every_byte_text, test_fin_at_every_byte_binary,
    test_reset_at_every_byte_text, test_reset_at_every_byte_binary,
    test_reset_with_answers_unread, test_byte_writers_text, test_byte_writers_binary,
    test_opened_and_closed)
DATA_TESTS = (
    test_slow_readers_text, test_slow_readers_slots, test_hoarders_make_room,
    test_values_half_sent, test_fin_at_every_byte_text, test_fin_at_every_byte_binary,
    test_reset_at_every_byte_text, test_reset_at_every_byte_binary,
    test_reset_with_answers_unread, test_byte_writers_text, test_byte_writers_binary,
    test_opened_and_closed)
