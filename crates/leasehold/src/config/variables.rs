//! `${VAR}` and `${VAR:-text}` in the texts of a configuration file.
//!
//! Messages name the variable, never what it holds.

/// The text with its variables filled in. A variable that is empty counts as unset, as in a shell's `:-`.
pub(super) fn expand(text: &str, look: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let end = inside.find('}').ok_or("a variable has no end; write it like ${VAR} or ${VAR:-text}")?;
        out.push_str(&value(&inside[..end], &look)?);
        rest = &inside[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn value(inside: &str, look: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, otherwise) = match inside.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (inside, None),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.bytes().all(is_name)
    {
        return Err(
            "this is no name of a variable; write it like ${VAR} or ${VAR:-text}, and $${ for a brace"
                .to_owned(),
        );
    }
    if otherwise.is_some_and(|text| text.contains("${")) {
        return Err(format!("what stands in for {name} cannot have a variable in it"));
    }
    let set = look(name).filter(|value| !value.is_empty());
    set.or_else(|| otherwise.map(str::to_owned))
        .ok_or_else(|| format!("the variable {name} is not set; set it, or write ${{{name}:-text}}"))
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};

    use super::*;

    fn look(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("h".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICKY" => Some("${HOST}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_filled_in() {
        for (text, filled) in [
            ("redis://${HOST}:1/${HOST}", "redis://h:1/h"),
            ("${NONE:-a}${EMPTY:-b}${HOST:-c}${NONE:-}", "abh"),
            ("${NONE:-a:-b}", "a:-b"),
            ("$HOST $ $$ $${HOST} }", "$HOST $ $$ ${HOST} }"),
            ("${TRICKY}", "${HOST}"),
            ("锁${HOST}锁", "锁h锁"),
        ] {
            assert_eq!(expand(text, look).unwrap(), filled, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_says_what_to_write() {
        for (text, said) in [
            ("${NONE}", "the variable NONE is not set; set it, or write ${NONE:-text}"),
            ("a${HOST", "a variable has no end; write it like ${VAR} or ${VAR:-text}"),
            ("${NONE:-${HOST}}", "what stands in for NONE cannot have a variable in it"),
        ] {
            assert_eq!(expand(text, look).unwrap_err(), said, "{text}");
        }
        for text in ["${}", "${:-a}", "${a b}", "${1A}", "${SECRET-PART}"] {
            assert!(expand(text, look).unwrap_err().starts_with("this is no name of a variable"), "{text}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_filling_in_panic(text in "([$]|[{]|[}]|:-|HOST|[a-z锁 ]){0,20}|.{0,30}") {
            drop(expand(&text, look));
        }

        #[test]
        fn a_text_without_dollars_stays_as_it_is(text in "[^$]{0,30}") {
            assert_eq!(expand(&text, look).unwrap(), text);
        }
    }
}
