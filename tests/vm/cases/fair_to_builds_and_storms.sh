#!/bin/bash
# A task that computes has half of its CPU beside a group of equal weight, whatever goes on in there: processes that do
# nothing but fork, a shell that runs one command after the other, a parallel build, and stress-ng with tasks that
# compute, fork, switch, and wait for futexes and sockets.
. "$(dirname -- "$0")/../case.sh"

# beside NAME COMMAND...: a busy task has 45 to 55% of CPU 0 while the command runs there too, in another group
beside() {
	local name=$1 group
	shift
	hog in_group one taskset -c 0
	(cd "$tmp" && in_group other taskset -c 0 "$@" >"$tmp/other" 2>&1) &
	sleep 2
	[[ -n $(</sys/fs/cgroup/other/cgroup.procs) ]] || fail "$name has ended: $(tail -n 3 "$tmp/other")"
	of 5 "${hogs[@]}"
	echo "beside $name: ${shares[*]}%"
	(( shares[0] >= 45 && shares[0] <= 55 )) || fail "a busy task beside $name has ${shares[0]}%, not 45 to 55"
	end_groups one other
	for group in one other; do
		eventually 20 rmdir /sys/fs/cgroup/$group 2>/dev/null || fail "$group does not go"
	done
}

# The build writes to memory, and has run once before: while the guest waits for the host no virtual time passes.
{
	echo "all: $(printf 'o%d ' {1..4000})"
	printf 'o%%:\n\t@cc -O2 -c -o $@ part.c\n'
} >"$tmp/Makefile"
cat >"$tmp/part.c" <<'END'
#include <stdio.h>
int part(int n) { return n > 2 ? part(n - 1) + part(n - 2) + printf("%d", n) : 1; }
END
(cd "$tmp" && make -s o0)

start
beside "a storm of forks" sh -c 'for i in 1 2 3 4 5 6 7 8; do "$0" chain 0 & done; wait' "$LOADS"
beside "a shell that runs commands" bash -c 'while :; do /bin/true; done'
beside "make -j8" make -s -j8
beside "stress-ng" env LD_LIBRARY_PATH="$STRESS/usr/lib/x86_64-linux-gnu" "$STRESS/usr/bin/stress-ng" \
	--quiet --timeout 60 --cpu 2 --fork 2 --switch 2 --futex 2 --sock 2
runs
stop
