//! Permit ids: sixteen bytes each, as Redisson has them, made from an acquisition's id instead of drawn by chance.
//!
//! ```text
//! 0        8               14      16
//! +--------+---------------+-------+
//! | client | serial        | index |   all big-endian
//! +--------+---------------+-------+
//! ```
//! The upper half of the client's id, 48 bits of its serial, 16 bits for the number of the permit within the
//! acquisition. Two acquisitions of one client never share a permit id; those of two clients only if their random ids
//! agree in 64 bits. So a repeated attempt finds its own permits, and a release needs nothing but the id.

use leasehold_core::ClaimId;

/// The most permits of one acquisition: each is an entry of its own in Redis, as Redisson's layout wants it.
pub(crate) const MOST: u32 = 1 << 14;

/// Permit ids of an acquisition, one after the other.
pub(crate) fn permits(id: ClaimId, take: u32) -> Vec<u8> {
    let (client, serial) = parts(id);
    let mut bytes = Vec::with_capacity(take as usize * 16);
    for index in 0..take.min(MOST) {
        bytes.extend_from_slice(&client.to_be_bytes());
        bytes.extend_from_slice(&serial.to_be_bytes()[2..]);
        bytes.extend_from_slice(&(index as u16).to_be_bytes());
    }
    bytes
}

/// The upper half of the client and the serial, from the text that other stores and programs see.
fn parts(id: ClaimId) -> (u64, u64) {
    let text = id.to_string();
    let (client, serial) = text.split_once(':').unwrap_or((&text, "0"));
    let digits: String = client.chars().filter(|digit| *digit != '-').take(16).collect();
    (u64::from_str_radix(&digits, 16).unwrap_or(0), serial.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_told_apart_and_begin_with_the_client() {
        let id: ClaimId = "01234567-89ab-cdef-0011-223344556677:258".parse().unwrap();
        let bytes = permits(id, 2);
        assert_eq!(bytes.len(), 32);
        assert_eq!(bytes[..8], 0x0123_4567_89ab_cdef_u64.to_be_bytes());
        assert_eq!(bytes[8..16], [0, 0, 0, 0, 1, 2, 0, 0]);
        assert_eq!(bytes[24..], [0, 0, 0, 0, 1, 2, 0, 1]);
    }
}
