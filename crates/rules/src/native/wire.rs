// SPDX-License-Identifier: GPL-2.0-only
//! What goes over the wire, as native functions (`policies/wire.h`, `policies/surplus.h`,
//! `policies/prefetch.h`).

use super::NO_NEWS;
use crate::intf::{self, cosched_prefetch as Prefetch};
use crate::intf::{cosched_wire_flow as Flow, cosched_wire_key as Key, cosched_wire_message as Message};

/// The longest option on the wire, in bytes: that with a MAC.
pub const WIRE_OPTION_MAX: usize = intf::COSCHED_WIRE_SIGNED_LENGTH as usize;

/// The TCP option that takes `message` along `flow` (`docs/wire-format.md`). A slice of more than 65,535 units of
/// 16.384 us is cut to that.
pub fn wire_encode(message: &Message, flow: &Flow, key: &Key) -> Vec<u8> {
    let mut option = vec![0; WIRE_OPTION_MAX];
    // SAFETY: there is place for the longest option, and the rest is read.
    let length = unsafe { intf::cosched_wire_encode(option.as_mut_ptr(), message, flow, key) };
    option.truncate(length as usize);
    option
}

/// What goes behind a datagram that takes `message` along `flow`: a byte of padding if its length is `odd`, the
/// options' checksum, and the option (`docs/wire-format.md`).
pub fn wire_surplus_encode(odd: bool, message: &Message, flow: &Flow, key: &Key) -> Vec<u8> {
    let mut surplus = [0; intf::COSCHED_WIRE_SURPLUS_MAX as usize];
    // SAFETY: the references are valid, and `surplus` has place for the longest.
    let length = unsafe { intf::cosched_wire_surplus_encode(surplus.as_mut_ptr(), u32::from(odd), message, flow, key) };
    [vec![0; usize::from(odd)], surplus[..length as usize].to_vec()].concat()
}

/// What an option of TCP or UDP that has come along `flow` says, if it is one of this cluster's; what is missing at its
/// end counts as zeroes, and any input is allowed.
pub fn wire_decode(option: &[u8], flow: &Flow, key: &Key) -> Option<Message> {
    let mut bytes = [0; WIRE_OPTION_MAX];
    let length = option.len().min(WIRE_OPTION_MAX);
    bytes[..length].copy_from_slice(&option[..length]);
    let mut message = Message { epoch: 0, slice_ns: 0, waits_us: 0, news: NO_NEWS, job: 0 };
    // SAFETY: the longest option can be read, and the message written.
    let ours = unsafe { intf::cosched_wire_decode(&mut message, bytes.as_ptr(), flow, key) };
    (ours != 0).then_some(message)
}

/// The time nearest to `tai_ns` of those whose lower part is `lower_ns`, as [`wire_decode`] has it of a clock.
pub fn wire_time(lower_ns: u64, tai_ns: u64) -> u64 {
    // SAFETY: a pure function of two numbers.
    unsafe { intf::cosched_wire_time(lower_ns, tai_ns) }
}

/// Whether an epoch that comes from another machine is within 60 s of what it would be at `tai_ns`, ns since the epoch
/// of TAI.
pub fn wire_credible(epoch: u64, tai_ns: u64) -> bool {
    // SAFETY: a pure function of two numbers.
    unsafe { intf::cosched_wire_credible(epoch, tai_ns) != 0 }
}

/// [`epoch_next`](super::epoch_next) where epochs cross the network: at least the one that belongs to `tai_ns`, ns
/// since the epoch of TAI.
pub fn wire_epoch_next(epoch: u64, node: u32, tai_ns: u64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::cosched_wire_epoch_next(epoch, node, tai_ns) }
}

/// The length of a datagram that prefetches, in bytes.
pub const PREFETCH_LENGTH: usize = intf::COSCHED_PREFETCH_LENGTH as usize;

/// The datagram that says `prefetch`, signed with `key`, which is to be one (`docs/wire-format.md`).
pub fn prefetch_encode(prefetch: &Prefetch, key: &Key) -> [u8; PREFETCH_LENGTH] {
    let mut datagram = [0; PREFETCH_LENGTH];
    // SAFETY: there is place for all of it, and the rest is read.
    unsafe { intf::cosched_prefetch_encode(datagram.as_mut_ptr(), prefetch, key) };
    datagram
}

/// What `datagram` says, if somebody with `key` wrote it; any input is allowed.
pub fn prefetch_decode(datagram: &[u8], key: &Key) -> Option<Prefetch> {
    let length = u32::try_from(datagram.len()).ok()?;
    // SAFETY: integers.
    let mut prefetch = unsafe { std::mem::zeroed() };
    // SAFETY: no more is read than `length` says, and the prefetch is written.
    let ours = unsafe { intf::cosched_prefetch_decode(&mut prefetch, datagram.as_ptr(), length, key) };
    (ours != 0).then_some(prefetch)
}

/// Whether `prefetch`, which came from the address `source` (IPv4 as ::ffff:a.b.c.d), is to be believed at `tai_ns`, ns
/// since the epoch of TAI. `newest_ns`: the latest of the times that were believed of that address, or 0.
pub fn prefetch_credible(prefetch: &Prefetch, source: &[u32; 4], newest_ns: u64, tai_ns: u64) -> bool {
    // SAFETY: a pure function of numbers, of which four are at `source`.
    unsafe { intf::cosched_prefetch_credible(prefetch, source.as_ptr(), newest_ns, tai_ns) != 0 }
}
