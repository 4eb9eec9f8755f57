"""judge.py: what the daemon must hold, what it holds, and whether the one may follow from the other.

What was acknowledged stands in the model's file (ops.h says how), what was sent and never answered
in a Round's `pending`, in the order of each connection. After a restart an id may hold its
acknowledged state, or that after any first part of its own pending commands; nothing else. So

- a counter lies between acknowledged and sent, a set is the last acknowledged or a later one,
- what was acknowledged as added is there, what was acknowledged as deleted is gone,

exactly. And because a connection's commands run in order and only an end of the journal can be lost,
all ids of a writer must agree on one place up to which its pending commands have happened. A pending
command that may have been refused (refusals.py says which) may be missing below that place, but may
not have happened above it; how many are is counted, and bounded.

A member that was never added may be found if the filter says so: as often as conf/README.md promises
for the table it belongs to and each layer that this has. With `oldest: recycle` an id is absent if it
lies below the oldest table. A table that was recycled before an older one (to that most ids came)
leaves its range to the one below, which says how many such it has: of an id there that is absent,
though it should hold something, the daemon must say that it was recycled (`misses_below`).
"""
import bisect
import math
import mmap
import re
import struct

from refusals import MAY, MUST, Refusals

MAGIC = 0x6C65646F6D736F70
HEADER = struct.Struct("=4Q")
HEADER_BYTES = 4096
ENTRY = struct.Struct("=4q4BI")
SLOTS = ("repost", "comment", "like", "read")
MEMBERS = 2
NOTHING = (-1,) * len(SLOTS)
NEVER, THERE, DELETED, UNKNOWN = range(4)
FOUND = {NEVER: False, THERE: True, DELETED: False}  # is a member found? UNKNOWN: it may be
NO_RECORD = b",,,"  # what a get answers of NOTHING, if it did
BELOW, MAY_HOLD, HOLDS = range(3)
GONE = {"counter": 1, "member": 2}
SPACES = {"counter": "feed", "member": "liked"}

KEYS = 1000  # of one get
ANSWER_S = 60
FALSE_POSITIVES_TIMES = 1.3  # what is taken of the rate that conf/README.md promises, of a table and each layer
BY_CHANCE = 1e-6
BY_CHANCE_DEVIATIONS = 4.75  # of a normal distribution
MEAN_LARGE = 500
PROBES = 4000  # members nobody ever added, a round
PROBLEMS_SHOWN = 10
STATES_MAX = 4096  # that one id's pending commands may lead to
VALUE = re.compile(rb"VALUE feed:(\d+) 0 \d+\r\n([\d,]*)\r\n")
MEMBER = re.compile(rb"VALUE liked:(\d+):u(\d) 0 1\r\n1\r\n")
PROBE = re.compile(rb"VALUE liked:\d+:x 0 1\r\n1\r\n")


class Lost(Exception):
    """The daemon's answer is not one it may give."""


class Model:
    """The file load.c shares; see ops.h."""

    def __init__(self, path, ids_max):
        with open(path, "wb") as file:
            file.write(HEADER.pack(MAGIC, ids_max, 1, 0))
            file.truncate(HEADER_BYTES + ids_max * ENTRY.size)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.path = path

    @property
    def next(self):
        return HEADER.unpack_from(self.memory)[2]

    @property
    def full(self):
        return HEADER.unpack_from(self.memory)[3] != 0

    def entry(self, number):
        """slots, members (states), gone, round"""
        fields = ENTRY.unpack_from(self.memory, HEADER_BYTES + number * ENTRY.size)
        slots = fields[:4] if fields[6] else NOTHING  # nobody owns it: all zeroes
        return slots, states_of(fields[4]), fields[5], fields[8]

    def compared(self, number):
        """The same for a comparison that most ids pass: slots as an answer has them, members packed, gone"""
        fields = ENTRY.unpack_from(self.memory, HEADER_BYTES + number * ENTRY.size)
        text = text_of(fields[:4]) if fields[6] else NO_RECORD
        return text, fields[4], fields[5]

    def put(self, number, slots, members):
        at = HEADER_BYTES + number * ENTRY.size
        fields = list(ENTRY.unpack_from(self.memory, at))
        fields[:4] = slots
        fields[4] = sum(state << (2 * i) for i, state in enumerate(members))
        ENTRY.pack_into(self.memory, at, *fields)


def states_of(packed):
    return [packed >> (2 * i) & 3 for i in range(MEMBERS)]


