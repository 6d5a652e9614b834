#!/bin/bash
# On a terminal, "top" shows for each CPU the job that runs there, and the policy in force, which its keys change. It
# leaves the hooks of the trace off when it ends.
. "$(dirname -- "$0")/../case.sh"

on_terminal() { LC_ALL=C.UTF-8 tmux -S "$tmp/tmux" "$@"; }
screen() { on_terminal capture-pane -p; }
shows() { screen | grep -F -- "$1" >/dev/null; }

# letter JOB: by which the lanes name it
letter() { screen | awk -v job="$1" '$2 == job { print $1 }'; }

# is_full_of CPU JOB: most of the lane of this CPU is the letter of the job, by a boost or without
is_full_of() {
	local letter lane
	letter=$(letter "$2")
	lane=$(screen | sed -n "s/^cpu $1 *//p" | cut -c 1-46 | tr -cd "$letter${letter^}")
	(( ${#lane} > 35 ))
}

start --policy dcs
for _ in 1 2; do
	hog in_group one taskset -c 0
	hog in_group two taskset -c 1
done
on_terminal -f /dev/null new-session -d -x 80 -y 24 scx_cosched top
eventually 60 shows 'CPUS, last' || fail "there are no lanes: $(screen)"
for place in '0 /one' '1 /two'; do
	# shellcheck disable=SC2086
	eventually 30 is_full_of $place || fail "the lane of $place shows something else: $(screen)"
done
screen

on_terminal send-keys p
eventually 10 shows 'Enter: put in force' || fail "there is no list: $(screen)"
on_terminal send-keys Down Enter
eventually 30 shows 'policy dcs-sb is in force' || fail "the policy has not changed: $(screen)"
is "$(scx_cosched policy show --json | jq --raw-output .name)" dcs-sb "the policy is"

on_terminal send-keys q
gone() { ! on_terminal has-session 2>/dev/null; }
eventually 10 gone || fail "it does not end: $(screen)"
# Whoever comes next may trace.
eventually 10 scx_cosched trace --seconds 0.1 >/dev/null || fail "the trace has not ended with it"
end_groups one two
stop
