#!/usr/bin/env python3
"""What is installed for Prometheus and Grafana, tried with Debian's prometheus.

The rules of conf/alerts.yaml load; each alert fires on figures that are bad, and none on those of a good day. A
prometheus that scrapes a daemon with data finds it up, has no rule that cannot be evaluated, and answers each query of
conf/grafana.json with a series. Exit 77: prometheus is missing. $ROLLCALLD names the daemon.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import admin_site as site

CONF = os.path.join(site.protocol.TOP, "conf")
ALERTS = os.path.join(CONF, "alerts.yaml")
BOARD = os.path.join(CONF, "grafana.json")
SCRAPES = 4
PROMTOOL_S = 120
MINUTES = 76  # each series of a rule's test has a sample a minute; longer than any rule looks back and waits
SPACE = 'space="feed"'
# Alert: what is bad, a series and its values each. All that is not named is as on a good day.
BAD = {
    "RollcallDown": {'up{job="rollcall"': "0xN"},
    "RollcallLoading": {"rollcall_serving{": "0xN"},
    "RollcallReloadFailed": {"rollcall_config_last_reload_successful{": "0xN"},
    "RollcallSlow": {'rollcall_command_duration_seconds_bucket{tier="memory",le="0.001024"': "0+900xN"},
    "RollcallHotKey": {'rollcall_hot_key_share_ratio{kind="id"': "0.5xN"},
    "RollcallClockJumped": {"rollcall_clock_jumps_total{": "0x60 1x15"},
    "RollcallConnectionsNearLimit": {"rollcall_connections{": "900xN"},
    "RollcallConnectionsRejected": {"rollcall_connections_rejected_total{": "0+1xN"},
    "RollcallLoginsFailing": {"rollcall_logins_failed_total{": "0+10xN"},
    "RollcallRefusing": {"rollcall_refused_total{%s,reason=\"no_table\"" % SPACE: "0+1xN"},
    "RollcallFullSoon": {"rollcall_free_records{" + SPACE: "1000000-1500xN"},
    "RollcallFilterOverTarget": {'rollcall_bloom_false_positive_ratio{space="liked",table="1"': "0.005xN"},
    "RollcallSlotsOverflow": {"rollcall_aux_records{" + SPACE: "200000xN"},
    "RollcallJournalFailed": {"rollcall_journal_failed{": "1xN"},
    "RollcallJournalBehind": {"rollcall_journal_fsync_lag_seconds{": "60xN"},
    "RollcallDiskFull": {"rollcall_data_filesystem_free_bytes{": "1xN"},
    "RollcallCheckpointFailing": {"rollcall_checkpoint_failures_total{": "0+1xN"},
    "RollcallDumpFailing": {"rollcall_dump_failures_total{": "0+1xN"},
    "RollcallDiskErrors": {"rollcall_disk_damaged_pages_total{": "0+1xN"},
    "RollcallDiskReadsRefused": {"rollcall_disk_read_busy_total{": "0+1xN"},
    "RollcallNoReplica": {"rollcall_replication_in_sync{": "0xN"},
    "RollcallFenced": {"rollcall_replication_lease_seconds{": "0xN"},
    "RollcallFollowerGone": {"rollcall_replication_followers{": "2x30 1x45"},
    "RollcallFollowerBehind": {'rollcall_replication_follower_lag_seconds{follower="two"': "60xN"},
    "RollcallBehind": {"rollcall_replication_lag_seconds{": "60xN"},
    "RollcallDiverged": {'rollcall_replication_state{state="diverged"': "1xN"},
}
GOOD = {
    'up{job="rollcall"': "1xN", "rollcall_serving{": "1xN", "rollcall_config_last_reload_successful{": "1xN",
    'rollcall_command_duration_seconds_bucket{tier="memory",le="0.016384"': "0+1000xN",
    'rollcall_command_duration_seconds_bucket{tier="memory",le="0.001024"': "0+999xN",
    'rollcall_command_duration_seconds_bucket{tier="memory",le="+Inf"': "0+1000xN",
    'rollcall_hot_key_share_ratio{kind="id"': "0.01xN", "rollcall_clock_jumps_total{": "1xN",
    "rollcall_connections{": "100xN", "rollcall_connections_limit{": "1000xN",
    "rollcall_connections_rejected_total{": "5xN", "rollcall_logins_failed_total{": "0+1xN",
    "rollcall_refused_total{%s,reason=\"no_table\"" % SPACE: "3xN",
    "rollcall_refused_total{%s,reason=\"value\"" % SPACE: "0+5xN",
    "rollcall_free_records{" + SPACE: "1000000xN", "rollcall_records_recycled_total{" + SPACE: "0xN",
    "rollcall_dumped_bytes{" + SPACE: "0xN",
    'rollcall_bloom_false_positive_ratio{space="liked",table="1"': "0.0005xN",
    'rollcall_bloom_target_ratio{space="liked"': "0.001xN", "rollcall_aux_records{" + SPACE: "10xN",
    "rollcall_records{" + SPACE: "1000000xN", "rollcall_journal_failed{": "0xN",
    "rollcall_journal_disk_full{": "0xN", "rollcall_journal_fsync_lag_seconds{": "0.5xN",
    "rollcall_data_filesystem_free_bytes{": "50xN", "rollcall_data_filesystem_bytes{": "100xN",
    "rollcall_checkpoint_failures_total{": "2xN", "rollcall_dump_failures_total{": "2xN",
    "rollcall_disk_read_errors_total{": "0xN", "rollcall_disk_damaged_pages_total{": "1xN",
    "rollcall_disk_read_busy_total{": "7xN", "rollcall_replication_waits{": "1xN", "rollcall_replication_in_sync{": "1xN",
    "rollcall_replication_lease_seconds{": "3xN", "rollcall_replication_followers{": "1x30 2x45", "rollcall_replication_lag_seconds{": "2xN",
    'rollcall_replication_follower_lag_seconds{follower="two"': "2xN",
    'rollcall_replication_state{state="diverged"': "0xN",
}


def run(*command):
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=PROMTOOL_S)
    return done.returncode, done.stdout.decode()


def values(text):
    """1xN is promtool's 1+0x76."""
    return re.sub(r"(?<![+x\d.-])([\d.]+)x", r"\1+0x", text).replace("xN", "x%d" % MINUTES)


