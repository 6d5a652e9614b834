# shellcheck shell=bash disable=SC2154
# A Slurm cluster of two nodes in one machine, to source in a guest. A node is a slurmd with a network and a CPU of its
# own; the controller is outside.
slurm=/run/slurm
nodes=(n0 n1)
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# lay PACKAGES...: their files are where they were built to look for them; what is not theirs stays
lay() {
	local lower='' package
	for package; do lower+=$package/usr:; done
	mount -t overlay -o "lowerdir=$lower/usr" overlay /usr
}

# wire_up: a network namespace for each node, and a bridge between them and the controller
wire_up() {
	local i node
	modprobe -a bridge veth
	ip link add cluster type bridge
	ip address add 10.78.0.1/24 dev cluster
	ip link set cluster up
	for i in "${!nodes[@]}"; do
		node=${nodes[i]}
		ip netns add "$node"
		ip link add "$node" type veth peer name eth0 netns "$node"
		ip link set "$node" master cluster up
		ip -n "$node" address add 10.78.0.$((10 + i))/24 dev eth0
		ip -n "$node" link set eth0 up
		ip -n "$node" link set lo up
	done
	printf '127.0.0.1 localhost\n10.78.0.1 c0\n10.78.0.10 n0\n10.78.0.11 n1\n' >/etc/hosts
}

# configure GANG: OFF, or GANG for Slurm's own gang scheduling at its shortest slice
configure() {
	cat >/etc/slurm/slurm.conf <<-END
		ClusterName=cosched
		SlurmctldHost=c0(10.78.0.1)
		SlurmUser=root
		AuthType=auth/munge
		ProctrackType=proctrack/cgroup
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		MpiDefault=none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		PreemptMode=$1
		SchedulerTimeSlice=5
		SlurmdParameters=config_overrides
		SlurmdSpoolDir=$slurm/%n
		SlurmdPidFile=$slurm/%n.pid
		SlurmdLogFile=$slurm/%n.log
		SlurmctldPidFile=$slurm/controller.pid
		SlurmctldLogFile=$slurm/controller.log
		StateSaveLocation=$slurm/state
		Prolog=/usr/local/bin/prolog
		Epilog=/usr/local/bin/epilog
		PrologFlags=Alloc
		ReturnToService=2
		NodeName=n0 NodeAddr=10.78.0.10 CPUs=1 State=UNKNOWN
		NodeName=n1 NodeAddr=10.78.0.11 CPUs=1 State=UNKNOWN
		PartitionName=all Nodes=n0,n1 Default=YES OverSubscribe=FORCE:2 State=UP
	END
	printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >/etc/slurm/cgroup.conf
}

# on NODE COMMAND...: in the network and on the CPU of that node, in a cgroup that it starts its jobs beside
on() {
	local node=$1 group=/sys/fs/cgroup/system.slice/$1.service
	shift
	mkdir -p "$group" "/sys/fs/cgroup/system.slice/${node}_slurmstepd.scope"
	(
		echo "$BASHPID" >"$group/cgroup.procs"
		# What shows a network of its own hides the cgroups. PMIx names files in /tmp after the job alone.
		exec ip netns exec "$node" sh -c '
			mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t tmpfs tmpfs /tmp && exec taskset -c "$@"' sh "${node#n}" "$@"
	)
}

# start_slurm: until both nodes are there
start_slurm() {
	local node
	mkdir -p $slurm/state /sys/fs/cgroup/system.slice
	echo '+cpu +cpuset +memory' | tee /sys/fs/cgroup/{,system.slice/}cgroup.subtree_control >/dev/null
	chrt --fifo 10 slurmctld-wlm -c
	for node in "${nodes[@]}"; do
		mkdir -p "$slurm/$node"
		on "$node" slurmd-wlm -N "$node"
	done
	eventually 90 idle || fail "Slurm's nodes are not there: $(sinfo; tail -n 20 $slurm/*.log)"
}
idle() { [[ $(sinfo --noheader --format='%D %t') == '2 idle' ]]; }

stop_slurm() {
	local pid
	for pid in $slurm/n?.pid $slurm/controller.pid; do
		kill "$(<"$pid")"
	done
	eventually 60 ended || fail "Slurm does not end"
	rm -rf $slurm/state
}
ended() { ! pgrep --exact slurmd-wlm >/dev/null && ! pgrep --exact slurmctld-wlm >/dev/null; }

# start_munge: what Slurm's messages are signed by
start_munge() {
	install -d -m 700 /etc/munge /var/lib/munge /var/log/munge
	install -d -m 755 /run/munge
	(umask 077 && head -c 1024 /dev/urandom >/etc/munge/munge.key)
	munged --force
}
