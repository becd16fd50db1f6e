//! From one process to another: this one is told when to acquire and when to release, and says when it had the lock
//! and when it began to give it back, on a clock that all processes share.

use crate::{Conversation, Lock, Peer, clock::shared_nanos, warm};

pub(crate) async fn run<P: Peer>(peer: &P, conversation: &mut Conversation) -> Result<(), String> {
    warm(peer).await?;
    let lock = peer.lock("bench:turns");
    conversation.ready().await?;
    let mut held = None;
    while let Some(word) = conversation.hear().await {
        let at = match (word.as_str(), held.take()) {
            ("acquire", None) => {
                held = Some(lock.acquire().await?);
                shared_nanos()
            }
            ("release", Some(held)) => {
                let at = shared_nanos();
                lock.release(held).await?;
                at
            }
            _ => break,
        };
        conversation.say(&(at as u64))?;
    }
    Ok(())
}
