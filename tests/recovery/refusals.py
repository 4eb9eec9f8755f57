"""refusals.py: which commands without an answer the daemon may have refused.

A refusal changes nothing, so what became of such a command shows later only in why it may have been
refused. Two reasons last, and are seen in the tables after the restart, for these are as they were:

- `out of memory`: the dict of the command's table that it needs a place of is full;
- `no table free` for a new id: with `oldest: refuse` no table is spare, and none will be; or the id's
  table is full and can have no further layer (is_closed).

The others pass, as a merge or a dump does. Of such, no more commands may be missing than answers of
the same load were, and only such as they can be given to: `busy` where the id is in a file or new,
`no table free` where it is new. Where a load got no refusal nothing may be missing, then.
"""
BUSY, NO_TABLE, NO_MEMORY = "busy", "no table free", "out of memory storing object"
NEW, NEW_OR_DUMPED, ANY = range(3)  # ids
# Reasons that pass -> whose commands they may be given to
PASSING = {BUSY: NEW_OR_DUMPED, NO_TABLE: NEW, "id too far ahead": NEW}
# A table takes no further layer once it has so many with itself, or is in a file: full, it refuses new ids of its
# range though tables are free
LAYERS_MAX = 16
CLOSED_LOAD = 0.9  # of such a table from which on it may be full: deletes make room here, and none there
ENDING_VERBS = ("delete", "unset", "record", "remove")  # an id, or a member, may be gone after them
IN_PLACE_MAX = (1021, 1048573, 1048573, 1048573)  # of the slots' bits in victim.py
FULL = 0.8  # share of a dict's places from which on it may be full: a new one takes 85 %
POOL_TIMES = 2  # as a restored dict has twice the memory that it uses
EXCEPTION_BYTES = 64 / 3  # of memory
MUST, MAY, LASTS = range(3)


def is_closed(row):
    """Does this table refuse new ids of its range though tables are free?"""
    going = int(row["layers"]) >= LAYERS_MAX or row["cold"] != "0"
    return going and float(row.get("load", 1)) >= CLOSED_LOAD


def is_full(used_bytes, pool_bytes):
    return used_bytes * POOL_TIMES >= FULL * int(pool_bytes) > 0


def exceptions_are_full(row):
    return is_full(int(row.get("exceptions", 0)) * EXCEPTION_BYTES, row.get("exceptions_bytes", 0))


def pool_is_full(row, name):
    """The sums are of the table and its layers, and one alone may be full."""
    return is_full(int(row.get(name + "_bytes", 0)) * int(row["layers"]), row.get(name + "_pool_bytes", 0))


class Refusals:
    """Of one restart."""

    def __init__(self, judge, tables, spaces, pending, answered):
        """tables: kind -> its Tables; spaces: `stats spaces`; answered: (kind, reason) -> refusals of the load."""
        self.judge, self.tables = judge, tables
        self.lasts = judge.oldest == "refuse"
        self.spare = {kind: int(spaces.get(one.space + ":spare", 0)) for kind, one in tables.items()}
        self.ended = {command.key()[:2] for command in pending if command.verb in ENDING_VERBS}
        self.beside = self.ids_beside(pending)
        self.answered = answered
        passing = {key: count for key, count in answered.items() if not self.is_lasting(*key)}
        self.passing = {(kind, PASSING.get(reason, ANY)) for kind, reason in passing}
        self.most = sum(passing.values())  # of the commands that may be missing for one that passes

    def __call__(self, command):
        """MUST: it happened if a later one did. MAY: it counts as one of `most`. LASTS: its reason does."""
        new = self.is_new(command)
        row = self.tables[command.kind].of(command.id)
        if row is None:
            return MUST
        if self.dict_is_full(command, new, row) or (new and (self.has_no_table(command.kind) or is_closed(row))):
            return LASTS
        dumped = row["cold"] != "0"
        fits = {ANY: True, NEW: new, NEW_OR_DUMPED: new or dumped}
        return MAY if any(fits[ids] for kind, ids in self.passing if kind == command.kind) else MUST

    def is_lasting(self, kind, reason):
        """May this reason still be seen?"""
        if reason == NO_TABLE:
            return self.has_no_table(kind) or any(map(is_closed, self.tables[kind].rows))
        full = exceptions_are_full if kind == "member" else lambda row: (
            pool_is_full(row, "aux") or pool_is_full(row, "extend"))
        return reason == NO_MEMORY and any(map(full, self.tables[kind].rows))

    def groundless(self):
        """Answers that should not have come: (reason, kind, how often)"""
        grounded = (NO_MEMORY,) if self.judge.dumps_fail else (NO_TABLE, NO_MEMORY)
        return [(reason, kind, count) for (kind, reason), count in self.answered.items()
                if reason in grounded and not self.is_lasting(kind, reason)]

    def is_new(self, command):
        return command.key()[:2] in self.ended or self.judge.is_absent(command)

    def has_no_table(self, kind):
        return self.lasts and self.spare[kind] == 0

    def dict_is_full(self, command, new, row):
        if command.kind == "member":
            return command.verb == "remove" and exceptions_are_full(row)
        return command.id in self.beside and pool_is_full(row, "aux") or new and pool_is_full(row, "extend")

    def ids_beside(self, pending):
        """The ids of which a value may be too large for its bits, and lie beside the table."""
        sums = {}
        for command in pending:
            if command.kind == "counter":
                slots = self.judge.model.entry(command.id)[0]
                sum_of = sums.setdefault(command.id, [max(0, one) for one in slots])
                for i, value in enumerate(command.values):
                    sum_of[i] += max(0, value)
        return {number for number, sum_of in sums.items()
                if any(one > most for one, most in zip(sum_of, IN_PLACE_MAX))}
