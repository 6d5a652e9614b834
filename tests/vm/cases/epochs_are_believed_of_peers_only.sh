#!/bin/bash
# Epochs of who is no peer are refused, and who does not answer is told no more of them; with a key they cross the wire
# as well. Sockets of another network namespace are not told. Nothing is left when the scheduler is killed.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

join
loop

# The other end has a peer here, and is none.
start --gate epochs --peer 127.77.0.1/32 --interface lo
compete
passed 1 "${streams[@]}"
(( sent > 0 )) || fail "the other end tells its peer nothing"
# Sixty-four, on the connection whose other end is known: that of the one over IPv6 is not.
(( sent <= 64 )) || fail "it goes on telling who does not answer"
is "$heard $adopted" "0 0" "heard and adopted:"
(( refused > 0 )) || fail "nobody has refused it"
drop
stop

(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
start --gate epochs "${loops[@]}" --peer 10.77.1.0/24 --peer fd77::/64 --interface auto --cluster-key "$tmp/key"
compete
passed 1 "${streams[@]}"
heard_all
passed 1 far4/spin far6/block
# The end that is here tells its peer, until that does not answer.
(( sent > 0 && sent <= 128 )) || fail "the end in another namespace tells as well"
is "$heard $refused $adopted" "0 0 0" "heard, refused and adopted of another namespace:"
unwarned

kill -KILL "$loader"
eventually 20 disabled || fail "the loader was killed, and the state is $(state)"
gone() { [[ $(bpftool --json link | jq length) == 0 ]]; }
eventually 20 gone || fail "links are left: $(bpftool link)"
is "$(bpftool --json prog | jq -c '[.[].name // "" | select(startswith("on_"))]')" '[]' "programs left:"
