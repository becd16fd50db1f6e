//! Small files of /proc, read in one go.
//!
//! The kernel writes them anew at each read, so one read that takes all is both quicker and less surprising than
//! several.

use std::{fs::File, io::Read};

/// More than any file that is read here.
const SIZE: usize = 4096;

/// What the file says, up to a page of it.
pub(crate) fn read(path: &str) -> Option<Vec<u8>> {
    let mut content = vec![0; SIZE];
    let length = File::open(path).ok()?.read(&mut content).ok()?;
    content.truncate(length);
    Some(content)
}
