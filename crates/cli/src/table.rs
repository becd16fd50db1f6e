//! Tables that fit the terminal.
//!
//! On a terminal that is too narrow, columns that can be had elsewhere are left out, last ones first, and then the
//! widest are cut. Where even that is too wide, more are left out, down to those that a line makes no sense without. Into a
//! pipe everything is written whole.

use std::io::{self, IsTerminal};

use crate::{exit::Failure, print, text};

/// Between two columns.
const GAP: &str = "  ";

/// No column is cut below this.
const NARROWEST: usize = 8;

/// One column: its heading, and when it is left out for want of room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    heading: &'static str,
    shown: Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Always,
    /// While there is room for it once the widest are cut.
    Cut,
    /// While there is room for all of it.
    Whole,
}

impl Column {
    /// A column that is always shown.
    pub(crate) const fn needed(heading: &'static str) -> Self {
        Self { heading, shown: Shown::Always }
    }

    /// A column that is left out where there is no room even if others are cut.
    pub(crate) const fn wanted(heading: &'static str) -> Self {
        Self { heading, shown: Shown::Cut }
    }

    /// A column that is left out where there is no room.
    pub(crate) const fn spare(heading: &'static str) -> Self {
        Self { heading, shown: Shown::Whole }
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
        for (shown, most) in [(Shown::Whole, usize::MAX), (Shown::Cut, NARROWEST)] {
            for at in (0..widths.len()).rev().filter(|at| self.columns[*at].shown == shown) {
                if total(widths, most) > room {
                    widths[at] = None;
                }
            }
        }
    }
}

/// How wide a line is, if no column is wider than this.
fn total(widths: &[Option<usize>], most: usize) -> usize {
    let shown = widths.iter().flatten();
    shown.clone().map(|width| *width.min(&most)).sum::<usize>() + GAP.len() * shown.count().saturating_sub(1)
}

/// Cuts the widest column, column by column, until all fit or none can be cut any more.
fn narrow(widths: &mut [Option<usize>], room: usize) {
    while total(widths, usize::MAX) > room {
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
    fn the_narrowest_terminal_keeps_what_a_line_makes_no_sense_without() {
        let columns = [
            Column::needed("NAME"),
            Column::wanted("KIND"),
            Column::needed("HOLDER"),
            Column::wanted("HELD"),
        ];
        let mut table = Table::new(&columns);
        table.push(&["a long name", "exclusive", "backup 4711@web-3", "3s"].map(str::to_owned));
        for (room, expected) in [
            (80, "a long name  exclusive  backup 4711@web-3  3s"),
            (34, "a long …  exclusi…  backup …  3s"),
            (32, "a long na…  exclusive  backup 4…"),
            (31, "a long n…  exclusive  backup 4…"),
            (18, "a long …  backup …"),
            (1, "a long …  backup …"),
        ] {
            let mut widths = table.wishes();
            table.leave_out(&mut widths, room);
            assert_eq!(table.render(&mut widths, Some(room)).1.trim_end(), expected, "{room}");
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
