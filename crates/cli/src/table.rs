//! Tables that fit the terminal.
//!
//! On a terminal that is too narrow, columns that can be had elsewhere are left out, last ones first, and then the
//! widest are cut. Into a pipe everything is written whole.

use std::io::{self, IsTerminal};

use crate::{exit::Failure, print, text};

/// Between two columns.
const GAP: &str = "  ";

/// No column is cut below this.
const NARROWEST: usize = 8;

/// One column: its heading, and whether it may be left out for want of room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    heading: &'static str,
    is_needed: bool,
}

impl Column {
    /// A column that is always shown.
    pub(crate) const fn needed(heading: &'static str) -> Self {
        Self { heading, is_needed: true }
    }

    /// A column that is left out where there is no room.
    pub(crate) const fn spare(heading: &'static str) -> Self {
        Self { heading, is_needed: false }
    }
}

/// How wide each column is; none for one that is left out.
pub(crate) type Widths = Vec<Option<usize>>;

/// Rows of text under headings.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; what others wrote is made harmless here.
    pub(crate) fn push(&mut self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for every column");
        self.rows.push(cells.iter().map(|cell| text::clean(cell).into_owned()).collect());
    }

    /// Prints it to stdout, as wide as that allows. Says how wide that was.
    pub(crate) fn print(&self) -> Result<Widths, Failure> {
        let (room, mut widths) = (room(), self.wishes());
        if let Some(room) = room {
            self.leave_out(&mut widths, room);
        }
        let (heading, body) = self.render(&mut widths, room);
        print::headed(&heading, &body).map(|()| widths)
    }

    /// Prints it below another one of the same columns that was so wide. Columns only grow, so that most lines stay in line
    /// and nothing is cut that fits.
    pub(crate) fn print_more(&self, above: &Widths) -> Result<Widths, Failure> {
        let mut widths = self.below(above);
        let (_, body) = self.render(&mut widths, room());
        print::data(&body).map(|()| widths)
    }

    fn render(&self, widths: &mut Widths, room: Option<usize>) -> (String, String) {
        if let Some(room) = room {
            narrow(widths, room);
        }
        let headings: Vec<&str> = self.columns.iter().map(|column| column.heading).collect();
        let body = self.rows.iter().map(|row| line(row, widths) + "\n").collect();
        (line(&headings, widths), body)
    }

    fn below(&self, above: &Widths) -> Widths {
        self.wishes().iter().zip(above).map(|(wish, above)| wish.zip(*above).map(|(a, b)| a.max(b))).collect()
    }

    /// The width each column would like.
    fn wishes(&self) -> Widths {
        let wish = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().map(|row| text::width(&row[at]));
            cells.chain([column.heading.len()]).max()
        };
        self.columns.iter().enumerate().map(wish).collect()
    }

    fn leave_out(&self, widths: &mut [Option<usize>], room: usize) {
        for at in (0..widths.len()).rev() {
            if total(widths) <= room {
                return;
            }
            if !self.columns[at].is_needed {
                widths[at] = None;
            }
        }
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    shown.clone().sum::<usize>() + GAP.len() * shown.count().saturating_sub(1)
}

/// Cuts the widest column, column by column, until all fit or none can be cut any more.
fn narrow(widths: &mut [Option<usize>], room: usize) {
    while total(widths) > room {
        match widths.iter_mut().flatten().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => return,
        }
    }
}

fn line<S: AsRef<str>>(cells: &[S], widths: &[Option<usize>]) -> String {
    let mut out = String::new();
    for (cell, width) in cells.iter().zip(widths).filter_map(|(cell, width)| Some((cell.as_ref(), (*width)?)))
    {
        let cell = text::fit(cell, width);
        out.push_str(&cell);
        out.push_str(&" ".repeat(width.saturating_sub(text::width(&cell)) + GAP.len()));
    }
    out.truncate(out.trim_end().len());
    out
}

/// Columns of the terminal on stdout; none if it is not one.
pub(crate) fn room() -> Option<usize> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| rustix::termios::tcgetwinsize(&stdout).ok())??;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[Column::needed("NAME"), Column::needed("HOLDER"), Column::spare("ID")]);
        table.push(&["order:42", "backup 4711@web-3", "0123456789abcdef"].map(str::to_owned));
        table.push(&["锁\u{1b}[2J", "x", "1"].map(str::to_owned));
        table
    }

    #[test]
    fn into_a_pipe_everything_is_written() {
        let (heading, body) = table().render(&mut table().wishes(), None);
        assert_eq!(heading, "NAME         HOLDER             ID");
        let lines: Vec<&str> = body.lines().collect();
        assert_eq!(lines[0], "order:42     backup 4711@web-3  0123456789abcdef");
        assert_eq!(lines[1], "锁\\u{1b}[2J  x                  1");
    }

    #[test]
    fn a_narrow_terminal_loses_what_can_be_spared_and_then_cuts() {
        let (table, mut widths) = (table(), table().wishes());
        table.leave_out(&mut widths, 24);
        let (heading, body) = table.render(&mut widths, Some(24));
        assert_eq!(heading, "NAME         HOLDER");
        assert_eq!(body.lines().next().unwrap(), "order:42     backup 471…");
        for line in body.lines() {
            assert!(text::width(line) <= 24, "{line}");
        }
    }

    #[test]
    fn the_next_page_stays_in_line_with_the_one_above_and_is_not_cut_for_it() {
        let (first, mut next) = (table(), Table::new(&table().columns));
        next.push(&["a", "x", "1"].map(str::to_owned));
        let mut widths = next.below(&first.wishes());
        assert_eq!(widths, first.wishes());
        assert_eq!(next.render(&mut widths, None).1, "a            x                  1\n");
        next.push(&["a longer name than any", "x", "1"].map(str::to_owned));
        assert!(next.render(&mut next.below(&widths), None).1.contains("a longer name than any"));
        assert_eq!(next.below(&vec![Some(4), Some(6), None])[2], None, "what was left out stays out");
    }
}
