#!/bin/bash
# Several parallel jobs at once, of fine grain and of coarse, or with more threads than CPUs, beside busy competitors,
# under dcs-sb: each job has its fair share of the CPUs, and so have the competitors.
. "$(dirname -- "$0")/../case.sh"

# share: measures, and is true if all shares are fair
share() {
	scx_cosched bench policies --scenarios spin-2x2-mixed,spin-4x2-mixed,spin-2-t3 --schedulers dcs-sb --repeats 1 --seconds 10 \
		--without-alone --out "$tmp/summary.json" >"$tmp/out" 2>&1 || { cat "$tmp/out"; return 1; }
	jq -r '.results[] | select(.competitors > 0 and .scheduler == "dcs-sb") |
		[.scenario, .job, .compute_us, .fairness, .competitor_fairness_min,
			.round_trips_per_s.median] | @tsv' "$tmp/summary.json" | tee "$tmp/rows"
	awk '$4 < 0.95 || $4 > 1.05 || $5 < 0.95 { bad = 1 } END { exit bad || NR != 7 }' "$tmp/rows"
}

share || fail "a share is not fair"
