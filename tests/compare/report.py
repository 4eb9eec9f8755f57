"""report.py: what was measured, as tables for the terminal and for Markdown, and as a chart."""
import datetime
import os
import platform
import re

import plan
from chart import chart
from generator import cpu_us, p50, p99, rate, ratio
from works import best, judge, number

HEAD = ["server", "way", "µs", "least-most", "requests/s", "ids/s", "p50 µs", "p99 µs", "x null",
        "x bare", "x rollcalld"]


def verdict(met):
    return "met" if met else "MISSED"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(re.search(r"MemTotal:\s+(\d+)", file.read()).group(1))
    return {"cpu": model.group(1) if model else platform.machine(),
            "cores": len(os.sched_getaffinity(0)), "memory_gib": round(total / 2**20, 1),
            "kernel": "%s %s" % (platform.system(), platform.release()),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")}


def text_table(rows):
    """A table that reads the same on a terminal and, as indented code, in Markdown."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if i < 2 else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        lines.append(("    " + "   ".join(cells)).rstrip())
    return "\n".join(lines) + "\n"


def null_of(entries, name):
    return next(entry for entry in entries if (entry.server, entry.name) == ("null", name))


def work_rows(work, entries):
    nulls = [null_of(entries, name) for name in (plan.LIBEVENT, plan.BARE)]
    yield HEAD
    for entry in entries:
        times = entry.column(cpu_us)
        star = " *" if entry is best(entries, entry.server) and entry.server != "null" else ""
        yield [entry.server, entry.name + star, "%.3f" % entry.median(cpu_us),
               "%.3f-%.3f" % (min(times), max(times)), number(round(entry.median(rate))),
               number(round(entry.median(rate) * work.ids_each)), "%.0f" % entry.median(p50),
               "%.0f" % entry.median(p99)] + ["%.2f" % ratio(entry, null) for null in nulls] + [
                   "%.2f" % ratio(entry, entries[0])]


def goal_rows(results):
    """Each goal of the works measured: work, goal, got, met."""
    for goal in plan.GOALS:
        entries = results.get(goal.work)
        if entries is None:
            continue
        title = next(work.title for work in plan.WORKS if work.name == goal.work)
        got = judge(goal, entries)
        if got is None:
            yield [title, goal.text, "not measured", "-"]
            continue
        figure, met, against = got
        text = goal.text + ("" if goal.name else " (%s)" % against)
        yield [title, text, "%.2f" % figure, verdict(met)]


def memory_goal_rows(memory):
    for one in memory["feed"]:
        where = "counters, late-room %s, %s ids" % (one["late_room"], number(one["records"]))
        for name in ("table", "resident", "told"):
            yield memory_row(name, where, one[name], one["full"])
    for one in memory["liked"]:
        where = "pairs, late-room %s, %s pairs" % (one["late_room"], number(one["records"]))
        # With room for late members a filter is not at capacity: shown, not judged.
        yield memory_row("pair", where, one["table"], one["full"], one["late_room"] == "0")
        yield memory_row("pair resident", where, one["resident"], one["full"])


def memory_row(name, where, got, full, judged=True):
    low, high, text = plan.MEMORY_GOALS[name]
    met = verdict(low <= got <= high) if judged and high is not None else "-"
    return ["%s: %s" % ("full" if full else "NOT FULL", where), text, "%.2f" % got, met]


def memory_table(memory):
    sizes = sorted({row[2] for row in memory["rows"]})
    cells = {(row[0], row[1], row[2]): "%.1f" % row[3] for row in memory["rows"]}
    names = list(dict.fromkeys((row[0], row[1]) for row in memory["rows"]))
    yield ["server", "data"] + ["bytes each, %s" % number(size) for size in sizes]
    for name in names:
        yield list(name) + [cells.get(name + (size,), "-") for size in sizes]


class Report:
    """Gathers what was measured, prints it as it comes, and writes the files."""

    def __init__(self, options, versions, cores):
        self.options, self.versions, self.machine = options, versions, machine()
        self.cores, self.shape = cores, options.shape
        self.results, self.skipped, self.wrong = {}, [], []
        self.memory, self.scale = None, []
        self.sections = []
        self.write_section(self.top())

    def top(self):
        facts = self.machine
        options = self.options
        how = ("One worker on one core (%d), the load generator on another (%d); %d connections; ids %s, %s "
               "(large: %s), drawn uniformly; medians of %d rounds of %d s, servers in turn. µs: the server's "
               "time a request; ratios are taken within a round. x null, x bare: to a server that only sends as many "
               "bytes, on libevent or epoll alone. *: a server's best way. RedisBloom is missing: Debian, the "
               "peers' source, does not package it.") % (
                   self.cores[-1], self.cores[0], plan.CONNECTIONS,
                   "seconds << 22" if options.shape == "seconds" else "dense",
                   number(options.small), number(options.large), options.rounds, options.seconds)
        return "%s, %d cores, %s GiB, %s; %s\n\n%s\n\n%s\n" % (
            facts["cpu"], facts["cores"], facts["memory_gib"], facts["kernel"], facts["date"],
            "; ".join("%s: %s" % item for item in self.versions.items()), how)

    def write_section(self, text):
        self.sections.append(text)
        print(text, flush=True)

    def add_work(self, work, entries, skipped):
        self.results[work.name] = entries
        title = "**%s**, %s ids; %s\n\n" % (
            work.title, number(self.options.large if work.size == plan.LARGE else
                               self.options.small), entries[-1].note)
        self.write_section(title + text_table(list(work_rows(work, entries)))
                           + "".join("\nSkipped: %s.\n" % why for why in skipped))
        self.skipped += skipped

    def add_memory(self, memory, skipped):
        self.memory = memory
        self.write_section("**Resident memory**: what a load adds, divided by ids or pairs\n\n"
                           + text_table(list(memory_table(memory)))
                           + "".join("\nSkipped: %s.\n" % why for why in skipped))
        self.skipped += skipped

    def add_scale(self, part):
        self.scale.append(part)
        text = "**%s**\n\n" % part.title
        if part.rows:
            text += text_table(part.rows) + "\n"
        self.write_section(text + "".join("%s\n" % note for note in part.notes))

    def goals(self):
        rows = list(goal_rows(self.results))
        if self.memory:
            rows += list(memory_goal_rows(self.memory))
        for part in self.scale:
            rows += [["scale", text, "%.2f" % got, verdict(met)]
                     for text, got, met in part.goals]
        return rows

    def finish(self):
        rows = self.goals()
        if rows:
            self.write_section("**Goals**\n\n" + text_table([["work", "goal", "got", ""]] + rows))
        if self.wrong:
            self.write_section("**Wrong answers or failed runs**\n\n"
                               + "".join("- %s\n" % one for one in self.wrong))

    def raw(self):
        """For a file of JSON."""
        works = {name: [{"server": entry.server, "way": entry.name, "note": entry.note,
                         "words": [str(word) for word in entry.words], "runs": entry.samples}
                        for entry in entries] for name, entries in self.results.items()}
        return {"machine": self.machine, "versions": self.versions, "cores": self.cores,
                "shape": self.shape, "rounds": self.options.rounds,
                "seconds": self.options.seconds, "small": self.options.small,
                "large": self.options.large, "works": works, "memory": self.memory,
                "scale": [{"title": part.title, "rows": part.rows, "notes": part.notes}
                          for part in self.scale],
                "goals": self.goals(), "skipped": self.skipped, "wrong": self.wrong}

    def chart(self):
        groups = []
        for work in plan.WORKS:
            entries = self.results.get(work.name, [])
            if not entries:
                continue
            bars = [(entry.server, entry.name, entry.median(cpu_us)) for entry in entries
                    if entry.server != "null"]
            nulls = {entry.name: entry.median(cpu_us) for entry in entries
                     if entry.server == "null"}
            groups.append({"title": "%s (%s ids)" % (work.title, number(
                self.options.large if work.size == plan.LARGE else self.options.small)),
                           "bars": bars, "nulls": nulls})
        subtitle = "%s, %s; one core a server, one worker; medians of %d rounds" % (
            self.machine["cpu"], self.machine["date"], self.options.rounds)
        return chart("Microseconds of the server's core a request (less is better, scale is "
                     "logarithmic)", subtitle, groups) if groups else None
