//! A lock in an envelope: held by whoever has the text.

use std::{fmt, fmt::Write as _, num::NonZeroU32, str::FromStr, time::Duration};

use super::Lock;
use crate::{
    backend::{Life, Mode},
    engine::acquire::{Acquired, Patience, acquire},
    error::{Error, Operation, Result},
    id::ClaimId,
};

/// A lock held by nobody's process: a line of text that renews and releases it from anywhere.
///
/// Whoever has the text can release the lock, so treat it as you would a key. It has no spaces and no characters
/// that a shell would mind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    name: String,
    id: ClaimId,
    mode: Mode,
    fence: u64,
    ttl: Duration,
}

impl Ticket {
    pub(crate) fn new(name: &str, id: ClaimId, mode: Mode, fence: u64, ttl: Duration) -> Self {
        Self { name: name.to_owned(), id, mode, fence, ttl }
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Identity of the acquisition.
    pub fn id(&self) -> ClaimId {
        self.id
    }

    /// The fence of the acquisition.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// The lease it was acquired with.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }
}

impl Lock {
    /// Acquires the lock for longer than this process may live: the ticket renews and releases it from anywhere.
    /// Nothing renews it but [`Client::renew_ticket`](crate::Client::renew_ticket).
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire): without a ticket in hand nothing stays behind.
    pub async fn ticket(&self) -> Result<Ticket> {
        self.leased_ticket().await.map(|(ticket, _)| ticket)
    }

    /// The same, with how long the lock may be believed held from now unless renewed.
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire): without a ticket in hand nothing stays behind.
    pub async fn leased_ticket(&self) -> Result<(Ticket, Duration)> {
        let order = self.order(Life::Detached, Patience::Forever)?;
        let (mode, ttl) = (order.spec.mode, order.spec.ttl);
        match acquire(self.client().engine(), order).await.map_err(|error| self.failed(error))? {
            Acquired::Held(won) => {
                let (hold, fence) = won.take();
                let ticket = Ticket::new(hold.spec.key.name(), hold.spec.id, mode, fence, ttl);
                Ok((ticket, hold.remaining()))
            }
            Acquired::Busy(busy) => Err(Error::from_busy(Operation::Acquire, busy).about(self.name())),
        }
    }
}

/// `lh1/ID/FENCE/TTL/MODE/NAME`
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lh1/{}/{}/{}/", self.id, self.fence, self.ttl.as_millis())?;
        match self.mode {
            Mode::Shared => f.write_str("shared/")?,
            Mode::Permits { take, of } => write!(f, "{take}of{of}/")?,
            _ => f.write_str("exclusive/")?,
        }
        for byte in self.name.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b':' => {
                    f.write_char(byte.into())?;
                }
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Ticket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad =
            || Error::config(Operation::Parse, "this is not a ticket; pass the line that `acquire` printed");
        let parts: Vec<&str> = text.trim().split('/').collect();
        let ["lh1", id, fence, ttl, mode, name] = parts[..] else { return Err(bad()) };
        Ok(Self {
            name: unescape(name).ok_or_else(bad)?,
            id: id.parse()?,
            mode: parse_mode(mode).ok_or_else(bad)?,
            fence: fence.parse().map_err(|_| bad())?,
            ttl: Duration::from_millis(ttl.parse().map_err(|_| bad())?),
        })
    }
}

fn parse_mode(text: &str) -> Option<Mode> {
    match text {
        "exclusive" => Some(Mode::Exclusive),
        "shared" => Some(Mode::Shared),
        _ => {
            let (take, of) = text.split_once("of")?;
            let number = |text: &str| text.parse().ok().and_then(NonZeroU32::new);
            Some(Mode::Permits { take: number(take)?, of: number(of)? })
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::any, proptest, test_runner::Config};

    use super::*;
    use crate::id::{ClaimIds, ClientId};

    #[test]
    fn tickets_survive_their_text_form() {
        let id = ClaimIds::new(ClientId::random()).next();
        let permits = Mode::Permits { take: NonZeroU32::MIN, of: NonZeroU32::MAX };
        for (name, mode) in [("a", Mode::Exclusive), ("a/b %锁 '\"", Mode::Shared), ("x", permits)] {
            let ticket = Ticket::new(name, id, mode, 7, Duration::from_secs(30));
            let text = ticket.to_string();
            assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            assert_eq!(text.parse::<Ticket>().unwrap(), ticket);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "lh1", "lh1/a/1/1/exclusive/x", "lh2/a/b/c/d/e", "%", "lh1/////"] {
            assert!(text.parse::<Ticket>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn any_ticket_survives_its_text(
            name in ".{1,40}", fence in any::<u64>(), ttl in any::<u64>(), (take, of) in any::<(NonZeroU32, NonZeroU32)>(),
        ) {
            let id = ClaimIds::new(ClientId::random()).next();
            for mode in [Mode::Exclusive, Mode::Shared, Mode::Permits { take, of }] {
                let ticket = Ticket::new(&name, id, mode, fence, Duration::from_millis(ttl));
                let text = ticket.to_string();
                assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
                assert_eq!(text.parse::<Ticket>().unwrap(), ticket);
            }
        }

        #[test]
        fn no_text_makes_reading_a_ticket_panic(
            text in "lh1/[0-9a-f-]{0,36}:[0-9]{0,21}/[0-9+]{0,21}/[0-9]{0,21}/(exclusive|[0-9]{0,11}of[0-9]{0,11})/[%0-9a-zé]{0,9}|.{0,60}",
        ) {
            if let Ok(ticket) = text.parse::<Ticket>() {
                assert_eq!(ticket.to_string().parse::<Ticket>().unwrap(), ticket);
            }
        }
    }
}
