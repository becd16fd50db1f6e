//! Single stories, one sentence each: the rules a person would check first, and every defect once found.

mod kinds;
mod leases;
mod wakes;
