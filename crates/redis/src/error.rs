//! The one map from what Redis and its client say to our errors.
//!
//! What matters most of a failed request is whether it took effect. Everything the server *answers* it has refused:
//! our scripts check before they write, and write first what a full server refuses. Only silence leaves it unknown.
//!
//! | what came | took effect | kind |
//! |---|---|---|
//! | no connection, refused, TLS failed, name not found | no | `Unavailable` |
//! | `NOAUTH` `WRONGPASS` `NOPERM`, authentication failed | no | `Denied` |
//! | `WRONGTYPE` | no | `Conflict` |
//! | `CROSSSLOT` | no | `Config` |
//! | a script's key is on another server by now | no | `Unavailable` |
//! | `READONLY` `LOADING` `CLUSTERDOWN` `MASTERDOWN` `BUSY` `TRYAGAIN` `MOVED` `ASK` `OOM` `MISCONF` `NOREPLICAS` `NOSCRIPT` | no | `Unavailable` |
//! | too few replicas confirmed | yes, and it is taken back | `Unavailable` |
//! | too few replicas confirmed a cell | yes | `Indeterminate` |
//! | any other error answer | no | `Internal` |
//! | no answer in time, connection lost after sending | unknown | `Indeterminate` |

use leasehold_core::{Error, ErrorKind, Operation};
use redis::{RedisError, ServerError, Value};

/// Why a request has no answer that could be used.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It was not sent: there is no connection.
    NotSent(RedisError),
    /// The server refused it.
    Refused(ServerError),
    /// It was sent, and whether it was carried out is not known.
    Unknown(&'static str),
    /// It was carried out, and a failover may still undo it: too few replicas have it.
    Unconfirmed { value: Value, confirmed: u32, wanted: u32 },
    /// It was not sent: the keys of this name would be in different slots.
    Split,
    /// The store is closed.
    Closed,
}

/// What the server says when it cannot serve anybody now.
const UNAVAILABLE: [(&str, &str); 13] = [
    ("READONLY", "this server is a replica; connect to its primary"),
    ("LOADING", "the server is still loading its data; try again"),
    ("CLUSTERDOWN", "the cluster is down; see CLUSTER INFO"),
    ("MASTERDOWN", "the replica has lost its primary"),
    ("BUSY", "the server is busy with a script; try again"),
    ("TRYAGAIN", "the slot is being moved; try again"),
    ("MOVED", "the slot has moved; this is a cluster, connect with redis+cluster:"),
    ("ASK", "the slot is being moved; this is a cluster, connect with redis+cluster:"),
    ("OOM", "the server is at maxmemory; free memory or raise the limit"),
    ("MISCONF", "the server cannot write to disk and refuses writes; see its log"),
    ("NOREPLICAS", "the server has too few replicas to accept writes"),
    ("NOSCRIPT", "the server forgot a script again and again; does something flush scripts?"),
    ("NOTBUSY", "the server refused; try again"),
];

const SPLIT: &str = "the braces in this name put its keys into different slots of the cluster; \
                     close every brace, leave none empty, or use none";

/// How a script says that a key it needs is not here, because its slot is being moved.
const NOT_LOCAL: &str = "non local key";

const DENIED: [&str; 4] = ["NOAUTH", "WRONGPASS", "NOPERM", "DENIED"];

impl Fault {
    /// Whether the server does not have the script: then the request certainly did nothing.
    pub(crate) fn is_no_script(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code() == "NOSCRIPT")
    }

    /// Parts what was answered from whether that is confirmed.
    pub(crate) fn split(answer: Result<Value, Self>) -> (Result<Value, Self>, Option<Self>) {
        match answer {
            Err(Self::Unconfirmed { value, confirmed, wanted }) => {
                (Ok(value), Some(Self::Unconfirmed { value: Value::Nil, confirmed, wanted }))
            }
            answer => (answer, None),
        }
    }

    /// The server's refusal, if that is what it is.
    pub(crate) fn refusal(&self) -> Option<&ServerError> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// Whether a script stopped because some of its keys are on another server by now. Our scripts find that out before
    /// they do anything.
    pub(crate) fn is_half_moved(refusal: &ServerError) -> bool {
        refusal.details().is_some_and(|details| details.contains(NOT_LOCAL))
    }

    /// Whether it went to a server that has not all of what it is about.
    pub(crate) fn is_misplaced(&self) -> bool {
        let Some(refusal) = self.refusal() else { return false };
        matches!(refusal.code(), "MOVED" | "ASK" | "TRYAGAIN") || Self::is_half_moved(refusal)
    }

    /// As our error. The caller says what was being done.
    pub(crate) fn into_error(self, operation: Operation) -> Error {
        match self {
            Self::NotSent(error) => not_sent(&error, operation),
            Self::Refused(error) => refused(error.code(), error.details().unwrap_or(""), operation),
            Self::Unknown(why) => {
                let message = format!("{why}; whether the request took effect is not known");
                Error::new(ErrorKind::Indeterminate, operation, message)
            }
            Self::Unconfirmed { confirmed, wanted, .. } => {
                let message = format!(
                    "only {confirmed} of {wanted} replicas confirmed the write in time, so it does not count; \
                     see to the replicas, or ask for fewer with wait_replicas"
                );
                Error::new(ErrorKind::Unavailable, operation, message)
            }
            Self::Split => Error::config(operation, SPLIT),
            Self::Closed => {
                Error::new(ErrorKind::Closed, operation, "this store is closed; connect a new one")
            }
        }
    }
}

