//! Leasehold under faults, and the proof on paper.
//!
//! A run is: real servers, a register that workers write to under locks ([`register`]), workers as processes of their
//! own ([`fleet`], [`worker`]), a nemesis that kills and stops both by the dice of a seed ([`nemesis`], [`packs`]), a
//! history of everything on disk, and checkers over it ([`round`]). What comes out is a [`Report`](report::Report),
//! one row of a table ([`table`]).
//!
//! A run proves by its history, never by ending well. The same seed gives the same faults in the same order; it cannot
//! give the same interleaving, so a failing run keeps its history.
//!
//! A store is added by one file in [`packs`]. Faults on the wire between clients and a store belong into a pack too: what
//! it tells each worker as the store's URL is then a proxy's.

pub mod audit;
pub mod clock;
pub mod dice;
pub mod enclosure;
pub mod fleet;
pub mod limit;
pub mod listing;
pub mod nemesis;
pub mod options;
pub mod packs;
pub mod register;
pub mod report;
pub mod round;
pub mod table;
pub mod worker;
