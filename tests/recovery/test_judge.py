#!/usr/bin/env python3
"""The judge judged: histories that may be and that may not, without a daemon."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge  # noqa: E402
from refusals import BUSY, LASTS, MAY, MUST, NO_MEMORY, NO_TABLE, Refusals  # noqa: E402
from tally import Tally  # noqa: E402

OWNER = 1  # an id that nobody owns is taken for new


def command(at, verb, number, value=1, kind="counter", slot=2):
    values = [-1] * 4
    if kind == "counter":
        values[slot] = value
    words = ["0", kind, verb, str(number), str(slot), *(str(one) for one in values)]
    return judge.Pending(words, at)


def state(like):
    return judge.NOTHING if like is None else (-1, -1, like, -1)


class Order(unittest.TestCase):
    """Increments of three ids, or of as many as `found`, by one writer."""

    def disagreements(self, found, refusable=(), kind=MAY, most=0):
        pending = [command(at, "incr", number) for at, number in enumerate(range(1, len(found) + 1))]
        happened = judge.Happened(pending, lambda one: kind if one.id in refusable else MUST)
        for number, like in enumerate(found, 1):
            settled = happened.settle(("counter", number, -1), state(5), state(like))
            if settled is None:
                return None
        return len(list(happened.disagreements(most)))

    def test_any_first_part(self):
        for found in ((5, 5, 5), (6, 5, 5), (6, 6, 5), (6, 6, 6)):
            self.assertEqual(self.disagreements(found), 0)
            self.assertEqual(self.disagreements(found, refusable=(1, 2, 3)), 0)

    def test_an_earlier_one_is_lost(self):
        for found in ((5, 6, 5), (5, 5, 6), (6, 5, 6)):
            self.assertEqual(self.disagreements(found), 1)

    def test_one_that_was_refused(self):
        for kind, most in ((LASTS, 0), (MAY, 1)):
            self.assertEqual(self.disagreements((6, 5, 6), (2,), kind, most), 0)
            self.assertEqual(self.disagreements((5, 5, 6), (2,), kind, most), 1)  # and the first?
            self.assertEqual(self.disagreements((5, 6, 5), (2,), kind, most), 1)

    def test_no_more_than_were_refused(self):
        self.assertEqual(self.disagreements((6, 5, 6), (2,), MAY, most=0), 1)
        self.assertEqual(self.disagreements((5, 5, 6), (1, 2), MAY, most=1), 1)
        self.assertEqual(self.disagreements((5, 5, 6), (1, 2), MAY, most=2), 0)
        self.assertEqual(self.disagreements((5, 5, 6), (1, 2), LASTS), 0)

    def test_all_but_the_last_are_lost(self):
        found = [5] * 1000 + [6]
        self.assertEqual(self.disagreements(found, range(1, 1002), MAY, most=999), 1)
        self.assertEqual(self.disagreements(found, range(1, 1002), MAY, most=1000), 0)

    def test_the_least_that_explains_it_is_counted(self):
        pending = [command(at, "incr", number) for at, number in enumerate((1, 1, 2))]
        happened = judge.Happened(pending, lambda one: MAY)
        happened.settle(("counter", 1, -1), state(5), state(6))  # one of two
        happened.settle(("counter", 2, -1), state(5), state(6))
        self.assertEqual(len(list(happened.disagreements(1))), 0)
        self.assertEqual(len(list(happened.disagreements(0))), 1)

    def test_nobody_sent_it(self):
        self.assertIsNone(self.disagreements((7, 5, 5)))
        self.assertIsNone(self.disagreements((4, 5, 5), refusable=(1,)))


def table(base, cold="0", dropped="0", layers="1", **more):
    return dict(more, base=str(base), cold=cold, dropped_ranges=dropped, layers=layers)


def tables(*rows):
    """kind -> tables of these figures, in both spaces"""
    return {kind: judge.Tables({"%s:%d:%s" % (space, serial, name): value
                                for serial, row in enumerate(rows) for name, value in row.items()}, space)
            for kind, space in judge.SPACES.items()}


class Refusable(unittest.TestCase):
    """Which commands may have been refused: 7 is in a file, 107 in memory, both known; 108 is not."""

    ROWS = (table(0, cold="1", load="0.5"), table(100, load="1"))

    def refusals(self, commands, answered=(), oldest="dump", spare="1", rows=ROWS):
        with tempfile.TemporaryDirectory() as folder:
            model = judge.Model(os.path.join(folder, "model"), 1000)
            for number in (7, 107):
                judge.ENTRY.pack_into(model.memory, judge.HEADER_BYTES + number * judge.ENTRY.size,
                                      *state(3), judge.THERE, 0, OWNER, 0, 0)
            spaces = {space + ":spare": spare for space in judge.SPACES.values()}
            one = Refusals(judge.Judge(model, oldest, 0), tables(*rows), spaces, commands, dict(answered))
            return [one(command) for command in commands], one

    def may(self, *args, **options):
        return self.refusals(*args, **options)[0]

    def test_nothing_was_refused(self):
        commands = [command(0, "incr", 7), command(1, "incr", 107), command(2, "incr", 108),
                    command(3, "remove", 7, kind="member", slot=0)]
        for oldest in ("dump", "refuse", "recycle"):
            self.assertEqual(self.may(commands, oldest=oldest), [MUST] * 4)

    def test_busy_is_of_files_and_new_ids(self):
        commands = [command(0, "incr", 7), command(1, "incr", 107), command(2, "incr", 108),
                    command(3, "remove", 7, kind="member", slot=0)]
        may, one = self.refusals(commands, {("counter", BUSY): 5})
        self.assertEqual((may, one.most), ([MAY, MUST, MAY, MUST], 5))

    def test_no_table_is_of_new_ids(self):
        commands = [command(0, "incr", 107), command(1, "incr", 108),
                    command(2, "add", 107, kind="member", slot=0),
                    command(3, "add", 107, kind="member", slot=1)]
        self.assertEqual(self.may(commands, oldest="refuse", spare="0"), [MUST, LASTS, MUST, LASTS])
        may, one = self.refusals(commands, {("counter", NO_TABLE): 2})
        self.assertEqual((may, one.most), ([MUST, MAY, MUST, MUST], 2))

    def test_no_table_where_one_is_free(self):
        answered = {("counter", NO_TABLE): 2}
        for oldest in ("dump", "refuse"):
            self.assertEqual(self.refusals([], answered, oldest)[1].groundless(), [(NO_TABLE, "counter", 2)])
        self.assertEqual(self.refusals([], answered, "refuse", "0")[1].groundless(), [])
        refusals = self.refusals([], answered)[1]
        refusals.judge.dumps_fail = True
        self.assertEqual(refusals.groundless(), [])

    def test_the_spaces_are_judged_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            one = judge.Judge(judge.Model(os.path.join(folder, "model"), 1), "refuse", 0)
            both = {(kind, NO_TABLE): 1 for kind in judge.SPACES}
            refusals = Refusals(one, tables(table(0)), {"feed:spare": "1", "liked:spare": "0"}, [], both)
            self.assertEqual(refusals.groundless(), [(NO_TABLE, "counter", 1)])

    def test_a_table_that_takes_no_layer(self):
        commands = [command(0, "incr", 107), command(1, "incr", 108)]
        for row in (table(100, layers="16", load="1"), table(100, cold="1", load="1")):
            may, one = self.refusals(commands, {("counter", NO_TABLE): 9}, rows=(table(0), row))
            self.assertEqual((may, one.most, one.groundless()), ([MUST, LASTS], 0, []))
        for row in (table(100, layers="16", load="0.5"), table(100, layers="15", load="1")):
            self.assertEqual(self.may(commands, rows=(table(0), row)), [MUST, MUST])

    def test_no_memory_is_of_a_full_dict(self):
        commands = [command(0, "incr", 107), command(1, "set", 107, 1 << 30), command(2, "incr", 108)]
        for name, may in (("aux", [LASTS, LASTS, MUST]), ("extend", [MUST, MUST, LASTS])):
            full = table(0, **{name + "_bytes": "57344", name + "_pool_bytes": "122880"})
            half = table(0, **{name + "_bytes": "24576", name + "_pool_bytes": "122880"})
            self.assertEqual(self.may(commands, rows=(full,)), may)
            self.assertEqual(self.may(commands, rows=(half,)), [MUST] * 3)
            answered = {("counter", NO_MEMORY): 1}
            self.assertEqual(self.refusals([], answered, rows=(full,))[1].groundless(), [])
            self.assertEqual(len(self.refusals([], answered, rows=(half,))[1].groundless()), 1)

    def test_no_memory_is_of_deleted_members(self):
        commands = [command(0, "remove", 7, kind="member", slot=0), command(1, "add", 107, kind="member", slot=1)]
        full = table(0, exceptions="2880", exceptions_bytes="122880")
        self.assertEqual(self.may(commands, rows=(full,)), [LASTS, MUST])
        self.assertEqual(self.may(commands, rows=(table(0, exceptions="1900", exceptions_bytes="122880"),)),
                         [MUST, MUST])

    def test_others_are_of_any(self):
        self.assertEqual(self.may([command(0, "incr", 107)], {("counter", "journal busy"): 1}), [MAY])
        self.assertEqual(self.may([command(0, "incr", 107)], {("member", "journal busy"): 1}), [MUST])


class OneId(unittest.TestCase):
    """An id that nothing unanswered is for."""

    ROWS = {"counter": table(0), "member": table(50, layers="2")}
    DROPPED = {"counter": table(0, dropped="1"), "member": table(50, dropped="3")}

    def settle(self, found, held, second=judge.NEVER, gone=0, oldest="recycle", number=60, rows=None):
        """It was acknowledged as 3, its first member as deleted."""
        with tempfile.TemporaryDirectory() as folder:
            model = judge.Model(os.path.join(folder, "model"), 1000)
            members = judge.DELETED | second << 2
            judge.ENTRY.pack_into(model.memory, judge.HEADER_BYTES + number * judge.ENTRY.size,
                                  *state(3), members, gone, OWNER, 0, 0)
            one = judge.Judge(model, oldest, 0)
            both = {kind: tables(row)[kind] for kind, row in (rows or self.ROWS).items()}
            text = judge.NO_RECORD if found is None else b",,%d," % found
            one.one_id(number, text, {(number, i) for i in held}, both,
                       judge.Happened([], lambda command: MUST))
            return one

    def test_as_acknowledged(self):
        one = self.settle(3, ())
        self.assertEqual((one.count, one.probes, one.looks, one.found), (0, 1, 2, 0))

    def test_below_the_tables_nothing_is_asked(self):
        one = self.settle(3, (), number=40)
        self.assertEqual((one.count, one.probes), (0, 0))
        self.assertEqual(self.settle(3, (), number=40, oldest="refuse").probes, 1)

    def test_a_count_is_lost(self):
        for found in (None, 2, 4):
            self.assertEqual(self.settle(found, ()).count, 1)

    def test_a_deleted_member_is_there(self):
        self.assertEqual(self.settle(3, (0,)).count, 1)

    def test_one_never_added_is_found(self):
        one = self.settle(3, (1,))
        self.assertEqual((one.count, one.probes, one.looks, one.found), (0, 1, 2, 1))

    def test_one_that_was_added_is_lost(self):
        self.assertEqual(self.settle(3, (1,), second=judge.THERE).count, 0)
        self.assertEqual(self.settle(3, (), second=judge.THERE).count, 1)

    def test_one_that_was_recycled_is_there(self):
        self.assertEqual(self.settle(3, (), gone=judge.GONE["counter"]).count, 1)
        self.assertEqual(self.settle(3, (), gone=judge.GONE["counter"], rows=self.DROPPED).count, 1)

    def excused(self, *args, below=(), **options):
        """The problems, of an id of a table with dropped ranges; `below`: the daemon says it was recycled."""
        one = self.settle(*args, rows=self.DROPPED, **options)
        one.check_excused(Answers({"feed": {60} & set(below), "liked": {60} & set(below)}))
        return one.count

    def test_where_ids_were_dropped_all_else_is_judged(self):
        self.assertEqual(self.excused(3, ()), 0)
        for found in (2, 4):
            self.assertEqual(self.excused(found, (), below=(60,)), 1)
        self.assertEqual(self.excused(3, (0, 1), second=judge.THERE), 1)

    def test_what_was_dropped_is_absent(self):
        for gone in (0, judge.GONE["counter"]):
            self.assertEqual(self.excused(None, (), gone=gone, below=(60,)), 0)
        self.assertEqual(self.excused(3, (), second=judge.THERE, below=(60,)), 0)

    def test_absent_and_not_dropped(self):
        self.assertEqual(self.excused(None, ()), 1)
        self.assertEqual(self.excused(None, (), gone=judge.GONE["counter"]), 1)
        self.assertEqual(self.excused(3, (), second=judge.THERE), 1)
        self.assertEqual(self.excused(None, (), second=judge.THERE), 2)

    def test_what_is_unanswered_may_have_ended_it(self):
        one = self.settle(None, (), rows=self.DROPPED)
        one.check_excused(Answers({"feed": set()}), pending={60})
        self.assertEqual(one.count, 0)

    def test_each_that_was_not_dropped_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            one = judge.Judge(judge.Model(os.path.join(folder, "model"), 1), "recycle", 0)
            one.excused = {"counter": list(range(1, 5000))}
            one.check_excused(Answers({"feed": set(range(1, 5000)) - {77, 3000}}))
            self.assertEqual((one.count, [problem.split()[0] for problem in one.problems]),
                             (2, ["feed:77:", "feed:3000:"]))


class Answers:
    """A daemon's, that has recycled the ids of `below` (space -> ids)."""

    def __init__(self, below):
        self.ids = below
        self.count = dict.fromkeys(below, 0)

    def stats(self, _):
        return {space + ":misses_below": str(count) for space, count in self.count.items()}

    def ask_counters(self, ids):
        self.count["feed"] += len(self.ids["feed"].intersection(ids))

    def probes(self, ids):
        self.count["liked"] += len(self.ids["liked"].intersection(ids))


