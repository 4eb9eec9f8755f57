"""scale.py: how rollcalld grows: workers, connections, ids, hot ids, and what idle connections cost.

With four cores or more the server has the last two and the generator the others. With fewer both share
all: then the rate says little, so the server's own time counts: workers / (its time a request) is
the rate at which they would be busy all the time.
"""
import plan
from generator import Entry, busy, client_us, cpu_us, measure, p50, p99, rate, ratio
from servers import Shape, Skip, files_allowed, memory_available
from works import LARGE_SPARE, number

PAGES = ("--workload", "page", "--page-ids", plan.PAGE)
BATCH = ("--pipeline", 16)
SPARE_CONNECTIONS = 100
ZIPF = "0.99"
IDLE_QUESTION = b"get feed:0\r\n"
ANSWER_BYTES = 4096


class Room:
    """Where servers and generators run, and the servers of a part, which end with it."""

    def __init__(self, places, generator, spacing, cores):
        self.places, self.generator, self.spacing = places, generator, spacing
        self.cores = cores
        self.alone = [cores[-1]]
        shared = len(cores) < 4
        self.workers = list(cores) if shared else list(cores[-2:])
        self.askers = list(cores) if shared else list(cores[:-2])
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while self.started:
            self.started.pop().stop()

    def add(self, process):
        self.started.append(process)
        return process

    def rollcalld(self, ids, cores, threads=1, connections=1024):
        needed = plan.BYTES_ABOUT["rollcalld", "both"] * ids + LARGE_SPARE
        if memory_available() < needed:
            raise Skip("%s ids need %.1f GiB of memory" % (number(ids), needed / 2**30))
        shape = Shape(ids, self.spacing)
        shape.liked_tables = 0
        process = self.add(self.places.start_rollcalld(shape, cores, threads, connections))
        self.generator.load(process, ids, ())
        return process


def rows_of(entries, head):
    """The table of a part."""
    yield head + ["µs, server", "requests/s", "p50 µs", "p99 µs", "µs, client"]
    for entry in entries:
        yield [entry.name, "%.2f" % entry.median(cpu_us), number(round(entry.median(rate))),
               "%.0f" % entry.median(p50), "%.0f" % entry.median(p99),
               "%.2f" % entry.median(client_us)]


def words_for(work, ids, connections=plan.CONNECTIONS, verify="form"):
    return list(work) + ["--connections", connections, "--ids", ids, "--verify", verify]


class Part:
    """A table, and sentences below it."""

    def __init__(self, title, rows=(), notes=(), goals=()):
        self.title, self.rows = title, [list(row) for row in rows]
        self.notes, self.goals = list(notes), list(goals)  # goals: (text, figure, met)


def workers(room, options, ids, say):
    entries = []
    for threads in (1, 2):
        apart = shared(room) and threads == 1  # then all cores are busy in both cases
        process = room.rollcalld(ids, room.alone if apart else room.workers, threads)
        words = words_for(PAGES, ids, verify="values") + list(BATCH)
        words += ["--threads", 1 if apart else 2]
        cores = None if apart else room.askers
        entries.append(Entry("rollcalld", "%d" % threads, process, words, cores))
    measure(room.generator, entries, options.rounds, options.seconds, say)
    one, two = entries
    gain = 2 * ratio(one, two) if shared(room) else ratio(two, one, rate)
    notes = ["Cores the server had: %.2f and %.2f; rates as they were: 1 : %.2f; ids a second of a "
             "server's core: %s and %s." % (
                 one.median(busy), two.median(busy), ratio(two, one, rate),
                 *(number(round(plan.PAGE * 1e6 / entry.median(cpu_us))) for entry in entries))]
    if shared(room):
        notes.append("Server and generator share %d cores (one worker has one of them, the generator "
                     "the other): two workers' ids a second are taken from the server's time a "
                     "request." % len(room.cores))
    return Part("Workers (pages of %d ids, 16 pipelined)" % plan.PAGE,
                rows_of(entries, ["workers"]), notes,
                [("two workers, pages: at least %.1f x one" % plan.WORKERS_GOAL, gain,
                  gain >= plan.WORKERS_GOAL)])


def shared(room):
    return len(room.cores) < 4


def hot(room, options, ids, say):
    process = room.rollcalld(ids, room.workers, 2)
    entries = []
    for name, count in (("spread over %s ids" % number(ids), ids), ("one id", 1)):
        words = words_for(("--workload", "incr"), count) + list(BATCH) + ["--threads", 2]
        entries.append(Entry("rollcalld", name, process, words, room.askers))
    measure(room.generator, entries, options.rounds, options.seconds, say)
    spread, one = entries
    gain = ratio(one, spread, rate)
    return Part("One hot id, incremented by two workers (16 pipelined)", rows_of(entries, ["ids"]),
                ["Server's time a request: %.2f x that of spread ids." % ratio(one, spread)],
                [("one hot id: at least %.1f x the rate of spread ids" % plan.HOT_GOAL, gain,
                  gain >= plan.HOT_GOAL)])


