#!/bin/bash
# A process that gives hints is heard by the next scheduler as well, with nothing done about it. And one that hangs up
# is forgotten with all its threads, though they live on.
. "$(dirname -- "$0")/../case.sh"

hinter=/usr/local/bin/hinter
install target/release/hinter target/release/libcosched.so.0 /usr/local/bin/
hints=/run/scx_cosched-hints.sock

# heard PROCESSES THREADS: are there so many, for status and for the metrics?
heard() {
	said=$(scx_cosched status --json | jq -c '[.hinted.processes, .hinted.threads]')
	measured=$(curl -s $metrics/metrics | sed -n 's/^scx_cosched_hinted_[a-z]* \([0-9]*\).*/\1/p' | sort -n | xargs)
	[[ $said == "[$1,$2]" && $measured == "$1 $2" ]]
}

# hears PROCESSES THREADS: there are, before long
hears() { eventually 60 heard "$1" "$2" || fail "$said and $measured are heard, and not $1 and $2"; }

start --policy dcs-sb --hints-socket $hints
hears 0 0
$hinter dozes &
dozer=$!
hears 1 1
# The thread in whose name it asks sleeps as long as the case lets it.
mkfifo "$tmp/go"
python3 -IS - $hints "$tmp/go" <<'END' &
import os, socket, struct, sys, threading
def ask(thread, slot):
    s.send(struct.pack("4I", 0x31484353, thread, slot, 0))
    error = struct.unpack("Ii", s.recv(64))[1]
    assert not error, os.strerror(error)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
other = threading.Thread(target=threading.Event().wait, daemon=True)
other.start()
ask(os.getpid(), 3)
ask(other.native_id, 4)
open(sys.argv[2]).read()
s.close()
open(sys.argv[2]).read()
END
caller=$!
hears 2 3
echo >"$tmp/go"
hears 1 1
kill -0 $caller || fail "it has ended: this proves nothing"
echo >"$tmp/go"
wait $caller || fail "it was refused"

stop
[[ ! -e $hints ]] || fail "the socket stays"
start --policy dcs-sb --hints-socket $hints
hears 1 1
kill $dozer
wait $dozer || true
hears 0 0
unwarned
stop
