//! What one node of a cluster believes of all of them: its `CLUSTER NODES`, read.

use std::io;

use super::Redis;

/// One line: a node as another, or it itself, sees it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) id: String,
    pub(super) port: u16,
    flags: Vec<String>,
    linked: bool,
    slots: Vec<(u16, u16)>,
}

impl Seen {
    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    pub(super) fn owns(&self, slot: u16) -> bool {
        self.is("master") && self.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot))
    }

    pub(super) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Connected, past the handshake, and not suspected of anything.
    pub(super) fn is_well(&self) -> bool {
        let ill = ["fail", "fail?", "handshake", "noaddr"];
        self.linked && !ill.iter().any(|flag| self.is(flag))
    }
}

/// All that a node knows.
pub(super) fn of(node: &Redis) -> io::Result<Vec<Seen>> {
    let reply = node.demand(&["CLUSTER", "NODES"])?;
    let lines = reply.text().unwrap_or_default().lines();
    let strange = |line| io::Error::other(format!("not a line of CLUSTER NODES: {line}"));
    lines.map(|line| seen(line).ok_or_else(|| strange(line))).collect()
}

/// What a node says of itself.
pub(super) fn own(node: &Redis) -> io::Result<Seen> {
    let own = of(node)?.into_iter().find(|seen| seen.is("myself"));
    own.ok_or_else(|| io::Error::other(format!("{} does not know itself", node.address())))
}

fn seen(line: &str) -> Option<Seen> {
    let mut words = line.split(' ');
    let (id, address, flags) = (words.next()?, words.next()?, words.next()?);
    let (_primary, _ping, _pong) = (words.next()?, words.next()?, words.next()?);
    let (_epoch, state) = (words.next()?, words.next()?);
    let port = address.split('@').next()?.rsplit_once(':')?.1;
    Some(Seen {
        id: id.to_owned(),
        port: port.parse().ok()?,
        flags: flags.split(',').map(str::to_owned).collect(),
        linked: state == "connected",
        // Those in brackets are on their way: they belong to where they are.
        slots: words.filter(|word| !word.starts_with('[')).map(range).collect::<Option<_>>()?,
    })
}

fn range(word: &str) -> Option<(u16, u16)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_slots_and_without_those_on_their_way() {
        let line = "07c3 127.0.0.1:30004@31004,host myself,master - 0 1426238317239 4 connected 0-5460 7000 [93->-ab]";
        let seen = seen(line).unwrap();
        assert_eq!((seen.id.as_str(), seen.port), ("07c3", 30004));
        assert!(seen.is("myself") && seen.is_well() && seen.has_slots());
        assert!(seen.owns(0) && seen.owns(5460) && seen.owns(7000) && !seen.owns(5461));
    }

    #[test]
    fn a_node_that_is_suspected_or_unknown_is_not_well() {
        for (flags, link) in
            [("master,fail?", "connected"), ("handshake", "connected"), ("slave", "disconnected")]
        {
            let line = format!("07c3 127.0.0.1:30004@31004 {flags} - 0 0 4 {link}");
            assert!(!seen(&line).unwrap().is_well(), "{line}");
        }
    }
}