/// An error answer of the server.
pub(crate) fn refused(code: &str, details: &str, operation: Operation) -> Error {
    // Before Redis 7 an error within a script comes as ERR, with the true code in the text.
    let says = |word: &str| code == word || (code == "ERR" && details.contains(&format!("{word} ")));
    let answer = format!("{code} {details}");
    // What a script may not do comes without a code of its own.
    if DENIED.iter().any(|word| says(word)) || details.contains("user executing the script can't") {
        let message = "the server denies this; check user, password and ACL rules";
        return Error::new(ErrorKind::Denied, operation, message).because(answer);
    }
    if says("WRONGTYPE") {
        let message = "this name is in use by something that is no lock; choose another name";
        return Error::new(ErrorKind::Conflict, operation, message).because(answer);
    }
    if says("CROSSSLOT") {
        return Error::config(operation, SPLIT).because(answer);
    }
    if details.contains(NOT_LOCAL) {
        let message = "the slot is being moved; try again";
        return Error::new(ErrorKind::Unavailable, operation, message).because(answer);
    }
    match UNAVAILABLE.iter().find(|(word, _)| says(word)) {
        Some((_, message)) => Error::new(ErrorKind::Unavailable, operation, *message).because(answer),
        None => Error::new(ErrorKind::Internal, operation, "the server gave an error").because(answer),
    }
}

fn not_sent(error: &RedisError, operation: Operation) -> Error {
    // The text of the client's error never holds the password; its address is ours to tell.
    let text = error.to_string();
    if error.kind() == redis::ErrorKind::AuthenticationFailed
        || DENIED.iter().any(|word| error.code() == Some(word) || text.contains(word))
    {
        let message = "the server does not accept these credentials; check user and password";
        return Error::new(ErrorKind::Denied, operation, message).because(text);
    }
    if let Some((_, message)) = UNAVAILABLE.iter().find(|(word, _)| error.code() == Some(word)) {
        return Error::new(ErrorKind::Unavailable, operation, *message).because(text);
    }
    if error.kind() == redis::ErrorKind::InvalidClientConfig {
        return Error::config(operation, "the connection cannot be made this way").because(text);
    }
    Error::new(ErrorKind::Unavailable, operation, "the server cannot be reached").because(text)
}

/// An answer that fits no question of ours.
pub(crate) fn misfit(operation: Operation, answer: &redis::Value) -> Error {
    let message = format!("the server gave an answer that makes no sense: {answer:?}");
    Error::new(ErrorKind::Internal, operation, message)
}

/// A name in use as something else than what was asked for.
pub(crate) fn conflict(operation: Operation, kind: &str, number: i64, wanted: &str) -> Error {
    let found = match kind {
        "lock" | "read" | "write" => "a lock".to_owned(),
        "semaphore" => format!("a semaphore of {number} permits"),
        "latch" => format!("a latch at {number}"),
        "counter" => format!("a counter at {number} (a semaphore or a latch of another program)"),
        "limiter" => "a rate limiter".to_owned(),
        "plain" => "a plain lock (one value under the name)".to_owned(),
        other => format!("a {other} of another program"),
    };
    let message = format!("this name is in use as {found}, not as {wanted}; choose another name");
    Error::new(ErrorKind::Conflict, operation, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_a_server_is_a_refusal() {
        for (code, kind) in [
            ("NOPERM", ErrorKind::Denied),
            ("WRONGTYPE", ErrorKind::Conflict),
            ("READONLY", ErrorKind::Unavailable),
            ("LOADING", ErrorKind::Unavailable),
            ("OOM", ErrorKind::Unavailable),
            ("CROSSSLOT", ErrorKind::Config),
            ("ERR", ErrorKind::Internal),
            ("WHAT", ErrorKind::Internal),
        ] {
            assert_eq!(refused(code, "x", Operation::Acquire).kind(), kind, "{code}");
        }
        let script =
            "The user executing the script can't access at least one of the keys mentioned in the command";
        assert_eq!(refused("ERR", script, Operation::Acquire).kind(), ErrorKind::Denied);
        let old = "Error running script (call to f_1): @user_script:1: WRONGTYPE Operation against a key";
        assert_eq!(refused("ERR", old, Operation::Acquire).kind(), ErrorKind::Conflict);
    }

    #[test]
    fn silence_is_not_a_refusal() {
        let error = Fault::Unknown("no answer in time").into_error(Operation::Renew);
        assert_eq!(error.kind(), ErrorKind::Indeterminate);
    }
}
