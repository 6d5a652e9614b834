#!/bin/bash
# A real Prometheus scrapes the scheduler and runs the rules that the package brings. Each is evaluated without a fault,
# and each recorded series has a value. The alert that a node is down is raised when the scheduler is gone, and only
# then.
. "$(dirname -- "$0")/../case.sh"

rules=$PWD/packaging/prometheus/scx_cosched.rules.yml
at=127.0.0.1:9090

api() { curl --silent --show-error --fail --max-time 10 --get "http://$at/api/v1/$1" "${@:2}"; }

# value EXPRESSION: of its first series; nothing if there is none
value() { api query --data-urlencode "query=$1" | jq --raw-output '.data.result[0].value[1] // empty'; }

# is_known EXPRESSION
is_known() { [[ -n $(value "$1") ]]; }

is_up() { [[ $(value 'up{job="scx_cosched"}') == 1 ]]; }

# alert STATE: the alert that the node is down is in this state ("" if it is not raised)
alert() {
	[[ $(api alerts | jq --raw-output '.data.alerts[] | select(.labels.alertname == "CoschedDown") | .state') == "$1" ]]
}

# all_evaluated: every rule has been evaluated, and none has failed
all_evaluated() {
	api rules >"$tmp/rules"
	jq --exit-status '[.data.groups[].rules[].health] | length > 0 and all(. == "ok")' "$tmp/rules" >/dev/null
}

cat >"$tmp/prometheus.yml" <<END
global: { scrape_interval: 1s, evaluation_interval: 1s }
scrape_configs:
  - job_name: scx_cosched
    static_configs: [{ targets: ["$metrics"] }]
rule_files: [$rules]
END

start
"${PROMTOOL%promtool}prometheus" --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/data" \
	--web.listen-address=$at >"$tmp/prometheus.log" 2>&1 &
eventually 60 is_up || fail "Prometheus does not scrape it: $(tail -n 5 "$tmp/prometheus.log")"
hog taskset -c 0
hog taskset -c 1
in_group job "$tests/messages" 10s 5000 tcp4/block udp4/block &
messages=$!

while read -r series; do
	eventually 30 is_known "$series" || fail "$series has no value: $(api rules)"
	echo "$series: $(value "$series")"
done <<'END'
scx_cosched:arrivals_coscheduled:ratio_rate5m >= 0 <= 1
scx_cosched:arrival_to_run_seconds:p99_5m > 0
scx_cosched:job_fairness:ratio_rate5m{parallel_job="/job"} > 0
scx_cosched:job_cpu_waiting:ratio_rate5m{parallel_job="/job"} >= 0
process_resident_memory_bytes{job="scx_cosched"} > 0
END
eventually 10 all_evaluated || fail "a rule fails: $(<"$tmp/rules")"
is "$(jq '[.data.groups[].rules[]] | length' "$tmp/rules")" "$(grep -cE '^ +- (record|alert):' "$rules")" "rules run:"
wait $messages || fail "the messages failed"
drop
is "$(value 'scx_cosched_arrivals_total > 1000' | grep -c .)" 1 "counts of more than 1000 arrivals:"

alert "" || fail "it is said to be down: $(api alerts)"
stop
eventually 30 alert pending || fail "no alert that it is down: $(api alerts)"
eventually 150 alert firing || fail "the alert is not raised after two minutes: $(api alerts)"
start
eventually 30 alert "" || fail "the alert stays: $(api alerts)"
stop