def holdings(states):
    """What may be found of members of these states: a bit each."""
    return {held for held in range(1 << MEMBERS)
            if all(FOUND.get(state, one) == one
                   for state, one in zip(states, (held >> i & 1 for i in range(MEMBERS))))}


# Of each way that a model's entry has its members: what may be found, how many of them were never added
MAY_HOLD_BITS = [holdings(states_of(packed)) for packed in range(1 << 2 * MEMBERS)]
NEVERS = [states_of(packed).count(NEVER) for packed in range(1 << 2 * MEMBERS)]


def text_of(slots):
    """A record's value, as it is set and answered."""
    return (b"%d,%d,%d,%d" % slots).replace(b"-1", b"")


def value_line(number, text):
    """What a get answers of one record."""
    return b"VALUE feed:%d 0 %d\r\n%s\r\n" % (number, len(text), text)


def slots_in(text):
    return tuple([int(one) if one else -1 for one in text.split(b",")])


def texts_in(answer):
    """id -> its slots, as the answer has them"""
    return {int(key): text for key, text in VALUE.findall(answer)}


def counters_in(answer):
    """id -> slots"""
    return {key: slots_in(text) for key, text in texts_in(answer).items()}


def members_in(answer):
    return {(int(key), int(i)) for key, i in MEMBER.findall(answer)}


def counters_request(ids):
    return b"get" + b"".join([b" feed:%d" % number for number in ids]) + b"\r\n"


def members_request(ids):
    one = b"".join([b" liked:%%d:u%d" % i for i in range(MEMBERS)])
    return b"get" + b"".join([one % ((number,) * MEMBERS) for number in ids]) + b"\r\n"


class Client:
    """One connection that asks and waits."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(ANSWER_S)

    def ask(self, request, ends=(b"END\r\n",)):
        self.socket.sendall(request)
        data = bytearray()
        while not data.endswith(ends):
            piece = self.socket.recv(1 << 18)
            if not piece:
                raise Lost("closed while %s was asked" % request[:40])
            data += piece
            if data.startswith((b"SERVER_ERROR", b"CLIENT_ERROR", b"ERROR")):
                raise Lost("%s is answered %s" % (request[:40], bytes(data[:100])))
        return bytes(data)

    def stats(self, group):
        rows = (line.split(b" ", 2) for line in self.ask(b"stats " + group + b"\r\n").split(b"\r\n"))
        return {row[1].decode(): row[2].decode() for row in rows if len(row) == 3}

    def tables(self, space):
        """what `stats tables` tells of a space, asked for until there is no more"""
        figures, at = {}, 0
        while at is not None:
            figures.update(self.stats(b"tables %s %d" % (space.encode(), at)))
            at = figures.pop(space + ":more", None)
            at = None if at is None else int(at)
        return figures

    def ask_counters(self, ids):
        return self.ask(counters_request(ids))

    def ask_members(self, ids):
        return self.ask(members_request(ids))

    def counters(self, ids):
        """id -> slots, of those that are there"""
        return counters_in(self.ask_counters(ids))

    def members(self, ids):
        """the set of (id, member) that are there"""
        return members_in(self.ask_members(ids))

    def probes(self, ids):
        """how many of these are found though nobody ever added them"""
        keys = b"".join(b" liked:%d:x" % number for number in ids)
        return len(PROBE.findall(self.ask(b"get" + keys + b"\r\n")))


class Tables:
    """A space's tables, as `stats tables` names them."""

    def __init__(self, figures, space):
        rows = {}
        for name, value in figures.items():
            _, serial, figure = name.split(":")
            rows.setdefault(serial, {})[figure] = value
        self.rows = sorted(rows.values(), key=lambda row: int(row["base"]))
        self.bases = [int(row["base"]) for row in self.rows]
        self.dropped = [row["dropped_ranges"] != "0" for row in self.rows]
        self.layers = [int(row["layers"]) for row in self.rows]
        self.space, self.low = space, self.bases[0] if self.bases else 0

    def of(self, number):
        """The figures of the table an id belongs to; None: below the oldest."""
        at = bisect.bisect(self.bases, number) - 1
        return self.rows[at] if at >= 0 else None

    def layers_of(self, number):
        """How many filters are asked for a member of this id."""
        at = bisect.bisect(self.bases, number) - 1
        return self.layers[at] if at >= 0 else 0

    def keeps(self, number):
        """HOLDS, MAY_HOLD where ids were dropped, or BELOW the oldest."""
        at = bisect.bisect(self.bases, number) - 1
        if at < 0:
            return BELOW
        return MAY_HOLD if self.dropped[at] else HOLDS


