#!/bin/bash
# Kill the loader outright under load: the kernel's own scheduler is back within
# seconds, nobody notices, nothing of ours stays in the kernel, and the next
# start needs no clean-up.
. "$(dirname -- "$0")/../case.sh"

forgotten() {
	[[ $(bpftool --json link | jq length) == 0 ]] &&
		[[ $(bpftool --json prog | jq '[.[] | select(.name // "" | test("^(on_|cosched)"))] | length') == 0 ]]
}
pins() { find /sys/fs/bpf -mindepth 1 | sort; }

before=$(pins)
start
talk 2000 tcp4/spin udp6/block stream/poll
for cpu in 0 0 1 1; do hog taskset -c $cpu; done
sleep 3

kill -KILL "$loader"
eventually 5 disabled || fail "5 s later the state is $(state)"
is "$(pins)" "$before" "pinned:"
eventually 15 forgotten || fail "15 s later the kernel still has $(bpftool link; bpftool prog)"
for used in $(usage 2 "${hogs[@]}"); do
	(( used > 100000 )) || fail "under EEVDF a hog got $used us in 2 s"
done
quiet
drop

[[ -S $socket ]] || fail "no control socket was left, so the restart proves little"
# Without a command, as in starts_without_a_command, and ended by SIGINT.
start_by scx_cosched --policy local --slice-us 4000
is "$(scx_cosched policy show --json | jq -r .name)" local+slice_us=4000 "the policy is"
stop
