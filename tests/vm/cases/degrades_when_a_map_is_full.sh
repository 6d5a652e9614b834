#!/bin/bash
# A map that is full costs accuracy and nothing else. Cgroups beyond the places for
# weights count as their parents, and jobs beyond those for jobs as "other": both are
# counted, warned of once, and run. Places that fall free are used again.
. "$(dirname -- "$0")/../case.sh"

max() { sed -n "s/.*COSCHED_MAX_$1 = \([0-9]*\).*/\1/p" "$tests/../../bpf/intf.h"; }
places=$(max GROUPS)
# A cgroup that has run something is a job too, so one hierarchy fills both maps.
is "$(max JOBS)" "$places" "places for jobs:"
last=$((places + 200))
groups=/sys/fs/cgroup/many
# Some 4000 cgroups would keep the runner busy for minutes.
trap 'rmdir $groups/*/ 2>/dev/null || true' EXIT

# make FIRST LAST: cgroups of these numbers
make() { seq -f "$groups/%.0f" "$1" "$2" | xargs mkdir; }

# run_in_each: in each of them a process that ends at once, and so is counted at once.
# It starts no program, which would take ten times as long: it finds none.
run_in_each() {
	python3 -IS -c '
import os, sys
for group in os.scandir(sys.argv[1]):
    if group.is_dir():
        with open(group.path + "/cgroup.procs", "w") as members:
            members.write(str(os.getpid()))
        try:
            os.posix_spawn("/none", ["none"], {})
        except FileNotFoundError:
            pass' $groups
}

# beyond: the cgroups that have no place. The root has one, without being counted here.
beyond() { echo $(($(find /sys/fs/cgroup -mindepth 1 -type d | wc -l) + 1 - places)); }
# without_place OTHERS: the scheduler agrees, and these have gone
without_place() { is "$(counter groups_full)" $(($(beyond) + $1)) "cgroups that count as their parents:"; }

# counted: the CPU time of all jobs and "other", in us
counted() { scx_cosched status --json | jq '[.jobs[].cpu_seconds] | add * 1000000 | floor'; }
shown() { scx_cosched status --json | jq -e --arg job "$1" 'any(.jobs[]; .job == $job)' >/dev/null; }

warnings() { grep -c "warning: a map is full.*($1)" "$tmp/log" || true; }
warned() { (( $(warnings groups_full) && $(warnings jobs_full) )); }

# fits: a cgroup finds a place. Those of removed cgroups fall free a little later.
fits() {
	local before
	before=$(counter groups_full)
	mkdir $groups/probe
	rmdir $groups/probe
	(( $(counter groups_full) == before ))
}

start
mkdir /sys/fs/cgroup/other $groups
echo +cpu >$groups/cgroup.subtree_control
echo 300 >$groups/cpu.weight
# Far down there is none any more while there are others, so no user takes them all.
make 1 $((places * 3 / 4))
echo +cpu >$groups/1/cgroup.subtree_control
mkdir $groups/1/a
echo +cpu >$groups/1/a/cgroup.subtree_control
is "$(counter groups_full)" 0 "cgroups without a place:"
mkdir $groups/1/a/b
is "$(counter groups_full)" 1 "far down, cgroups without a place:"
rmdir $groups/1/a/b $groups/1/a
make $((places * 3 / 4 + 1)) $((last - 1))
run_in_each
(( $(counter jobs_full) > 0 )) || fail "the map of jobs is not full"

# So that the loader's next look, each 10 s, comes soon after its last walk for names.
sleep 4
# Neither of these two groups has run anything before, so neither is in the map of jobs.
make $last $last
without_place 1
echo 1 >$groups/$last/cpu.weight    # without effect
hog in_group other taskset -c 0
hog in_group many/$last taskset -c 0
sleep 1
before=$(counted)
mapfile -t used < <(usage 3 "${hogs[@]}")
grown=$(($(counted) - before))
kill "${hogs[@]}"
near "without a place, in a parent of weight 300" "${used[1]}" $((used[0] * 3))
(( grown * 10 >= (used[0] + used[1]) * 9 )) || fail "of ${used[*]} us, only $grown are counted"

eventually 15 warned || fail "no warning"
make $((last + 1)) $((last + 50))
without_place 1

rmdir $groups/*/
hog in_group again
# The loader looks each 10 s, and walks for the name for at most a 20th of its time. A walk may take 0.3 s.
began=$SECONDS
eventually 20 shown /again || fail "no place for a job falls free"
echo "a place for a job was free after $((SECONDS - began)) s"
is "$(warnings groups_full) $(warnings jobs_full)" "1 1" "warnings of full maps:"
eventually 10 fits || fail "no place for a cgroup falls free"
before=$(counter groups_full)
make 1 1000
is "$(counter groups_full)" "$before" "in places that fell free, groups_full is"
runs
stop

# There may be too many from the start.
make 1001 $last
start
without_place 0
stop
