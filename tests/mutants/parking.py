# SPDX-License-Identifier: GPL-2.0-only
"""Faults in the model of parking, tests/parking_model.rs: in its protocol, not in what it claims."""

import os
import re
import subprocess

import builds
import faults

MODEL = os.path.join(builds.ROOT, "tests", "parking_model.rs")
# Nothing loops here, but with fewer barriers there are more orders to try.
LONGEST_S = 1800
# What the CPUs do. What the task does, and the claims with the moments when they are looked at, stay as they are.
PROTOCOL = re.compile(r"^( *)fn (exchange|demand_on_arrival|mark|post|cpu_now|running|stopping|enqueue|queue_for|"
                      r"park|dispatch|empty_box|sort_marked)\(", re.MULTILINE)
# Rules that the model can do without on purpose are not without them here.
SWITCHES = re.compile(r"!?(\w+\.)?has\(\w+\)")


class Mutant:
    """One fault of the model."""

    def __init__(self, source, function, fault, number):
        self.changed = faults.apply(source, fault)
        self.place = os.path.join(builds.OUT, f"parking{number}")
        self.program = os.path.join(self.place, "parking_model")
        self.name = f"tests/parking_model.rs {function}: {faults.name(source, fault)}"

    def build(self):
        """What is built of it, in short; nothing if it does not compile."""
        os.makedirs(self.place, exist_ok=True)
        with open(self.program + ".rs", "w", encoding="utf-8") as model:
            model.write(self.changed)
        libraries = os.path.join(builds.ROOT, "target", "release", "deps")
        command = ["rustc", "--edition=2024", "--test", "-Copt-level=3", "--cap-lints=allow", "-L",
                   f"dependency={libraries}", "-o", self.program, self.program + ".rs"]
        for name in ("loom", "cosched_rules"):
            built = (path for path in os.scandir(libraries) if re.fullmatch(rf"lib{name}-\w+\.rlib", path.name))
            command += ["--extern", f"{name}={max(built, key=lambda path: path.stat().st_mtime).path}"]
        built = subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
        return builds.digest(self.program) if built else None

    def caught_by(self):
        how = builds.failure([self.program], {}, LONGEST_S)
        return how and f"parking_model {how}"


def mutants():
    builds.cargo("parking_model", [])
    with open(MODEL, encoding="utf-8") as model:
        source = model.read()
    found = []
    for match in PROTOCOL.finditer(source):
        start = source.index("{", source.index(")", match.end()))
        end = source.index(f"\n{match.group(1)}}}\n", start)
        for fault in faults.in_region(source, start, end, is_rust=True):
            if not any(switch.start() <= fault[0].start < switch.end() for switch in SWITCHES.finditer(source)):
                found.append(Mutant(source, match.group(2), fault, len(found)))
    return found
