#!/bin/bash
# A signal to a parked task is not put off until the task looks again by itself, which is a second later here.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../parked.sh"

called_within "a signal took too long" <<'END'
longest = 0
for number in [signal.SIGKILL, signal.SIGTERM] * 5:
    poller = fork_to_1()
    if not poller:
        ask_in_vain()
    time.sleep(0.25)
    began = time.monotonic()
    os.kill(poller, number)
    os.waitpid(poller, 0)
    longest = max(longest, time.monotonic() - began)
print(round(longest * 1000))
END
