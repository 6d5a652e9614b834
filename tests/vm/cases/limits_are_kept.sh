#!/bin/bash
# cpu.max holds as it does under the kernel's own scheduler: alone and beside others, nested, on several CPUs at once,
# with a burst, for a job that is boosted, and as soon as it is changed. And a task whose group may run next to nothing
# runs all the same, before the kernel loses its patience.
# Needs Linux 6.17: earlier ones do not tell a scheduler of cpu.max
# Needs timers: a task that was set aside on an idle CPU comes back by one
. "$(dirname -- "$0")/../case.sh"

root=/sys/fs/cgroup

# steer TICK_US: how far the clock of timers goes on in 10 ms, as NTP would have it. The scheduler's clock does not
# follow.
steer() {
	python3 -IS - "$1" <<'END'
import ctypes, sys

class Timex(ctypes.Structure):
    _fields_ = [("modes", ctypes.c_uint), ("before", ctypes.c_long * 10), ("tick", ctypes.c_long), ("after", ctypes.c_long * 20)]

libc = ctypes.CDLL(None, use_errno=True)
steered = Timex(modes=0x4000, tick=int(sys.argv[1]))
assert libc.adjtimex(ctypes.byref(steered)) >= 0, ctypes.get_errno()
assert steered.tick == int(sys.argv[1]), steered.tick
END
}

