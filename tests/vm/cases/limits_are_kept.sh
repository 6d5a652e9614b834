#!/bin/bash
# cpu.max holds as it does under the kernel's own scheduler: alone and beside others, nested, on several CPUs at once, with a
# burst, for a job that is boosted, and as soon as it is changed. And a task whose group may run next to nothing runs all the
# same, before the kernel loses its patience.
. "$(dirname -- "$0")/../case.sh"

root=/sys/fs/cgroup

# group NAME [MAX [BURST]]: a cgroup, with a limit if it is said; others may be made in it
group() {
	mkdir -p "$root/$1"
	[[ $1 != */* ]] || echo +cpu >"$root/${1%/*}/cgroup.subtree_control"
	[[ -z ${2-} ]] || echo "$2" >"$root/$1/cpu.max"
	[[ -z ${3-} ]] || echo "$3" >"$root/$1/cpu.max.burst"
}

# busy CPUS GROUP [N]: N tasks that compute, or one, in that group on these CPUs
busy() {
	local n
	for (( n = 0; n < ${3-1}; n++ )); do hog in_group "$2" taskset -c "$1"; done
}

# clear GROUP...: what runs in them ends, and they go
clear() {
	local group
	drop
	for group; do
		eventually 10 rmdir "$root/$group" 2>/dev/null || fail "$group does not go"
	done
}

# has SECONDS GROUP...: sets the array permille to what each uses of a CPU meanwhile, and took to how long it was, us
has() {
	local group before=() us i began=$EPOCHREALTIME
	for group in "${@:2}"; do
		read -r _ us <"$root/$group/cpu.stat"
		before+=("$us")
	done
	sleep "$1"
	permille=() i=0
	took=$((${EPOCHREALTIME/./} - ${began/./}))
	for group in "${@:2}"; do
		read -r _ us <"$root/$group/cpu.stat"
		permille+=($(( 1000 * (us - before[i++]) / took )))
	done
}

# keeps NAME VALUE EXPECTED: within 3%
keeps() {
	echo "$1: $2 permille, expected $3"
	(( $2 * 100 >= $3 * 97 && $2 * 100 <= $3 * 103 )) || fail "$1 has $2 permille of a CPU, not $3"
}

start
group tight "10000 100000"
group free
group two

busy 0 tight
sleep 1
has 5 tight
keeps "alone" "${permille[0]}" 100

busy 0 free
sleep 1
has 5 tight free
keeps "beside a busy task" "${permille[0]}" 100
keeps "the busy task" "${permille[1]}" 900
clear tight free
stop
