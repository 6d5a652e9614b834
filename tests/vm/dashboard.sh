# What the panels of the dashboard ask Prometheus: sourced, never run.
# shellcheck shell=bash

dashboard=packaging/grafana/scx_cosched.json

# panel_targets JOB INSTANCE RATE_INTERVAL: each target of each panel, with its variables filled in as Grafana does. JOB
# and INSTANCE are regular expressions. Grafana's rate interval is that of four scrapes.
panel_targets() {
	jq --compact-output --arg job "$1" --arg instance "$2" --arg rate "$3" '
		.panels[] | .title as $panel | .targets[]? | {panel: $panel, legend: .legendFormat, expr: (.expr |
			gsub("\\$job"; $job) | gsub("\\$instance"; $instance) | gsub("\\$__rate_interval"; $rate))}' "$dashboard"
}

# ask_panels AT BEGIN END STEP <TARGETS: what the Prometheus at AT, an address and a port, answers for these times. A
# line for each series: its panel, its legend and its points. Fails if Prometheus refuses a target.
ask_panels() {
	local targets
	targets=$(cat)
	jq --raw-output --arg range "http://$1/api/v1/query_range?start=$2&end=$3&step=$4" \
		'"url = \"\($range)&query=\(.expr | @uri)\""' <<<"$targets" |
		curl --silent --show-error --fail --fail-early --max-time 60 --config - |
		jq --slurp --compact-output --slurpfile targets <(echo "$targets") '
			[$targets, .] | transpose[] | .[0] as $target | .[1].data.result[] | .metric as $labels |
			{panel: $target.panel, points: .values, legend: ($target.legend |
				gsub("\\{\\{(?<label>[a-z_]+)\\}\\}"; $labels[.label] // ""))}'
}
