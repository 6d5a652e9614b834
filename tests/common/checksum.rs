// SPDX-License-Identifier: GPL-2.0-only
//! What IP, UDP and its options have for checksums.

/// The sum of 16-bit words, in ones' complement (RFC 1071).
pub fn sum(bytes: &[u8]) -> u32 {
    let mut sum: u32 =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}
