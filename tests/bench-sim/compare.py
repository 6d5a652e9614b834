# SPDX-License-Identifier: GPL-2.0-only
"""compare.py REPEATS OUT: runs the simulators of "make bench-sim", and ours at more sizes. See docs/simulator.md.

Nothing is printed of a size before all three have ended at the same time with the same number of messages.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import time

OURS = "target/release/scx_cosched"
OUR_SERVER = "target/release/examples/mm1"
CUSTOMERS = 5_000_000
SEED = 1
# Of the workload: g, v, c and L, in ns.
G_NS, V_NS, C_NS, L_NS = 100_000, 25_000, 8_000, 10_000
SIZES = {32: 5120, 1024: 160, 16384: 10}  # iterations, by nodes
# The default workload of "sim bsp", by nodes: as many iterations of all processes, and enough that they are not all
# setup.
SCALES = {nodes: max(320_000 // nodes, 20) for nodes in (2, 32, 512, 4096, 16384, 65536)}


class Differs(Exception):
    """What makes a comparison worth nothing."""


def measured(command):
    """Runs it alone. Returns what it prints, and its CPU time and wall time in s and its largest resident set in KiB."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    output = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    wall_s = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Differs(f"'{' '.join(command)}' has failed ({child.returncode})")
    return json.loads(output), used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss


def ours(nodes, iterations, *more):
    """The command that simulates the workload twice: under the local schedulers, and under ideal coscheduling."""
    flags = {
        "pattern": "news", "jobs": 1, "nodes": nodes, "iterations": iterations, "runs": 1, "seed": SEED,
        "granularity-us": G_NS / 1000, "imbalance": V_NS / G_NS, "gap-us": C_NS / 1000, "latency-us": L_NS / 1000,
        "wait": "fixed", "spin-us": 2 * (V_NS + 2 * L_NS) / 1000, "switch-us": 0,
    }
    return [OURS, "sim", "bsp", "--json", *(word for flag, value in flags.items() for word in (f"--{flag}", str(value))), *more]


def run_ours(nodes, iterations):
    view, cpu_s, wall_s, _ = measured(ours(nodes, iterations))
    ends = {round(view[which]["mean"] * 1e9) for which in ("local_s", "ideal_s")}
    if len(ends) != 1:
        raise Differs(f"scx_cosched, {nodes} nodes: local scheduling costs something: {ends}")
    return {"end_ns": ends.pop(), "cpu_s": cpu_s, "wall_s": wall_s}


def run_peer(program, nodes, iterations):
    """Without what it takes until the first event."""
    numbers = (nodes, iterations, SEED, G_NS, V_NS, C_NS, L_NS)
    view, cpu_s, wall_s, _ = measured([program, *map(str, numbers)])
    return {
        "end_ns": view["end_ns"], "messages": view["messages"], "cpu_s": cpu_s - view["setup_cpu_s"],
        "wall_s": wall_s - view["setup_s"],
    }


