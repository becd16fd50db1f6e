//! A client as it should not be, for comparison: `SET name value NX PX lease`, work, `DEL name`. It does not look whose
//! lock it deletes, does not renew, and has no deadline and no fence. The checkers must find what it breaks.

use std::{io, time::Duration};

use leasehold_testkit::history::{Act, Mode};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    sync::watch,
    time::{sleep, timeout},
};

use super::desk::Desk;

/// How long it waits for an answer, and between two tries.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn shift(mut desk: Desk, stopped: watch::Receiver<bool>) -> io::Result<()> {
    let address = desk.arguments.url.trim_start_matches("redis://").to_owned();
    let mut wire = None;
    while !*stopped.borrow() {
        if wire.is_none() {
            wire = TcpStream::connect(&address).await.ok().map(BufReader::new);
        }
        let cycled = match &mut wire {
            Some(wire) => cycle(&mut desk, wire).await,
            None => Err(io::Error::other("cannot connect")),
        };
        if cycled.is_err() {
            desk.tally.count_as("naive request failed");
            wire = None;
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

async fn cycle(desk: &mut Desk, wire: &mut BufReader<TcpStream>) -> io::Result<()> {
    let (name, owner) = (desk.name("naive"), desk.owner());
    let lease = desk.arguments.ttl.to_string();
    let asked = desk.recorder.asked(&name, owner, Act::Acquire { mode: Mode::Exclusive });
    if say(wire, &["SET", &name, "1", "NX", "PX", &lease]).await? != "+OK" {
        asked.failed();
        return Ok(());
    }
    // It has no deadline of its own: it believes until it lets go.
    asked.granted(owner, u64::MAX);
    let reading = desk.register.read(&format!("plain/{name}"), owner, 0).await?.unwrap_or(0);
    let work = Duration::from_millis(desk.arguments.work);
    sleep(desk.dice.between(Duration::ZERO, work)).await;
    let value = desk.owner();
    desk.register.write(&format!("plain/{name}"), [owner, 0], [reading, value]).await?;
    let asked = desk.recorder.asked(&name, owner, Act::Release);
    say(wire, &["DEL", &name]).await?;
    asked.done();
    Ok(())
}

async fn say(wire: &mut BufReader<TcpStream>, words: &[&str]) -> io::Result<String> {
    let parts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let request = format!("*{}\r\n{}", words.len(), parts.collect::<String>());
    let answer = async {
        wire.get_mut().write_all(request.as_bytes()).await?;
        let mut line = String::new();
        wire.read_line(&mut line).await?;
        Ok(line.trim_end().to_owned())
    };
    timeout(PATIENCE, answer).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
