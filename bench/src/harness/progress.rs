//! How far it is: a bar on a terminal, a line for each section elsewhere.

use std::io::{IsTerminal as _, Write as _};

/// Where we are.
pub(crate) struct Progress {
    sections: usize,
    section: usize,
    title: String,
    steps: usize,
    step: usize,
}

impl Progress {
    pub(crate) fn new(sections: usize) -> Self {
        Self { sections, section: 0, title: String::new(), steps: 0, step: 0 }
    }

    /// A section begins, of so many steps.
    pub(crate) fn section(&mut self, title: &str, steps: usize) {
        (self.section, self.step, self.steps) = (self.section + 1, 0, steps);
        title.clone_into(&mut self.title);
        if !is_terminal() {
            crate::say(&format!("[{}/{}] {title}", self.section, self.sections));
        }
    }

    /// A step begins.
    pub(crate) fn step(&mut self, what: &str) {
        self.step += 1;
        if is_terminal() {
            let full = (self.step * 20).checked_div(self.steps.max(self.step)).unwrap_or(0);
            let bar: String = (0..20).map(|at| if at < full { '█' } else { '░' }).collect();
            let (section, sections, title) = (self.section, self.sections, &self.title);
            let line = format!("\r\x1b[K[{section}/{sections}] {bar} {title}: {what}");
            drop(std::io::stderr().write_all(line.as_bytes()));
        }
    }

    /// The bar makes way for what is printed next.
    pub(crate) fn clear(&mut self) {
        self.step = 0;
        if is_terminal() {
            drop(std::io::stderr().write_all(b"\r\x1b[K"));
        }
    }
}

fn is_terminal() -> bool {
    std::io::stderr().is_terminal()
}
