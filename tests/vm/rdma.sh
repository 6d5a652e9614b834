# What the cases and the benchmark of RDMA share: sourced by each after case.sh, in the guest.
# shellcheck shell=bash disable=SC2154

# soft_roce [INTERFACE]: an RDMA device rxe0 that does its work in software, over the loopback interface or another
soft_roce() {
	modprobe -a rdma_rxe ib_uverbs rdma_ucm
	rdma link add rxe0 type rxe netdev "${1:-lo}"
	[[ -e /dev/infiniband/uverbs0 ]] || fail "there is no device"
}

# Its second address is that of IPv4.
pingpong=(ibv_rc_pingpong -d rxe0 -g 1 -m 1024 -s 64)

# listens PORT: does a program of this namespace?
listens() { grep -Eq "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A" /proc/net/tcp /proc/net/tcp6; }

# both PORT COMMAND...: the command on CPU 0, and with the address of the first as its last argument on CPU 1. What the
# second says is in the file "client".
both() {
	local port=$1 server
	shift
	taskset -c 0 "$@" >"$tmp/server" 2>&1 &
	server=$!
	eventually 30 listens "$port" || fail "$1 does not listen: $(cat "$tmp/server")"
	taskset -c 1 "$@" 127.0.0.1 >"$tmp/client" 2>&1 || fail "$* fails: $(cat "$tmp/client")"
	wait $server || fail "the server of $* fails: $(cat "$tmp/server")"
}
