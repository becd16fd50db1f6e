//! Unique ids, for synchronous code.

use std::ops::RangeInclusive;

use super::GuardRef;
use crate::{Id, Result, Span, backend::Loss};

front! {
    /// Ids of one name, for synchronous code; see [`leasehold::IdSpace`](crate::IdSpace).
    #[derive(Clone, Debug)]
    #[must_use = "no ids are made until a machine number is claimed"]
    IdSpace(crate::IdSpace) like IdSpace
    options {
        ttl(ttl: impl Into<Span>);
        machines(machines: RangeInclusive<u16>);
    }
    looks {
        name() -> &str;
    }
    waits {
        claim() -> Result<Ids> [ids: ids.map(Ids)];
    }
}

front! {
    /// Makes ids, for synchronous code; see [`leasehold::Ids`](crate::Ids).
    #[derive(Debug)]
    #[must_use = "if unused the machine number is given back at once"]
    Ids(crate::Ids) like Ids
    looks {
        machine() -> u16;
        guard() -> GuardRef<'_> [guard: GuardRef(guard)];
    }
    waits {
        next() -> Result<Id>;
        lost() -> Loss;
    }
    ends {
        release() -> Result<()>;
    }
}
