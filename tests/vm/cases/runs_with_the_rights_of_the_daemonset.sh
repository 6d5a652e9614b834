#!/bin/bash
# What the DaemonSet gives its container is enough: its capabilities and no others, its memory, files that it cannot
# write, and namespaces of its own but that of processes. The scheduler runs, hears messages of the whole node, answers
# the probes, and switches. No hook is missing where there is no RDMA.
#
# The container is made by hand, as an engine makes one: no Kubernetes runs here. The filter of system calls is not part
# of it.
. "$(dirname -- "$0")/../case.sh"

pod=packaging/kubernetes/daemonset.yaml
group=/sys/fs/cgroup/pod

# section KEY: the lines below it that are indented more, without comments
section() {
	awk -v key="$1:" '
		inside && match($0, /[^ ]/) && RSTART <= depth { exit }
		inside { print }
		!inside && $1 == key { inside = 1; depth = match($0, /[^ ]/) }' $pod | sed '/^ *#/d'
}

mapfile -t capabilities < <(section capabilities | sed -n '/add:/,$ s/^ *- //p' | tr '[:upper:]' '[:lower:]')
(( ${#capabilities[@]} > 0 )) || fail "$pod adds no capabilities"
limit=$(section limits | sed -n 's/^ *memory: \([0-9]*\)Mi$/\1/p')
mkdir "$tmp/config"
section config.toml >"$tmp/config/config.toml"
grep -q policy "$tmp/config/config.toml" || fail "$pod has no configuration"

# What the engine mounts, and what it makes read-only.
cat >"$tmp/container" <<'END'
set -eu
mount -n --make-rprivate /
mount -n -t tmpfs -o size=1M run "$1/run"
mount -n --bind "$1/config" /etc/scx_cosched
umount -n -l /sys/fs/bpf /sys/kernel/debug /sys/kernel/tracing
mount -n -o remount,bind,ro /sys/fs/cgroup
mount -n -o remount,bind,ro /sys
mount -n --bind /proc/sys /proc/sys
mount -n -o remount,bind,ro /proc/sys
ip link set lo up
mount -n --move "$1/run" /run
mount -n -o remount,bind,ro /
shift
exec "$@"
END
mkdir -p "$tmp/run" /etc/scx_cosched
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir $group
echo $((limit << 20)) >$group/memory.max

kept=$(printf '+%s,' "${capabilities[@]}")
in_group pod unshare --mount --net --ipc --uts sh "$tmp/container" "$tmp" \
	setpriv --bounding-set "-all,${kept%,}" --inh-caps=-all --no-new-privs \
	/usr/local/bin/scx_cosched run --config /etc/scx_cosched/config.toml >"$tmp/log" 2>&1 &
loader=$!

# inside COMMAND...: as a probe, or "kubectl exec", runs it
inside() { nsenter --mount --net --target "$loader" /usr/local/bin/scx_cosched "$@"; }
runs_there() {
	kill -0 "$loader" 2>/dev/null || fail "the loader has ended"
	has_state enabled && inside status >"$tmp/status" 2>&1
}
eventually 90 runs_there || fail "the scheduler is not there after 90 s: $(<"$tmp/status")"
echo "capabilities: ${capabilities[*]}"
is "$(inside status --json | jq -c .hooks.missing)" '[]' "hooks that are missing:"

compete
"$tests/messages" 3s 5000 tcp4/block udp4/spin || fail "the messages failed"
(( $(inside status --json | jq .counters.arrivals) > 1000 )) || fail "it hears no messages of the node"
inside policy set sb >"$tmp/set"
inside status | grep 'policy.* sb' >/dev/null || fail "the policy is not what was set: $(inside status)"
nsenter --net --target "$loader" curl --silent --fail --max-time 10 http://127.0.0.1:29937/metrics |
	grep '^scx_cosched_job_cpu_seconds_total' >"$tmp/metrics" || fail "no job is served"
drop
kill -TERM $loader
wait $loader || fail "the loader ended with $?"
is "$(state)" disabled "unloaded, the state is"
! grep -E 'panicked|error' "$tmp/log" || fail "the log has errors"
