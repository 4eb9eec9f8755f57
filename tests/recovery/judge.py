"""judge.py: what the daemon must hold, what it holds, and whether the one may follow from the other.

What was acknowledged stands in the model's file (ops.h says how), what was sent and never answered
in a Round's `pending`, in the order of each connection. After a restart an id may hold its
acknowledged state, or that after any first part of its own pending commands; nothing else. So

- a counter lies between acknowledged and sent, a set is the last acknowledged or a later one,
- what was acknowledged as added is there, what was acknowledged as deleted is gone,

exactly. And because a connection's commands run in order and only an end of the journal can be lost,
all ids of a writer must agree on one place up to which its pending commands have happened. A pending
command that may have been refused (`busy`: its id is in a file, or new; `no table free`: its id is new) may be
missing below that place, but may not have happened above it.

A member that was never added may be found if the filter says so: as often as conf/README.md promises.
With `oldest: recycle` an id is absent if it lies below the oldest table. A table that was recycled
before an older one (to that most ids came) leaves its range to the one below, which says that it has
such: of those ids each holds what it must, or is absent, and stays so once an answer said it.
"""
import bisect
import math
import mmap
import re
import struct

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
IN_PLACE_MAX = (1021, 1048573, 1048573, 1048573)  # of the slots' bits in victim.py
# Refusals of which it is known which commands they are for; any other may be for any command
BUSY, NO_TABLE, NO_MEMORY = "busy", "no table free", "out of memory storing object"
ENDING_VERBS = ("delete", "unset", "record", "remove")  # an id, or a member, may be gone behind them
BELOW, MAY_HOLD, HOLDS = range(3)
GONE = {"counter": 1, "member": 2}
SPACES = {"counter": "feed", "member": "liked"}

