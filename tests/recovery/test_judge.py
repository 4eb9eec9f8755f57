#!/usr/bin/env python3
"""The judge judged: histories that may be and that may not, without a daemon."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge  # noqa: E402

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
    """Three increments of three ids by one writer."""

    def disagreements(self, found, refusable=()):
        pending = [command(at, "incr", number) for at, number in enumerate((1, 2, 3))]
        happened = judge.Happened(pending, lambda one: one.id in refusable)
        for number, like in enumerate(found, 1):
            settled = happened.settle(("counter", number, -1), state(5), state(like))
            if settled is None:
                return None
        return len(list(happened.disagreements()))

    def test_any_first_part(self):
        for found in ((5, 5, 5), (6, 5, 5), (6, 6, 5), (6, 6, 6)):
            self.assertEqual(self.disagreements(found), 0)

    def test_an_earlier_one_is_lost(self):
        for found in ((5, 6, 5), (5, 5, 6), (6, 5, 6)):
            self.assertEqual(self.disagreements(found), 1)

    def test_one_that_was_refused(self):
        self.assertEqual(self.disagreements((6, 5, 6), refusable=(2,)), 0)
        self.assertEqual(self.disagreements((5, 5, 6), refusable=(2,)), 1)  # and the first?
        self.assertEqual(self.disagreements((5, 6, 5), refusable=(2,)), 1)

    def test_nobody_sent_it(self):
        self.assertIsNone(self.disagreements((7, 5, 5)))
        self.assertIsNone(self.disagreements((4, 5, 5), refusable=(1,)))


class Refusable(unittest.TestCase):
    """Which commands a reason may be for."""

    FIGURES = {"feed:0:base": "0", "feed:0:cold": "1", "feed:0:dropped_ranges": "0",
               "feed:1:base": "100", "feed:1:cold": "0", "feed:1:dropped_ranges": "0"}

    def tables(self, space):
        return {name: value for name, value in self.FIGURES.items() if name.startswith(space)}

    def refusable(self, reasons, commands):
        with tempfile.TemporaryDirectory() as folder:
            model = judge.Model(os.path.join(folder, "model"), 1000)
            for number in (7, 107):
                judge.ENTRY.pack_into(model.memory, judge.HEADER_BYTES + number * judge.ENTRY.size,
                                      *state(3), judge.THERE, 0, OWNER, 0, 0)
            test = judge.Judge(model, "dump", 0).refusable(self, commands, reasons)
            return [test(one) for one in commands]

    def test_busy_is_of_files_and_new_ids(self):
        commands = [command(0, "incr", 7), command(1, "incr", 107), command(2, "incr", 108)]
        self.assertEqual(self.refusable((judge.BUSY,), commands), [True, False, True])

    def test_no_table_is_of_new_ids(self):
        commands = [command(0, "incr", 107), command(1, "incr", 108),
                    command(2, "add", 107, kind="member", slot=0),
                    command(3, "add", 107, kind="member", slot=1)]
        self.assertEqual(self.refusable((judge.NO_TABLE,), commands), [False, True, False, True])

    def test_no_memory_is_of_what_lies_beside(self):
        commands = [command(0, "incr", 107), command(1, "set", 7, 1 << 30)]
        self.assertEqual(self.refusable((judge.NO_MEMORY,), commands), [False, True])

    def test_others_are_of_any(self):
        self.assertEqual(self.refusable(("journal busy",), [command(0, "incr", 107)]), [True])
        self.assertEqual(self.refusable((), [command(0, "incr", 7)]), [False])


class OneId(unittest.TestCase):
    """An id that nothing unanswered is for."""

    BASES = {"feed:0:base": "0", "feed:0:cold": "0", "feed:0:dropped_ranges": "0",
             "liked:0:base": "50", "liked:0:cold": "0", "liked:0:dropped_ranges": "0"}

    def settle(self, found, held, second=judge.NEVER, gone=0, oldest="recycle", number=60):
        """It was acknowledged as 3, its first member as deleted."""
        with tempfile.TemporaryDirectory() as folder:
            model = judge.Model(os.path.join(folder, "model"), 1000)
            members = judge.DELETED | second << 2
            judge.ENTRY.pack_into(model.memory, judge.HEADER_BYTES + number * judge.ENTRY.size,
                                  *state(3), members, gone, OWNER, 0, 0)
            one = judge.Judge(model, oldest, 0)
            tables = {kind: judge.Tables({name: value for name, value in self.BASES.items()
                                          if name.startswith(space)}, space)
                      for kind, space in judge.SPACES.items()}
            text = judge.NO_RECORD if found is None else b",,%d," % found
            one.one_id(number, text, {(number, i) for i in held}, tables,
                       judge.Happened([], lambda command: False))
            return one

    def test_as_acknowledged(self):
        one = self.settle(3, ())
        self.assertEqual((one.count, one.probes, one.found), (0, 1, 0))

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
        self.assertEqual((one.count, one.probes, one.found), (0, 1, 1))

    def test_one_that_was_added_is_lost(self):
        self.assertEqual(self.settle(3, (1,), second=judge.THERE).count, 0)
        self.assertEqual(self.settle(3, (), second=judge.THERE).count, 1)

    def test_one_that_was_recycled_is_there(self):
        self.assertEqual(self.settle(3, (), gone=judge.GONE["counter"]).count, 1)


class Chance(unittest.TestCase):
    def test_most_found(self):
        self.assertEqual(judge.most_found(0.001, 0), 0)
        self.assertTrue(2600 < judge.most_found(0.001, 1000000) < 2900)


if __name__ == "__main__":
    unittest.main()
