//! What changes, as it is seen: server-sent events.
//!
//! A stream is bounded: one that reads too slowly loses changes and is told how many. It ends when the server stops.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    response::{
        IntoResponse,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, stream};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, broadcast};

use super::{Answer, Asked};
use crate::{
    console::Console,
    live::{Bulletin, EVERY},
    problem::Problem,
    view::{self, millis},
};

/// A sign of life, when there is nothing to tell.
const BEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Wanted {
    prefix: String,
}

/// One who listens.
struct Listener {
    console: Console,
    news: broadcast::Receiver<Arc<Bulletin>>,
    prefix: String,
    /// The number of the last change that was told, or dropped because it is not wanted.
    seq: u64,
    told: VecDeque<Event>,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn stream(State(console): State<Console>, Asked(wanted): Asked<Wanted>) -> Answer {
    let Some(place) = console.stream() else {
        return Err(Problem::too_many("there are too many streams; close one, or raise --max-streams"));
    };
    let (news, seq) = console.live().listen();
    let hello = json!({ "now": view::time(Timestamp::now()), "seq": seq, "every_ms": millis(EVERY) });
    let told = VecDeque::from([event("hello", &hello.to_string())]);
    let listener = Listener { console, news, prefix: wanted.prefix, seq, told, _place: place };
    let alive = KeepAlive::new().interval(BEAT).text("beat");
    Ok(Sse::new(listener.events()).keep_alive(alive).into_response())
}

impl Listener {
    fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut listener| {
            let event = listener.next().await?;
            Some((Ok(event), listener))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.told.pop_front() {
                return Some(event);
            }
            let news = tokio::select! {
                biased;
                () = self.console.stopped() => return None,
                news = self.news.recv() => news,
            };
            match news {
                Ok(bulletin) => self.take(&bulletin),
                // What was missed is told with what comes next.
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    fn take(&mut self, bulletin: &Bulletin) {
        let all = bulletin.last - bulletin.before == bulletin.changes.len() as u64;
        let missed = if all { bulletin.before - self.seq } else { bulletin.last - self.seq };
        if missed > 0 {
            self.told.push_back(event("lagged", &json!({ "missed": missed }).to_string()));
        }
        let wanted = bulletin.changes.iter().filter(|news| news.name.starts_with(&self.prefix));
        self.told.extend(wanted.map(|news| event("change", &news.data).id(news.seq.to_string())));
        self.told.push_back(event("overview", &bulletin.overview));
        self.seq = bulletin.last;
    }
}

fn event(kind: &str, data: &str) -> Event {
    Event::default().event(kind).data(data)
}
