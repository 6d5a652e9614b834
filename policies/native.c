/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules as native code, for the tests, the simulator and `policy list`, and the names and helps
 * of everything that is counted, so that Rust reads them from where they are declared.
 */
#include "native.h"
#include "account.h"
#include "balance.h"
#include "beat.h"
#include "boost_choice.h"
#include "epoch.h"
#include "gang.h"
#include "gate.h"
#include "limit.h"
#include "phase.h"
#include "prefetch.h"
#include "wait.h"
#include "window.h"
#include "wire.h"
#include "../bpf/counters.h"

u32 cosched_native_gate_decide(const struct cosched_policy *policy,
			       const struct cosched_demand *demand)
{
	return cosched_gate_decide(policy, demand);
}

u64 cosched_native_gate_slice(const struct cosched_policy *policy,
			      const struct cosched_demand *demand)
{
	return cosched_gate_slice(policy, demand);
}

void cosched_native_fair_enter(struct cosched_order *order, struct cosched_place *place, u32 weight)
{
	fair_enter(order, place, weight);
}

void cosched_native_fair_leave(struct cosched_order *order, struct cosched_place *place)
{
	fair_leave(order, place);
}

void cosched_native_fair_reweigh(struct cosched_order *order, struct cosched_place *place, u32 weight)
{
	fair_reweigh(order, place, weight);
}

void cosched_native_fair_note_presence(struct cosched_presence *presence, u64 weight, u64 now_ns)
{
	fair_note_presence(presence, weight, now_ns);
}

void cosched_native_fair_hold_presence(struct cosched_presence *presence, u64 weight, u64 now_ns)
{
	fair_hold_presence(presence, weight, now_ns);
}

u64 cosched_native_fair_room(u64 weight)
{
	return fair_room(weight);
}

u64 cosched_native_fair_load(u64 room)
{
	return fair_load(room);
}

u64 cosched_native_fair_portion(u64 weight, u64 here, u64 mean, u64 all)
{
	return fair_portion(weight, here, mean, all);
}

int cosched_native_fair_portion_differs(u64 was, u64 portion)
{
	return fair_portion_differs(was, portion);
}

void cosched_native_fair_charge(struct cosched_order *order, struct cosched_place *place, u64 ran_ns)
{
	fair_charge(order, place, ran_ns);
}

void cosched_native_fair_bound(struct cosched_order *order, struct cosched_place *place, int forgives)
{
	fair_bound(order, place, forgives);
}

void cosched_native_fair_bound_credit(struct cosched_order *order, struct cosched_place *place, u64 credit_ns)
{
	fair_bound_credit(order, place, credit_ns);
}

s64 cosched_native_fair_lead(const struct cosched_order *order, const struct cosched_place *place)
{
	return fair_lead(order, place);
}

s64 cosched_native_fair_lead_above(s64 lead, const struct cosched_order *order, u64 group_weight)
{
	return fair_lead_above(lead, order, group_weight);
}

s64 cosched_native_fair_lead_ns(s64 lead, u64 sum, u32 nr)
{
	return fair_lead_ns(lead, sum, nr);
}

u64 cosched_native_fair_place(const struct cosched_order *order, s64 lead, s64 lag, u32 weight, u64 credit_ns,
			      u64 slice_ns)
{
	return fair_place(order, lead, lag, weight, credit_ns, slice_ns);
}

u64 cosched_native_fair_slice(u64 slice_ns, u64 effective, u64 sum)
{
	return fair_slice(slice_ns, effective, sum);
}

u64 cosched_native_fair_credit(const struct cosched_policy *policy, u32 others, int awaited)
{
	return fair_credit(policy, others, awaited);
}

int cosched_native_fair_has_rest(u64 slice_ns, u64 used_ns)
{
	return fair_has_rest(slice_ns, used_ns);
}

int cosched_native_fair_preempts(s64 ahead, u64 sum, u32 nr)
{
	return fair_preempts(ahead, sum, nr);
}

int cosched_native_fair_has_had_time(u64 ran_ns)
{
	return fair_has_had_time(ran_ns);
}

void cosched_native_account_advance(struct cosched_share_clock *clock, u64 sum, u64 now_ns)
{
	account_advance(clock, sum, now_ns);
}

