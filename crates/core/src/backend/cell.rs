//! Cells: small versioned values that live beside the locks, changed by compare-and-set.

/// A cell as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// Grows with every write.
    pub version: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing of that name.
    Absent,
    /// Exactly this version.
    Version(u64),
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum CellWrite {
    /// Written; this is the new version.
    Written(u64),
    /// The cell was not as expected; nothing was changed.
    Conflict,
}

/// One page of cells.
#[derive(Clone, Debug, Default)]
pub struct CellPage {
    /// The cells of this page.
    pub cells: Vec<Cell>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
}