class Pending:
    """A command that was sent and not answered; `at`: its place among its writer's."""

    def __init__(self, words, at):
        self.writer, self.at = int(words[0]), at
        self.kind, self.verb = words[1], words[2]
        self.id, self.slot = int(words[3]), int(words[4])
        self.values = tuple(int(word) for word in words[5:9])

    def key(self):
        return (self.kind, self.id, self.slot if self.kind == "member" else -1)

    def apply(self, state):
        if self.kind == "member":
            return self.member(state)
        if self.verb == "get":
            return state
        if self.verb == "delete":
            return NOTHING
        if self.verb == "record":
            return self.values
        return tuple(self.one(i, old) for i, old in enumerate(state))

    def member(self, state):
        if state == UNKNOWN:
            return state
        if self.verb == "add":
            return THERE
        return DELETED if state == THERE else state

    def one(self, i, old):
        value = self.values[i]
        if self.verb == "unset":
            return -1 if i == self.slot else old
        if value < 0:
            return old
        if self.verb == "incr":
            return max(old, 0) + value
        if self.verb == "decr":
            return max(max(old, 0) - value, 0)
        return value  # set


def text(kind, state):
    if kind == "member":
        return ("absent (never added)", "there", "absent (deleted)", "unknown")[state]
    return "absent" if state == NOTHING else text_of(state).decode()