u64 cosched_native_account_share(u64 ns, u64 effective)
{
	return account_share(ns, effective);
}

u64 cosched_native_account_awaited(u64 ns, u64 effective, u64 sum)
{
	return account_awaited(ns, effective, sum);
}

void cosched_native_account_loan(struct cosched_loan *loan, const struct cosched_policy *policy, int boosted, u64 ran_ns)
{
	account_loan(loan, policy, boosted, ran_ns);
}

void cosched_native_account_urgent(struct cosched_loan *loan, int kthread, u64 ran_ns)
{
	account_urgent(loan, kthread, ran_ns);
}

void cosched_native_account_describe(struct cosched_demand *demand, s64 lead, u64 effective, u64 sum, u32 nr, int counts)
{
	account_describe(demand, lead, effective, sum, nr, counts);
}

void cosched_native_limit_set(struct cosched_limit *limit, u64 quota_ns, u64 period_ns, u64 burst_ns, u64 now_ns)
{
	limit_set(limit, quota_ns, period_ns, burst_ns, now_ns);
}

void cosched_native_limit_return(struct cosched_limit *limit, struct cosched_portion *portion)
{
	limit_return(limit, portion);
}

u64 cosched_native_limit_part(const struct cosched_limit *limit, u64 counts, u64 weight)
{
	return limit_part(limit, counts, weight);
}

s64 cosched_native_limit_take(struct cosched_limit *limit, struct cosched_portion *portion, u64 part_ns, u64 now_ns)
{
	return limit_take(limit, portion, part_ns, now_ns);
}

u64 cosched_native_limit_until(const struct cosched_limit *limit, const struct cosched_portion *portion, u64 now_ns)
{
	return limit_until(limit, portion, now_ns);
}

int cosched_native_limit_waited(u64 waited_ns)
{
	return limit_waited(waited_ns);
}

u64 cosched_native_limit_slice(u64 slice_ns, s64 left_ns)
{
	return limit_slice(slice_ns, left_ns);
}

u64 cosched_native_wait_begin(const struct cosched_policy *policy, struct cosched_wait_history *history)
{
	return cosched_wait_begin(policy, history);
}

void cosched_native_wait_end(const struct cosched_policy *policy, struct cosched_wait_history *history,
			     int message_came)
{
	cosched_wait_end(policy, history, message_came);
}

int cosched_native_wait_parks(const struct cosched_policy *policy)
{
	return cosched_wait_parks(policy);
}

u64 cosched_native_spin_ns(const struct cosched_policy *policy, const struct cosched_wait_history *history)
{
	return cosched_spin_ns(policy, history);
}

int cosched_native_spin_goes_on(const struct cosched_policy *policy, u64 since_arrival_ns)
{
	return cosched_spin_goes_on(policy, since_arrival_ns);
}

u64 cosched_native_spin_interval_ns(const struct cosched_policy *policy)
{
	return spin_conditional_interval_ns(policy);
}

void cosched_native_spin_learn(const struct cosched_policy *policy, struct cosched_wait_history *history,
			       u64 waited_ns)
{
	cosched_spin_learn(policy, history, waited_ns);
}

void cosched_native_spin_hear(struct cosched_wait_history *history, u32 estimate_us)
{
	spin_adaptive_hear(history, estimate_us);
}

void cosched_native_window_add(struct cosched_window *window, const struct cosched_policy *policy, u64 now_ns,
			       u64 cpu_ns, u64 fair_ns)
{
	cosched_window_add(window, policy, now_ns, cpu_ns, fair_ns);
}

u64 cosched_native_epoch_next(u64 epoch, u32 node)
{
	return cosched_epoch_next(epoch, node);
}

u64 cosched_native_epoch_adopt(u64 epoch, u64 message_epoch)
{
	return cosched_epoch_adopt(epoch, message_epoch);
}

u32 cosched_native_wire_encode(u8 *option, const struct cosched_wire_message *message,
			       const struct cosched_wire_flow *flow, const struct cosched_wire_key *key)
{
	return cosched_wire_encode(option, message, flow, key);
}