def messages_of_ours(nodes, iterations):
    """How many messages come, by the trace of the run under the local schedulers."""
    pattern = b" (Arrived|Released|Asked|Answered) "
    count = subprocess.Popen(["grep", "-cE", pattern], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pipe = count.stdin.fileno()
    subprocess.run(
        ours(nodes, iterations, "--trace", f"/dev/fd/{pipe}"), check=True, pass_fds=[pipe], stdout=subprocess.DEVNULL
    )
    return int(count.communicate()[0])


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def compare(repeats, out):
    """The same workload by all three, interleaved."""
    contenders = {
        "scx_cosched": run_ours,
        "SimGrid": lambda *size: run_peer(f"{out}/simgrid", *size),
        "NeXosim": lambda *size: run_peer(f"{out}/nexosim/release/bench-sim-nexosim", *size),
    }
    print("| nodes | simulator | million messages per CPU second | per second of wall time | scx_cosched is times as fast |")
    print("|---|---|---|---|---|", flush=True)
    rows = []
    for nodes, iterations in SIZES.items():
        messages = messages_of_ours(nodes, iterations)
        runs = {name: [] for name in contenders}
        for repeat in range(repeats):
            print(f"bench-sim: {nodes} nodes, repeat {repeat + 1} of {repeats}", file=sys.stderr)
            for name, run in contenders.items():
                runs[name].append(run(nodes, iterations))
        for name, found in runs.items():
            for run in found:
                # SimGrid's times are floating-point seconds: a ns for each of the steps of an iteration is the most
                # they may be off.
                if abs(run["end_ns"] - runs["scx_cosched"][0]["end_ns"]) > (0 if name != "SimGrid" else 20 * iterations):
                    raise Differs(f"{name}, {nodes} nodes: ends at {run['end_ns']} ns")
                if run.get("messages", messages) != messages:
                    raise Differs(f"{name}, {nodes} nodes: {run['messages']} messages, not {messages}")
        # Ours has simulated all of it twice.
        millions = {name: messages * (2 if name == "scx_cosched" else 1) / 1e6 for name in contenders}
        rates = {
            name: {clock: [millions[name] / run[clock] for run in found] for clock in ("cpu_s", "wall_s")}
            for name, found in runs.items()
        }
        for name, of in rates.items():
            ratio = statistics.median(rates["scx_cosched"]["cpu_s"]) / statistics.median(of["cpu_s"])
            rows.append({
                "nodes": nodes, "simulator": name, "end_ns": runs["scx_cosched"][0]["end_ns"], "messages": messages,
                "millions_per_cpu_s": of["cpu_s"], "millions_per_wall_s": of["wall_s"], "ours_over_it": ratio,
            })
            rates_text = f"{spread(of['cpu_s'])} | {spread(of['wall_s'])}"
            print(f"| {nodes} | {name} | {rates_text} | {ratio:.1f} |", flush=True)
    return rows


def serve(repeats, out):
    """One server and a queue: our engine alone beside Cimba, interleaved."""
    contenders = {"scx_cosched": OUR_SERVER, "Cimba": f"{out}/cimba"}
    runs = {name: [] for name in contenders}
    for repeat in range(repeats):
        print(f"bench-sim: one server, repeat {repeat + 1} of {repeats}", file=sys.stderr)
        for name, program in contenders.items():
            runs[name].append(measured([program, str(CUSTOMERS), str(SEED)]))
    views = {name: found[0][0] for name, found in runs.items()}
    means = [view["mean"] for view in views.values()]
    # Cimba adds up times as floating-point numbers.
    if any(view["served"] != CUSTOMERS for view in views.values()) or max(means) / min(means) > 1 + 1e-6:
        raise Differs(f"one server: not the same queue: {views}")
    rates = {name: [CUSTOMERS / cpu_s / 1e6 for _, cpu_s, _, _ in found] for name, found in runs.items()}
    print("\n| one server | million customers per CPU second | scx_cosched is times as fast |")
    print("|---|---|---|")
    for name, of in rates.items():
        print(f"| {name} | {spread(of)} | {statistics.median(rates['scx_cosched']) / statistics.median(of):.1f} |", flush=True)
    return rates


def scale(repeats):
    """Our own default workload, by the number of nodes."""
    runs = {nodes: [] for nodes in SCALES}
    for repeat in range(repeats):
        print(f"bench-sim: sim bsp from 2 to 65536 nodes, repeat {repeat + 1} of {repeats}", file=sys.stderr)
        for nodes, iterations in SCALES.items():
            command = [OURS, "sim", "bsp", "--nodes", str(nodes), "--iterations", str(iterations), "--runs", "1", "--json"]
            view, _, _, rss_kib = measured(command)
            runs[nodes].append((view["events_per_s"] / 1e6, rss_kib))
    rss_kib = {nodes: statistics.median(rss for _, rss in found) for nodes, found in runs.items()}
    rows = []
    for nodes, found in runs.items():
        rates = [rate for rate, _ in found]
        # By how much more there is than on 16,384 nodes, since the program itself is no task; three jobs have one on
        # each node.
        bytes_per_task = (rss_kib[nodes] - rss_kib[16384]) * 1024 / (3 * (nodes - 16384)) if nodes > 16384 else None
        rows.append({
            "nodes": nodes, "millions_of_events_per_s": rates, "ns_per_event": 1e3 / statistics.median(rates),
            "bytes_per_task": bytes_per_task,
        })
    return rows


def print_scale(scaled):
    print("\n| nodes | million events per CPU second | ns per event | of that at 32 nodes | log of the nodes, of that of 32 | bytes per task |")
    print("|---|---|---|---|---|---|")
    base = next(row["ns_per_event"] for row in scaled if row["nodes"] == 32)
    for row in scaled:
        task = "" if row["bytes_per_task"] is None else f"{row['bytes_per_task']:.0f}"
        print(
            f"| {row['nodes']} | {spread(row['millions_of_events_per_s'], 1)} | {row['ns_per_event']:.0f} "
            f"| {row['ns_per_event'] / base:.2f} | {math.log2(row['nodes']) / 5:.2f} | {task} |"
        )


def main():
    repeats, out = int(sys.argv[1]), sys.argv[2]
    try:
        compared = compare(repeats, out)
        served = serve(repeats, out)
        scaled = scale(repeats)
    except Differs as error:
        sys.exit(f"bench-sim: {error}")
    print_scale(scaled)
    with open(f"{out}/summary.json", "w", encoding="utf-8") as file:
        json.dump({"compared": compared, "served": served, "scaled": scaled}, file, indent=1)


main()
