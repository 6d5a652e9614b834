#!/bin/bash
# A real Prometheus scrapes the schedulers of two nodes and runs the rules that the package brings. Each is evaluated
# without a fault, and each recorded series has a value for either node. The alert that a node is down is raised when
# its scheduler is gone, only then, and for that node only, and ends when it is back. Prometheus answers each panel of
# the dashboard.
set -Eeuo pipefail
# shellcheck source=../common.sh
. "$(dirname -- "$0")/../common.sh"

mkdir -p /run/bin
install target/release/scx_cosched{,-bench} "$here"/{mpi-remote,mpi-task,prefetcher} /run/bin/
export PATH=/run/bin:$PATH
# shellcheck source=../nodes.sh
. "$here/nodes.sh"
# shellcheck source=../dashboard.sh
. "$here/dashboard.sh"
meet

port=29937 at=127.0.0.1:9090 rules=$tmp/rules.yml
targets=("${nodes[0]}:$port" "${nodes[1]}:$port")

api() { curl --silent --show-error --fail --max-time 30 --get "http://$at/api/v1/$1" "${@:2}"; }

# on_both EXPRESSION: it has a value for either node
on_both() {
	[[ $(api query --data-urlencode "query=$1" | jq --raw-output '.data.result[].metric.instance' | sort -u | xargs) == \
		"${targets[*]}" ]]
}

# alert STATES: these are those of the alert that a node is down, each with its node
alert() {
	[[ $(api alerts | jq --raw-output '.data.alerts[] | select(.labels.alertname == "CoschedDown") |
		"\(.labels.instance) \(.state)"') == "$1" ]]
}

# all_evaluated: every rule has been evaluated, and none has failed
all_evaluated() {
	api rules >$tmp/evaluated
	jq --exit-status '[.data.groups[].rules[].health] | length > 0 and all(. == "ok")' $tmp/evaluated >/dev/null
}

# How long a node has to be down is tried with the rules' own test (tests/monitoring.rs). Here it is not waited for.
sed 's/for: 2m/for: 5s/' packaging/prometheus/scx_cosched.rules.yml >$rules
grep -q 'for: 5s' $rules || die "no rule has to hold for two minutes"
# A node has as long to answer as there is between two scrapes. One that is late is taken to be down.
cat >$tmp/prometheus.yml <<END
global: { scrape_interval: 2s, evaluation_interval: 1s }
scrape_configs:
  - job_name: scx_cosched
    static_configs: [{ targets: ["${targets[0]}", "${targets[1]}"] }]
rule_files: [$rules]
END

served() { load '[ -S /run/scx_cosched.sock ]' scx_cosched run --metrics-listen "0.0.0.0:$port"; }

# begin NODE COMMAND: in the background there, in the cgroup /job
begin() { mpi-remote "${nodes[$1]}" "(exec setsid mpi-task job $2 >$tmp/said 2>&1) & echo \$! >>$tmp/begun"; }

served
begin 1 "prefetcher answer ${nodes[1]} 7100"
until there "ss -Hltn 'sport = 7100' | grep -q ."; do sleep 0.2; done
begin 0 "prefetcher call ${nodes[1]} 7100"
"${PROMTOOL%promtool}prometheus" --config.file=$tmp/prometheus.yml --storage.tsdb.path=$tmp/data \
	--web.listen-address=$at >$tmp/prometheus.log 2>&1 &
eventually 120 api query --data-urlencode query=up >$tmp/up 2>&1 || die "Prometheus does not answer: $(<$tmp/up)"
eventually 60 on_both 'up{job="scx_cosched"} == 1' || die "Prometheus does not scrape both: $(tail -n 5 $tmp/prometheus.log)"

while read -r series; do
	eventually 60 on_both "$series" || die "$series has no value for one of two nodes: $(api rules)"
	echo "$series: $(api query --data-urlencode "query=$series" | jq --compact-output '[.data.result[].value[1]]')"
done <<'END'
scx_cosched:arrivals_coscheduled:ratio_rate5m >= 0 <= 1
scx_cosched:arrival_to_run_seconds:p99_5m > 0
scx_cosched:job_fairness:ratio_rate5m{parallel_job="/job"} > 0
scx_cosched:job_cpu_waiting:ratio_rate5m{parallel_job="/job"} >= 0
process_resident_memory_bytes{job="scx_cosched"} > 0
scx_cosched_arrivals_total > 20
END
eventually 20 all_evaluated || die "a rule fails: $(<$tmp/evaluated)"
(( $(jq '[.data.groups[].rules[]] | length' $tmp/evaluated) == $(grep -cE '^ +- (record|alert):' $rules) )) ||
	die "Prometheus does not run all rules"

# What is asked with "> 0" may have no answer: nothing of that kind has happened.
panel_targets scx_cosched "${targets[0]}|${targets[1]}" 8s >$tmp/asked
ask_panels $at $EPOCHSECONDS $EPOCHSECONDS 1 <$tmp/asked >$tmp/answered
silent=$(jq --slurp --compact-output --slurpfile answered $tmp/answered \
	'(map(select(.expr | endswith("> 0") | not).panel) | unique) - [$answered[].panel]' $tmp/asked)
[[ $silent == "[]" ]] || die "Prometheus has no answer for these panels: $silent"
echo "$(wc -l <$tmp/asked) targets of panels have $(wc -l <$tmp/answered) series"

alert "" || die "a node is said to be down: $(api alerts)"
there "kill -INT \$(cat $tmp/loader)"
eventually 60 alert "${targets[1]} firing" || die "the alert is not raised: $(api alerts)"
there "rm $tmp/loader"
everywhere "kill \$(cat $tmp/begun) || true"
unload
served
eventually 60 alert "" || die "the alert stays: $(api alerts)"
unload
everywhere "! grep -E 'warning|error|panicked' $tmp/loader.log | grep -v 'metrics are open'"
