//! What is said to the dead-man over its pipe.
//!
//! Every message has the same sixteen bytes: a tag, seven bytes of padding, one number. That is far below
//! `PIPE_BUF`, so two writers never mix, and small enough for a child to write between fork and exec. Two
//! processes of one binary speak this; it is no format to keep.

use std::time::Duration;

use leasehold::time::Instant;

/// Bytes of a message.
pub(crate) const SIZE: usize = 16;

/// What a dead-man is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// How long the child may take to end after it was asked to.
    Grace(Duration),
    /// What to do when the lock is lost.
    OnLost(OnLost),
    /// The child lives, and leads the process group of this number.
    Child(i32),
    /// The lock is ours until then.
    Deadline(Instant),
    /// Stop the child now.
    Stop(Reason),
    /// The child is gone and the lock is being released: there is nothing left to watch.
    Done,
}

/// What happens to the child when the lock is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnLost {
    /// It is stopped before the lock can pass on.
    Kill,
    /// It is told through LEASEHOLD_LOST_FD, and runs on.
    Warn,
}

/// Why the child is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The lock is lost.
    Lost,
    /// Its time is up; the lock is still ours.
    TimeUp,
}

impl Message {
    /// As it goes over the pipe.
    pub(crate) fn encode(self) -> [u8; SIZE] {
        let (tag, number) = match self {
            Self::Grace(grace) => (1, grace.as_nanos().try_into().unwrap_or(u64::MAX)),
            Self::OnLost(OnLost::Kill) => (2, 0),
            Self::OnLost(OnLost::Warn) => (2, 1),
            Self::Child(pid) => (3, u64::from(pid.unsigned_abs())),
            Self::Deadline(then) => (4, then.as_nanos()),
            Self::Stop(Reason::Lost) => (5, 0),
            Self::Stop(Reason::TimeUp) => (5, 1),
            Self::Done => (6, 0),
        };
        let mut bytes = [0; SIZE];
        bytes[0] = tag;
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// What these bytes say; nothing if they say nothing we know.
    pub(crate) fn decode(bytes: [u8; SIZE]) -> Option<Self> {
        let [tag, _, _, _, _, _, _, _, number @ ..] = bytes;
        let number = u64::from_le_bytes(number);
        Some(match (tag, number) {
            (1, nanos) => Self::Grace(Duration::from_nanos(nanos)),
            (2, 0) => Self::OnLost(OnLost::Kill),
            (2, 1) => Self::OnLost(OnLost::Warn),
            // Group 0 is our own and group 1 is everybody: never the child's.
            (3, pid) => Self::Child(i32::try_from(pid).ok().filter(|pid| *pid > 1)?),
            (4, nanos) => Self::Deadline(Instant::from_nanos(nanos)),
            (5, 0) => Self::Stop(Reason::Lost),
            (5, 1) => Self::Stop(Reason::TimeUp),
            (6, 0) => Self::Done,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_pipe() {
        let messages = [
            Message::Grace(Duration::from_millis(1500)),
            Message::OnLost(OnLost::Kill),
            Message::OnLost(OnLost::Warn),
            Message::Child(4711),
            Message::Deadline(Instant::from_nanos(u64::MAX)),
            Message::Stop(Reason::Lost),
            Message::Stop(Reason::TimeUp),
            Message::Done,
        ];
        for message in messages {
            assert_eq!(Message::decode(message.encode()), Some(message));
        }
    }

    #[test]
    fn no_bytes_name_a_group_that_is_not_a_childs() {
        for pid in [0, 1, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Message::Child(2).encode();
            bytes[8..].copy_from_slice(&pid.to_le_bytes());
            assert_eq!(Message::decode(bytes), None, "{pid}");
        }
        assert_eq!(Message::decode([9; SIZE]), None);
    }
}
