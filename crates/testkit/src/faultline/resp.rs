//! Just enough of the protocol of Redis to tell where a request or an answer ends.

/// The length of the first whole value, and whether it is a push, which answers nothing. `None` while it is not whole.
pub(super) fn first(bytes: &[u8]) -> Option<(usize, bool)> {
    let is_push = bytes.first() == Some(&b'>');
    // Values that must still come before the first one is whole: nested ones add to it.
    let (mut wanted, mut at) = (1_usize, 0);
    while wanted > 0 {
        let line_end = at + bytes.get(at..)?.windows(2).position(|pair| pair == b"\r\n")?;
        let (kind, text) = bytes[at..line_end].split_first()?;
        at = line_end + 2;
        wanted -= 1;
        let count = std::str::from_utf8(text).ok().and_then(|text| text.parse::<usize>().ok());
        match kind {
            // A length below zero is nothing at all.
            b'$' | b'!' | b'=' => at += count.map_or(0, |length| length + 2),
            b'*' | b'~' | b'>' => wanted += count.unwrap_or(0),
            b'%' => wanted += 2 * count.unwrap_or(0),
            // Attributes come before the value they belong to.
            b'|' => wanted += 2 * count.unwrap_or(0) + 1,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some((at, is_push))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_ends_where_it_ends() {
        let values: [&[u8]; 12] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":12\r\n",
            b"$3\r\na\nb\r\n",
            b"$-1\r\n",
            b"*2\r\n$1\r\na\r\n:1\r\n",
            b"*0\r\n",
            b"*-1\r\n",
            b"_\r\n",
            b"%1\r\n+a\r\n*1\r\n,1.5\r\n",
            b"|1\r\n+a\r\n+b\r\n:1\r\n",
            b">2\r\n+message\r\n$0\r\n\r\n",
        ];
        for value in values {
            let mut bytes = value.to_vec();
            bytes.extend_from_slice(b"+more");
            assert_eq!(first(&bytes), Some((value.len(), value[0] == b'>')), "{value:?}");
            for cut in 0..value.len() {
                assert_eq!(first(&value[..cut]), None, "{value:?} cut at {cut}");
            }
        }
    }
}
