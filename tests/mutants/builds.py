# SPDX-License-Identifier: GPL-2.0-only
"""Builds of the tests that take the rules from a shared library, and runs of them."""

import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, "target", "mutants")

# A fault may have a test loop for ever. It has as long as this, and so many times what it takes where nothing is wrong.
PATIENCE_S, PATIENCE_TIMES = 10, 20
ENVIRONMENT = {
    "PROPTEST_RNG_SEED": "1",  # the same cases for each fault, so that a run can be repeated
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",  # what a fault brings up is no case to keep
    "RUST_BACKTRACE": "0",
}

# The tests that reach a rule, the one that is about it first. Those of the simulator come last, and only quick ones.
GATES = ["gate_edges", "gates", "epochs", "auto_gate", "sim_markov", "sim_sweep"]
REACH = {
    "account": ["account_edges", "urgent", "sim_shared"],
    "balance": ["balance"],
    "beat": ["beat_edges", "beat", "sim_shared"],
    "boost_choice": ["boost_choice"],
    "epoch": ["epochs", "wire", "prefetch"],
    "fair": ["fair_edges", "fair", "window", "balance", "gate_edges", "sim_shared"],
    "gang": ["gang"],
    "gate": GATES,
    "gate_always": GATES,
    "gate_auto": ["auto_gate", "gate_edges", "gates", "epochs"],
    "gate_epochs": ["epochs", "gates", "auto_gate", "sim_markov"],
    "gate_equalizing": GATES,
    "gate_rate": GATES,
    "limit": ["limit_edges", "limit"],
    "phase": ["phase", "parking_model"],
    "policy": ["gate_edges", "gates", "spins", "waits", "auto_gate", "epochs", "sim_markov"],
    "prefetch": ["prefetch"],
    "siphash": ["wire", "prefetch"],
    "spin": ["spins", "waits"],
    "spin_adaptive": ["spins"],
    "spin_baseline": ["spins"],
    "spin_conditional": ["spins"],
    "surplus": ["wire"],
    "wait": ["waits"],
    "wait_spin": ["waits"],
    "window": ["window", "auto_gate"],
    "wire": ["wire", "prefetch"],
}
# The differential tests that reach a rule.
DIFFERENTIAL = {
    "account": ["differential_fair"],
    "fair": ["differential_fair"],
    "limit": ["differential_limit"],
    "prefetch": ["differential_wire"],
    "siphash": ["differential_wire"],
    "surplus": ["differential_wire"],
    "wire": ["differential_wire"],
}


def names():
    """Of the rules that Rust calls, which are the tests' only way to them."""
    found = set()
    for path in [*glob.glob(os.path.join(ROOT, "crates", "rules", "src", "**", "*.rs"), recursive=True),
                 os.path.join(ROOT, "tests", "prefetch.rs")]:
        with open(path, encoding="utf-8") as source:
            found.update(re.findall(r"\bintf::([a-z]\w+)\(", source.read()))
    return sorted(found)


def compile_rules(source, library):
    """Makes a library of native.c, whose functions the linker takes for those that the tests call."""
    renames = [f"-D{name}=__wrap_{name}" for name in names()]
    # What overflows wraps as on the machine: else the compiler may make of a fault what it likes.
    flags = ["-O1", "-fwrapv", "-fPIC", "-shared", "-Werror=return-type"]
    # A rule calls the rules of its own library, and not those of the same name in the test.
    flags += ["-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,-soname,librules.so"]
    os.makedirs(os.path.dirname(library), exist_ok=True)
    command = ["cc", *flags, *renames, "-o", library, source]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0


def digest(path):
    """Alike for files that are alike."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def cargo(test, arguments):
    """Builds a test with further arguments to rustc, which cargo keeps apart from those without."""
    command = ["cargo", "rustc", "--release", "--locked", "--quiet", "--message-format=json", "--test", test]
    built = subprocess.run([*command, "--", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return next(m["executable"] for m in messages if m.get("target", {}).get("name") == test)


def failure(command, environment, longest_s):
    """How a test fails, if it does, which is known as soon as one of its functions has."""
    environment = {**os.environ, **ENVIRONMENT, **environment}
    pipe, late = subprocess.PIPE, threading.Event()
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, text=True) as process:
        timer = threading.Timer(longest_s, lambda: (late.set(), process.kill()))
        timer.start()
        failed = any(re.match(r"test .* FAILED$", line) for line in process.stdout)
        if failed:
            process.kill()
        status = process.wait()
        timer.cancel()
    if late.is_set():
        return "takes too long"
    return "fails" if failed or status != 0 else None


class Tests:
    """The tests as programs, linked against the library of the rules."""

    def __init__(self, one_sided):
        self.one_sided, self.programs, self.longest_s = one_sided, {}, {}
        self.library = os.path.join(OUT, "original", "librules.so")
        if not compile_rules(os.path.join(ROOT, "policies", "native.c"), self.library):
            raise SystemExit("mutants: policies/native.c does not compile")
        arguments = [f"-Clink-arg=-Wl,--wrap={name}" for name in names()] + [f"-Clink-arg={self.library}"]
        for test in sorted({test for rule in REACH for test in self.of(rule)}):
            print(f"building {test}", file=sys.stderr, flush=True)
            self.programs[test] = cargo(test, arguments)
            begun, self.longest_s[test] = time.monotonic(), 3600
            if self.caught_by(test, self.library):
                raise SystemExit(f"mutants: {test} fails without any fault")
            self.longest_s[test] = PATIENCE_S + PATIENCE_TIMES * (time.monotonic() - begun)

    def caught_by(self, test, library):
        """The test and how it fails, if it does."""
        place = {"LD_LIBRARY_PATH": os.path.dirname(library)}
        how = failure([self.programs[test]], place, self.longest_s[test])
        return how and f"{test} {how}"

    def of(self, rule):
        """Those that can catch a fault of a rule."""
        if self.one_sided:
            return DIFFERENTIAL.get(rule, ["differential", "differential_wire"])
        return REACH[rule]