u32 cosched_native_wire_surplus_encode(u8 *surplus, u32 pad, const struct cosched_wire_message *message,
				       const struct cosched_wire_flow *flow, const struct cosched_wire_key *key)
{
	return cosched_wire_surplus_encode(surplus, pad, message, flow, key);
}

int cosched_native_wire_decode(struct cosched_wire_message *message, const u8 *option,
			       const struct cosched_wire_flow *flow, const struct cosched_wire_key *key)
{
	return cosched_wire_decode(message, option, flow, key);
}

u64 cosched_native_wire_time(u64 lower_ns, u64 tai_ns)
{
	return cosched_wire_time(lower_ns, tai_ns);
}

int cosched_native_wire_credible(u64 epoch, u64 tai_ns)
{
	return cosched_wire_credible(epoch, tai_ns);
}

u64 cosched_native_wire_epoch_next(u64 epoch, u32 node, u64 tai_ns)
{
	return cosched_wire_epoch_next(epoch, node, tai_ns);
}

void cosched_native_prefetch_encode(u8 *datagram, const struct cosched_prefetch *prefetch,
				    const struct cosched_wire_key *key)
{
	cosched_prefetch_encode(datagram, prefetch, key);
}

int cosched_native_prefetch_decode(struct cosched_prefetch *prefetch, const u8 *datagram, u32 length,
				   const struct cosched_wire_key *key)
{
	return cosched_prefetch_decode(prefetch, datagram, length, key);
}

int cosched_native_prefetch_credible(const struct cosched_prefetch *prefetch, const u32 *source, u64 newest_ns,
				     u64 tai_ns)
{
	return cosched_prefetch_credible(prefetch, source, newest_ns, tai_ns);
}

int cosched_native_choice_prefers(u32 choice, const struct cosched_candidate *candidate,
				  const struct cosched_candidate *best)
{
	return cosched_choice_prefers(choice, candidate, best);
}

u32 cosched_native_choice_rank(u32 choice, const struct cosched_candidate *candidate)
{
	return cosched_choice_rank(choice, candidate);
}

u32 cosched_native_gang_row_at(const struct cosched_policy *policy, u64 tai_ns)
{
	return gang_row_at(policy, tai_ns);
}

u32 cosched_native_wakes_parts(u64 ran_ns, u64 passed_ns)
{
	return cosched_wakes_parts(ran_ns, passed_ns);
}

int cosched_native_load_differs(u64 here, u64 there, u32 weight, u32 parts, int far)
{
	return cosched_load_differs(here, there, weight, parts, far);
}

u64 cosched_native_left_apart(u64 here, u64 there, u32 weight)
{
	return cosched_left_apart(here, there, weight);
}

int cosched_native_move_pays(u64 share_here, u64 share_there)
{
	return cosched_move_pays(share_here, share_there);
}

u64 cosched_native_gang_rest_ns(const struct cosched_policy *policy, u64 tai_ns)
{
	return gang_rest_ns(policy, tai_ns);
}

u32 cosched_native_gang_row_of(const struct cosched_policy *policy, u64 job)
{
	return gang_row_of(policy, job);
}

u32 cosched_native_beat_draw(u64 name, u64 turn)
{
	return beat_draw(name, turn);
}

u32 cosched_native_beat_theta(u64 weight, u64 after)
{
	return beat_theta(weight, after);
}

u32 cosched_native_beat_weight(const struct cosched_window *window, u32 due, u32 shift)
{
	return beat_weight(window, due, shift);
}

u32 cosched_native_beat_sketch(u64 node)
{
	return beat_sketch(node);
}

u32 cosched_native_beat_sketch_merge(u32 a, u32 b)
{
	return beat_sketch_merge(a, b);
}

u32 cosched_native_beat_size(u32 sizes)
{
	return beat_size(sizes);
}

int cosched_native_beat_is_before(const struct cosched_beat_job *a, const struct cosched_beat_job *b)
{
	return beat_is_before(a, b);
}

u64 cosched_native_beat_period(const struct cosched_policy *policy, u64 tai_ns)
{
	return beat_period(policy, tai_ns);
}

void cosched_native_beat_job_begin(struct cosched_beat_job *job, u64 name, u64 node, u64 period)
{
	beat_job_begin(job, name, node, period);
}

