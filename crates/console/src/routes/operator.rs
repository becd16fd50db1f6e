//! Who does something that others will ask about, and why: what every act of an operator has to say.

use axum::{Extension, extract::FromRequestParts, http::request::Parts};

use crate::{console::Console, problem::Problem, serve::Peer};

const REASON: usize = 500;
const BY: usize = 100;

/// Where an operator calls from, if that is known.
#[derive(Debug)]
pub(super) struct Operator(Option<Peer>);

impl FromRequestParts<Console> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Problem> {
        let peer = Option::<Extension<Peer>>::from_request_parts(parts, console).await;
        Ok(Self(peer.ok().flatten().map(|Extension(peer)| peer)))
    }
}

impl Operator {
    /// What they are called in what is kept. What somebody calls themself proves nothing; where they called from is ours to say.
    pub(super) fn named(&self, by: Option<&str>) -> Result<String, Problem> {
        let by = by.map(str::trim).filter(|by| !by.is_empty()).unwrap_or("somebody");
        if by.chars().count() > BY {
            return Err(Problem::config(format!("a name of at most {BY} characters will do")));
        }
        let from = self.0.as_ref().map_or_else(String::new, |Peer(peer)| format!(" from {}", peer.ip()));
        Ok(format!("{by} (operator{from})"))
    }
}

/// Why they do it.
pub(super) fn reason(reason: &str) -> Result<&str, Problem> {
    let reason = reason.trim();
    if reason.is_empty() || reason.chars().count() > REASON {
        let message =
            format!("say why, in 1 to {REASON} characters: it is kept, and whom it concerns is told");
        return Err(Problem::config(message));
    }
    Ok(reason)
}
