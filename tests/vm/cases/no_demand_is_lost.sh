#!/bin/bash
# Under every gate, and however the receiver waits, a message gets its receiver to
# run: beside 4 hogs on each CPU no round trip takes 2 s. (In the fair order alone
# one takes up to 10 turns of 20 ms.) Most receivers are alone with the hogs, since
# what else happens on a CPU would hide a demand that was forgotten.
. "$(dirname -- "$0")/../case.sh"

# The machine that emulates this one may take its CPUs away for seconds. Two real-time
# tasks, which nothing here delays, notice: then, and only then, there is a second try.
stalls() {
	chrt --fifo 99 taskset -c "$1" python3 -IS -c '
import time
last = time.monotonic()
while True:
    time.sleep(0.02)
    now = time.monotonic()
    if now - last > 0.3:
        print(f"CPUs away for {now - last:.1f} s", flush=True)
    last = now' >>"$tmp/stalls" &
}

# pass_all: every kind of receiver for a second
pass_all() {
	# shellcheck disable=SC2046
	"$tests/messages" 1s 2000 $(printf '%s then ' "${alone[@]}") tcp4/spin stream/spin udp6/block
}

alone=(tcp4/spin tcp6/block udp4/spin udp6/epoll stream/spin stream/block dgram/poll)
start
for cpu in 0 1; do
	for _ in 1 2 3 4; do hog taskset -c $cpu; done
done
stalls 0
stalls 1
while read -r policy; do
	# shellcheck disable=SC2086
	scx_cosched policy set $policy
	: >"$tmp/stalls"
	pass_all && continue
	[[ -s $tmp/stalls ]] || fail "a message was late, and the CPUs were there"
	sort "$tmp/stalls" | uniq -c
	pass_all
done <<-END
	dcs
	dcs --h-ms 20
	dcs --gate always
	dcs --gate rate --rate-exponent 4
END
stop