def zipf(room, options, ids, say):
    process = room.rollcalld(ids, room.alone)
    entries = []
    for title, work in (("page", PAGES), ("incr", ("--workload", "incr"))):
        for name, more in (("uniform", []), ("Zipf %s" % ZIPF, ["--zipf", ZIPF])):
            entries.append(Entry("rollcalld", "%s, %s" % (title, name), process,
                                 words_for(work, ids) + more))
    measure(room.generator, entries, options.rounds, options.seconds, say)
    return Part("Zipf against uniform, %s ids, one worker" % number(ids),
                rows_of(entries, ["work, draws"]))


def connections(room, options, ids, say):
    counts, notes = [], []
    for count in options.connections:
        if files_allowed(count):
            counts.append(count)
        else:
            notes.append("%s connections: skipped, more than the limit of open files." %
                         number(count))
    process = room.rollcalld(ids, room.alone, connections=max(counts) + SPARE_CONNECTIONS)
    null = room.add(room.places.start_null(["--mode", "page", "--key-bytes", 21, "--value-bytes",
                                            15], room.alone))
    entries = []
    for count in counts:
        for name, server, verify in (("rollcalld", process, "values"), ("null", null, "off")):
            entries.append(Entry(name, "%s: %s" % (number(count), name), server,
                                 words_for(PAGES, ids, count, verify), missing=name == "null"))
    measure(room.generator, entries, options.rounds, options.seconds, say)
    return Part("Connections (pages of %d ids, one worker)" % plan.PAGE,
                rows_of(entries, ["connections: server"]), notes)


def populations(room, options, _, say):
    entries, notes, sizes = [], [], []
    for ids in options.populations:
        try:
            process = room.rollcalld(ids, room.alone)
        except Skip as why:
            notes.append("Skipped: %s." % why)
            continue
        entries.append(Entry("rollcalld", number(ids), process,
                             words_for(PAGES, ids, verify="values")))
        tables = sum(int(value) for name, value in process.stats("tables").items()
                     if name.endswith(":bytes"))
        sizes.append("%s ids: %.2f GiB resident, %.1f bytes of tables an id" % (
            number(ids), process.resident_settled() / 2**30, tables / ids))
    measure(room.generator, entries, options.rounds, options.seconds, say)
    growth = ", ".join("%.2f" % ratio(entry, entries[0]) for entry in entries)
    return Part("Ids (pages of %d ids, one worker)" % plan.PAGE, rows_of(entries, ["ids"]),
                ["%s." % "; ".join(sizes), "Server's time a request, as ratios: %s." % growth]
                + notes)


# ---- idle connections ----


def idle_bytes(process, count, asked):
    """Bytes of resident memory that a connection takes; `asked`: each has asked once before."""
    before = process.resident_settled()
    held = []
    try:
        for _ in range(count):
            held.append(process.connect())
        for client in held if asked else held[-1:]:
            client.sendall(IDLE_QUESTION)
            if not client.recv(ANSWER_BYTES):
                raise OSError("a connection was closed")
        return (process.resident_settled() - before) / count
    finally:
        for client in held:
            client.close()


def idle(room, options, ids, _):
    count = max(options.connections)
    while not files_allowed(count):
        count //= 2
    rows = [["server", "bytes each: only connected", "bytes each: asked once"]]
    found = {}
    for name in ("rollcalld", "memcached", "null on libevent"):
        figures = []
        for asked in (False, True):
            if name == "rollcalld":
                process = room.rollcalld(1000, room.alone,
                                         connections=count + SPARE_CONNECTIONS)
            elif name == "memcached":
                process = room.add(room.places.start_memcached(
                    room.alone, connections=count + SPARE_CONNECTIONS))
            else:
                process = room.add(room.places.start_null(["--mode", "get"], room.alone))
            figures.append(idle_bytes(process, count, asked))
        found[name] = figures
        rows.append([name] + ["%.0f" % one for one in figures])
    beyond = [mine - null for mine, null in zip(found["rollcalld"], found["null on libevent"])]
    goals = [("idle connection beyond the null server's, %s: at most %d bytes" % (what, plan.IDLE_GOAL),
              each, each <= plan.IDLE_GOAL)
             for what, each in zip(("only connected", "asked once"), beyond)]
    return Part("%s idle connections: resident memory" % number(count), rows, (), goals)


PARTS = {"workers": workers, "hot": hot, "zipf": zipf, "connections": connections, "ids": populations,
         "idle": idle}


def run(places, generator, spacing, cores, ids, options, say):
    """The parts, one after the other; each a Part."""
    for name in options.scale_parts:
        say("scale: %s" % name)
        with Room(places, generator, spacing, cores) as room:
            try:
                yield PARTS[name](room, options, ids, say)
            except Skip as why:
                yield Part(name, notes=["Skipped: %s." % why])


