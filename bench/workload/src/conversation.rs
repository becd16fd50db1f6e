//! Lines to and from whoever started the program.

use std::{
    io::{BufRead as _, Stdout, Write as _},
    thread,
};

use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Standard input and output, line by line.
#[derive(Debug)]
pub struct Conversation {
    heard: UnboundedReceiver<String>,
    out: Stdout,
}

impl Conversation {
    /// Begins to listen.
    pub fn begin() -> Self {
        let (tell, heard) = unbounded_channel();
        thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { heard, out: std::io::stdout() }
    }

    /// The next line; `None` when nobody is there any more.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn hear(&mut self) -> Option<String> {
        self.heard.recv().await
    }

    /// Says `ready` and waits for `go`.
    ///
    /// # Errors
    /// If whoever should say it is gone.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn ready(&mut self) -> Result<(), String> {
        self.line("ready")?;
        self.hear().await.map(drop).ok_or_else(|| "nobody says go".to_owned())
    }

    /// Says something as one line of JSON.
    ///
    /// # Errors
    /// If nobody listens.
    pub fn say(&mut self, what: &impl Serialize) -> Result<(), String> {
        let line = serde_json::to_string(what).map_err(|error| error.to_string())?;
        self.line(&line)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut out = self.out.lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| format!("nobody listens: {error}"))
    }
}
