//! The script: what happens to the next call of each verb, and how many there were.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{Error, ErrorKind, Operation, Result};
use tokio::{runtime::Handle, sync::watch};

use super::{
    Fault, Verb,
    seed::{Dice, Weather},
};

/// Faults to come and calls that were. Clones are the same script, so a test keeps one while the store plays it.
#[derive(Clone, Debug, Default)]
pub struct Script(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    parts: Mutex<Parts>,
    /// How many late requests are still on their way.
    late: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Parts {
    queued: HashMap<Verb, VecDeque<Fault>>,
    always: HashMap<Verb, Fault>,
    calls: HashMap<Verb, usize>,
    dice: Option<Dice>,
    /// What goes by here is counted elsewhere.
    is_aside: bool,
    weather: Weather,
    /// Decides when those who ask let others run first.
    restless: Option<Dice>,
}

/// The requests of all scripts of this process.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// How many requests all scripts of this process have let through, held up or lost: what a check took to find
/// something.
pub fn requests_in_all() -> u64 {
    REQUESTS.load(Ordering::Relaxed)
}

fn is_request(verb: Verb) -> bool {
    !matches!(verb, Verb::Changed | Verb::Announce)
}

impl Script {
    /// A script without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// A script without faults over a store that plays one: its requests are not counted twice.
    pub(crate) fn aside() -> Self {
        let script = Self::default();
        script.parts().is_aside = true;
        script
    }

    /// A script that draws its faults from a seed, and prints how to replay it. A harness that captures output shows
    /// that line when the test fails.
    pub fn seeded(seed: u64) -> Self {
        let script = Self::default();
        script.parts().dice = Some(Dice::announced(seed));
        script
    }

    /// A script drawn from the seed in `LEASEHOLD_SEED`, or from a fresh one.
    pub fn random() -> Self {
        Self::seeded(Dice::seed_of_the_day())
    }

    /// A script that draws its faults from these dice, in silence, and lets others run before and after a request as
    /// often as they say: for those who replay a whole schedule.
    pub fn drawn(mut dice: Dice) -> Self {
        let script = Self::default();
        let mut parts = script.parts();
        (parts.restless, parts.dice) = (Some(dice.fork()), Some(dice));
        drop(parts);
        script
    }

    /// What the store is like from now on, for faults that are drawn.
    pub fn weather(&self, weather: Weather) -> &Self {
        self.parts().weather = weather;
        self
    }

    /// Queues faults for the next calls of a verb, in this order, after those queued before.
    pub fn next(&self, verb: Verb, faults: impl IntoIterator<Item = Fault>) -> &Self {
        self.parts().queued.entry(verb).or_default().extend(faults);
        self
    }

    /// What happens to a verb whenever nothing is queued for it.
    pub fn always(&self, verb: Verb, fault: Fault) -> &Self {
        self.parts().always.insert(verb, fault);
        self
    }

    /// Ends all faults, drawn ones too. What is on its way already arrives.
    pub fn heal(&self) -> &Self {
        let mut parts = self.parts();
        (parts.queued, parts.always, parts.dice, parts.restless) = Default::default();
        drop(parts);
        self
    }

    /// How often a verb was called.
    pub fn calls(&self, verb: Verb) -> usize {
        self.parts().calls.get(&verb).copied().unwrap_or(0)
    }

    /// How many requests there were in all: every call but the waiting for a bell and the telling of presence, which
    /// comes when it comes.
    pub fn requests(&self) -> usize {
        let parts = self.parts();
        let asked = parts.calls.iter().filter(|(verb, _)| is_request(**verb));
        asked.map(|(_, calls)| calls).sum()
    }

    /// Completes when no late request is on its way any more.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn landed(&self) {
        let mut late = self.0.late.subscribe();
        // The sender lives as long as the script, so waiting cannot fail.
        drop(late.wait_for(|late| *late == 0).await);
    }

    /// Plays the next fault of a verb on a request.
    pub(super) async fn play<T: Send + 'static>(
        &self,
        verb: Verb,
        request: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let fault = self.draw(verb);
        self.pass().await;
        let heard = self.suffer(fault, request).await;
        self.pass().await;
        heard
    }

    async fn suffer<T: Send + 'static>(
        &self,
        fault: Fault,
        request: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        match fault {
            Fault::Ok => request.await,
            Fault::Err(kind) => Err(refused(kind)),
            Fault::Slow(delay) => {
                tokio::time::sleep(delay / 2).await;
                let answer = request.await;
                tokio::time::sleep(delay / 2).await;
                answer
            }
            Fault::Late(delay) => {
                self.send_later(delay, request);
                Err(answer_lost())
            }
            Fault::Lost => {
                drop(request.await);
                Err(answer_lost())
            }
            Fault::Never => std::future::pending().await,
        }
    }

    /// Whether anything but the truth may happen to the next call of a verb.
    pub(super) fn plays(&self, verb: Verb) -> bool {
        let parts = self.parts();
        let queued = parts.queued.get(&verb).is_some_and(|queued| !queued.is_empty());
        queued || parts.always.contains_key(&verb) || parts.dice.is_some()
    }

    /// Counts a call and says what happens to it.
    pub(super) fn draw(&self, verb: Verb) -> Fault {
        let mut parts = self.parts();
        *parts.calls.entry(verb).or_default() += 1;
        REQUESTS.fetch_add(u64::from(is_request(verb) && !parts.is_aside), Ordering::Relaxed);
        let parts = &mut *parts;
        let queued = parts.queued.get_mut(&verb).and_then(VecDeque::pop_front);
        let always = parts.always.get(&verb).copied();
        let (dice, weather) = (parts.dice.as_mut(), parts.weather);
        queued.or(always).or_else(|| dice.map(|dice| dice.draw(verb, weather))).unwrap_or(Fault::Ok)
    }

    /// Lets others run first, if this script is a restless one.
    pub(super) async fn pass(&self) {
        let pass = self.parts().restless.as_mut().map(Dice::pass);
        if let Some(pass) = pass {
            pass.await;
        }
    }

    /// Lets a request arrive later, on the runtime, whatever becomes of its caller.
    pub(super) fn send_later<T: Send>(
        &self,
        delay: Duration,
        request: impl Future<Output = Result<T>> + Send + 'static,
    ) {
        let script = self.clone();
        self.0.late.send_modify(|late| *late += 1);
        Handle::current().spawn(async move {
            tokio::time::sleep(delay).await;
            drop(request.await);
            script.0.late.send_modify(|late| *late -= 1);
        });
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time it takes a batch to arrive, and again for its answers to come back: that of its slowest part.
pub(super) fn half_way(faults: &[Fault]) -> Duration {
    let slow =
        faults.iter().map(|fault| if let Fault::Slow(delay) = fault { *delay } else { Duration::ZERO });
    slow.max().unwrap_or_default() / 2
}

/// The request did not reach the store.
pub(super) fn refused(kind: ErrorKind) -> Error {
    Error::new(kind, Operation::Connect, "a scripted fault; see the test's script")
}

/// The request may have reached the store.
pub(super) fn answer_lost() -> Error {
    Error::new(
        ErrorKind::Indeterminate,
        Operation::Connect,
        "a scripted fault lost the answer; see the test's script",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A request that counts its arrivals.
    fn arrival(arrived: &Arc<AtomicUsize>) -> impl Future<Output = Result<usize>> + Send + 'static {
        let arrived = arrived.clone();
        async move { Ok(arrived.fetch_add(1, Ordering::SeqCst) + 1) }
    }

    #[tokio::test(start_paused = true)]
    async fn each_fault_does_what_its_name_says() {
        let (script, arrived) = (Script::new(), Arc::new(AtomicUsize::new(0)));
        let delay = Duration::from_secs(3);
        script.next(
            Verb::Latch,
            [Fault::Err(ErrorKind::Denied), Fault::Lost, Fault::Slow(delay), Fault::Late(delay)],
        );
        let send = || script.play(Verb::Latch, arrival(&arrived));
        assert_eq!(send().await.unwrap_err().kind(), ErrorKind::Denied);
        assert_eq!(arrived.load(Ordering::SeqCst), 0, "a refused request never arrives");
        assert_eq!(send().await.unwrap_err().kind(), ErrorKind::Indeterminate);
        assert_eq!(arrived.load(Ordering::SeqCst), 1, "only the answer was lost");
        let start = tokio::time::Instant::now();
        assert_eq!(send().await.unwrap(), 2);
        assert_eq!(start.elapsed().as_secs(), 3);
        assert_eq!(send().await.unwrap_err().kind(), ErrorKind::Indeterminate);
        assert_eq!(arrived.load(Ordering::SeqCst), 2, "a late request is still on its way");
        script.landed().await;
        assert_eq!((arrived.load(Ordering::SeqCst), start.elapsed().as_secs()), (3, 6));
        assert_eq!(send().await.unwrap(), 4, "the script is over");
        assert_eq!(script.calls(Verb::Latch), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn never_is_for_ever() {
        let (script, arrived) = (Script::new(), Arc::new(AtomicUsize::new(0)));
        script.always(Verb::Release, Fault::Never);
        let answer = script.play(Verb::Release, arrival(&arrived));
        assert!(tokio::time::timeout(Duration::from_secs(3600), answer).await.is_err());
        assert_eq!(arrived.load(Ordering::SeqCst), 0);
        script.heal();
        assert_eq!(script.play(Verb::Release, arrival(&arrived)).await.unwrap(), 1);
    }
}
