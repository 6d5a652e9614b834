# Shared by the scripts of this directory: sourced, never run.
# shellcheck shell=bash disable=SC2034

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/scx_cosched

# kmod lives in sbin, which is not in an ordinary user's PATH.
PATH=$PATH:/usr/sbin:/sbin

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit "${failure:-1}"; }

# need TOOL...: the tools that the caller is about to use
need() {
	local tool
	for tool; do
		command -v "$tool" >/dev/null || die "$tool is missing: run tests/vm/setup as root"
	done
}

# Nobody ever writes there: to read from it with a timeout is a sleep that starts no program.
exec {never}<> <(:)

# eventually SECONDS COMMAND...: succeeds as soon as the command does
eventually() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@"; do
		(( SECONDS < deadline )) || return 1
		read -rt 0.1 -u "$never" || true
	done
}

# has_state STATE: is it this? Asked again and again, it starts no program.
has_state() {
	local now
	read -r now </sys/kernel/sched_ext/state
	[[ $now == "$1" ]]
}
disabled() { has_state disabled; }

# in_group NAME COMMAND...: run it in the cgroup of that name
in_group() {
	local group=/sys/fs/cgroup/$1
	shift
	mkdir -p "$group"
	echo "$BASHPID" >"$group/cgroup.procs"
	exec "$@"
}

# flags_of PRESET[+FLAG=VALUE]...: the preset, and the flags that change it
flags_of() { sed 's/+/ --/g; s/=/ /g' <<<"$1"; }

# without_full_cgroups: what the kernel has said (stdin), without its reports that a cgroup has no memory left. Reports
# that the machine has none stay, and so does one that does not end.
without_full_cgroups() {
	awk '
		/invoked oom-killer/ { report = ""; within = 1; whole = 0 }
		!within { print; next }
		{ report = report $0 "\n" }
		/Mem-Info:/ { whole = 1 }
		/ut of memory/ { if (whole) printf "%s", report; within = 0 }
		END { if (within) printf "%s", report }'
}

# complaints: of what the kernel has said (stdin), what it complains of; fails if there is nothing
complaints() {
	without_full_cgroups |
		grep -E 'WARNING:|BUG:|Oops|Call Trace|\<stall|lockup|blocked for more|sched_ext: .* (disabled|error)' |
		grep -vE 'disabled \(unregistered from (user space|the main kernel)\)'    # the latter asks for a restart
}