def rule_test(bad, firing):
    """One test of promtool's. bad: an instance each, and what is bad on it; firing: (instance, alert) at the end, of
    all. Each series of a test is looked up once for all instances, so one test of many is far cheaper than many."""
    lines = ["- interval: 1m", "  input_series:"]
    for instance, worse in bad.items():
        for name, text in {**GOOD, **worse}.items():
            name += ("" if name.endswith("{") else ",") + 'instance="%s"}' % instance
            lines.append("    - {series: '%s', values: '%s'}" % (name, values(text)))
    lines += ["  promql_expr_test:",
              "    - expr: count by (instance, alertname) (ALERTS{alertstate=\"firing\"})",
              "      eval_time: %dm" % MINUTES, "      exp_samples:" + ("" if firing else " []")]
    lines += ["        - {labels: '{instance=\"%s\",alertname=\"%s\"}', value: 1}" % one for one in firing]
    return "\n".join(lines)


def judge_rules(folder, tests):
    path = os.path.join(folder, "rules.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("rule_files: ['%s']\nevaluation_interval: 1m\ntests:\n%s\n" % (ALERTS, "\n".join(tests)))
    return run("promtool", "test", "rules", path)


def test_rules(folder):
    code, said = run("promtool", "check", "rules", ALERTS)
    assert code == 0, said
    with open(ALERTS, encoding="utf-8") as file:
        alerts = re.findall(r"^ +- alert: (\w+)", file.read(), re.M)
    assert sorted(alerts) == sorted(BAD), set(alerts) ^ set(BAD)
    # a node on a good day among nodes that each have something bad, named after the alert it is for; and one alone
    each = rule_test({"good": {}, **{name: BAD[name] for name in alerts}}, [(name, name) for name in alerts])
    code, said = judge_rules(folder, [rule_test({"good": {}}, []), each])
    assert code == 0, said
    # it does look
    assert judge_rules(folder, [rule_test({"good": {}}, [("good", "RollcallDown")])])[0] != 0


class Prometheus:
    """One that scrapes daemons each second, with the rules."""

    def __init__(self, folder, targets):
        self.url = "http://127.0.0.1:%d/api/v1/" % site.protocol.free_port()
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            file.write("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: ['%s']\n"
                       "scrape_configs: [{job_name: rollcall, static_configs: [{targets: %s}]}]\n" % (
                           ALERTS, targets))
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(folder, "tsdb"),
             "--web.listen-address=" + urllib.parse.urlsplit(self.url).netloc],
            stdout=self.log, stderr=self.log)

    def ask(self, what, **arguments):
        query = "?" + urllib.parse.urlencode(arguments) if arguments else ""
        with urllib.request.urlopen(self.url + what + query, timeout=site.ANSWER_S) as answer:
            return json.load(answer)["data"]

    def series(self, expression):
        return self.ask("query", query=expression)["result"]

    def await_scrapes(self):
        until = time.monotonic() + site.ANSWER_S
        while True:
            try:
                found = self.series('count_over_time(up{job="rollcall"}[1m])')
                if found and int(found[0]["value"][1]) >= SCRAPES:
                    return
            except OSError:
                pass
            if time.monotonic() > until or self.process.poll() is not None:
                self.log.seek(0)
                raise AssertionError("prometheus does not scrape:\n" + self.log.read().decode())
            time.sleep(0.1)

    def end(self):
        self.process.terminate()
        self.process.wait(site.ANSWER_S)


