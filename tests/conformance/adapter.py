"""adapter.py: a client library as a program that checks.py can talk to.

Every file beside this one that drives a client speaks the same way: a line of words with tabs
between comes in, one line goes out.

    set|add|replace|append|prepend|cas KEY VALUE    true, false
    get|gets|gat KEY                                value VALUE, none
    many KEY...                                     many KEY VALUE KEY VALUE ...
    incr|decr KEY DELTA                             value NUMBER, none
    create KEY DELTA INITIAL                        value NUMBER: incr that may make the key
    delete|touch KEY                                true, false
    version|stats                                   value TEXT (of stats: the version)
    flush                                           true, false

cas has the token of the last gets. What the library cannot do is answered with `unsupported`, what
it raises with `error TEXT`. A program takes host, port and protocol (text or binary) as arguments and
ends at the end of its input.
"""
import sys


def shown(result):
    if result is None:
        return b"none"
    if isinstance(result, bool):
        return b"true" if result else b"false"
    if isinstance(result, dict):
        pairs = (word for pair in result.items() for word in pair)
        return b"\t".join([b"many", *map(to_bytes, pairs)])
    return b"value\t" + to_bytes(result)


def to_bytes(word):
    return word if isinstance(word, bytes) else str(word).encode()


def serve(commands):
    """Answers until the end of the input. `commands`: function of each command there is."""
    for line in sys.stdin.buffer:
        verb, *words = line.rstrip(b"\n").decode().split("\t")
        if verb not in commands:
            answer = b"unsupported"
        else:
            try:
                answer = shown(commands[verb](*words))
            except Exception as problem:  # whatever a library raises is its answer
                text = "%s: %s" % (type(problem).__name__, problem)
                answer = b"error\t" + " ".join(text.split()).encode()
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()
