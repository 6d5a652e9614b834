#!/bin/bash
# Once it runs, the loader has the capabilities that loading and attaching take, threads that read what others send have
# none or one, no thread may start a program or look into a process, and yet all works: policies that attach and detach
# hooks, CPUs that come and go, hints, prefetches, programs on an interface that comes later, and metrics.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

online=/sys/devices/system/cpu/cpu1/online
trap 'echo 1 >$online; ip netns delete afar 2>/dev/null || true' EXIT
install target/release/hinter target/release/libcosched.so.0 /usr/local/bin/
hints=/run/scx_cosched-hints.sock

field() { sed -n "s/^$2:\t//p" "/proc/$loader/task/$1/status"; }

# confined: every thread has what its work needs, and no more
confined() {
	local thread name needs
	for thread in "/proc/$loader/task"/*; do
		thread=${thread##*/}
		name=$(field "$thread" Name)
		needs=0
		case $name in
		hints) needs=8000000000 ;;	# BPF
		prefetch) needs=800000 ;;	# SYS_NICE
		esac
		# NET_ADMIN, SYS_ADMIN, SYS_NICE, PERFMON, BPF
		(( thread != loader )) || needs=c000a01000
		needs=$(printf %016x $((16#$needs)))
		is "$(field "$thread" CapEff) $(field "$thread" CapPrm)" "$needs $needs" "thread $name: CapEff and CapPrm are"
		is "$(field "$thread" CapInh)$(field "$thread" CapAmb)$(field "$thread" CapBnd)" "$(printf %048x 0)" \
			"thread $name: CapInh, CapAmb and CapBnd are"
		is "$(field "$thread" NoNewPrivs)$(field "$thread" Seccomp)" 12 "thread $name: NoNewPrivs and Seccomp are"
		seen+=" $name "
	done
}

attached() { scx_cosched status --json | jq '.hooks.attached | length'; }
rested() { [[ $(scx_cosched status --json | jq '.hooks.resting | length') == "$1" ]]; }
complete() { [[ $(scx_cosched status --json | jq -c .hooks.missing) == '[]' ]]; }
heard() { [[ $(scx_cosched status --json | jq .hinted.threads) == 1 ]]; }
restarted() { (( $(restarts) > before )) && runs && [[ -n $(counter context_switches) ]]; }
sent() { (( $(counter prefetches_sent) > before )); }

# works: everything that takes privileges
works() {
	complete || fail "these hooks are missing: $(scx_cosched status --json | jq -c .hooks.missing)"
	before=$(counter prefetches_sent)
	"$tests/prefetcher" talk &
	talker=$!
	eventually 60 sent || fail "no prefetch is sent"
	kill $talker
	wait $talker || true
	eventually 30 heard || fail "hints are not heard"
	curl --silent --show-error --fail --max-time 10 --output "$tmp/metrics" "http://$metrics/metrics" || fail "no metrics"
	grep -q '^scx_cosched_uptime_seconds' "$tmp/metrics" || fail "these are no metrics: $(head -5 "$tmp/metrics")"
}

(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
chown 65534 "$tmp/key"
! scx_cosched run --peer 127.77.0.0/16 --cluster-key "$tmp/key" 2>"$tmp/error" || fail "a key of another user is taken"
grep -q "is user 65534's" "$tmp/error" || fail "$(cat "$tmp/error")"
chown 0 "$tmp/key"
start --policy dcs --gate always --peer 127.77.0.0/16 --peer 10.77.1.0/24 --interface wire0 --cluster-key "$tmp/key" \
	--prefetch 2 --prefetch-port 9940 --hints-socket $hints
join
eventually 20 complete || fail "the interface is not followed"
/usr/local/bin/hinter dozes &
hog taskset -c 0
works
seen=
confined
for thread in hints prefetch metrics control signals scx_stats; do
	[[ $seen == *" $thread "* ]] || fail "there is no thread $thread, so this proves nothing: $seen"
done

all=$(attached)
scx_cosched policy set local >/dev/null
scx_cosched policy set dcs --gate always >/dev/null
is "$(attached)" "$all" "after another policy, so many hooks are attached:"
for at in 0 1; do
	before=$(restarts)
	echo $at >$online
	eventually 120 restarted || fail "with CPU 1 at $at it was not loaded again"
	scx_cosched policy set dcs --gate always >/dev/null
	eventually 30 complete || fail "after the restart hooks are missing"
done
works
confined
# Hooks go ten seconds after the last policy that wanted them, one by one, and come back.
scx_cosched policy set local >/dev/null
resting=$((all - 3))
sleep 10
eventually 60 rested $resting || fail "$(scx_cosched status --json | jq -c .hooks) is left"
scx_cosched policy set dcs --gate always >/dev/null
works
unwarned
stop
