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
    for field in fields(rate) {
        command.arg(field);
    }
}

fn fields(rate: &Rate) -> [String; 4] {
    let millis = |length: Duration| length.as_nanos().div_ceil(1_000_000).to_string();
    let each = u8::from(rate.share == Share::Each).to_string();
    [rate.permits.to_string(), millis(rate.per), each, rate.keep.map_or_else(|| "0".into(), millis)]
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

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::any, proptest, test_runner::Config};

    use super::*;
    use crate::fuzz;

    proptest! {
        #![proptest_config(Config { cases: 500, failure_persistence: None, ..Config::default() })]

        #[test]
        fn nothing_a_server_answers_makes_reading_a_limiter_panic(value in fuzz::value()) {
            for step in steps() {
                match read(step, &value) {
                    Ok(RateAnswer::Later { after }) => assert!(!after.is_zero(), "it would be asked again at once"),
                    Ok(RateAnswer::Kept(rate) | RateAnswer::Has { rate, .. }) => assert_eq!(rewritten(&rate), rate),
                    _ => {}
                }
            }
        }

        #[test]
        fn whatever_a_limiter_has_in_its_fields_can_be_written_again(
            free in fuzz::number(), permits in fuzz::number(), per in fuzz::number(), share in fuzz::number(),
            keep in fuzz::number(),
        ) {
            let word = Value::BulkString("has".into());
            let answer = read(steps()[3], &Value::Array(vec![word, free, permits, per, share, keep]));
            let Ok(RateAnswer::Has { rate, .. }) = answer else { panic!("{answer:?}") };
            assert_eq!(rewritten(&rate), rate);
        }

        #[test]
        fn any_rate_is_read_as_it_was_written(
            permits in 0..=i64::MAX.unsigned_abs(), per in 0..=1_u64 << 50, is_each in any::<bool>(),
            keep in option::of(1..=1_u64 << 50),
        ) {
            let (per, keep) = (Duration::from_millis(per), keep.map(Duration::from_millis));
            let rate = Rate { permits, per, share: if is_each { Share::Each } else { Share::All }, keep };
            assert_eq!(rewritten(&rate), rate);
            let slower = Rate { per: per + Duration::from_nanos(1), ..rate };
            assert!(rewritten(&slower).per > per, "part of a millisecond is not lost");
        }
    }

    /// The rate that is read where this one is written.
    fn rewritten(rate: &Rate) -> Rate {
        rate_of(&fields(rate).map(|field| Value::BulkString(field.into()))).unwrap()
    }

    /// One step of each sort.
    fn steps() -> [RateStep; 5] {
        let id: leasehold_core::ClaimId = "01234567-89ab-cdef-0011-223344556677:1".parse().unwrap();
        let rate = Rate { permits: 1, per: Duration::from_secs(1), share: Share::All, keep: None };
        let client = id.client();
        [
            RateStep::Set { rate, client },
            RateStep::TrySet { rate, client },
            RateStep::Take { id, permits: NonZeroU32::MIN },
            RateStep::Read { client },
            RateStep::Remove { client },
        ]
    }
}
