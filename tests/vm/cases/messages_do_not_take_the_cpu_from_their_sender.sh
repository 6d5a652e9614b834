#!/bin/bash
# A pipe promises at each message that its sender is about to sleep. So its receiver does not take the CPU from the
# sender at once, or tasks that wake each other would switch at each message. A sender that breaks the promise has the
# CPU until the next tick, and no longer.
. "$(dirname -- "$0")/../case.sh"

start --policy local
# A message from another CPU may preempt, as the task that runs there has promised nothing. How many messages cross
# depends on where the tasks came to stand. Each start draws that anew, so the least of three counts is taken.
messages=$((4 * 10 * 10 * 600)) least=$messages
for _ in 1 2 3; do
	before=$(counter preemptions)
	LD_LIBRARY_PATH=$RT/usr/lib/x86_64-linux-gnu "$RT/usr/bin/hackbench" --pipe --groups 4 --fds 10 --loops 600
	preemptions=$(($(counter preemptions) - before))
	echo "$preemptions preemptions, of $messages messages"
	(( preemptions >= least )) || least=$preemptions
done
(( least * 50 < messages )) || fail "$least preemptions at least, of $messages messages"

# No CPU idles, where the receiver would run at once. The sender wakes, sends, and computes for 10 ms.
hog
hog
late=$(python3 - <<'END'
import os, struct, time

receives, sends = os.pipe()
if os.fork() == 0:
    for _ in range(100):
        time.sleep(0.02)
        os.write(sends, struct.pack("q", time.monotonic_ns()))
        until = time.thread_time_ns() + 10_000_000
        while time.thread_time_ns() < until:
            pass
    os._exit(0)
os.close(sends)
late = []
while message := os.read(receives, 8):
    late.append(time.monotonic_ns() - struct.unpack("q", message)[0])
late.sort()
print(late[len(late) // 2] // 1000, late[len(late) * 9 // 10] // 1000)
END
)
read -r median most <<<"$late"
echo "a message is received after $median us, and nine of ten by $most us"
(( most < 5000 )) || fail "a sender that breaks its promise keeps the CPU for $most us, and a tick is 4000"
drop
stop
