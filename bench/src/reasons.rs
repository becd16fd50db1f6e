//! Why targets are missed, by hand: what a profile showed. The page shows the note of a target that is missed, and says
//! so where there is none; a target that is met needs none.

use crate::targets::Target;

/// Target and note: a sentence or two, with the figures of the profile.
const REASONS: &[(&str, &str)] = &[];

/// A line for each of these.
pub(crate) fn lines(missed: &[&Target]) -> Vec<String> {
    lines_of(REASONS, missed)
}

fn lines_of(reasons: &[(&str, &str)], missed: &[&Target]) -> Vec<String> {
    let line = |target: &&Target| {
        let note =
            reasons.iter().find(|(id, _)| *id == target.id).map_or("no profile yet.", |(_, note)| note);
        format!("- `{}` ({}): {note}", target.id, target.what)
    };
    missed.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::TARGETS;

    /// Those that name no target, or one that has a note already.
    fn astray<'r>(reasons: &[(&'r str, &str)]) -> Vec<&'r str> {
        let strays = reasons.iter().enumerate().filter(|(at, (id, _))| {
            let is_again = reasons[..*at].iter().any(|(before, _)| before == id);
            is_again || !TARGETS.iter().any(|target| target.id == *id)
        });
        strays.map(|(_, (id, _))| *id).collect()
    }

    #[test]
    fn every_note_is_of_a_target_and_the_only_one_of_it() {
        assert_eq!(astray(REASONS), [""; 0]);
        assert_eq!(
            astray(&[("cost.cpu", "a"), ("cost.cpus", "b"), ("cost.cpu", "c")]),
            ["cost.cpus", "cost.cpu"]
        );
    }

    #[test]
    fn a_missed_target_has_its_note_or_none_yet() {
        let missed: Vec<&Target> = TARGETS.iter().take(2).collect();
        let lines = lines_of(&[(missed[1].id, "the profile says so")], &missed);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with(&format!("- `{}`", missed[0].id)), "{}", lines[0]);
        assert!(lines[0].ends_with(": no profile yet."), "{}", lines[0]);
        assert!(lines[1].ends_with(": the profile says so"), "{}", lines[1]);
    }
}
