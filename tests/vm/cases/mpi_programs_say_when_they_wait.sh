#!/bin/bash
# MPI programs that nobody has changed say when they wait, with libcosched_mpi before them: each rank is heard, and
# leaves its CPU to others while it polls memory; and the job ends as it should. Open MPI, MPICH, and Open MPI from
# Python.
#
# The ranks talk through shared memory, of which the kernel sees nothing: without the library nobody is ever parked.
#
# Real time: in virtual time Open MPI's ranks are parked within 3 s, but none of MPICH's was within a minute beside
# competitors, and why is not known.
. "$(dirname -- "$0")/../case.sh"

install target/release/libcosched_mpi.so /usr/local/lib/
install target/mpi/mpi-job.* "$tests/mpi-job.py" /usr/local/bin/
ranks=2

heard() { [[ $(scx_cosched status --json | jq -c '[.hinted.processes, .hinted.threads]') == "[$1,$1]" ]]; }
parked() { (( $(counter parks) >= $1 )); }
ended() { ! kill -0 "$1" 2>/dev/null; }

# job NAME COMMAND...: MPI finds its files where it was built to look for them, and what is not its own stays
job() {
	local name=$1 file=$tmp/$1 began=$SECONDS launcher cpu
	shift
	LD_PRELOAD=/usr/local/lib/libcosched_mpi.so OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		unshare --mount sh -c "mount -t overlay -o lowerdir=$MPI/usr:/usr overlay /usr && exec \"\$@\"" sh \
		"$@" "$file" 1 >"$file" 2>&1 &
	launcher=$!
	eventually 120 test -e "$file.ready" || fail "$name does not come up: $(cat "$file")"
	eventually 30 heard $ranks || fail "$name is not heard: $(scx_cosched status --json | jq -c .hinted)"
	echo "$name: heard after $((SECONDS - began)) s"
	for cpu in 0 1; do hog taskset -c $cpu; done
	before=$(counter parks)
	eventually 120 parked $((before + 1)) || fail "$name: nobody leaves his CPU"
	echo "$name: off its CPUs after $((SECONDS - began)) s"
	kill "${hogs[@]}"
	wait "${hogs[@]}" || true
	hogs=()
	awk '{ print $1 }' /proc/uptime >"$file.part"
	mv "$file.part" "$file.start"
	# MPICH's launcher now and then waits for ever for ranks that are done, under any scheduler.
	eventually 60 heard 0 || fail "$name: ranks that are gone are heard, or do not end: $(cat "$file")"
	is "$(grep -c ^rank "$file")" $ranks "$name: ranks that have ended well:"
	eventually 20 ended $launcher || kill $launcher
	if wait $launcher; then echo "$name: done after $((SECONDS - began)) s"; else
		code=$?
		[[ $name == mpich* ]] || fail "$name ends with $code: $(cat "$file")"
		echo "$name: the launcher did not end"
	fi
	cat "$file"
}

# shellcheck disable=SC2054,SC2206
openmpi=(orterun --mca btl vader,self --mca pml ob1 --bind-to none -np $ranks)
start --policy dcs-sb --hints-socket /run/scx_cosched-hints.sock
job openmpi "${openmpi[@]}" /usr/local/bin/mpi-job.openmpi stencil
job mpich mpiexec.hydra -bootstrap fork -n $ranks -env UCX_TLS posix,self /usr/local/bin/mpi-job.mpich stencil
job mpi4py "${openmpi[@]}" /usr/bin/python3 /usr/local/bin/mpi-job.py
unwarned
stop
