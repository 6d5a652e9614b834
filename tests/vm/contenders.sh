# What the benches have in common that run jobs on two nodes under several schedulers: sourced by each on the host.
# shellcheck shell=bash disable=SC2034,SC2154
default_schedulers=alone,eevdf,eevdf+slice-us=20000,peer,local,dcs+wait=busy,dcs-sb

# number NAME VALUE: fail unless it is a whole number from 1 to 99
number() { [[ $2 =~ ^[1-9][0-9]?$ ]] || die "$1 wants a whole number from 1 to 99, not '$2'"; }

# is_preset NAME: does scx_cosched know it, whatever is changed in it?
is_preset() {
	target/release/scx_cosched policy list --json |
		jq --exit-status --arg name "${1%%+*}" 'any(.[]; .name == $name)' >/dev/null
}

# choose_testbed NAME: sets vms to what "run" is to be told, and real if its time is. Before it, real and prices are as
# the options have them.
choose_testbed() {
	case $1 in
		two) vms=(--nodes 2) ;;
		one) vms=(--cpus 2) ;;
		*) die "--testbed: no '$1' (it is one or two)" ;;
	esac
	[[ -z $real ]] || (( ${#prices[@]} == 0 )) || die "prices are of virtual time: not with --real"
	[[ -z $real ]] || return 0
	vms+=(--virtual "${prices[@]}")
	export VIRTUAL=1
}

# read_contenders LIST: sets contenders to what contend() in nodes.sh takes. Before it, testbed is one or two.
read_contenders() {
	local contender list peer preset
	[[ -x target/release/scx_cosched ]] || die "target/release/scx_cosched is missing: run make build"
	IFS=, read -ra list <<<"$1"
	for contender in "${list[@]}"; do
		[[ $testbed == two || $contender != @(wire|wire+*|prefetch) ]] ||
			die "--schedulers: $contender needs --testbed two"
		preset=$contender
		[[ $contender != @(alone|wire)+* ]] || preset=${contender#*+}
		[[ $contender == @(alone|eevdf|peer|wire|prefetch) || $contender =~ ^eevdf\+slice-us=[1-9][0-9]{2,6}$ ]] ||
			is_preset "$preset" ||
			die "--schedulers: no '$contender' (--help shows which there are)"
	done
	if [[ ,$1, == *,peer,* ]]; then
		peer=$("$here/bpfland")
		[[ $peer != *[[:space:],]* ]] || die "peer: '$cache' must have neither spaces nor commas"
		list=("${list[@]/#peer/$peer}")
	fi
	contenders=$(IFS=,; echo "${list[*]}")
}

# summarize TESTBED JOBS SUMMARY SECONDS COMPETITORS: of the lines that the nodes wrote, and a table. Medians over the
# runs, both jobs together; a job's time to completion is one over its steps per second. "of_a_share" is what it makes
# of what one makes alone, over the share that it is due; it may be more than 1, for who waits alone has his CPU wait
# too. "efficiency" is what it makes of a second of CPU time, over what one makes of it alone, whatever its share is.
summarize() {
	jq --slurp --arg testbed "$1" --argjson seconds "$4" --argjson competitors "$5" '
		def median: sort | .[(length - 1) / 2 | floor] / 2 + .[length / 2 | floor] / 2;
		def quartiles: sort | [.[(length - 1) / 4 | round], .[(length - 1) * 3 / 4 | round]];
		{ $testbed, time: (if env.VIRTUAL == "1" then "virtual" else "real" end), switch_price_ns: (env.SWITCH_NS // "0" | tonumber), jobs: 2, competitors: $competitors, seconds: $seconds,
		  rows: [group_by([.by, .program])[] | {
			by: .[0].by, program: .[0].program,
			schedulers: (group_by(.scheduler) | map({ key: .[0].scheduler, value: {
				steps_per_s: (map(.steps_per_s) | median), quartiles: (map(.steps_per_s) | quartiles), least: (map(.steps_per_s) | min), greatest: (map(.steps_per_s) | max),
				fairness: [group_by(.job)[] | map(.fairness) | median], per_fairness: (map(.steps_per_s / .fairness) | median),
				runs: length } }) | from_entries) }
			| .schedulers as $s | .schedulers |= with_entries((.key | startswith("alone")) as $alone |
				(if $alone then 1 else 2 + $competitors end) as $wanting | .value |= (
				.times_eevdf = (if $s.eevdf and ($alone | not) then .steps_per_s / $s.eevdf.steps_per_s else null end) |
				.of_a_share = (if $s.alone then .steps_per_s * $wanting / $s.alone.steps_per_s else null end) |
				.efficiency = (if $s.alone then .per_fairness * $wanting / $s.alone.per_fairness else null end) |
				del(.per_fairness)))] }' "$2" >"$3"
	jq --raw-output '
		def short: if . then . * 100 | round / 100 else "" end;
		["PROGRAM", "SCHEDULER", "STEPS/s", "F", "TIMES EEVDF", "OF A SHARE", "EFFICIENCY"],
		(.rows[] | "\(.by)/\(.program)" as $program | .schedulers | to_entries[] | .key as $scheduler | .value | [$program, $scheduler,
			"\(.steps_per_s * 10 | round / 10) (\(.least * 10 | round / 10)-\(.greatest * 10 | round / 10))", (.fairness | map(short | tostring) | join(" ")),
			if $scheduler == "alone" then "", "", "" else (.times_eevdf, .of_a_share, .efficiency | short) end]) | @tsv' "$3" | column -t -s $'\t'
	say "the figures are in $3"
}
