//! The connection that messages come on: what is said to it, and what is heard from it.
//!
//! A server that gives a slot away takes back the subscriptions to its channels without being asked, by the same words
//! that confirm a request. So every answer is compared with its request; where they do not match, the connection is not
//! used any more.

use std::time::Duration;

use redis::{ErrorKind, Pipeline, PushInfo, PushKind, RedisError, Value, aio::MultiplexedConnection};
use tokio::sync::mpsc;

use crate::{answer::text, config::Address, wire::Dialer};

/// How a server refuses a channel whose slot it does not serve.
const ELSEWHERE: [&str; 4] = ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"];

/// A connection, and what comes on it.
pub(super) struct Link {
    connection: MultiplexedConnection,
    heard: mpsc::UnboundedReceiver<Heard>,
    pub(super) to: Address,
}

/// What a server says.
pub(super) enum Heard {
    /// The channel, and what was said there.
    Message(String, String),
    /// The server took a channel away, or confirms that we left it.
    Left(String),
    End,
}

/// What is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Say {
    Subscribe,
    SubscribeBySlot,
    Unsubscribe,
    UnsubscribeBySlot,
}

impl Say {
    fn word(self) -> &'static str {
        match self {
            Self::Subscribe => "SUBSCRIBE",
            Self::SubscribeBySlot => "SSUBSCRIBE",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::UnsubscribeBySlot => "SUNSUBSCRIBE",
        }
    }

    fn confirmed(self) -> PushKind {
        match self {
            Self::Subscribe => PushKind::Subscribe,
            Self::SubscribeBySlot => PushKind::SSubscribe,
            Self::Unsubscribe => PushKind::Unsubscribe,
            Self::UnsubscribeBySlot => PushKind::SUnsubscribe,
        }
    }
}

impl Link {
    pub(super) async fn open(dialer: &Dialer) -> Result<Self, RedisError> {
        let (sender, heard) = mpsc::unbounded_channel();
        let told = move |push: PushInfo| {
            let part = |at: usize| push.data.get(at).and_then(text).unwrap_or_default();
            let told = match push.kind {
                PushKind::Message | PushKind::SMessage => Heard::Message(part(0), part(1)),
                PushKind::SUnsubscribe => Heard::Left(part(0)),
                PushKind::Disconnection => Heard::End,
                _ => return Ok(()),
            };
            sender.send(told)
        };
        let (connection, to) = dialer.connection(told).await?;
        Ok(Self { connection, heard, to })
    }

    /// Dropping it loses nothing.
    pub(super) async fn next(&mut self) -> Heard {
        self.heard.recv().await.unwrap_or(Heard::End)
    }

    /// Says these in one write. Answers the channels whose slot is not here.
    pub(super) async fn say(
        &mut self,
        said: &[(Say, String)],
        patience: Duration,
    ) -> Result<Vec<String>, RedisError> {
        let mut pipeline = Pipeline::with_capacity(said.len());
        for (say, channel) in said {
            // One channel each: the answers are as many as the requests, and slots never mix.
            pipeline.cmd(say.word()).arg(channel);
        }
        let asked = self.connection.send_packed_commands(&pipeline, 0, said.len());
        let late = || Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
        let answers = tokio::time::timeout(patience, asked).await.unwrap_or_else(|_| late())?;
        let mut refused = Vec::new();
        for ((say, channel), answer) in said.iter().zip(answers) {
            match answer {
                Value::Push { kind, data }
                    if kind == say.confirmed() && data.first().and_then(text).as_ref() == Some(channel) => {}
                Value::ServerError(error)
                    if *say == Say::SubscribeBySlot && ELSEWHERE.contains(&error.code()) =>
                {
                    refused.push(channel.clone());
                }
                Value::ServerError(error) => return Err(error.into()),
                // The server took a channel away in between, and the answers are one off.
                _ => return Err(RedisError::from((ErrorKind::Io, "the slots of this server change"))),
            }
        }
        Ok(refused)
    }
}
