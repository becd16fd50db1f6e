//! The word that was meant.

/// The nearest of the known words, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |known: &str| strsim::damerau_levenshtein(word, known);
    let (distance, meant) = known.into_iter().map(|known| (distance(known), known)).min()?;
    (distance <= 2.max(meant.len() / 2)).then_some(meant)
}

/// What to say of a word nobody knows: the one that was meant, or all there are.
pub(crate) fn instead(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant_is_named_and_others_are_listed() {
        assert_eq!(instead("onbusy", &["key", "on_busy", "on_lost"]), "did you mean `on_busy`?");
        assert_eq!(instead("whatever", &["key", "wait"]), "there are key, wait");
    }
}
