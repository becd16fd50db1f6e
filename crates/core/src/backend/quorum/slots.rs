//! Where the seats of one acquisition are: here, or away with a request that is under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::{self, error::TryRecvError};

use super::{
    member::Member,
    seat::{Said, Seat, Taint},
};
use crate::{
    backend::{ClaimSpec, Holds},
    time::Clock,
};

/// The seats of one acquisition, one for each member.
#[derive(Debug)]
pub(super) struct Slots {
    members: Arc<[Member]>,
    pub(super) spec: Arc<ClaimSpec>,
    places: Mutex<Vec<Slot>>,
    taints: Vec<Taint>,
    /// What it holds, once a majority gave it.
    hold: Mutex<Option<Hold>>,
}

/// What is true of an acquisition that was won.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) fence: u64,
    /// How often it is held, if that was ever written.
    pub(super) holds: Option<Holds>,
}

/// Where one seat is.
#[derive(Debug)]
pub(super) enum Slot {
    Here(Box<Seat>),
    /// With a request; it comes back when that is through.
    Away(oneshot::Receiver<Box<Seat>>),
    /// Its request was cut off, and nobody knows what is at the member.
    Lost,
}

impl Slots {
    pub(super) fn new(members: Arc<[Member]>, spec: Arc<ClaimSpec>, clock: &Clock) -> Arc<Self> {
        let taints: Vec<Taint> = members.iter().map(|_| Taint::none(clock.clone())).collect();
        let seat =
            |(member, taint): (&Member, &Taint)| Seat::new(member.backend(), spec.clone(), taint.clone());
        let places = members.iter().zip(&taints).map(seat).map(Slot::Here).collect();
        Arc::new(Self { members, spec, places: Mutex::new(places), taints, hold: Mutex::default() })
    }

    /// An answer of each member counts only if this is the same when it comes as when it was asked for.
    pub(super) fn turns(&self) -> Vec<Option<u64>> {
        self.taints.iter().map(Taint::turn).collect()
    }

    /// A request at this seat, after all that were made before it. The order is that of the calls, whenever the
    /// futures are polled.
    pub(super) fn ask<T, F>(
        &self,
        at: usize,
        work: impl FnOnce(Box<Seat>) -> F + Send + 'static,
    ) -> impl Future<Output = T> + Send + 'static
    where
        T: Send + 'static,
        F: Future<Output = Said<T>> + Send + 'static,
    {
        let (back, away) = oneshot::channel();
        let mut slot = std::mem::replace(&mut self.places()[at], Slot::Away(away));
        slot.look();
        let (backend, spec, taint) = (self.members[at].backend(), self.spec.clone(), self.taints[at].clone());
        async move {
            slot.come_back().await;
            let seat = match slot {
                Slot::Here(seat) => seat,
                Slot::Away(_) | Slot::Lost => Seat::after_loss(backend, spec, taint),
            };
            let (seat, said) = work(seat).await;
            // With nobody there to take it the acquisition is over; what it was is the member's to end.
            drop(back.send(seat));
            said
        }
    }

    /// Whether no request is under way at this seat.
    pub(super) fn is_here(&self, at: usize) -> bool {
        let slot = &mut self.places()[at];
        slot.look();
        !matches!(slot, Slot::Away(_))
    }

    pub(super) fn hold(&self) -> Option<Hold> {
        *self.holding()
    }

    pub(super) fn set_hold(&self, hold: Option<Hold>) {
        *self.holding() = hold;
    }

    /// Takes note of a count that was written.
    pub(super) fn counted(&self, holds: Holds) {
        if let Some(hold) = &mut *self.holding() {
            hold.holds = Some(holds);
        }
    }

    /// Takes all seats, to listen at them; they come back when the listener is dropped.
    pub(super) fn listen(&self) -> Listening<'_> {
        let mut places = self.places();
        let mut seats: Vec<Slot> =
            places.iter_mut().map(|slot| std::mem::replace(slot, Slot::Lost)).collect();
        seats.iter_mut().for_each(Slot::look);
        Listening { slots: self, seats }
    }

    fn places(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holding(&self) -> MutexGuard<'_, Option<Hold>> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Takes the seat back if its request is through.
    fn look(&mut self) {
        if let Self::Away(receiver) = self {
            match receiver.try_recv() {
                Ok(seat) => *self = Self::Here(seat),
                Err(TryRecvError::Closed) => *self = Self::Lost,
                Err(TryRecvError::Empty) => {}
            }
        }
    }

    /// Waits for the seat if it is away.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub(super) async fn come_back(&mut self) -> Option<&mut Seat> {
        if let Self::Away(receiver) = self {
            *self = receiver.await.map_or(Self::Lost, Self::Here);
        }
        match self {
            Self::Here(seat) => Some(seat),
            Self::Away(_) | Self::Lost => None,
        }
    }
}

/// All seats of an acquisition that waits.
#[derive(Debug)]
pub(super) struct Listening<'a> {
    slots: &'a Slots,
    pub(super) seats: Vec<Slot>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        *self.slots.places() = std::mem::take(&mut self.seats);
    }
}
