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
//!
//! Each permit is an entry in Redis. An acquisition of very many is one entry of ours instead, told to scripts as
//! `bulk:<take>`: Redisson sees that they are taken, but only we give them back when their holder dies.

use leasehold_core::{ClaimId, backend::Mode};

/// More permits than this are one entry.
const MOST: u32 = 1024;

/// The permits of an acquisition, as scripts are told.
pub(crate) fn permits(id: ClaimId, take: u32) -> Vec<u8> {
    if take > MOST {
        return format!("bulk:{take}").into_bytes();
    }
    let (client, serial) = parts(id);
    let mut bytes = Vec::with_capacity(take as usize * 16);
    for index in 0..take {
        bytes.extend_from_slice(&client.to_be_bytes());
        bytes.extend_from_slice(&serial.to_be_bytes()[2..]);
        bytes.extend_from_slice(&(index as u16).to_be_bytes());
    }
    bytes
}

/// The permits of an acquisition in this mode; none if it is no semaphore's.
pub(crate) fn of(id: ClaimId, mode: Mode) -> Vec<u8> {
    match mode {
        Mode::Permits { take, .. } => permits(id, take.get()),
        _ => Vec::new(),
    }
}

/// Their entries in Redis, in each form they may have.
pub(crate) fn entries(id: ClaimId, take: u32) -> Vec<Vec<u8>> {
    let together = format!("{take} {id}").into_bytes();
    if take > MOST {
        return vec![together];
    }
    permits(id, take).chunks(16).map(<[u8]>::to_vec).chain([together]).collect()
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
