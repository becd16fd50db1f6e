//! What a store hears of a client's locks between renewals.

use futures_util::stream::BoxStream;

use crate::id::ClaimId;

/// Somebody may have ended a lock of ours by force. A rumour is looked into, by a renewal, and never believed: it may be
/// late, or a forgery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rumour {
    /// This acquisition.
    Of(ClaimId),
    /// Any of them: for a while nothing could be heard.
    OfAny,
}

impl Rumour {
    /// The acquisition it is about, if it is about one.
    pub(crate) fn id(&self) -> Option<ClaimId> {
        match self {
            Self::Of(id) => Some(*id),
            Self::OfAny => None,
        }
    }
}

/// What is heard of one client's locks, for as long as this lives. It comes back by itself from whatever interrupts it;
/// its end means that there is nothing to be heard.
pub type Rumours = BoxStream<'static, Rumour>;
