"""wire.py: packets of the binary dialect, and a client for tests that say what must come."""
import os
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "protocol"))
import run as protocol  # noqa: E402

HEADER = struct.Struct(">BBHBBHIIQ")
GET, SET, ADD, REPLACE, DELETE, INCR, DECR, QUIT = range(8)
NOOP, VERSION, GETK = 0x0A, 0x0B, 0x0C
GETQ, SETQ, ADDQ, DELETEQ, INCRQ, QUITQ = 0x09, 0x11, 0x12, 0x14, 0x15, 0x17
SASL_LIST, SASL_START, SASL_STEP = 0x20, 0x21, 0x22
LINGER_NOT = struct.pack("ii", 1, 0)  # a close is a reset


def header(opcode, key=0, extras=0, body=0, opaque=0, cas=0):
    """A request's header that claims these lengths, true or not."""
    return HEADER.pack(0x80, opcode, key, extras, 0, 0, body, opaque, cas)


def packet(opcode, key=b"", extras=b"", value=b"", opaque=0, cas=0):
    body = extras + key + value
    return header(opcode, len(key), len(extras), len(body), opaque, cas) + body


def answer(opcode, status=0, extras=b"", value=b"", opaque=0, cas=0):
    body = extras + value
    return HEADER.pack(0x81, opcode, 0, len(extras), 0, status, len(body), opaque, cas) + body


def store(opcode, key, value, flags=0, expiry=0, cas=0):
    return packet(opcode, key, struct.pack(">II", flags, expiry), value, cas=cas)


def hit(value, flags=0, cas=0, opaque=0):
    """The answer to a GET."""
    return answer(GET, 0, struct.pack(">I", flags), value, opaque, cas)


class Peer(protocol.Connection):
    """A client that reads while it writes."""

    open_peers = set()

    def __init__(self, address, receive_bytes=None, source=None):
        super().__init__(address, source)
        Peer.open_peers.add(self)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        Peer.open_peers.discard(self)
        super().close()

    def expect_bytes(self, wanted, what=""):
        expectation = protocol.Expectation(b"", {})
        expectation.plain = wanted
        try:
            self.expect(expectation)
        except protocol.Mismatch as problem:
            raise protocol.Mismatch("%s wanted %s, came %s%s" % (
                what, protocol.shown(wanted), protocol.shown(bytes(self.came)),
                " (%s)" % problem if str(problem) else "")) from None

    def ask(self, data, wanted, what=""):
        """Sends, and nothing but what is wanted comes."""
        self.send([data])
        self.expect_bytes(wanted, what or protocol.shown(data, 80))

    def read_packet(self):
        """opcode, status, opaque, cas, extras, key and value of the next answer."""
        self.fill(HEADER.size)
        magic, opcode, key, extras, _, status, body, opaque, cas = HEADER.unpack_from(self.came)
        if magic != 0x81:
            raise protocol.Mismatch("no answer: " + protocol.shown(bytes(self.came)))
        self.fill(HEADER.size + body)
        at = HEADER.size + extras
        found = (opcode, status, opaque, cas, bytes(self.came[HEADER.size : at]),
                 bytes(self.came[at : at + key]), bytes(self.came[at + key : HEADER.size + body]))
        del self.came[: HEADER.size + body]
        return found

    def read_line(self):
        while b"\r\n" not in self.came:
            self.fill(len(self.came) + 1)
        line, _, rest = bytes(self.came).partition(b"\r\n")
        self.came[:] = rest
        return line

    def fill(self, size):
        """Waits until so many bytes have come."""
        until = protocol.time.monotonic() + protocol.ANSWER_S
        while len(self.came) < size:
            if self.ended:
                raise protocol.Mismatch("closed behind " + protocol.shown(bytes(self.came)))
            self.step(b"", until)

    def read_all(self, most=None):
        """What comes until the server closes (or, with `most`, until so much has come)."""
        until = protocol.time.monotonic() + protocol.ANSWER_S
        while not self.ended and (most is None or len(self.came) < most):
            self.step(b"", until)
        return bytes(self.came)

    def push(self, data):
        """Writes what the socket takes, reads nothing. How much that was; None: it is closed."""
        sent = 0
        try:
            while sent < len(data):
                sent += self.socket.send(data[sent : sent + (1 << 18)])
        except BlockingIOError:
            pass
        except (ConnectionResetError, BrokenPipeError):
            return None
        return sent

    def finish(self):
        """No more from this side."""
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        self.close()