class Chance(unittest.TestCase):
    def test_most_found(self):
        self.assertEqual(judge.most_found(0.001, 0), 0)
        self.assertTrue(1300 < judge.most_found(0.001, 1000000) < 1500)
        self.assertEqual(judge.most_found(0.001, 2000000), judge.most_found(0.002, 1000000))


class Tallied(unittest.TestCase):
    def test_refused_for_a_reason_that_may_be(self):
        tally = Tally()
        self.assertEqual(str(tally), "refused: none")
        self.assertTrue(tally.note("feed", True, b"STORED", ()))
        self.assertTrue(tally.note("feed", False, b"busy", (b"busy",)))
        self.assertFalse(tally.note("feed", False, b"full", (b"busy",)))
        self.assertTrue(tally.note("liked", False, b"full", (b"full",)))
        self.assertEqual(str(tally), "refused: 1 of 3 feed busy; 1 of 3 feed full; 1 of 1 liked full;")

    def test_refused_too_often(self):
        tally = Tally()
        most = {"feed": {b"busy": 0.25}, "liked": {b"busy": 1}}
        for done in (False, True, True, True):
            tally.note("feed", done, b"busy", most["feed"])
            tally.note("liked", done, b"busy", most["liked"])
        self.assertIsNone(tally.excess(most))
        tally.note("feed", False, b"busy", most["feed"])
        self.assertEqual(tally.excess(most), "2 of 5 feed busy")


if __name__ == "__main__":
    unittest.main()