# group NAME [MAX [BURST]]: a cgroup, with a limit if it is said; others may be made in it
group() {
	mkdir -p "$root/$1"
	[[ $1 != */* ]] || echo +cpu >"$root/${1%/*}/cgroup.subtree_control"
	[[ -z ${2-} ]] || echo "$2" >"$root/$1/cpu.max"
	[[ -z ${3-} ]] || echo "$3" >"$root/$1/cpu.max.burst"
}

# busy CPUS GROUP [N]: N tasks that compute, or one, in that group on these CPUs
busy() {
	local n
	for (( n = 0; n < ${3-1}; n++ )); do hog in_group "$2" taskset -c "$1"; done
}

# clear GROUP...: what runs in them ends, and they go
clear() {
	local group
	drop
	for group; do
		eventually 10 rmdir "$root/$group" 2>/dev/null || fail "$group does not go"
	done
}

# has SECONDS GROUP...: sets the array permille to what each uses of a CPU meanwhile, and took to how long it was, us
has() {
	local group before=() us i began=$EPOCHREALTIME
	for group in "${@:2}"; do
		read -r _ us <"$root/$group/cpu.stat"
		before+=("$us")
	done
	sleep "$1"
	permille=() i=0
	took=$((${EPOCHREALTIME/./} - ${began/./}))
	for group in "${@:2}"; do
		read -r _ us <"$root/$group/cpu.stat"
		permille+=($(( 1000 * (us - before[i++]) / took )))
	done
}

# turns PID...: how often each has been given a CPU, one a line
turns() {
	local pid n
	for pid; do
		read -r _ _ n <"/proc/$pid/schedstat"
		echo "$n"
	done
}

# keeps NAME VALUE EXPECTED: within 3%
keeps() {
	echo "$1: $2 permille, expected $3"
	(( $2 * 100 >= $3 * 97 && $2 * 100 <= $3 * 103 )) || fail "$1 has $2 permille of a CPU, not $3"
}

# tree SEED: prints a random tree of groups, on CPU 0 or on both: first the CPUs, then for each group, parents first,
# its path, weight, limit, burst and what it is to have, permille
tree() {
	python3 -IS - "$1" <<'END'
import random, sys

chance = random.Random(int(sys.argv[1]))
cpus = 1 + chance.randrange(2)
LEAST = 60  # permille: with less, a slice in 5 s is more than 3%

class Group:
    def __init__(self, path, depth, period):
        self.path, self.weight, self.period = path, chance.choice([50, 100, 100, 200, 300]), period
        self.limit = chance.choice([None, 100, 150, 200, 300, 400, 600, 1000])
        self.burst = chance.choice([0, 0, 1]) if self.limit else 0
        inner = depth < 2 and chance.randrange(3) == 0
        self.below = [Group(f"{path}/{n}", depth + 1, period) for n in range(2 if inner else 0)]
        self.most = min([1000 * cpus, self.limit or 9999] + ([sum(g.most for g in self.below)] if inner else []))

    def give(self, amount):
        """Shares the amount among those below by weight, and what one cannot use among the others."""
        self.has = amount
        left, hungry = amount, list(self.below)
        while hungry:
            sum_ = sum(g.weight for g in hungry)
            full = [g for g in hungry if g.most <= left * g.weight / sum_]
            for g in full:
                g.give(g.most)
                left -= g.most
            hungry = [g for g in hungry if g not in full]
            if not full:
                for g in hungry:
                    g.give(left * g.weight / sum_)
                break

    def all(self):
        yield self
        for g in self.below:
            yield from g.all()

while True:
    # While a group of a longer period takes its time all at once, a shorter one may pass by unused: so all have the
    # same.
    period = chance.choice([10, 20, 50, 100, 250, 500, 1000])
    top = Group("tree", 1, period)
    top.limit, top.most, top.weight = None, 1000 * cpus, 100
    top.below = [Group(f"tree/{n}", 1, period) for n in range(2 + chance.randrange(3))]
    top.give(min(1000 * cpus, sum(g.most for g in top.below)))
    if all(g.has >= LEAST for g in top.all()):
        break
print("0" if cpus == 1 else "0 1")
for g in list(top.all())[1:]:
    quota = g.limit * g.period if g.limit else 0
    print(g.path, g.weight, quota or "max", g.period * 1000, quota * g.burst, round(g.has), bool(g.below))
END
}

# try_tree SEED: adds to the array wrong each of its groups that is farther from what limits and weights say than 3% and
# 4 permille
wrong=()
try_tree() {
	local cpus cpu path weight quota period burst due inner paths=() dues=() i off
	{
		read -r -a cpus
		while read -r path weight quota period burst due inner; do
			group "$path" "$quota $period" "$burst"
			echo "$weight" >"$root/$path/cpu.weight"
			paths+=("$path") dues+=("$due")
			[[ $inner == True ]] || for cpu in "${cpus[@]}"; do busy "$cpu" "$path"; done
			echo "tree $1, CPUs ${cpus[*]}: $path weight $weight, cpu.max $quota $period, burst $burst"
		done
	} < <(tree "$1")
	sleep 1.5
	has 5 "${paths[@]}"
	clear
	for i in "${!paths[@]}"; do
		off=$(( permille[i] > dues[i] ? permille[i] - dues[i] : dues[i] - permille[i] ))
		echo "tree $1: ${paths[i]} ${permille[i]} permille, expected ${dues[i]}"
		(( off * 1000 <= dues[i] * 30 + 4000 )) || wrong+=("tree $1: ${paths[i]} has ${permille[i]}, not ${dues[i]}")
	done
	while read -r path; do rmdir "$path"; done < <(find "$root/tree" -depth -type d)
}

start
group tight "10000 100000"
group free
group two

busy 0 tight
sleep 1
has 5 tight
keeps "alone" "${permille[0]}" 100
steer 11000    # a timer runs out early by the scheduler's clock, in whose 1 s a clock on the wall goes on by 1.1 s
has 5 tight
steer 10000
keeps "while NTP steers the clock" "${permille[0]}" 91
busy 0 free
sleep 1
has 5 tight free
keeps "beside a busy task" "${permille[0]}" 100
keeps "the busy task" "${permille[1]}" 900

# The task goes on running throughout.
echo "40000 100000" >$root/tight/cpu.max
sleep 0.3
has 2 tight
keeps "changed while it runs" "${permille[0]}" 400
echo "2000 1000000" >$root/tight/cpu.max
sleep 1
echo max >$root/tight/cpu.max
sleep 1
has 2 tight
keeps "beside a busy task, without a limit" "${permille[0]}" 500
echo "2000 1000000" >$root/tight/cpu.max
sleep 0.5
for pid in $(<$root/tight/cgroup.procs); do echo "$pid" >$root/two/cgroup.procs; done
has 2 two
keeps "moved to a group without a limit" "${permille[0]}" 500
clear tight free two

group wide "100000 100000"
busy 0-1 wide 4
sleep 1
has 5 wide
keeps "four tasks on two CPUs" "${permille[0]}" 1000
clear wide

# The tightest limit on the way up holds, of whichever period.
group above "20000 100000"
group above/loose "40000 50000"
busy 0 above/loose
sleep 1
has 5 above
keeps "below a tighter limit" "${permille[0]}" 200
clear above/loose above
group above "12000 20000"
group above/tight "10000 100000"
group above/free
busy 0 above/tight
busy 0 above/free
sleep 1
has 5 above/tight above/free
keeps "below a looser limit" "${permille[0]}" 100
keeps "its neighbour has the rest" "${permille[1]}" 500
clear above/tight above/free above

# A quota that is less than what a CPU takes at a time goes to both CPUs: to one that idles, and has taken all of it so
# far, and to one that is busy, where a task starts late.
group other
group small "3000 20000"
group small/there
group small/here
busy 0 other
busy 1 small/there
sleep 1
busy 0 small/here
sleep 1
has 3 small/there small/here
echo "a small quota on two CPUs: ${permille[*]} permille"
(( permille[0] >= 60 && permille[1] >= 60 )) || fail "one CPU leaves too little of a small quota to another"
clear small/there small/here small other

# The period begins when the limit is set. Its second has what the first left, up to the burst.
group bursts "200000 1000000" 100000
busy 0 bursts
kill -STOP "${hogs[@]}"
echo "200000 1000000" >$root/bursts/cpu.max
began=$EPOCHREALTIME
sleep 1.3
kill -CONT "${hogs[@]}"
ran "${hogs[@]}"
before=${times[0]}
sleep 0.5
ran "${hogs[@]}"
(( ${EPOCHREALTIME/./} - ${began/./} < 1950000 )) || fail "too late to tell"
echo "with a burst, in one period: $((times[0] - before)) us"
(( times[0] - before > 290000 && times[0] - before < 310000 )) || fail "a burst of 100 ms on 200 gives $((times[0] - before)) us"
clear bursts

# Those who talk are ahead of the others, but not of their limit.
compete 1
for kind in stream/spin stream/block; do
	group talks "40000 100000"
	in_group talks "$tests/messages" forever 20000 $kind >"$tmp/messages" 2>&1 &
	talker=$!
	eventually 60 talking 2
	sleep 1
	boosted=$(granted)
	has 5 talks
	boosted=$(( $(granted) - boosted ))
	echo "$kind: ${permille[0]} permille of 400, boosts granted: $boosted"
	(( permille[0] <= 412 )) || fail "$kind is boosted past its limit"
	[[ $kind == */spin ]] || (( boosted > 10 )) || fail "nothing was boosted, so this proves nothing"
	quiet
done
drop

# One ms in a second: twenty tasks could wait for twenty seconds, after which the kernel throws the scheduler out.
# They all compute before the limit is set: one that starts may wait for a lock that another one was set aside with.
# Turns are counted, and not CPU time: the kernel may charge a turn as short as the least one to the next task.
group starved "max 1000000"
busy 0-1 starved 20
sleep 3
echo "1000 1000000" >$root/starved/cpu.max
sleep 1
mapfile -t before < <(turns "${hogs[@]}")
sleep 30
mapfile -t after < <(turns "${hogs[@]}")
for i in "${!hogs[@]}"; do had[i]=$(( after[i] - before[i] )); done
echo "twenty tasks of a group with 1 ms in a second, in 30 s: ${had[*]} turns"
for n in "${had[@]}"; do
	(( n > 0 )) || fail "a task did not run for 30 s"
done
runs
echo max >$root/starved/cpu.max
sleep 1.5
mapfile -t used < <(usage 2 "${hogs[@]}")
for us in "${used[@]}"; do
	(( us > 100000 )) || fail "a task whose group has no limit any more had $us us of 2 s"
done
clear starved

trees=12
[[ ${COSCHED_SOAK:-0} == 0 ]] || trees=50
for (( seed = 1; seed <= trees; seed++ )); do try_tree "$seed"; done
(( ! ${#wrong[@]} )) || fail "$(printf '%s permille of a CPU\n' "${wrong[@]}")"
runs
unwarned
stop
