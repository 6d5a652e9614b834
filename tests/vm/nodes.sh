# shellcheck shell=bash
# Two VMs with a wire between them, of which node 0 has both do what it says. To source in each, with the programs that are to
# be found on either in PATH, and mpi-remote among them. What is to be kept while they run goes to $tmp.
nodes=(10.77.0.1 10.77.0.2)
tmp=/run/nodes
mkdir -p $tmp

# meet: node 0 goes on when both hear it, and however it ends, the other one ends with it. Node 1 does not come back.
meet() {
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

# everywhere COMMAND: run this line of shell on both nodes
everywhere() {
	local node
	for node in "${nodes[@]}"; do
		mpi-remote "$node" "$1" || die "node $node: '$1' failed"
	done
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
		until [ \$(cat /sys/kernel/sched_ext/state) = disabled ] && [ ! -e /run/scx_cosched.sock ]; do sleep 0.2; done"
}

# load READY COMMAND...: until the kernel has it and READY holds
load() {
	local ready=$1
	shift
	everywhere "(exec setsid sh -c 'echo \$\$ >$tmp/loader; exec $* >$tmp/loader.log 2>&1') &
		n=0; until [ \$(cat /sys/kernel/sched_ext/state) = enabled ] && $ready; do sleep 0.2; n=\$((n + 1)); [ \$n -lt 450 ] || exit 1; done"
}