class Judge:
    """Compares; keeps what the next round begins with."""

    def __init__(self, model, oldest, rate):
        self.model, self.oldest, self.rate = model, oldest, rate
        self.probes = self.found = 0  # members never added: asked for, found
        self.looks = 0  # filters that were asked for them: a table, and its layers
        self.dumps_fail = False  # by intent: then no table may be free for some seconds
        self.full_rows = set()  # kinds whose row has recycled
        self.excused = {}  # kind -> ids that should hold something and are absent, where ids were dropped
        self.ids = self.count = 0  # ids judged, problems
        self.problems = []  # the first of them

    def problem(self, line):
        self.count += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(line)

    def tables(self, client):
        """kind -> Tables"""
        tables = {kind: Tables(client.tables(space), space) for kind, space in SPACES.items()}
        for kind, space in SPACES.items():
            if self.oldest != "recycle" and tables[kind].low != 0:
                self.problem("%s: the oldest table begins at %d" % (space, tables[kind].low))
        return tables

    def is_absent(self, command):
        """Is what a command changes not there, as it was acknowledged?"""
        slots, members, _, _ = self.model.entry(command.id)
        return members[command.slot] != THERE if command.kind == "member" else slots == NOTHING

    def keeps(self, tables, kind, number, there):
        """Must it be as it was acknowledged? `there`: it holds something."""
        keeps = tables[kind].keeps(number) if self.oldest == "recycle" else HOLDS
        slots, members, gone, _ = self.model.entry(number)
        gone &= GONE[kind]
        if gone and (keeps == HOLDS or keeps == MAY_HOLD and there):
            self.problem("%s:%d: an answer said it was recycled, but it %s, and the oldest table "
                         "begins at %d" % (SPACES[kind], number,
                                           "is there" if there else "has a table",
                                           tables[kind].low))
        if keeps == MAY_HOLD and not there:
            held = THERE in members if kind == "member" else slots != NOTHING
            if held or gone:
                self.excused.setdefault(kind, []).append(number)
        return keeps == HOLDS or keeps == MAY_HOLD and there

    def check_excused(self, client, pending=()):
        """Ids that are absent in a table that has dropped ranges must lie in these: the daemon says so. Not those
        in `pending`, for what is unanswered may have ended them."""
        for kind, excused in self.excused.items():
            ids = [one for one in excused if one not in pending]
            if self.below(client, kind, ids) == len(ids):
                continue
            for one in ids:
                if self.below(client, kind, [one]) != 1:
                    self.problem("%s:%d: it is absent, and was not recycled" % (SPACES[kind], one))
        self.excused = {}

    @staticmethod
    def below(client, kind, ids):
        """How many of these the daemon says were recycled. Nobody else may ask meanwhile."""
        figure = SPACES[kind] + ":misses_below"
        before = int(client.stats(b"spaces")[figure])
        for begin in range(0, len(ids), KEYS):
            block = ids[begin:begin + KEYS]
            if kind == "counter":
                client.ask_counters(block)
            else:
                client.probes(block)
        return int(client.stats(b"spaces")[figure]) - before

    def rows(self, spaces, tables):
        """A row that has recycled is full, and stays so: a restart forgets no table."""
        for kind, space in SPACES.items():
            held = int(spaces[space + ":tables"]) + int(spaces[space + ":layers"])
            wanted = int(spaces[space + ":tables_max"]) - 2
            if kind in self.full_rows and held < wanted:
                self.problem("%s: %d tables came back, %d are kept" % (space, held, wanted))
            if tables[kind].low > 0:
                self.full_rows.add(kind)

    def judge(self, client, pending, answered, chosen, rng):
        """Judges the ids that `chosen` (of id, the last round it was changed in; None: all) says.
        `answered`: (kind, reason) -> how many commands of the load that `pending` is of were refused so.
        Returns (ids judged, pending commands that happened)."""
        lows = [one.low for one in self.tables(client).values()] if self.oldest == "recycle" else [0]
        ids = range(max(1, min(lows)), self.model.next)
        if chosen:
            ids = [one for one in ids if chosen(one, self.model.entry(one)[3])]
        texts, there = {}, set()
        for begin in range(0, len(ids), KEYS):
            block = ids[begin:begin + KEYS]
            texts.update(texts_in(client.ask_counters(block)))
            there |= client.members(block)
        probed = self.probe(client, ids, rng)
        tables = self.tables(client)  # after the reading, for some may have gone meanwhile
        self.looks += sum(tables["member"].layers_of(one) for one in probed)
        spaces = client.stats(b"spaces")
        self.rows(spaces, tables)
        refusals = Refusals(self, tables, spaces, pending, answered)
        happened = Happened(pending, refusals)
        for number in ids:
            self.one_id(number, texts.get(number, NO_RECORD), there, tables, happened)
        for line in happened.disagreements(refusals.most):
            self.problem(line)
        for reason, kind, count in refusals.groundless():
            self.problem("%d x %s (%s), and there is room" % (count, reason, SPACES[kind]))
        self.check_excused(client, happened.ids)
        self.ids += len(ids)
        return len(ids), happened.count()

    def as_acknowledged(self, number, text, there, tables):
        """Is it just so? Most ids are, and no more is to be looked at where nothing is unanswered: this
        is most of a judge's time."""
        wanted, members, gone = self.model.compared(number)
        if gone or text != wanted:
            return False
        held = sum([1 << i for i in range(MEMBERS) if (number, i) in there])
        if held not in MAY_HOLD_BITS[members]:
            return False
        if NEVERS[members] and (self.oldest != "recycle" or self.keeps(tables, "member", number, held != 0)):
            self.probes += NEVERS[members]
            self.looks += NEVERS[members] * tables["member"].layers_of(number)
        return True

    def one_id(self, number, text, there, tables, happened):
        if number not in happened.ids and self.as_acknowledged(number, text, there, tables):
            return
        found = slots_in(text)
        slots, members, _, _ = self.model.entry(number)
        after, states = slots, list(members)
        if self.keeps(tables, "counter", number, found != NOTHING):
            after = self.state(happened, ("counter", number, -1), slots, found)
        if self.keeps(tables, "member", number,
                      any((number, i) in there for i in range(MEMBERS))):
            layers = tables["member"].layers_of(number)
            states = [self.state(happened, ("member", number, i), state, (number, i) in there, layers)
                      for i, state in enumerate(members)]
        if after != slots or states != members:
            self.model.put(number, after, states)

    def state(self, happened, key, acknowledged, found, layers=0):
        """The state to go on with. `layers`: of a member, those of its table, itself among them."""
        if key[0] == "member" and key not in happened.by_key:
            if acknowledged == UNKNOWN:
                return UNKNOWN
            if acknowledged == NEVER:
                self.probes += 1
                self.looks += layers
                self.found += found
                return UNKNOWN if found else NEVER
        result = happened.settle(key, acknowledged, found)
        if result is None:
            self.wrong(key, happened.by_key.get(key, ()), acknowledged, found)
            return found if key[0] == "counter" else UNKNOWN
        return result

    def wrong(self, key, commands, acknowledged, found):
        kind, number, member = key
        sent = acknowledged
        for command in commands:
            sent = command.apply(sent)
        name = "%s:%d" % (SPACES[kind], number) + (":u%d" % member if kind == "member" else "")
        shown = text(kind, found) if kind == "counter" else "there" if found else "absent"
        self.problem("%s: acknowledged %s, recovered %s, sent %s (%d commands unanswered)" % (
            name, text(kind, acknowledged), shown, text(kind, sent), len(commands)))

    def probe(self, client, ids, rng):
        """The ids of which members that nobody added were asked for."""
        probed = [rng.choice(ids) for _ in range(PROBES if ids else 0)]
        for begin in range(0, len(probed), KEYS):
            self.found += client.probes(probed[begin:begin + KEYS])
        self.probes += len(probed)
        return probed

    def false_positives(self, seen):
        """Ends a run; `seen`: of those that the load saw."""
        allowed = most_found(self.rate, self.looks)
        if self.found + seen > allowed:
            self.problem("%d members are found that nobody added, of %d in %d filters; at most %d" % (
                self.found + seen, self.probes, self.looks, allowed))


