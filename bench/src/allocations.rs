//! Counts allocations, while asked to. One look at a flag when it is not: cheap enough for the program that is timed.

#![expect(unsafe_code, reason = "an allocator can be had in no other way; it only passes on to the system's")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

static COUNTS: AtomicBool = AtomicBool::new(false);
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, with somebody at the door.
pub(crate) struct Counting;

/// Switches counting on, from nothing, or off; says what was counted.
pub(crate) fn count(on: bool) -> u64 {
    if on {
        COUNTED.store(0, Relaxed);
    }
    COUNTS.store(on, Relaxed);
    COUNTED.load(Relaxed)
}

fn one() {
    if COUNTS.load(Relaxed) {
        COUNTED.fetch_add(1, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        one();
        // SAFETY: what holds for our caller holds for us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        one();
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
