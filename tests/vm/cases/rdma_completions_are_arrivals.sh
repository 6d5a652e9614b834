#!/bin/bash
# Each message that comes by RDMA is seen as one arrival for the task that receives it, whether that polls its queue in
# user space or waits for an event, and is a demand. The hooks come when somebody opens a device, even with modules that
# were loaded after the scheduler, and go when the last one closes it, so that the modules may. The scheduler answers
# while they come. Two pairs that poll do not keep a CPU each.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../rdma.sh"

hooks='["on_channel_end","on_cq_end","on_rxe_completion","on_rxe_send","on_uverbs_completion","on_uverbs_poll","on_uverbs_read"]'
idle() { scx_cosched status --json | jq -c '.hooks.idle | sort'; }
are_idle() { [[ $(idle) == "$hooks" ]]; }
are_attached() { [[ $(scx_cosched status --json | jq -c ".hooks | .attached - (.attached - $hooks) | sort") == "$hooks" ]]; }
arrivals() { scx_cosched status --json | jq .endpoint_arrivals.rdma; }

# messages NAME NUMBER PORT COMMAND...: both ends run the command, and so many messages arrive
messages() {
	local name=$1 number=$2 before seen
	shift 2
	before=$(arrivals)
	both "$@"
	seen=$(($(arrivals) - before))
	echo "$name: $seen arrivals for $number messages"
	(( seen >= number * 97 / 100 && seen <= number + 100 )) || fail "$name: $seen arrivals for $number messages"
}

cp -a "$RDMA/." /
start --gate always
eventually 10 are_idle || fail "without modules, these hooks are idle: $(idle)"
soft_roce
sleep 1
are_idle || fail "with nobody who uses them, these hooks are idle: $(idle)"

exec 8</dev/infiniband/uverbs0
# It takes seconds to load them here, and whoever asks meanwhile need not wait for that.
opened=$SECONDS
until timeout 1 scx_cosched status --json >"$tmp/status" ||
	fail "while hooks of modules come, the scheduler does not answer within 1 s"
	jq -e "$hooks - .hooks.idle - .hooks.attached == []" "$tmp/status" >/dev/null ||
		fail "while hooks of modules come, these are known of: $(jq -c .hooks "$tmp/status")"
	jq -e "$hooks - .hooks.attached == []" "$tmp/status" >/dev/null
do
	(( SECONDS - opened < 30 )) || fail "with an open device, these hooks are idle: $(idle)"
done
messages "polling" 2000 18515 "${pingpong[@]}" -n 1000
messages "events" 2000 18515 "${pingpong[@]}" -n 1000 -e
messages "perftest, polling" 2000 18515 ib_send_lat -d rxe0 -x 1 -n 1000

for cpu in 0 1; do hog taskset -c $cpu; done
for mode in '' -e; do
	before=$(granted)
	messages "with competitors ${mode:-polling}" 600 18515 "${pingpong[@]}" -n 300 $mode
	boosts=$(($(granted) - before))
	echo "with competitors: $boosts boosts"
	(( boosts >= 5 )) || fail "messages are no demand"
done
drop

exec 8<&-
eventually 30 are_idle || fail "the hooks stay when the device is closed: $(idle)"
rdma link delete rxe0
modprobe -r rdma_ucm rdma_rxe || fail "the modules cannot be unloaded"
soft_roce
exec 8</dev/infiniband/uverbs0
eventually 30 are_attached || fail "with modules that were loaded again, these hooks are idle: $(idle)"
messages "loaded again" 600 18515 "${pingpong[@]}" -n 300
# With a device still open.
stop
# Now it is open before the scheduler takes over, and so are the hooks there.
(until ! disabled; do sleep 0.05; done; grep -q "hooks on RDMA are attached" "$tmp/log") &
watcher=$!
start
wait $watcher || fail "with a device that was open at the start, the hooks came after the scheduler"
are_attached || fail "with a device that was open at the start, these hooks are idle: $(idle)"

# Two pairs beside competitors. A task that has answered has no more of its boost, or each pair would have one CPU, and
# poll there until the boost ends.
compete 2
for port in 18515 18516; do
	mkdir "$tmp/$port"
	(tmp+=/$port && both "$port" "${pingpong[@]}" -p "$port" -n 3000) &
	pairs+=($!)
done
wait "${pairs[0]}" && wait "${pairs[1]}" || fail "two pairs at once fail"
for port in 18515 18516; do
	rate=$(awk '/ iters in / { printf "%d", $1 / $4 }' "$tmp/$port/client")
	echo "two pairs with competitors: $rate round trips/s"
	(( rate >= 800 )) || fail "pairs poll for each other in vain"
done
drop
stop
exec 8<&-
rdma link delete rxe0
modprobe -r rdma_ucm rdma_rxe ib_uverbs || fail "the modules cannot be unloaded after the scheduler's end"
unwarned