KEYS = 1000  # of one get
ANSWER_S = 60
LAYERS_MAX = 2  # of a table; conf/README.md promises the rate for each
FALSE_POSITIVES_TIMES = 1.3  # what is taken of the rate that conf/README.md promises
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
        found = (re.fullmatch(space + r":(\d+):base", name) for name in figures)
        rows = sorted((int(figures[one.group()]),
                       int(figures["%s:%s:dropped_ranges" % (space, one.group(1))]),
                       figures["%s:%s:cold" % (space, one.group(1))])
                      for one in found if one)
        self.bases = [base for base, _, _ in rows]
        self.dropped = [ranges > 0 for _, ranges, _ in rows]
        self.files = {base for base, _, cold in rows if cold != "0"}

    @property
    def low(self):
        return self.bases[0] if self.bases else 0

    def in_file(self, number):
        """Is this id in a dumped table?"""
        at = bisect.bisect(self.bases, number) - 1
        return at >= 0 and self.bases[at] in self.files

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
        self.full_rows = set()  # kinds whose row has recycled
        self.ids = self.count = 0  # ids judged, problems
        self.problems = []  # the first of them

    def problem(self, line):
        self.count += 1
        if len(self.problems) < PROBLEMS_SHOWN:
            self.problems.append(line)

    def tables(self, client):
        """kind -> Tables"""
        tables = {kind: Tables(client.tables(space) if self.oldest != "dump" else {}, space)
                  for kind, space in SPACES.items()}
        for kind, space in SPACES.items():
            if self.oldest != "recycle" and tables[kind].low != 0:
                self.problem("%s: the oldest table begins at %d" % (space, tables[kind].low))
        return tables

    def keeps(self, tables, kind, number, there):
        """Must it be as it was acknowledged? `there`: it holds something."""
        keeps = tables[kind].keeps(number) if self.oldest == "recycle" else HOLDS
        gone = self.model.entry(number)[2] & GONE[kind]
        if gone and (keeps == HOLDS or keeps == MAY_HOLD and there):
            self.problem("%s:%d: an answer said it was recycled, but it %s, and the oldest table "
                         "begins at %d" % (SPACES[kind], number,
                                           "is there" if there else "has a table",
                                           tables[kind].low))
        return keeps == HOLDS or keeps == MAY_HOLD and there

    def rows(self, client, tables):
        """A row that has recycled is full, and stays so: a restart forgets no table."""
        spaces = client.stats(b"spaces")
        for kind, space in SPACES.items():
            held = int(spaces[space + ":tables"]) + int(spaces[space + ":layers"])
            wanted = int(spaces[space + ":tables_max"]) - 2
            if kind in self.full_rows and held < wanted:
                self.problem("%s: %d tables came back, %d are kept" % (space, held, wanted))
            if tables[kind].low > 0:
                self.full_rows.add(kind)

    def judge(self, client, pending, reasons, chosen, rng):
        """Judges the ids that `chosen` (of id, the last round it was changed in; None: all) says.
        `reasons`: why a command may have been refused.
        Returns (ids judged, pending commands that happened)."""
        first = max(1, min(one.low for one in self.tables(client).values()))
        ids = range(first, self.model.next)
        if chosen:
            ids = [one for one in ids if chosen(one, self.model.entry(one)[3])]
        texts, there = {}, set()
        for begin in range(0, len(ids), KEYS):
            block = ids[begin:begin + KEYS]
            texts.update(texts_in(client.ask_counters(block)))
            there |= client.members(block)
        self.probe(client, ids, rng)
        tables = self.tables(client)  # behind the reading, for some may have gone meanwhile
        self.rows(client, tables)
        happened = Happened(pending, self.refusable(client, pending, reasons))
        for number in ids:
            self.one_id(number, texts.get(number, NO_RECORD), there, tables, happened)
        for line in happened.disagreements():
            self.problem(line)
        self.ids += len(ids)
        return len(ids), happened.count()

    def refusable(self, client, pending, reasons):
        """Which of these commands may have been refused: a function of the command."""
        files = {}
        if pending and BUSY in reasons:
            files = {kind: Tables(client.tables(space), space) for kind, space in SPACES.items()}
        ended = {command.key()[:2] for command in pending if command.verb in ENDING_VERBS}
        beside = self.beside(pending)

        def is_new(command):
            slots, members, _, _ = self.model.entry(command.id)
            return command.key()[:2] in ended or (
                members[command.slot] != THERE if command.kind == "member" else slots == NOTHING)

        tests = {BUSY: lambda command: (
                     files[command.kind].in_file(command.id) or is_new(command)),
                 NO_TABLE: is_new,
                 NO_MEMORY: lambda command: (
                     command.kind == "member" or command.id in beside or is_new(command))}
        asked = [tests.get(reason, lambda command: True) for reason in reasons]
        return lambda command: any(test(command) for test in asked)

    def beside(self, pending):
        """The ids of which a value may be too large for its bits, and lie beside the table."""
        sums = {}
        for command in pending:
            if command.kind == "counter":
                slots = self.model.entry(command.id)[0]
                sum_of = sums.setdefault(command.id, [max(0, one) for one in slots])
                for i, value in enumerate(command.values):
                    sum_of[i] += max(0, value)
        return {number for number, sum_of in sums.items()
                if any(one > most for one, most in zip(sum_of, IN_PLACE_MAX))}

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
            states = [self.state(happened, ("member", number, i), state, (number, i) in there)
                      for i, state in enumerate(members)]
        if after != slots or states != members:
            self.model.put(number, after, states)

    def state(self, happened, key, acknowledged, found):
        """The state to go on with."""
        if key[0] == "member" and key not in happened.by_key:
            if acknowledged == UNKNOWN:
                return UNKNOWN
            if acknowledged == NEVER:
                self.probes += 1
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
        for _ in range(PROBES // KEYS if ids else 0):
            self.probes += KEYS
            self.found += client.probes([rng.choice(ids) for _ in range(KEYS)])

    def false_positives(self, seen):
        """Ends a run; `seen`: of those that the load saw."""
        allowed = most_found(self.rate, self.probes)
        if self.found + seen > allowed:
            self.problem("%d members are found that nobody added, of %d; at most %d" % (
                self.found + seen, self.probes, allowed))


def most_found(rate, probes):
    """How many of so many members never added may be found. One run in a million finds more by chance
    (Poisson; a large mean as the normal distribution has it)."""
    mean = FALSE_POSITIVES_TIMES * LAYERS_MAX * rate * probes
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
    """Up to where each writer's pending commands have happened. refusable(command): may it be missing
    below that place?"""

    def __init__(self, pending, refusable):
        self.by_key, self.refusable = {}, refusable
        self.ids = {command.id for command in pending}
        self.possible = {}  # writer -> for each number of commands: may so many have happened?
        for command in pending:
            self.by_key.setdefault(command.key(), []).append(command)
            self.possible.setdefault(command.writer, [True]).append(True)

    def settle(self, key, acknowledged, found):
        """The state that what was found means; None: it may not be."""
        commands = self.by_key.get(key, [])
        same = (lambda state: (state in (THERE, UNKNOWN)) == found) if key[0] == "member" else (
            lambda state: state == found)
        fitting = []  # for each number of commands up to the writer's place: a state like it, or None
        for states in self.states(acknowledged, commands):
            fitting.append(next((state for state in states if same(state)), None))
        good = [state is not None for state in fitting]
        if not any(good):
            return None
        if commands:
            self.narrow(commands, good)
        return fitting[good.index(True)]

    def states(self, acknowledged, commands):
        """Yields what the state may be after none of the commands, after the first, ..."""
        states = {acknowledged}
        yield states
        for command in commands:
            after = {command.apply(state) for state in states}
            states = after | states if self.refusable(command) else after
            if len(states) > STATES_MAX:
                raise Lost("too many commands of %s:%d are unanswered to judge" % command.key()[:2])
            yield states

    def narrow(self, commands, good):
        """Between the n-th command of this id and the next, its writer's place is as good as `good[n]`."""
        writer = commands[0].writer
        places = self.possible[writer]
        edges = [0] + [command.at + 1 for command in commands] + [len(places)]
        for n, one in enumerate(good):
            if not one:
                places[edges[n]:edges[n + 1]] = [False] * (edges[n + 1] - edges[n])

    def disagreements(self):
        for writer, places in self.possible.items():
            if not any(places):
                yield ("writer %d: no end of its %d unanswered commands explains all its ids: "
                       "an earlier one is lost, a later one is there" % (writer, len(places) - 1))

    def count(self):
        """Pending commands that have happened, at least."""
        return sum(places.index(True) for places in self.possible.values() if any(places))
