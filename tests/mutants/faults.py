# SPDX-License-Identifier: GPL-2.0-only
"""Faults for a mutation run: small changes to a source, one at a time, of the kind that people make.

It reads tokens, not syntax, so one generator serves the rules in C and the parking model in Rust. Both sources put
spaces around binary operators and none behind unary ones, which is how it tells them apart. What does not compile is no
fault: the run drops it.
"""

import re
from dataclasses import dataclass

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*")
    |(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<operator><<=|>>=|->|=>|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\.\.|.)""",
    re.VERBOSE | re.DOTALL,
)

SWAPS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"], "<<": [">>"], ">>": ["<<"],
    "&": ["|"], "|": ["&"], "^": ["&"], "&&": ["||"], "||": ["&&"],
    "+=": ["-="], "-=": ["+="], "&=": ["|="], "^=": ["|="], "=": [],
}
STEPS = {"++": "--", "--": "++"}
# In the model of parking: the phases and queues of a task, and what orders the accesses of two CPUs.
NAMES = {
    "Waits": "Asks", "Asks": "Granted", "Granted": "Parked", "Parked": "Runs", "Runs": "Waits", "Fair": "Parked",
    "AcqRel": "Relaxed", "SeqCst": "AcqRel",
    "is_ok": "is_err",
}
NO_STATEMENTS = {"if", "for", "while", "switch", "else", "do", "case", "default", "let", "match", "fn", "impl"}
TYPES = {"u8", "u16", "u32", "u64", "s32", "s64", "int", "struct", "union", "const", "static", "void"}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self):
        return self.start + len(self.text)


@dataclass(frozen=True)
class Fault:
    """`source[start:end]` becomes `text`."""

    start: int
    end: int
    text: str

    def apply(self, source):
        return source[: self.start] + self.text + source[self.end :]


def tokens(source, start, end):
    found = (Token(m.lastgroup, m.group(), m.start()) for m in TOKEN.finditer(source, start, end))
    return [token for token in found if token.kind != "skip"]


def numbers(token):
    """A constant that is one off, either way."""
    digits, suffix = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", token.text).groups()
    value = int(digits, 16 if digits[:2] in ("0x", "0X") else 10)
    return [f"{n}{suffix}" for n in (value + 1, value - 1) if n >= 0]


def closing(tokens, opening):
    """Where the parenthesis is closed that `tokens[opening]` opens."""
    depth = 0
    for place in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place].text, 0)
        if depth == 0:
            return place
    raise ValueError("a parenthesis that nobody closes")


def of_token(source, token):
    spaced = source[token.start - 1].isspace() and source[token.end : token.end + 1].isspace()
    if token.kind == "number":
        texts = numbers(token)
    elif token.text in NAMES:
        texts = [NAMES[token.text]]
    elif token.text == "!":
        texts = [""]
    elif token.text == "?" and spaced:
        texts = ["|| 1 ?", "&& 0 ?"]
    elif token.text in STEPS:
        texts = [STEPS[token.text]]
    else:
        texts = SWAPS.get(token.text, []) if spaced else []
    return [Fault(token.start, token.end, text) for text in texts]


def of_condition(tokens, at, is_rust):
    """The condition of an `if`, negated."""
    if is_rust:
        ends = [place for place in range(at, len(tokens)) if tokens[place].text == "{"]
        if not ends or tokens[at + 1].text == "let":
            return []
        first, last = tokens[at + 1], tokens[ends[0] - 1]
    else:
        first, last = tokens[at + 1], tokens[closing(tokens, at + 1)]
    return [Fault(first.start, first.start, "(!("), Fault(last.end, last.end, "))")]


def of_statement(source, tokens, at):
    """A statement that is left out, and a return of nothing."""
    first = tokens[at]
    if first.kind != "name" or first.text in NO_STATEMENTS | TYPES:
        return []
    ends = [token for token in tokens[at:] if token.text == ";"]
    if not ends or "{" in source[first.start : ends[0].start]:
        return []
    faults = [Fault(first.start, ends[0].start, "")]
    if first.text == "return" and ends[0].start > first.end:
        faults.append(Fault(first.start, ends[0].start, "return 0"))
    return faults


def begins_statement(tokens, at):
    """C and Rust alike: after the end of another, of a block's head, of a label or of a condition."""
    before = tokens[at - 1].text if at else "{"
    if before == ")":
        opening = at - 1
        depth = 0
        while opening >= 0:
            depth += {")": 1, "(": -1}.get(tokens[opening].text, 0)
            if depth == 0:
                break
            opening -= 1
        return opening > 0 and tokens[opening - 1].text in ("if", "for", "while")
    is_label = before == ":" and (tokens[at - 2].text == "default" or tokens[at - 3].text == "case")
    return before in (";", "{", "}", "else") or is_label


def in_region(source, start, end, is_rust=False):
    """All faults of a function or a macro, as pairs: some change two places at once."""
    found = tokens(source, start, end)
    for at, token in enumerate(found):
        for fault in of_token(source, token):
            yield (fault,)
        if token.text == "if":
            condition = of_condition(found, at, is_rust)
            if condition:
                yield tuple(condition)
        if token.text == "case":
            label = next(t for t in found[at:] if t.text == ":")
            yield (Fault(token.start, label.end, ""),)
        if begins_statement(found, at):
            for fault in of_statement(source, found, at):
                yield (fault,)


def apply(source, faults):
    for fault in sorted(faults, key=lambda fault: -fault.start):
        source = fault.apply(source)
    return source


def name(source, faults):
    """What a fault is called: the line as it is with it, or what is left out."""
    first, last = faults[0], faults[-1]
    if not first.text and len(source[first.start : first.end]) > 1:
        return "without " + " ".join(source[first.start : first.end].split())
    changed = apply(source, faults)
    begin = source.rfind("\n", 0, first.start) + 1
    end = changed.find("\n", last.start + len(last.text))
    return " ".join(changed[begin:end].split())
