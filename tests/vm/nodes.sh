# shellcheck shell=bash
# Two VMs with a wire between them, of which node 0 has both do what it says. To source in each, with the programs that
# are to be found on either in PATH, and mpi-remote among them. What is to be kept while they run goes to $tmp. In one
# VM each of its two CPUs stands for a node.
nodes=(10.77.0.1 10.77.0.2) cpus=(0) interface=eth0
(( NODES == 2 )) || nodes=(127.0.0.1 127.0.0.1) cpus=(0 1) interface=lo
tmp=/run/nodes slice=/sys/kernel/debug/sched/base_slice_ns
mkdir -p $tmp

# meet: node 0 goes on when both hear it, and however it ends, the other one ends with it. Node 1 does not come back.
meet() {
	(( NODES == 2 )) || return 0
	mpi-remote serve 7077 >$tmp/remote.log 2>&1 &
	local server=$!
	if (( NODE )); then
		until [[ -e $tmp/over ]]; do sleep 0.5; done
		sleep 1
		kill $server
		exit 0
	fi
	trap 'mpi-remote ${nodes[1]} "touch $tmp/over" || true' EXIT
	until mpi-remote "${nodes[1]}" true 2>/dev/null && mpi-remote "${nodes[0]}" true 2>/dev/null; do sleep 0.5; done
}

# everywhere COMMAND: run this line of shell on both nodes, at once
everywhere() {
	local far
	(( NODES == 2 )) || { sh -c "$1" || die "'$1' failed"; return; }
	mpi-remote "${nodes[1]}" "$1" &
	far=$!
	sh -c "$1" || die "node ${nodes[0]}: '$1' failed"
	wait $far || die "node ${nodes[1]}: '$1' failed"
}

# there COMMAND: run this line of shell on node 1
there() {
	if (( NODES == 2 )); then mpi-remote "${nodes[1]}" "$1"; else sh -c "$1"; fi
}

# schedule [FLAG...]: by the kernel's own scheduler on both nodes, or by scx_cosched with these flags
schedule() {
	unload
	(( ! $# )) || load '[ -S /run/scx_cosched.sock ]' scx_cosched run "$@" --metrics-listen none
}

# schedule_by PROGRAM: by another sched_ext scheduler
schedule_by() {
	unload
	load true "$1"
}

unload() {
	everywhere "[ ! -e $tmp/loader ] || kill -INT \$(cat $tmp/loader) 2>/dev/null; rm -f $tmp/loader
		until read now </sys/kernel/sched_ext/state && [ \$now = disabled ] && [ ! -e /run/scx_cosched.sock ]; do
			sleep 0.2; done"
}

# load READY COMMAND...: until the kernel has it and READY holds. To look more often would take the CPU from it.
load() {
	local ready=$1
	shift
	everywhere "(exec setsid sh -c 'echo \$\$ >$tmp/loader; exec $* >$tmp/loader.log 2>&1') &
		n=0; until read now </sys/kernel/sched_ext/state && [ \$now = enabled ] && $ready; do
			sleep 0.5; n=\$((n + 1)); [ \$n -lt 180 ] || exit 1; done"
}

# compete_with NUMBER: so many competitors on each node that only compute, each a job of its own, once compete says so
compete_with() {
	competitors=$1
	everywhere "for i in \$(seq $1); do for cpu in ${cpus[*]}; do
		setsid mpi-task hog\$i taskset -c \$cpu sh -c 'while :; do :; done' >/dev/null 2>&1 & done; done
		until [ -e /sys/fs/cgroup/hog$1/cgroup.freeze ]; do sleep 0.1; done"
	compete 0
}

# compete YES: whether the competitors go on. Jobs start and end without them, which takes long enough. They go on one
# after the other, after random times, so that the CPUs' turns stand in another position to each other each time.
compete() {
	local i command=''
	for (( i = 1; i <= competitors; i++ )); do
		(( !$1 )) || command+="sleep 0.0$((RANDOM % 90 + 10)); "
		command+="echo $((!$1)) >/sys/fs/cgroup/hog$i/cgroup.freeze; "
	done
	everywhere "$command true"
}

# contend SCHEDULER: schedule as it does, and set the jobs that run then, how many competitors they have on each node,
# and how many tasks want a CPU. A path is that of another sched_ext scheduler, and PRESET+FLAG=VALUE is a preset with a
# flag of "run".
contend() {
	local key=/run/cluster-key
	local flags rows=() wire=(--peer "${nodes[0]%.*}.0/24" --cluster-key "$key")
	everywhere "[ -e $key ] || { umask 077; echo 0123456789abcdef0123456789abcdef >$key; }
		[ -e $tmp/slice ] || cat $slice >$tmp/slice; cat $tmp/slice >$slice"
	jobs=(a b) hogs=$competitors
	[[ $1 != alone* ]] || { jobs=(a); hogs=0; }
	case $1 in
		alone | eevdf) schedule ;;
		eevdf+*) schedule; everywhere "echo ${1#*=}000 >$slice" ;;
		*/*) schedule_by "$1" ;;
		wire) schedule --policy dcs-sb "${wire[@]}" ;;
		wire+*)
			read -ra flags <<<"$(flags_of "${1#wire+}")"
			schedule --policy "${flags[@]}" "${wire[@]}" ;;
		prefetch) schedule --policy dcs-sb "${wire[@]}" --prefetch 4 ;;
		*)
			read -ra flags <<<"$(flags_of "${1#alone+}")"
			# Each job has a row.
			[[ ${flags[0]} != gang ]] || read -ra rows <<<"--rows $((2 + hogs)) --gang-row /a=0 --gang-row /b=1 $(
				seq --format='--gang-row /hog%g' "$hogs" | awk '{ print $0 "=" NR + 1 }' | xargs)"
			schedule --policy "${flags[@]}" "${rows[@]}" ;;
	esac
	wanting=$((${#jobs[@]} + hogs))
}

# turn_round ARRAY: the other way round, so that no scheduler is first more often than last
turn_round() {
	local -n array=$1
	local element turned=()
	for element in "${array[@]}"; do turned=("$element" "${turned[@]}"); done
	array=("${turned[@]}")
}