def queries():
    """(panel, query) of the board, with Grafana's own variables replaced."""
    with open(BOARD, encoding="utf-8") as file:
        board = json.load(file)
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", "5s").replace("$instance", ".*")
            assert "$" not in query, query
            yield panel["title"], query
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], re.fullmatch(r"label_values\((\w+), \w+\)", variable["definition"]).group(1)


def test_scraped(folder):
    here = site.Site(site.CONFIG + "replication: {name: one}\n", data=True)
    there = site.follower_of(here)
    leased = site.Site(site.CONFIG + "replication: {name: three, follow: agent}\n", data=True)
    leased.command("promote 1 5 force")  # it leads, by a lease that it does not have
    for first in range(1, 40000, 2000):
        here.incr("feed", range(first, first + 2000))
    until = time.monotonic() + site.ANSWER_S
    while here.metrics()['rollcall_tables{space="feed",state="on_disk"}'] == 0:
        assert time.monotonic() < until, here.daemon.output()
    here.say("get feed:1", "set feed:1 0 0 1", "x", "add liked:1:u9 0 0 1", "1")
    sites = (here, there, leased)
    prometheus = Prometheus(folder, ["127.0.0.1:%d" % each.port for each in sites])
    try:
        prometheus.await_scrapes()
        assert [one["value"][1] for one in prometheus.series('up{job="rollcall"}')] == ["1"] * len(sites)
        count = 0
        for panel, query in queries():
            assert prometheus.series(query), "%s: no series: %s" % (panel, query)
            count += 1
        assert count > 60, count
        assert not prometheus.series("rollcall_nothing")  # it does look
        rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert len(rules) == len(BAD) and all(rule["health"] == "ok" for rule in rules), rules
    finally:
        prometheus.end()
    for each in (leased, there, here):
        each.end()


def main():
    if shutil.which("promtool") is None:
        print("SKIP: no prometheus; apt-get install prometheus")
        return site.SKIPPED
    with tempfile.TemporaryDirectory(prefix="rollcall-prometheus-") as folder:
        test_rules(folder)
        test_scraped(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
