#!/bin/bash
# A group has what its weight says of the whole machine, whichever CPUs its tasks are on, and however many: in three
# machines that were drawn at random, of those of tests/vm/bench-shares, no more than a fifth of a CPU is where it should
# not be. EEVDF is off by 0.4 to 0.7 there.
. "$(dirname -- "$0")/../case.sh"

start
"$tests/shares" measure 6 "$tmp/shares" 8 11 13
"$tests/shares" hold 0.2 "$tmp/shares" || fail "a group has more or less than it should"
runs
unwarned
stop