def most_found(rate, looks):
    """How many members never added may be found, where so many filters were asked: a table's, and those of
    its layers. One run in a million finds more by chance (Poisson; a large mean as the normal distribution
    has it)."""
    mean = FALSE_POSITIVES_TIMES * rate * looks
    if mean > MEAN_LARGE:
        return round(mean + BY_CHANCE_DEVIATIONS * math.sqrt(mean))
    term = total = math.exp(-mean)
    most = 0
    while total < 1 - BY_CHANCE:
        most += 1
        term *= mean / most
        total += term
    return most


class Happened:
    """Up to where each writer's pending commands have happened. refusable(command): MUST it have happened
    below that place, or may it be missing: LASTS, or MAY, which is counted?"""

    def __init__(self, pending, refusable):
        self.by_key, self.refusable = {}, refusable
        self.ids = {command.id for command in pending}
        self.missing = {}  # writer -> for each number of commands: if so many have happened, refused ones of them
        for command in pending:
            self.by_key.setdefault(command.key(), []).append(command)
            self.missing.setdefault(command.writer, [0]).append(0)

    def settle(self, key, acknowledged, found):
        """The state that what was found means; None: it may not be."""
        commands = self.by_key.get(key, [])
        same = (lambda state: (state in (THERE, UNKNOWN)) == found) if key[0] == "member" else (
            lambda state: state == found)
        fitting = []  # for each number of commands up to the writer's place: refused ones, a state like it; or None
        for states in self.states(acknowledged, commands):
            fitting.append(min(((count, n, state) for n, (state, count) in enumerate(states.items())
                                if same(state)), default=None))
        good = [one for one in fitting if one is not None]
        if not good:
            return None
        if commands:
            self.narrow(commands, [one[0] if one else math.inf for one in fitting])
        return good[0][2]

    def states(self, acknowledged, commands):
        """Yields what the state may be after none of the commands, after the first, ...: state -> how many
        of them were refused, at least"""
        states = {acknowledged: 0}
        yield states
        for command in commands:
            after = {}
            for state, count in states.items():
                happened = command.apply(state)
                after[happened] = min(count, after.get(happened, math.inf))
            refusable = self.refusable(command)
            if refusable != MUST:
                for state, count in states.items():
                    after[state] = min(count + (refusable == MAY), after.get(state, math.inf))
            states = after
            if len(states) > STATES_MAX:
                raise Lost("too many commands of %s:%d are unanswered to judge" % command.key()[:2])
            yield states

    def narrow(self, commands, missing):
        """Between the n-th command of this id and the next, its writer's place takes missing[n] refusals."""
        places = self.missing[commands[0].writer]
        edges = [0] + [command.at + 1 for command in commands] + [len(places)]
        for n, count in enumerate(missing):
            if count:
                places[edges[n]:edges[n + 1]] = [one + count for one in places[edges[n]:edges[n + 1]]]

    def disagreements(self, most=0):
        """`most`: as many may have been refused for a reason that passes."""
        refused = 0
        for writer, places in self.missing.items():
            least = min(places)
            if least == math.inf:
                yield ("writer %d: no end of its %d unanswered commands explains all its ids: "
                       "an earlier one is lost, a later one is there" % (writer, len(places) - 1))
            else:
                refused += least
        if refused > most:
            yield ("%d unanswered commands are missing, though later ones of their writers have happened; "
                   "%d answers were refusals that these may have got" % (refused, most))

    def count(self):
        """Pending commands that have happened, at least."""
        ends = [[at for at, one in enumerate(places) if one < math.inf] for places in self.missing.values()]
        return sum(one[0] for one in ends if one)