void cosched_native_beat_renew(struct cosched_beat_job *job, u32 here, u64 period)
{
	beat_renew(job, here, period);
}

void cosched_native_beat_tell(struct cosched_beat_news *news, const struct cosched_beat_job *job, u64 clock_ns)
{
	beat_tell(news, job, clock_ns);
}

void cosched_native_beat_hear(struct cosched_beat_job *job, const struct cosched_policy *policy,
			      const struct cosched_beat_news *news)
{
	beat_hear(job, policy, news);
}

void cosched_native_beat_gather(struct cosched_beat_news *all, const struct cosched_policy *policy,
				const struct cosched_beat_news *news, u64 clock_ns)
{
	beat_gather(all, policy, news, clock_ns);
}

u64 cosched_native_beat_rank(const struct cosched_policy *policy, const struct cosched_beat_job *job, u64 turn,
			     s64 lead_ns, u32 *won)
{
	return beat_rank(policy, job, turn, lead_ns, won);
}

s64 cosched_native_beat_charge(s64 ahead_ns, const struct cosched_policy *policy, u64 cpu_ns, u64 fair_ns)
{
	return beat_charge(ahead_ns, policy, cpu_ns, fair_ns);
}

int cosched_native_beat_is_silent(const struct cosched_policy *policy, u64 silent_ns)
{
	return beat_is_silent(policy, silent_ns);
}

int cosched_native_beat_may_lead(const struct cosched_policy *policy, s64 surplus_ns)
{
	return beat_may_lead(policy, surplus_ns);
}

void cosched_native_beat_hear_nothing(struct cosched_beat_job *job)
{
	beat_hear_nothing(job);
}

int cosched_native_beat_follows(struct cosched_beat_hold *hold, const struct cosched_policy *policy,
				const struct cosched_beat_job *job, s64 lead_ns, s64 running_lead_ns, u64 now_ns)
{
	return beat_follows(hold, policy, job, lead_ns, running_lead_ns, now_ns);
}

u64 cosched_native_beat_rank_held(const struct cosched_beat_hold *hold, u64 name, u64 rank, u64 now_ns)
{
	return beat_rank_held(hold, name, rank, now_ns);
}

u64 cosched_native_beat_clock_ns(const struct cosched_beat_clock *clock, u64 tai_ns)
{
	return beat_clock_ns(clock, tai_ns);
}

void cosched_native_beat_clock_turn(struct cosched_beat_clock *clock, const struct cosched_policy *policy, u64 tai_ns)
{
	beat_clock_turn(clock, policy, tai_ns);
}

int cosched_native_beat_clock_hear(struct cosched_beat_clock *clock, const struct cosched_policy *policy, u64 tai_ns,
				   u64 heard_ns)
{
	return beat_clock_hear(clock, policy, tai_ns, heard_ns);
}

int cosched_native_reason_grants(u32 reason)
{
	return cosched_reason_grants(reason);
}

#define REASON_NAME(name, grants, help) #name,
#define REASON_HELP(name, grants, help) help,
const char *const cosched_reason_names[] = { COSCHED_REASONS(REASON_NAME) };
const char *const cosched_reason_helps[] = { COSCHED_REASONS(REASON_HELP) };

#define COUNTER_NAME(name, help) #name,
#define COUNTER_HELP(name, help) help,
const char *const cosched_counter_names[] = { COSCHED_COUNTERS(COUNTER_NAME) };
const char *const cosched_counter_helps[] = { COSCHED_COUNTERS(COUNTER_HELP) };

#define ENDPOINT_NAME(name) #name,
const char *const cosched_endpoint_names[] = { COSCHED_ENDPOINTS(ENDPOINT_NAME) };

u32 cosched_native_phase_message(u32 phase, u32 answer)
{
	return phase_message(phase, answer);
}

u32 cosched_native_phase_queued(u32 phase)
{
	return phase_queued(phase);
}

u32 cosched_native_phase_parks(u32 phase)
{
	return phase_parks(phase);
}

u32 cosched_native_phase_calms(u32 phase)
{
	return phase_calms(phase);
}

u32 cosched_native_phase_stops(u32 phase, int rest)
{
	return phase_stops(phase, rest);
}
