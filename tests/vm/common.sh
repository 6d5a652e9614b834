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
