//! Planted bugs of this store: scripts with a mistake in them, and a count of replicas taken from the wrong place.
//!
//! A script gets its bug when it is put together, by another text in place of one fragment. Which bug, if any, is
//! chosen in [`leasehold_core::planted`]; without the feature `planted-bugs` nothing of this is built.

use leasehold_core::planted::{Bug, planted};
use redis::Value;

use crate::wire::{Confirmation, Line};

/// What stands in a script, and what stands there instead.
const SCRIPTS: &[(Bug, &str, &str)] = &[
    (
        Bug::ReleaseWithoutOwner,
        "redis.pcall('hdel', name, id) == 1 then\n  tell",
        "redis.pcall('del', name) == 1 then\n  tell",
    ),
    (
        Bug::RenewCreates,
        "    return keep(name, tag, lease)\n  end\n  return nil",
        "    return keep(name, tag, lease)\n  end\n  redis.call('hset', name, id, '1')\n  return keep(name, tag, lease)",
    ),
    (
        Bug::RetryWithoutId,
        "own = not plain and redis.call('hexists', name, kind == 'write' and id .. ':write' or id) == 1",
        "own = false",
    ),
    // Every client has a clock of its own: by its id it is right, or a minute ahead.
    (
        Bug::ClientClock,
        "local WAIT, PLACE = 300000, 15000",
        "local WAIT, PLACE = 300000, 15000\n\
         now = now + 60000 * ((tonumber(string.sub(ARGV[1] or '', 1, 1), 16) or 0) % 2)",
    ),
    (Bug::ReaderOverwrites, "  lengthen(name)\n", "  redis.call('pexpire', name, lease)\n"),
    (
        Bug::PermitTwice,
        "    if score then\n      removed = removed + redis.call('zrem', expiries, permit)",
        "    removed = removed + 1\n    if score then\n      redis.call('zrem', expiries, permit)",
    ),
    (Bug::TokenFromIncr, "if is_free and told == '0' and", "if false and"),
    (
        Bug::TokenFromIncr,
        "local function next_fence(keep, floor, more)\n",
        "local function next_fence(keep, floor, more)\n  \
         do local count = tostring(redis.call('incr', fences)) return count, count end\n",
    ),
];

/// The text of a script, with what is planted in it.
pub(crate) fn text(text: String) -> String {
    let chosen = SCRIPTS.iter().filter(|(bug, ..)| planted(*bug));
    chosen.fold(text, |text, (_, right, wrong)| text.replace(right, wrong))
}

/// As many replicas as the server says are connected, instead of as many as were asked for.
pub(crate) async fn confirmation(asked: Option<Confirmation>, line: &mut Line) -> Option<Confirmation> {
    let asked = asked?;
    if !planted(Bug::WaitFromInfo) {
        return Some(asked);
    }
    let mut info = redis::cmd("INFO");
    info.arg("replication");
    let text = match line.connection.send_packed_command(&info).await {
        Ok(Value::BulkString(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(Value::VerbatimString { text, .. } | Value::SimpleString(text)) => text,
        _ => return Some(asked),
    };
    let count = text.lines().find_map(|line| line.strip_prefix("connected_slaves:")?.trim().parse().ok());
    Some(Confirmation { replicas: count.unwrap_or(asked.replicas), ..asked })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts;

    #[test]
    fn what_is_replaced_stands_in_exactly_one_part() {
        for (bug, right, _) in SCRIPTS {
            let all = [&scripts::LOCK, &scripts::SHARE, &scripts::PERMITS, &scripts::UNLOCK, &scripts::RENEW];
            let most = all.iter().map(|script| script.text.matches(right).count()).max();
            assert_eq!(most, Some(1), "{}", bug.name());
        }
    }
}
