#!/bin/bash
# When the scheduler cannot run, it says so in one line that names the problem
# and the remedy, ends with an error, and leaves everything as it was.
. "$(dirname -- "$0")/../case.sh"

situation() { state; restarts; }

# refused PROBLEM REMEDY COMMAND...
refused() {
	local problem=$1 remedy=$2 code=0 before
	shift 2
	before=$(situation)
	timeout 30 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
	echo "$(cat "$tmp/err") [$code]"
	(( code > 0 && code < 124 )) || fail "$*: exit code $code"
	is "$(wc -l <"$tmp/err")" 1 "lines on stderr:"
	is "$(wc -c <"$tmp/out")" 0 "bytes on stdout:"
	grep -Eq -- "$problem.*\(.*$remedy.*\)$" "$tmp/err" || fail "no '$problem (... $remedy ...)'"
	is "$(situation)" "$before" "the situation is"
}

run=(scx_cosched run)
elsewhere=(--control-socket "$tmp/other.sock" --metrics-listen none)
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
# What a kernel lacks is simulated: empty directories hide it. "${without[@]}" PATH COMMAND...
# shellcheck disable=SC2016
without=(unshare --mount sh -c 'mount -t tmpfs none "$0" && exec "$@"')
# shellcheck disable=SC2016
only_btf=(unshare --mount sh -c 'mount --bind /sys /mnt && mount -t tmpfs none /sys/kernel &&
	mkdir /sys/kernel/btf && mount --bind /mnt/kernel/btf /sys/kernel/btf && exec "$0" "$@"')

refused 'effective user is 65534' 'as root' "${nobody[@]}" "${run[@]}"
refused 'does not describe its types' CONFIG_DEBUG_INFO_BTF "${without[@]}" /sys/kernel/btf "${run[@]}"
refused 'cannot load schedulers' CONFIG_SCHED_CLASS_EXT "${only_btf[@]}" "${run[@]}"
refused 'neither /boot' 'config file' "${without[@]}" /boot "${run[@]}"
refused 'cannot create /run/none/socket' 'control-socket' "${run[@]}" --control-socket /run/none/socket
refused 'no scheduler is running' 'start one' scx_cosched status

busybox nc -l -p 29937 &
sleep 1
refused 'cannot serve metrics at 127.0.0.1:29937' 'metrics-listen' "${run[@]}"
kill $!

start
refused "already running as process $loader" "kill $loader" "${run[@]}"
refused "already running as process $loader" "kill $loader" "${run[@]}" --metrics-listen none
refused "sched_ext scheduler 'cosched.*' is loaded" 'stop' "${run[@]}" "${elsewhere[@]}"
refused 'is for root only' 'as root' "${nobody[@]}" scx_cosched policy set local
is "$(scx_cosched policy show --json | jq -r .name)" dcs-sb "the policy is"
stop
