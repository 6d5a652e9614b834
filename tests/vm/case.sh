# What the cases of the suite share: sourced by each, in the guest.
# shellcheck shell=bash disable=SC2034
set -Eeuo pipefail

# shellcheck source=common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/common.sh"
tests=$here
tmp=$(mktemp -d)
socket=/run/scx_cosched.sock
metrics=127.0.0.1:29937
loader='' talker=''

# A command that fails ends the case, and this says which.
trap 'echo "failed at line $LINENO: $BASH_COMMAND" >&2' ERR

# fail MESSAGE: end the case
fail() {
	trap - ERR
	echo "$*"
	[[ ! -s $tmp/log ]] || sed 's/^/log: /' "$tmp/log"
	exit 1
}

state() { cat /sys/kernel/sched_ext/state; }
restarts() { cat /sys/kernel/sched_ext/enable_seq; }
is() { [[ $1 == "$2" ]] || fail "${3:-got} '$1', expected '$2'"; }

runs() {
	kill -0 "$loader" 2>/dev/null || fail "the loader has ended"
	has_state enabled && [[ -S $socket ]]
}

# start_by COMMAND...: the scheduler by this command, until "stop" or the end of the case
start_by() {
	"$@" >"$tmp/log" 2>&1 &
	loader=$!
	eventually 90 runs || fail "the scheduler is not there after 90 s: $(state)"
}
start() { start_by scx_cosched run "$@"; }

# stop [SIGNAL]: unload it as a user does
stop() {
	kill -"${1:-INT}" "$loader"
	wait "$loader" || fail "the loader ended with $?"
	is "$(state)" disabled "unloaded, the state is"
}

# counter NAME, granted, denied: totals of the running scheduler
counter() { scx_cosched status --json | jq ".counters.$1"; }
granted() { scx_cosched status --json | jq '[.granted[]] | add'; }

# hog [COMMAND...]: a process that only wants the CPU, started by COMMAND; its
# pid is added to the array hogs
hogs=()
hog() {
	"$@" loads busy &
	hogs+=($!)
}

# compete [N]: N hogs on each CPU, or one
compete() {
	local cpu
	for _ in $(seq "${1:-1}"); do
		for cpu in 0 1; do hog taskset -c $cpu; done
	done
}

# let_go PID...: these hogs, each bound to a CPU by a taskset of its own, may run on both from now on; not before they
# compute, since that taskset would come last
let_go() {
	local pid
	for pid; do
		eventually 5 grep -x loads "/proc/$pid/comm" >/dev/null
		taskset -cp 0,1 "$pid" >/dev/null
	done
}

# end_groups NAME...: whatever runs in these cgroups ends, and the hogs with it
end_groups() {
	local group
	for group; do
		[[ ! -d /sys/fs/cgroup/$group ]] || echo 1 >"/sys/fs/cgroup/$group/cgroup.kill"
	done
	(( ${#hogs[@]} == 0 )) || wait "${hogs[@]}" 2>/dev/null || true
	hogs=()
}

# drop: the hogs end
drop() {
	kill "${hogs[@]}"
	wait "${hogs[@]}" || true
	hogs=()
}

# unwarned: fail if the scheduler has warned of anything
unwarned() { ! grep -E 'warning|error' "$tmp/log" || fail "the log has warnings"; }

# talk LONGEST_MS KIND...: pass messages to and fro until "quiet", which fails if
# one is lost or takes longer; see the script "messages"
talk() {
	"$tests/messages" forever "$@" >"$tmp/messages" 2>&1 &
	talker=$!
	eventually 60 talking $#
}
talking() { (( $(pgrep --count --parent "$talker" || true) == 2 * ($1 - 1) )); }
hang_up() {
	kill -TERM "$talker" && wait "$talker"
}
quiet() {
	hang_up || fail "the messages failed: $(cat "$tmp/messages")"
	cat "$tmp/messages"
}

# ran PID...: sets the array times to the CPU time of each in us. No process is
# started, which could take long enough to spoil a comparison.
ran() {
	local pid ns
	times=()
	for pid; do
		read -r ns _ <"/proc/$pid/schedstat"
		times+=($((ns / 1000)))
	done
}

# usage SECONDS PID...: the CPU time in us that each uses within these seconds
usage() {
	local seconds=$1 at_first i
	shift
	ran "$@"
	at_first=("${times[@]}")
	sleep "$seconds"
	ran "$@"
	for i in "${!times[@]}"; do
		echo $((times[i] - at_first[i]))
	done
}

# thousandths SECONDS PID...: sets the array shares to the thousandths of a CPU that each has for so long
thousandths() {
	local before i took=$EPOCHREALTIME
	ran "${@:2}"
	before=("${times[@]}")
	sleep "$1"
	ran "${@:2}"
	took=$((${EPOCHREALTIME/./} - ${took/./}))
	shares=()
	for i in "${!times[@]}"; do shares+=($((1000 * (times[i] - before[i]) / took))); done
}

# of SECONDS PID...: the same in per cent
of() {
	local i
	thousandths "$@"
	for i in "${!shares[@]}"; do shares[i]=$((shares[i] / 10)); done
}

# near NAME VALUE EXPECTED: within 5%
near() {
	echo "$1: $2, expected $3"
	(( $2 * 100 >= $3 * 95 && $2 * 100 <= $3 * 105 )) || fail "$1 is more than 5% off"
}
