#!/usr/bin/env python3
"""test_compare.py: what tools/compare computes from its runs, without running any."""
import argparse
import os
import sys
import unittest
import xml.dom.minidom

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402
import works  # noqa: E402
from chart import chart  # noqa: E402
from generator import Entry, cpu_us, ratio  # noqa: E402
from servers import Shape, power_of_two  # noqa: E402


def entry(server, name, *times):
    made = Entry(server, name, None, ())
    made.samples = [{"server_cpu_us": {"total": time}, "requests_per_s": 1e6 / time,
                     "latency_us": {"p50": time, "p99": 2 * time}} for time in times]
    return made


def reply_of(words):
    """Bytes the null server answers, as tests/bench/null_server.c composes them."""
    values = dict(zip(words[::2], words[1::2]))
    length = values["--value-bytes"]
    if values["--mode"] == "incr":
        return length + 2
    line = "VALUE %s 0 %d\r\n%s\r\n" % ("k" * values["--key-bytes"], length, "v" * length)
    return values["--keys"] * len(line) + len("END\r\n")


class Ratios(unittest.TestCase):
    def test_ratio_is_taken_within_rounds(self):
        # The machine is half as fast in the second round: ratios stay, those of medians would not.
        mine, other = entry("rollcalld", "text", 1, 2, 5), entry("null", "x", 2, 4, 4)
        self.assertEqual(ratio(mine, other), 0.5)

    def test_best_is_the_cheapest_way_of_a_server(self):
        entries = [entry("rollcalld", "text", 5), entry("memcached", "a", 3, 9, 9),
                   entry("memcached", "b", 4, 4, 8)]
        self.assertEqual(works.best(entries, "memcached").name, "b")
        self.assertIsNone(works.best(entries, "redis"))

    def test_goals(self):
        entries = [entry("rollcalld", "text", 10), entry("memcached", "packed", 19),
                   entry("null", plan.BARE, 8)]
        cost = plan.Goal("page", "cost", 1.3, "null", plan.BARE, "")
        gain = plan.Goal("page", "gain", 2.0, "memcached", "packed", "")
        self.assertEqual(works.judge(cost, entries), (1.25, True, plan.BARE))
        self.assertEqual(works.judge(gain, entries), (1.9, False, "packed"))
        self.assertEqual(works.judge(gain._replace(name=None), entries), (1.9, False, "packed"))
        self.assertIsNone(works.judge(gain._replace(server="redis"), entries))

    def test_each_goal_has_its_work_and_way(self):
        for goal in plan.GOALS:
            work = next(work for work in plan.WORKS if work.name == goal.work)
            known = {(way.server, way.name) for way in work.ways} | {
                ("null", plan.LIBEVENT), ("null", plan.BARE), ("rollcalld", plan.OWN_SMALL)}
            if goal.name is not None:
                self.assertIn((goal.server, goal.name), known)

    def test_each_way_has_its_data(self):
        for work in plan.WORKS:
            for way in work.ways:
                self.assertIn((way.server, way.layout), plan.LOADS)
        self.assertEqual(set(plan.LOADS), set(plan.BYTES_ABOUT))
        self.assertEqual(set(plan.LOADS), set(plan.LAYOUT_TEXT))


class Peers(unittest.TestCase):
    def test_a_peer_goes_the_ways_of_memcached_in_text(self):
        works_with, goals = plan.with_peer(plan.WORKS, plan.GOALS, "mine")
        try:
            for before, work in zip(plan.WORKS, works_with):
                added = work.ways[len(before.ways):]
                texts = [way for way in before.ways
                         if way.server == "memcached" and "binary" not in way.words]
                self.assertEqual([way._replace(server="memcached") for way in added], texts)
                self.assertEqual({way.server for way in added}, {"mine"})
            self.assertEqual({goal.work for goal in goals if goal.server == "mine"}, {"page", "exist"})
            self.assertIn(("mine", "records"), plan.LOADS)
        finally:
            for known in (plan.LOADS, plan.LAYOUT_TEXT, plan.BYTES_ABOUT):
                for key in [key for key in known if key[0] == "mine"]:
                    del known[key]

    def test_what_a_peer_is_called_and_how_it_starts(self):
        self.assertEqual(compare.peer("mine=/opt/mine -l 'a b' -p {port}"),
                         ("mine", ["/opt/mine", "-l", "a b", "-p", "{port}"]))
        for wrong in ("mine", "mine=/opt/mine", "=x {port}", "redis=x {port}", "A=x {port}"):
            with self.assertRaises(argparse.ArgumentTypeError):
                compare.peer(wrong)


class Sizes(unittest.TestCase):
    def test_null_replies_are_as_long(self):
        for work in plan.WORKS:
            each = 50.4 if work.keys else 4.9
            wanted = max(work.keys, 1) * each
            got = reply_of(works.null_words(work, wanted))
            self.assertLessEqual(abs(got - wanted), max(work.keys, 1) / 2 + 0.5, work.name)

    def test_tables_hold_the_population(self):
        for ids in (1000, 100000, 1000000, 100000000):
            shape = Shape(ids, 1)
            self.assertGreaterEqual(shape.feed * shape.feed_tables, ids * 33 // 2)
            self.assertEqual(power_of_two(shape.feed), shape.feed)

    def test_told_adds_what_stands_beside_tables(self):
        stats = {"feed:0:bytes": "100", "feed:0:aux_bytes": "7", "feed:0:file_bytes": "5",
                 "feed:1:bytes": "100", "feed:1:extend_bytes": "3"}
        self.assertEqual(works.told(stats), (210, 200))


class Output(unittest.TestCase):
    def test_text_table(self):
        self.assertEqual(report.text_table([["a", "b", "c"], ["x", "yy", "10"]]),
                         "    a   b     c\n    x   yy   10\n")

    def test_rows_of_a_work(self):
        entries = [entry("rollcalld", "text", 10, 12, 11), entry("null", plan.LIBEVENT, 5, 6, 5.5),
                   entry("null", plan.BARE, 5, 6, 5.5)]
        page = next(work for work in plan.WORKS if work.name == "page")
        row = list(report.work_rows(page, entries))[1]
        self.assertEqual(row[2:4] + row[5:6] + row[8:],
                         ["11.000", "10.000-12.000", "1,818,182", "2.00", "2.00", "1.00"])

    def test_chart_is_xml_with_a_bar_a_way(self):
        text = chart("a < b", "&", [{"title": "t", "bars": [("rollcalld", "x", 1.0),
                                                           ("redis", "<y>", 70.0)],
                                     "nulls": {plan.LIBEVENT: 0.5, plan.BARE: 0.4}}])
        document = xml.dom.minidom.parseString(text)
        bars = document.getElementsByTagName("rect")
        self.assertEqual([bar.getAttribute("class") for bar in bars], ["rollcalld", "redis"])
        widths = [float(bar.getAttribute("width")) for bar in bars]
        # 0.1 to 1 and 0.1 to 70, on a logarithmic scale
        self.assertAlmostEqual(widths[1] / widths[0], 2.845, places=2)

    def test_median_of_figures(self):
        self.assertEqual(entry("redis", "x", 9, 1, 2).median(cpu_us), 2)


if __name__ == "__main__":
    unittest.main()
