//! Channels that nobody listens on any more stay subscribed for a while: in a line each leaves as the next one comes.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

/// How long a channel stays subscribed after the last one left.
pub(super) const LINGER: Duration = Duration::from_millis(200);

/// Those channels, and when their time is up.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    /// Each once, about in the order in which their time is up.
    queue: VecDeque<(Instant, String)>,
    /// When it is by now: somebody may have come and left again since.
    until: HashMap<String, Instant>,
}

impl Lingering {
    /// The last one has just left this channel.
    pub(super) fn left(&mut self, channel: String) {
        let until = Instant::now() + LINGER;
        if self.until.insert(channel.clone(), until).is_none() {
            self.queue.push_back((until, channel));
        }
    }

    /// When to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.front().map(|(when, _)| *when)
    }

    /// Those whose time is up, kept no more. Somebody may listen on them again.
    pub(super) fn over(&mut self, now: Instant) -> Vec<String> {
        let mut over = Vec::new();
        while self.next().is_some_and(|when| when <= now)
            && let Some((_, channel)) = self.queue.pop_front()
        {
            match self.until.get(&channel) {
                Some(until) if *until > now => self.queue.push_back((*until, channel)),
                _ => {
                    self.until.remove(&channel);
                    over.push(channel);
                }
            }
        }
        over
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.until.clear();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_channel_stays_for_as_long_after_the_last_one_as_after_the_first() {
        let mut lingering = Lingering::default();
        for _ in 0..10 {
            lingering.left("a".to_owned());
            lingering.left("b".to_owned());
            tokio::time::advance(LINGER * 3 / 4).await;
            assert_eq!(lingering.over(Instant::now()), [""; 0]);
        }
        lingering.left("b".to_owned());
        tokio::time::advance(LINGER / 2).await;
        assert_eq!(lingering.over(Instant::now()), ["a"]);
        let then = lingering.next().expect("one is left");
        assert!(then > Instant::now());
        tokio::time::sleep_until(then).await;
        assert_eq!(lingering.over(Instant::now()), ["b"]);
        assert!(lingering.is_empty() && lingering.next().is_none());
    }
}
