//! What changes, as it is seen: server-sent events.
//!
//! A stream is bounded: one that reads too slowly loses changes and is told how many. It ends when the server stops.

use std::{convert::Infallible, time::Duration};

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
    live::{EVERY, News},
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
    news: broadcast::Receiver<News>,
    prefix: String,
    hello: Option<u64>,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn stream(State(console): State<Console>, Asked(wanted): Asked<Wanted>) -> Answer {
    let Some(place) = console.stream() else {
        return Err(Problem::too_many("there are too many streams; close one, or raise --max-streams"));
    };
    let (news, seq) = console.live().listen();
    let listener = Listener { console, news, prefix: wanted.prefix, hello: Some(seq), _place: place };
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
        if let Some(seq) = self.hello.take() {
            let hello = json!({ "now": view::time(Timestamp::now()), "seq": seq, "every_ms": millis(EVERY) });
            return Some(Event::default().event("hello").data(hello.to_string()));
        }
        loop {
            let news = tokio::select! {
                biased;
                () = self.console.stopped() => return None,
                news = self.news.recv() => news,
            };
            match news {
                Ok(news) if news.name.as_ref().is_some_and(|name| !name.starts_with(&self.prefix)) => {}
                Ok(News { event, seq, data, .. }) => {
                    let told = Event::default().event(event).data(&*data);
                    return Some(seq.map_or_else(|| told.clone(), |seq| told.clone().id(seq.to_string())));
                }
                Err(broadcast::error::RecvError::Lagged(missed)) => {
                    return Some(
                        Event::default().event("lagged").data(json!({ "missed": missed }).to_string()),
                    );
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
