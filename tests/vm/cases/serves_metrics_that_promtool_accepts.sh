#!/bin/bash
# What /metrics serves passes Prometheus's own linter, is OpenMetrics for who
# asks for that, moves with the traffic, and knows the job by its cgroup.
. "$(dirname -- "$0")/../case.sh"

scrape() { curl --silent --show-error --fail --max-time 10 "http://$metrics/metrics" "$@"; }

# value SERIES FILE
value() { awk -v series="scx_cosched_$1" '$1 == series { print $2 }' "$2"; }

# rises SERIES: between the two scrapes
rises() {
	echo "$1: $(value "$1" "$tmp/before"), then $(value "$1" "$tmp/after")"
	awk -v a="$(value "$1" "$tmp/before")" -v b="$(value "$1" "$tmp/after")" 'BEGIN { exit !(b > a + 0) }' ||
		fail "$1 does not rise"
}

start
# Until then it has memory that only the start needs.
eventually 60 grep --quiet 'the scheduler runs' "$tmp/log" || fail "it does not say that it runs"
hog taskset -c 0
hog taskset -c 1
scrape >"$tmp/before"
in_group job "$tests/messages" 3s 5000 tcp4/spin udp6/block &
wait $! || fail "the messages failed"
scrape >"$tmp/after"

"$PROMTOOL" check metrics <"$tmp/after" || fail "promtool does not accept it"
resident=$(awk '$1 == "process_resident_memory_bytes" { printf "%d", $2 / 1024 }' "$tmp/before")
echo "resident memory: $resident KiB"
(( resident > 1024 && resident <= 12 * 1024 )) || fail "it takes more than 12 MiB"
for series in arrivals_total 'endpoint_arrivals_total{endpoint="tcp"}' 'endpoint_arrivals_total{endpoint="udp"}' \
	arrivals_coscheduled_total boosts_total context_switches_total \
	'decisions_total{decision="granted",reason="below_target"}' arrival_to_run_seconds_count \
	'job_cpu_seconds_total{parallel_job="/job"}' 'job_fair_share_seconds_total{parallel_job="/job"}'; do
	rises "$series"
done
is "$(value 'job_fairness_ratio{parallel_job="/job"}' "$tmp/after" | grep -c .)" 1 "fairness ratios of the job:"
boosts=$(awk '/^scx_cosched_job_boosts_total/ { n += $2 } END { print n }' "$tmp/after")
# A task posts to its job's account only now and then, so the jobs may lag a little.
awk -v jobs="$boosts" -v all="$(value boosts_total "$tmp/after")" 'BEGIN { exit !(jobs <= all && jobs > 0.95 * all) }' ||
	fail "boosts of all jobs together are $boosts, of $(value boosts_total "$tmp/after")"

scrape --header 'Accept: application/openmetrics-text' --dump-header "$tmp/header" >"$tmp/openmetrics"
grep -qi '^content-type: application/openmetrics-text; version=1.0.0' "$tmp/header" || fail "$(cat "$tmp/header")"
is "$(tail -n 1 "$tmp/openmetrics")" '# EOF' "the last line is"
is "$(curl --silent --output /dev/null --write-out '%{http_code}' "http://$metrics/")" 404 "another path gives"
stop
