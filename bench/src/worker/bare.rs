//! The limit: the same commands as ours, sent by hand over bare sockets, with nobody in between.
//!
//! `pairs` sends all acquisitions of a batch in one write, reads the answers, and does the same with the releases, on
//! one connection or on several at once. `ping` is one PING after a pause: what a round trip costs when everything is
//! asleep.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use leasehold_workload::{Ask, Conversation, Said, processor_time};

use super::commands::Pair;

/// Before anything is measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// Long enough for both processors to fall asleep.
const PAUSE: Duration = Duration::from_millis(30);

/// `more`: how our locks are asked for, and how many connections.
pub(super) fn run(ask: &Ask) -> Result<(), String> {
    let address = ask.url.strip_prefix("redis://").ok_or("the limit is measured on redis://HOST:PORT")?;
    let mut conversation = Conversation::begin();
    if ask.scenario == "ping" {
        return ping(ask, address, &mut conversation).map_err(|error| error.to_string());
    }
    let pair = Pair::observe(ask, address)?;
    if !pair.is_whole() {
        return Err("our client sent nothing that could be seen".to_owned());
    }
    let connections = ask.more.get(1).and_then(|count| count.parse().ok()).unwrap_or(1);
    let lines = (0..connections).map(|number| Line::open(address, &pair, number, ask.tasks));
    let lines = lines.collect::<std::io::Result<Vec<_>>>().map_err(|error| error.to_string())?;
    pairs(ask, lines, &mut conversation).map_err(|error| error.to_string())
}

fn pairs(ask: &Ask, mut lines: Vec<Line>, conversation: &mut Conversation) -> std::io::Result<()> {
    wait_for_go(conversation)?;
    let (warm, mut before) = (Instant::now(), 0_u64);
    while warm.elapsed() < WARM_UP {
        round(&mut lines)?;
        before += 1;
    }
    let (mut batches, mut latencies) = (0_u64, Vec::with_capacity(1_000_000));
    let (cpu, began) = (processor_time(), Instant::now());
    while began.elapsed().as_secs_f64() < ask.seconds {
        let start = Instant::now();
        round(&mut lines)?;
        batches += 1;
        if latencies.len() < latencies.capacity() {
            latencies.push(start.elapsed());
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let [done, total] = [batches, batches + before].map(|batches| batches * (ask.tasks * lines.len()) as u64);
    let mut said = Said { done, total, seconds, cpu: processor_time() - cpu, ..Said::default() };
    said.latencies(latencies);
    conversation.say(&said).map_err(std::io::Error::other)
}

/// One batch on every connection, so that the server always has something to do while we read.
fn round(lines: &mut [Line]) -> std::io::Result<()> {
    for half in [0, 1] {
        for line in &mut *lines {
            line.stream.get_mut().write_all(&line.halves[half])?;
        }
        for line in &mut *lines {
            for _ in 0..line.answers[half] {
                line.answer()?;
            }
        }
    }
    Ok(())
}

/// A connection, and what is sent over it: acquisitions, then releases.
struct Line {
    stream: BufReader<TcpStream>,
    halves: [Vec<u8>; 2],
    answers: [usize; 2],
    text: Vec<u8>,
}

impl Line {
    fn open(address: &str, pair: &Pair, number: usize, depth: usize) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut halves = [Vec::new(), Vec::new()];
        for at in 0..depth {
            let (acquire, release) = pair.named(&format!("bench:{}", number * depth + at));
            halves[0].extend(acquire);
            halves[1].extend(release);
        }
        let answers = [depth * pair.acquire.len(), depth * pair.release.len()];
        Ok(Self { stream: BufReader::with_capacity(1 << 16, stream), halves, answers, text: Vec::new() })
    }

    /// Reads one answer, which must say yes: a number, a word or a text.
    fn answer(&mut self) -> std::io::Result<()> {
        self.text.clear();
        self.stream.read_until(b'\n', &mut self.text)?;
        let refused = |text: &[u8]| std::io::Error::other(String::from_utf8_lossy(text).into_owned());
        match self.text.split_first() {
            Some((b':' | b'+', _)) => Ok(()),
            Some((b'$', length)) if !length.starts_with(b"-") => {
                let length =
                    std::str::from_utf8(length).ok().and_then(|length| length.trim().parse::<usize>().ok());
                let mut value = vec![0; length.ok_or_else(|| refused(&self.text))? + 2];
                self.stream.read_exact(&mut value)
            }
            _ => Err(refused(&self.text)),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "there is no executor here, and idleness is what is measured")]
fn ping(ask: &Ask, address: &str, conversation: &mut Conversation) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    wait_for_go(conversation)?;
    let (mut latencies, began) = (Vec::new(), Instant::now());
    while began.elapsed().as_secs_f64() < ask.seconds {
        std::thread::sleep(PAUSE);
        let start = Instant::now();
        stream.write_all(b"PING\r\n")?;
        stream.read_exact(&mut [0; 7])?;
        latencies.push(start.elapsed());
    }
    let (done, seconds) = (latencies.len() as u64, began.elapsed().as_secs_f64());
    let mut said = Said { done, seconds, ..Said::default() };
    said.latencies(latencies);
    conversation.say(&said).map_err(std::io::Error::other)
}

fn wait_for_go(conversation: &mut Conversation) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(conversation.ready()).map_err(std::io::Error::other)
}
