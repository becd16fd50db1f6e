//! One connection through a faultline: two streams, cut into requests and answers.

use std::{net::SocketAddr, sync::Arc};

use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc},
};

use super::{
    resp,
    rules::{Fate, Hit, Rules, Speech},
};

/// Carries one connection until it ends, by itself or by a verb.
pub(super) async fn carry(client: TcpStream, server: SocketAddr, rules: Arc<Rules>) {
    let Some((number, line)) = rules.enter() else { return reset(&client) };
    match TcpStream::connect(server).await {
        Ok(server) => {
            let (from_client, mut to_client) = client.into_split();
            let (from_server, mut to_server) = server.into_split();
            let (swallow, swallowed) = mpsc::unbounded_channel();
            let (rules, half_close, to) = (&*rules, &*line.half_close, &mut to_client);
            let answers = Answers { rules, swallowed, awaited: None, half_close, to, count: 0 };
            let requests = carry_requests(rules, &from_client, &mut to_server, swallow);
            let ended = tokio::select! {
                () = line.cut.notified() => Ended::Broken,
                () = line.silence.notified() => {
                    line.cut.notified().await;
                    Ended::Broken
                }
                ended = together(requests, answers.carry(&from_server)) => ended,
            };
            if ended == Ended::Broken {
                reset(from_client.as_ref());
                reset(from_server.as_ref());
                // A half that is dropped says goodbye first, and a reset is none.
                to_client.forget();
                to_server.forget();
            }
        }
        Err(_) => reset(&client),
    }
    rules.leave(number);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    ByItself,
    Broken,
}

/// Both directions end by themselves, or one breaks both.
async fn together(requests: impl Future<Output = ()>, answers: impl Future<Output = Ended>) -> Ended {
    let (mut requests, mut answers) = (std::pin::pin!(requests), std::pin::pin!(answers));
    tokio::select! {
        () = &mut requests => answers.await,
        ended = &mut answers => {
            if ended == Ended::ByItself {
                requests.await;
            }
            ended
        }
    }
}

/// The other side gets a reset when the stream is dropped.
fn reset(stream: &TcpStream) {
    // It fails on a connection that is gone, which is as good.
    drop(stream.set_zero_linger());
}

/// Carries requests until the client has no more. What it said before it left still arrives.
async fn carry_requests(
    rules: &Rules,
    from: &OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    swallow: mpsc::UnboundedSender<(u64, Hit)>,
) {
    let (mut kept, mut number) = (Vec::new(), 0);
    while let Some(request) = next(rules.speech, from, &mut kept).await {
        number += 1;
        rules.pass().await;
        let fate = rules.fate(&request);
        let is_last = matches!(fate, Fate::SwallowReply(_));
        match fate {
            Fate::Carry => {}
            Fate::SwallowReply(hit) => drop(swallow.send((number, hit))),
            Fate::Hold { hit, mut gate } => {
                hit.add();
                // The test that held it is gone: then it goes on as well.
                drop(gate.wait_for(|open| *open).await);
            }
        }
        if to.write_all(&request).await.is_err() {
            return;
        }
        if is_last {
            return std::future::pending().await;
        }
    }
    drop(to.shutdown().await);
}

/// The way back.
struct Answers<'a> {
    rules: &'a Rules,
    swallowed: mpsc::UnboundedReceiver<(u64, Hit)>,
    /// The request whose answer never arrives, by its number.
    awaited: Option<(u64, Hit)>,
    half_close: &'a Notify,
    to: &'a mut OwnedWriteHalf,
    /// Answers until now, those that answer nothing not counted.
    count: u64,
}

impl Answers<'_> {
    /// Carries answers until the server has no more. If the client is gone the server still gets rid of them.
    async fn carry(mut self, from: &OwnedReadHalf) -> Ended {
        let (mut kept, mut listens) = (Vec::new(), true);
        loop {
            let answer = tokio::select! {
                answer = next(self.rules.speech, from, &mut kept) => answer,
                () = self.half_close.notified(), if listens => {
                    listens = false;
                    drop(self.to.shutdown().await);
                    continue;
                }
            };
            let Some(answer) = answer else { break };
            if let Some(hit) = self.is_swallowed(&answer) {
                hit.add();
                return Ended::Broken;
            }
            self.rules.pass().await;
            listens = listens && self.to.write_all(&answer).await.is_ok();
        }
        drop(self.to.shutdown().await);
        Ended::ByItself
    }

    /// Whether this is the answer that never arrives.
    fn is_swallowed(&mut self, answer: &[u8]) -> Option<Hit> {
        let answers_nothing = self.rules.speech == Speech::Resp && answer.first() == Some(&b'>');
        if answers_nothing {
            return None;
        }
        self.count += 1;
        // Told before the request goes out; answers to what was asked earlier come first.
        self.awaited = self.awaited.take().or_else(|| self.swallowed.try_recv().ok());
        let (number, hit) = self.awaited.as_ref()?;
        (self.rules.speech == Speech::Pieces || *number == self.count).then(|| hit.clone())
    }
}

/// The next whole request or answer, or what is left when the stream ends; `None` at the end. What was read beyond it
/// stays in `kept`; nothing is lost if this is dropped.
async fn next(speech: Speech, from: &OwnedReadHalf, kept: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if speech == Speech::Resp
            && let Some((length, _)) = resp::first(kept)
        {
            let rest = kept.split_off(length);
            return Some(std::mem::replace(kept, rest));
        }
        let stream: &TcpStream = from.as_ref();
        stream.readable().await.ok()?;
        let mut piece = [0; 16 << 10];
        match stream.try_read(&mut piece) {
            Ok(0) => return Some(std::mem::take(kept)).filter(|rest| !rest.is_empty()),
            Ok(length) if speech == Speech::Pieces => return Some(piece[..length].to_vec()),
            Ok(length) => kept.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}
