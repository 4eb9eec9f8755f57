"""What came back for each operation, cut into replies that can be compared."""

import base64
import collections
import re

import operations

# word: a line's words, or (opcode, status); key, flags, value and token of a hit, None without.
# Of an error only the first word, or the status.
Reply = collections.namedtuple("Reply", "word key flags value token")
ERRORS = (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")
MN = b"mn\r\n"
SAID = b"MN\r\n"
GET_KEY_OPCODES = (0x0C, 0x0D, 0x23, 0x24)
COUNT_OPCODES = (0x05, 0x06, 0x15, 0x16)


class Lines:
    """Text and meta: an mn behind each operation says where its answer ends."""

    def sent(self, operation, token):
        return token_bytes(operation, b"%d" % token) + MN

    def ended(self, came, count):
        return came.count(SAID) >= count

    def cut(self, came, made):
        parts = bytes(came).split(SAID)
        return parts[:-1] + [b""] * (len(made) - len(parts) + 1)

    def replies(self, answer):
        made, at = [], 0
        while at < len(answer):
            end = answer.find(b"\r\n", at)
            words = answer[at:end].split(b" ") if end >= 0 else [answer[at:]]
            at = end + 2 if end >= 0 else len(answer)
            value = None
            if words[0] in (b"VALUE", b"VA"):
                length = int(words[3 if words[0] == b"VALUE" else 1])
                value = answer[at : at + length]
                if answer[at + length : at + length + 2] != b"\r\n":
                    value = b"(cut short) " + answer[at:]
                at += length + 2
            made.append(self.reply(words, value))
        return made

    @staticmethod
    def failed(reply):
        return reply.word in ERRORS


class TextLines(Lines):
    EXISTS = (b"EXISTS",)

    def reply(self, words, value):
        if words[0] in ERRORS:
            return Reply(words[0], None, None, None, None)
        if value is None:
            return Reply(b" ".join(words), None, None, None, None)
        token = int(words[4]) if len(words) > 4 else None
        return Reply(words[0], words[1], int(words[2]), value, token)

    @staticmethod
    def without_flags(reply):
        return reply._replace(flags=0) if reply.value is not None else reply


class MetaLines(Lines):
    EXISTS = (b"EX",)

    def reply(self, words, value):
        if words[0] in ERRORS:
            return Reply(words[0], None, None, None, None)
        token = None
        flags = words[2:] if value is not None else words[1:]
        for i, flag in enumerate(flags):
            if re.fullmatch(rb"c\d+", flag):
                token = int(flag[1:])
                flags[i] = b"c"
        if b"b" in flags:
            flags = decoded(flags)
        return Reply(words[0], None, flags, value, token)

    @staticmethod
    def without_flags(reply):
        flags = [b"f0" if re.fullmatch(rb"f\d+", flag) else flag for flag in reply.flags or []]
        return reply._replace(flags=flags if reply.flags is not None else None)


class Packets:
    """Binary: opaques say whose answer a packet is; a noop ends the batch."""

    NOOP = 0x0A
    EXISTS = tuple((opcode, 2) for opcode in range(256))
    END = operations.HEADER.pack(0x80, NOOP, 0, 0, 0, 0, 0, 0xFFFFFFFF, 0)

    def sent(self, operation, token):
        return token_bytes(operation, token.to_bytes(8, "big"))

    def ended(self, came, _):
        end = b"\x81" + self.END[1:]
        return came.endswith(end)

    def cut(self, came, made):
        """A packet out of its turn is put where it came, where it is one too many."""
        parts = [[] for _ in made]
        head, at, now, data = operations.HEADER, 0, 0, bytes(came)
        while at + head.size <= len(data):
            fields = head.unpack_from(data, at)
            length, opaque = head.size + fields[6], fields[7]
            if fields[1] != self.NOOP:
                now = max(now, min(opaque // 2, len(made) - 1))
                parts[now].append(data[at : at + length])
            at += length
        return [b"".join(part) for part in parts]

    def replies(self, answer):
        made, at, head = [], 0, operations.HEADER
        while at < len(answer):
            _, opcode, key, extras, kind, status, body, opaque, cas = head.unpack_from(answer, at)
            at += head.size
            name = answer[at + extras : at + extras + key]
            value = answer[at + extras + key : at + body]
            flags = (answer[at : at + extras], kind, opaque)
            if status != 0 and not (opcode in GET_KEY_OPCODES and status == 1):
                value = b""  # words of an error
            if status == 0 and opcode in COUNT_OPCODES:
                value = b"%d" % int.from_bytes(value, "big")
            at += body
            made.append(Reply((opcode, status), name, flags, value, cas or None))
        return made

    @staticmethod
    def failed(reply):
        return reply.word[1] not in (0, 1, 2, 5)

    @staticmethod
    def without_flags(reply):
        flags = [b"\0" * len(part) if isinstance(part, bytes) else part for part in reply.flags]
        return reply._replace(flags=tuple(flags))


def decoded(flags):
    """A hit's key is in base64 when it was sent so, or, from memcached, when it was stored so."""
    flags = [flag for flag in flags if flag != b"b"]
    return [b"k" + base64.b64decode(flag[1:]) if flag[:1] == b"k" else flag for flag in flags]


def token_bytes(operation, token):
    pieces = operation.pieces
    return pieces[0] if len(pieces) == 1 else pieces[0] + token + pieces[1]


READERS = {"text": TextLines(), "meta": MetaLines(), "binary": Packets()}
