# SPDX-License-Identifier: GPL-2.0-only
"""Faults in the rules of policies/."""

import glob
import os
import re
import shutil

import builds
import faults

POLICIES = os.path.join(builds.ROOT, "policies")
FUNCTION = re.compile(r"^(?:static inline|COSCHED_APART) [^;{]*?(\w+)\([^;{]*?\)\n\{\n.*?^\}", re.MULTILINE | re.DOTALL)
MACRO = re.compile(r"^#define (\w+)((?:\(.*?\))?[ \t].*?[^\\])$", re.MULTILINE | re.DOTALL)


def words_of_rust():
    """Constants that the tests take from the C side are no place for a fault: only one of two copies would have it."""
    words = set()
    for directory in ("crates", "src", "tests"):
        for path in glob.glob(os.path.join(builds.ROOT, directory, "**", "*.rs"), recursive=True):
            with open(path, encoding="utf-8") as source:
                words.update(re.findall(r"\b[A-Z]\w*_[A-Z0-9_]+\b", source.read()))
    return words


def regions(source, shared):
    """The functions and macros, as name, start and end."""
    for match in FUNCTION.finditer(source):
        yield match.group(1), source.index("{", match.end(1)), match.end()
    for match in MACRO.finditer(source):
        if match.group(1) not in shared and "enum" not in match.group(2):
            yield match.group(1), match.start(2), match.end()


class Mutant:
    """One fault of a rule: a header of `source`, changed."""

    def __init__(self, tests, header, source, function, fault, number):
        self.tests, self.header = tests, header
        self.changed = faults.apply(source, fault)
        self.place = os.path.join(builds.OUT, str(number))
        self.library = os.path.join(self.place, "librules.so")
        self.name = f"policies/{header} {function}: {faults.name(source, fault)}"

    def build(self):
        """What is built of it, in short; nothing if it does not compile."""
        directory = os.path.join(self.place, "policies")
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(POLICIES, directory)
        for path in ["bpf/counters.h", "bpf/intf.h", "hints/hint.h"]:
            os.makedirs(os.path.dirname(os.path.join(self.place, path)), exist_ok=True)
            shutil.copy(os.path.join(builds.ROOT, path), os.path.join(self.place, path))
        with open(os.path.join(directory, self.header), "w", encoding="utf-8") as header:
            header.write(self.changed)
        built = builds.compile_rules(os.path.join(directory, "native.c"), self.library)
        shutil.rmtree(directory)
        return builds.digest(self.library) if built else None

    def caught_by(self):
        """The first test that fails and how, or nothing."""
        tests = self.tests.of(self.header.removesuffix(".h"))
        return next(filter(None, (self.tests.caught_by(test, self.library) for test in tests)), None)


def mutants(tests):
    """All faults of all rules, in a fixed order."""
    shared, found = words_of_rust(), []
    for path in sorted(glob.glob(os.path.join(POLICIES, "*.h"))):
        with open(path, encoding="utf-8") as header:
            source = header.read()
        for function, start, end in regions(source, shared):
            for fault in faults.in_region(source, start, end):
                found.append(Mutant(tests, os.path.basename(path), source, function, fault, len(found)))
    return found
