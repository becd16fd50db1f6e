//! Rate limiters on Redisson's layout.
//!
//! What a limiter allows is decided in `scripts/rate*.lua`, on the server's clock. Redisson's own clients decide on
//! theirs: in a mixed fleet the clocks of Java hosts and of the server should agree to well within the interval.

use std::{num::NonZeroU32, time::Duration};

use leasehold_core::{
    ClientId, Error, ErrorKind, Operation, Result,
    backend::{Rate, RateAnswer, RateStep, Share},
};
use redis::{Cmd, Value};

use crate::{
    answer::{list, number, text},
    connect::{Topology, Weight},
    error::{conflict, misfit},
    permit,
    scripts::{self, Script},
};

/// Takes a step on the limiter of this name.
pub(crate) async fn step(topology: &dyn Topology, name: &str, step: RateStep) -> Result<RateAnswer> {
    let (script, client) = match step {
        RateStep::Set { client, .. } | RateStep::TrySet { client, .. } => (&*scripts::RATE_SET, client),
        RateStep::Take { id, .. } => (&*scripts::RATE_TAKE, id.client()),
        RateStep::Read { client } | RateStep::Remove { client } => (&*scripts::RATE_READ, client),
        _ => {
            let message = "this store does not know this step of a rate limiter";
            return Err(Error::new(ErrorKind::Unsupported, Operation::Rate, message));
        }
    };
    let value = ask(topology, name, script, client, step).await?;
    read(step, &value)
}

async fn ask(
    topology: &dyn Topology,
    name: &str,
    script: &Script,
    client: ClientId,
    step: RateStep,
) -> Result<Value> {
    let fill = |command: &mut Cmd| {
        command.arg(1).arg(name).arg(client.to_string());
        match step {
            RateStep::Set { rate, .. } => write(command.arg("set"), &rate),
            RateStep::TrySet { rate, .. } => write(command.arg("try"), &rate),
            RateStep::Take { id, permits } => {
                command.arg(permits.get()).arg(permit::permits(id, NonZeroU32::MIN.get()));
            }
            RateStep::Remove { .. } => {
                command.arg("remove");
            }
            _ => {
                command.arg("read");
            }
        }
    };
    let answer = topology.run(name, Weight::Plain, script, fill).await;
    answer.map_err(|fault| fault.into_error(Operation::Rate))
}

/// The four fields of a limiter. Part of a millisecond more is slower than asked, never faster.
fn write(command: &mut Cmd, rate: &Rate) {
    let millis = |length: Duration| length.as_nanos().div_ceil(1_000_000).to_string();
    let each = u8::from(rate.share == Share::Each);
    command
        .arg(rate.permits)
        .arg(millis(rate.per))
        .arg(each)
        .arg(rate.keep.map_or_else(|| "0".into(), millis));
}

fn read(step: RateStep, value: &Value) -> Result<RateAnswer> {
    let answer = match (step, value) {
        (RateStep::Set { .. } | RateStep::TrySet { .. }, Value::Int(1)) => Some(RateAnswer::Set),
        (RateStep::Take { .. }, Value::Int(0)) => Some(RateAnswer::Taken),
        (RateStep::Take { .. }, Value::Int(after)) => {
            Some(RateAnswer::Later { after: Duration::from_millis(after.max(&1).unsigned_abs()) })
        }
        (RateStep::Remove { .. }, Value::Int(1)) => Some(RateAnswer::Removed),
        _ => None,
    };
    if let Some(answer) = answer {
        return Ok(answer);
    }
    let parts = list(value).unwrap_or_default();
    let word = parts.first().and_then(text).unwrap_or_default();
    let answer = match (word.as_str(), parts) {
        ("unset", _) => Some(RateAnswer::Unset),
        ("many", [_, rate]) => {
            number(rate).map(|rate| RateAnswer::TooMany { rate: rate.max(0).unsigned_abs() })
        }
        ("kept", [_, rate @ ..]) => rate_of(rate).map(RateAnswer::Kept),
        ("has", [_, free, rate @ ..]) => number(free)
            .zip(rate_of(rate))
            .map(|(free, rate)| RateAnswer::Has { rate, free: free.max(0).unsigned_abs() }),
        ("other", [_, kind, count]) => {
            let (kind, count) = (text(kind).unwrap_or_default(), number(count).unwrap_or_default());
            return Err(conflict(Operation::Rate, &kind, count, "a rate limiter"));
        }
        _ => None,
    };
    answer.ok_or_else(|| misfit(Operation::Rate, value))
}

/// What the four fields say, whoever wrote them.
fn rate_of(fields: &[Value]) -> Option<Rate> {
    let [permits, per, share, keep] = fields else { return None };
    let millis = |value| number(value).map(|millis| Duration::from_millis(millis.max(0).unsigned_abs()));
    Some(Rate {
        permits: number(permits)?.max(0).unsigned_abs(),
        per: millis(per)?,
        share: if number(share)? == 1 { Share::Each } else { Share::All },
        keep: millis(keep).filter(|keep| !keep.is_zero()),
    })
}
