# shellcheck shell=bash disable=SC2034
# What the cases and the benchmark of RDMA between two nodes share: sourced by each. Node 0 goes on, and both have a
# device that is open. In one VM they share it.
set -Eeuo pipefail
# shellcheck source=common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
fail() { die "$@"; }
# shellcheck source=rdma.sh
. "$here/rdma.sh"

mkdir -p /run/bin
install target/release/scx_cosched{,-bench} "$here"/mpi-{remote,task} /run/bin/
export PATH=/run/bin:$PATH
cp -a "$RDMA/." /
# shellcheck source=nodes.sh
. "$here/nodes.sh"
soft_roce "$interface"
meet
far=${nodes[1]}
everywhere "(exec setsid sleep infinity </dev/infiniband/uverbs0 >/dev/null 2>&1) &"

# observe [FLAG...]: by scx_cosched with these flags on both nodes, with its hooks on RDMA
observe() {
	schedule "$@"
	everywhere "n=0; until scx_cosched status --json | jq -e '.hooks.idle == []' >/dev/null; do
		sleep 0.2; n=\$((n + 1)); [ \$n -lt 300 ] || exit 1; done"
}

# both_nodes SERVER CLIENT: run these commands there and here
both_nodes() {
	local server i
	mpi-remote "$far" "timeout 120 $1" >$tmp/server 2>&1 &
	server=$!
	# It is there when the client is let in.
	for (( i = 0; ; i++ )); do
		# shellcheck disable=SC2086 # A command with its arguments.
		timeout 120 $2 >$tmp/client 2>&1 && break
		(( i < 20 )) && kill -0 $server 2>/dev/null || die "$2: $(cat $tmp/client $tmp/server)"
		sleep 0.5
	done
	wait $server || die "$1: $(cat $tmp/server)"
}

# leave: the scheduler ends, with the devices still open, and has had nothing to complain of
leave() {
	schedule
	everywhere "! grep -E 'warning|error|panicked' $tmp/loader.log"
}
