#!/usr/bin/env python3
"""The status page in a real browser: at 1280 and 390 pixels, light and dark, with and without trouble.

Nothing overlaps, nothing is wider than the window, the console says nothing. With --shots DIRECTORY the
pictures are left there. Exit 77: chromium is missing. $ROLLCALLD names the daemon.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import admin_site as site

SIZES = {1280: 2400, 390: 4800}  # width, and a height that shows all
SCHEMES = {"light": 1, "dark": 0}
TIME_S = 120
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
         "--virtual-time-budget=3000"]
# A window is never narrower than 500 pixels; a frame is as wide as one wants.
FRAME = '<!DOCTYPE html><title>none</title><iframe srcdoc="%s" width=%d height=2400 style="border:0"></iframe>'
# Puts into the title which elements with words of their own lie on each other, or stick out.
LOOK = """<script>addEventListener('load',()=>{
const found=[],wide=document.documentElement.clientWidth;
if(document.documentElement.scrollWidth>wide)found.push('scrolls sideways');
const all=[...document.querySelectorAll('main *')].filter(e=>!e.closest('svg')&&
  [...e.childNodes].some(n=>n.nodeType===3&&n.data.trim())||e.tagName==='svg');
const boxes=all.map(e=>[e,e.getBoundingClientRect()]).filter(([,b])=>b.width&&b.height);
for(const[e,b]of boxes)if(b.left<-1||b.right>wide+1)found.push('sticks out: '+e.outerHTML.slice(0,80));
for(let i=0;i<boxes.length;i++)for(let k=i+1;k<boxes.length;k++){const[e,a]=boxes[i],[f,b]=boxes[k];
if(e.contains(f)||f.contains(e))continue;
if(a.right-1>b.left&&b.right-1>a.left&&a.bottom-1>b.top&&b.bottom-1>a.top){
const r=[...e.getClientRects()],s=[...f.getClientRects()];
if(r.some(p=>s.some(q=>p.right-1>q.left&&q.right-1>p.left&&p.bottom-1>q.top&&q.bottom-1>p.top)))
found.push('overlap: '+e.outerHTML.slice(0,80)+' | '+f.outerHTML.slice(0,80))}}
const pale=getComputedStyle(document.body);
parent.document.title='LOOK'+JSON.stringify({found,wide,boxes:boxes.length,back:pale.backgroundColor})});</script>"""


def browse(width, scheme, *arguments):
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            ["chromium", *FLAGS, "--user-data-dir=" + profile, "--window-size=%d,%d" % (width, SIZES.get(width, 2400)),
             "--blink-settings=preferredColorScheme=%d" % SCHEMES[scheme], *arguments],
            check=False, timeout=TIME_S, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.stdout.decode(), done.stderr.decode("utf-8", "replace")


def look(page, width, scheme):
    """What the browser says of a page's text."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(FRAME % (html.escape(page.replace("</body>", LOOK + "</body>")), width))
        file.flush()
        dom, said = browse(2 * width, scheme, "--dump-dom", "file://" + file.name)
    match = re.search(r"<title>LOOK(.*?)</title>", dom, re.S)
    assert match, dom[:500] + said[-500:]
    return json.loads(match.group(1).replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))


def check(here, name, shots):
    page = here.text("/")
    assert len(page) <= 60 << 10, len(page)
    backs = set()
    for width in SIZES:
        for scheme in SCHEMES:
            seen = look(page, width, scheme)
            assert seen["found"] == [] and seen["boxes"] > 20 and seen["wide"] == width, (width, scheme, seen)
            backs.add(seen["back"])
            path = os.path.join(shots, "%s-%d-%s.png" % (name, width, scheme))
            _, said = browse(width, scheme, "--screenshot=" + path, "http://127.0.0.1:%d/" % here.port)
            assert "CONSOLE" not in said, said
            assert os.path.getsize(path) > 10000, path
    assert len(backs) == len(SCHEMES), backs


def main():
    if shutil.which("chromium") is None:
        print("SKIP: no chromium; apt-get install chromium")
        return site.SKIPPED
    kept = sys.argv[2] if sys.argv[1:2] == ["--shots"] else None
    shots = kept or tempfile.mkdtemp()
    here = site.Site("slow-request: 1ms\n" + site.CONFIG + "replication: {name: one}\n", data=True)
    there = site.follower_of(here)
    here.metrics()  # the first sample is taken: what comes then is news
    for first in range(1, 30000, 2000):
        here.incr("feed", range(first, first + 2000))
        here.say(*("add liked:%d:u%d 0 0 1\r\n1" % (first + n, n) for n in range(2000)))
        here.incr("full", range(first, first + 2000), "read")
        here.say("get " + " ".join("feed:%d" % n for n in range(1, 100)), "set feed:1 0 0 1\r\nx")
    here.say(*("incr feed:%d.repost 100" % n for n in range(29000, 29030)))
    until = time.monotonic() + site.ANSWER_S
    while here.metrics().get('rollcall_slot_overflow_records{space="feed",slot="repost"}') != 30:
        assert time.monotonic() < until, here.text("/metrics")
    assert "refused" in here.text("/"), here.text("/")
    assert "<b>two</b>" in here.text("/") and "(30 too large for 4 bits)" in here.text("/"), here.text("/")
    check(here, "trouble", shots)
    # what the look looks for it finds
    narrow = here.text("/").replace("<h1>", "<h1 style=\"position:absolute;width:2000px\">")
    assert look(narrow, 390, "light")["found"]
    there.end()
    here.end()
    if not kept:
        shutil.rmtree(shots)
    return 0


if __name__ == "__main__":
    sys.exit(main())
