//! The examination of an etcd: is it set up so that its locks are worth what they promise? It never changes a setting.

use leasehold_core::{Operation, Result, backend::Finding};

use crate::{
    error::{Fault, Refusal},
    names,
    proto::{AlarmResponse, Empty, MemberListResponse, StatusResponse, TxnRequest},
    store::Shared,
    txn,
    wire::path,
};

/// What the server keeps unless told otherwise, and when that is nearly used up.
const USUAL_QUOTA: i64 = 2 << 30;

/// Examines the servers, and the rights to names that begin with `prefix`.
pub(crate) async fn examine(store: &Shared, prefix: &str) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut answering = 0;
    for at in 0..store.wire.len() {
        match store.wire.ask::<_, StatusResponse>(at, path::STATUS, Empty {}).await {
            Ok(status) => {
                answering += 1;
                // What is so on all servers is said once.
                findings.extend(
                    judge(&status)
                        .into_iter()
                        .filter(|finding| !findings.contains(finding))
                        .collect::<Vec<_>>(),
                );
            }
            Err(fault) => findings.push(silent(at, &fault)),
        }
    }
    if answering == 0 {
        let fault = Fault::NotSent("none of the servers answers".to_owned());
        return Err(fault.into_error(Operation::Inspect));
    }
    let members = store.wire.call::<_, MemberListResponse>(path::MEMBERS, Empty {}).await;
    findings.extend(members.ok().and_then(|answer| judge_members(&answer, store.wire.len())));
    let alarms = store.wire.call::<_, AlarmResponse>(path::ALARM, Empty {}).await;
    findings.extend(alarms.ok().map(|answer| judge_alarms(&answer)));
    findings.extend(store.wire.encryption());
    findings.push(rights(store, prefix).await?);
    Ok(findings)
}

fn silent(at: usize, fault: &Fault) -> Finding {
    Finding::warning("member", format!("server {} of the URL does not answer: {fault:?}", at + 1))
        .because("with a majority of the members gone, nobody gets a lock and nobody keeps one")
        .remedy("start that member, or leave it out of the URL if it is no member any more")
}

fn judge(status: &StatusResponse) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers = status.version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    findings.push(if version < (3, 4, 0) {
        Finding::danger("version", format!("etcd {} is older than 3.4", status.version))
            .remedy("use etcd 3.4 or newer")
    } else if version < (3, 5, 0) {
        Finding::warning("version", format!("etcd {} is no longer maintained", status.version))
            .because(
                "a leader that was stalled for longer than a lease, and replaced, may end leases that go on when it \
                 wakes up (etcd issue 15247): their holders find out by their next renewal",
            )
            .remedy("use etcd 3.5 or newer; until then check fences, or use `compare` for data in etcd")
    } else {
        Finding::good("version", format!("etcd {}", status.version))
    });
    if status.leader == 0 {
        findings.push(
            Finding::danger("leader", "a member knows of no leader")
                .because("without a leader nobody gets a lock and nobody keeps one")
                .remedy("see to the other members and to the network between them"),
        );
    }
    if status.db_size > USUAL_QUOTA / 10 * 8 {
        let size = status.db_size >> 20;
        findings.push(
            Finding::warning("space", format!("the database has {size} MiB; the usual quota is 2048 MiB"))
                .because("at its quota etcd refuses all writes: no lock can be acquired, and none released")
                .remedy("compact and defragment it, or raise quota-backend-bytes")
                .command("etcdctl defrag"),
        );
    }
    findings
}

fn judge_members(answer: &MemberListResponse, named: usize) -> Option<Finding> {
    const TOPIC: &str = "members";
    let voting = answer.members.iter().filter(|member| !member.is_learner).count();
    Some(match voting {
        0 => return None,
        1 => Finding::warning(TOPIC, "this etcd has one member")
            .because(
                "while it is down nobody gets a lock, and holders lose theirs when their leases are over",
            )
            .remedy("run three or five members"),
        _ if named < voting => Finding::note(TOPIC, format!("the URL names {named} of {voting} members"))
            .because("the others are not used when those named are down")
            .remedy("name all members in the URL"),
        even if even % 2 == 0 => Finding::note(TOPIC, format!("{even} members: an even number"))
            .because("one more than an odd number adds a member that can fail, and none that may"),
        _ => Finding::good(TOPIC, format!("{voting} members: {} may fail", (voting - 1) / 2)),
    })
}

fn judge_alarms(answer: &AlarmResponse) -> Finding {
    match answer.alarms.iter().map(|alarm| alarm.alarm).max() {
        None => Finding::good("alarm", "no alarm is raised"),
        Some(1) => Finding::danger("alarm", "a member is out of space")
            .because("etcd refuses all writes until the alarm is disarmed: no lock can be acquired")
            .remedy("compact, defragment, then disarm the alarm")
            .command("etcdctl alarm disarm"),
        Some(_) => Finding::danger("alarm", "the data of a member is corrupt")
            .because("members that differ may grant one lock twice")
            .remedy("replace the corrupt member by a new one"),
    }
}

/// Whether we may do what locks need, tried out where it leaves nothing: a key that is never there is deleted.
async fn rights(store: &Shared, prefix: &str) -> Result<Finding> {
    const TOPIC: &str = "rights";
    let stretch = names::names(prefix);
    let never = [stretch.key.as_slice(), b"\x7f/doctor"].concat();
    let request = TxnRequest {
        compare: vec![txn::no_key(&never)],
        success: vec![txn::delete(never.clone()), txn::count(&stretch)],
        failure: Vec::new(),
    };
    let shown = format!("{}{}", names::NAMES, names::escaped(prefix));
    match store.wire.txn(request).await {
        Ok(_) => Ok(Finding::good(TOPIC, format!("keys that begin with {shown} can be read and written"))),
        Err(fault) if matches!(fault.refusal(), Some(Refusal::Rights | Refusal::Credentials)) => {
            Ok(Finding::danger(TOPIC, format!("keys that begin with {shown} cannot be read and written"))
                .because("no lock of that prefix can be acquired")
                .remedy(
                    "give the user's role the right; marks of forced releases need leasehold/broken/ as well",
                )
                .command(format!("etcdctl role grant-permission ROLE readwrite --prefix=true {shown}")))
        }
        Err(fault) => Err(fault.into_error(Operation::Inspect)),
    }
}
