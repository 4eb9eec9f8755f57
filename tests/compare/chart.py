"""chart.py: bars on a logarithmic scale as SVG, without a library.

It has no background and its greys and colours stand out on light and on dark pages.
"""
import math
from html import escape

WIDTH, LEFT, RIGHT = 860, 270, 150
BAR, GAP, HEAD, GROUP_GAP = 15, 5, 26, 14
LABEL = 56  # of a bar's value, where no line of the null server may stand
TOP, BOTTOM = 64, 44
NAMES = {"rollcalld": "rollcalld", "memcached": "memcached", "redis": "Redis"}

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.head { font-weight: 600; font-size: 13px; fill: #24292f }
.end { text-anchor: end } .middle { text-anchor: middle }
.grid { stroke: #8c959f; stroke-opacity: .35 }
.null { stroke: #cf222e; stroke-width: 2 } .bare { stroke-dasharray: 3 2 }
.rollcalld { fill: #1a7f37 } .memcached { fill: #9a6700 } .redis { fill: #8250df } .peer { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .head { fill: #f0f6fc } .null { stroke: #ff7b72 }
.rollcalld { fill: #3fb950 } .memcached { fill: #d29922 } .redis { fill: #a371f7 }
.peer { fill: #4493f8 } }
</style>"""


def scale(groups):
    """(value -> x, the powers of ten that are in between)"""
    values = [value for group in groups for value in
              [bar[2] for bar in group["bars"]] + list(group["nulls"].values())]
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    unit = (WIDTH - LEFT - RIGHT) / (high - low)
    return (lambda value: LEFT + (math.log10(value) - low) * unit), range(low, high + 1)


def draw_grid(place, powers, bottom, out):
    for power in powers:
        x = place(10 ** power)
        out.append('<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>' % (
            x, TOP - 8, x, bottom))
        out.append('<text class="middle" x="%.1f" y="%d">%g</text>' % (x, bottom + 16, 10 ** power))


def label_at(end, lines):
    """Behind the bar, and behind the lines that would cross the label."""
    for line in sorted(lines):
        if end <= line <= end + LABEL:
            end = line
    return end + 6


def draw_group(group, place, y, out):
    out.append('<text class="head" x="8" y="%d">%s</text>' % (y + 16, escape(group["title"])))
    y += HEAD
    top, lines = y, [place(value) for value in group["nulls"].values()]
    for server, name, value in group["bars"]:
        end = place(value)
        out.append('<text class="end" x="%d" y="%d">%s</text>' % (
            LEFT - 8, y + 12, escape("%s: %s" % (NAMES.get(server, server), name))))
        out.append('<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="2"/>' % (
            server if server in NAMES else "peer", LEFT, y, max(end - LEFT, 1), BAR))
        out.append('<text x="%.1f" y="%d">%.3g µs</text>' % (
            label_at(end, lines), y + 12, value))
        y += BAR + GAP
    for name, value in group["nulls"].items():
        x = place(value)
        out.append('<line class="null%s" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>' % (
            " bare" if "bare" in name else "", x, top - 3, x, y - GAP + 3))
    return y + GROUP_GAP


def chart(title, subtitle, groups):
    """groups: {"title", "bars": [(server, name, value)], "nulls": {name: value}}"""
    place, powers = scale(groups)
    body, y = [], TOP
    for group in groups:
        y = draw_group(group, place, y, body)
    grid = []
    draw_grid(place, powers, y, grid)
    height = y + BOTTOM
    head = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
            'role="img" aria-label="%s">' % (WIDTH, height, WIDTH, height, escape(title)), STYLE,
            '<text class="head" x="8" y="20">%s</text>' % escape(title),
            '<text x="8" y="40">%s</text>' % escape(subtitle)]
    legend = ('<line class="null" x1="8" y1="{0}" x2="8" y2="{1}"/><text x="16" y="{2}">null server '
              'on libevent</text><line class="null bare" x1="180" y1="{0}" x2="180" y2="{1}"/>'
              '<text x="188" y="{2}">on bare epoll: the limit of this kernel path</text>').format(
                  height - 18, height - 4, height - 7)
    return "\n".join(head + grid + body + [legend, "</svg>"]) + "\n"
