#!/bin/bash
# Under gang the jobs of a row have all CPUs for their quantum, and those of the other rows none; each job gets its
# share. A CPU whose row has nothing to run there runs somebody else.
. "$(dirname -- "$0")/../case.sh"

quantum_ms=200

# watch ROWS PID...: sets the array shares to the per cent of a CPU that each had in the turns of row 0, then in those
# of row 1, and so on.
watch() {
	mapfile -t shares < <(chrt --fifo 50 python3 -IS -c '
import sys, time
quantum, rows, *pids = map(int, sys.argv[1:])
quantum *= 1000000
# Opened before anything is timed: to look a path up may take as long as another task does that looks up the same.
files = [open(f"/proc/{pid}/schedstat") for pid in pids]
used = [[0] * len(pids) for _ in range(rows)]
spent = [0] * rows

def had_by(file):
    file.seek(0)
    return int(file.read().split()[0])

def look():
    now = time.clock_gettime_ns(time.CLOCK_TAI)
    had = [had_by(file) for file in files]
    took_ms = (time.clock_gettime_ns(time.CLOCK_TAI) - now) / 1e6
    if took_ms > 10:
        print(f"a look took {took_ms:.0f} ms", file=sys.stderr)
    return now, had

def wait():
    time.sleep((quantum - time.clock_gettime_ns(time.CLOCK_TAI) % quantum) / 1e9)
    return look()

since, before = wait()
for _ in range(10 * rows):
    now, after = wait()
    row = since // quantum % rows
    spent[row] += now - since
    used[row] = [sum + b - a for sum, a, b in zip(used[row], before, after)]
    since, before = now, after
for row in range(rows):
    print(*[round(100 * ns / max(spent[row], 1)) for ns in used[row]], sep="\n")' $quantum_ms "$@")
	echo "${names[*]}, by row: ${shares[*]}"
}

# between LEAST MOST INDEX...: these shares are
between() {
	local i
	for i in "${@:3}"; do
		(( shares[i] >= $1 && shares[i] <= $2 )) || { echo "the share at place $i is ${shares[i]}%"; return 1; }
	done
}

# two: with two rows, each job has both CPUs in its turn
two() {
	watch 2 "${hogs[@]}"
	between 85 101 0 1 6 7 && between 0 12 2 3 4 5
}

# three: nobody is in the third row, and in its turn the others share
three() {
	watch 3 "${hogs[@]}"
	between 85 101 0 1 6 7 && between 0 12 2 3 4 5 && between 25 75 8 9 10 11 &&
		(( shares[8] + shares[10] > 90 && shares[9] + shares[11] > 90 ))
}

# gap: the first job has nothing to run on CPU 1, so the second does in both turns
gap() {
	watch 2 "${hogs[@]}"
	between 85 101 0 2 4 5 && between 0 12 1 3
}

start --policy gang --quantum-ms $quantum_ms --rows 2 --gang-row /first=0 --gang-row /second=1 --slice-us 5000
names=(first/0 first/1 second/0 second/1)
for name in "${names[@]}"; do hog in_group "${name%/*}" taskset -c "${name#*/}"; done
sleep 2    # until the loader has seen them
before=$(counter rows)
two || fail "a job ran out of turn"
turns=$(($(counter rows) - before))
echo "$turns turns ended"
(( turns >= 20 )) || fail "only $turns turns were counted on two CPUs"
# First of all tasks: if it waited for its turn, that row would have the longer time.
mapfile -t used < <(chrt --fifo 1 bash -c ". '$tests/case.sh'; usage 8 ${hogs[*]}")
near "the first job" "$((used[0] + used[1]))" "$((used[2] + used[3]))"

scx_cosched policy set gang --quantum-ms $quantum_ms --rows 3 --slice-us 5000
three || fail "with an empty row"

scx_cosched policy set gang --quantum-ms $quantum_ms --rows 2 --slice-us 5000
kill "${hogs[1]}"
hogs=("${hogs[0]}" "${hogs[2]}" "${hogs[3]}") names=(first/0 second/0 second/1)
gap || fail "with a job that leaves a CPU out"

# Two of the first job on CPU 0, one of which waits when the policy becomes gang again: they share the turns of their
# row.
scx_cosched policy set dcs-sb
hog in_group first taskset -c 0
sleep 1
scx_cosched policy set gang --quantum-ms $quantum_ms --rows 2 --slice-us 5000
sleep 1
mapfile -t used < <(chrt --fifo 1 bash -c ". '$tests/case.sh'; usage 4 ${hogs[0]} ${hogs[3]}")
echo "two of a row, in 4 s: ${used[*]} us"
(( used[0] > 700000 && used[1] > 700000 )) || fail "one that waited when the policy changed has not its turn"

# So has one whose boost was granted before, though the hogs of its row never leave that row without a task. A round
# trip waits four times at most, each time for 5 others. They have one turn each, of 5 ms and a tick of 4, and under
# dcs-sb boosts of 8 slices: 4 * 5 * (9 + 40) = 980 ms.
talk 1000 udp4/block tcp4/block stream/block
for (( i = 0; i < 6; i++ )); do
	scx_cosched policy set dcs-sb --slice-us 5000
	sleep 0.3
	scx_cosched policy set gang --quantum-ms $quantum_ms --rows 1 --slice-us 5000
	sleep 2
done
quiet
stop
