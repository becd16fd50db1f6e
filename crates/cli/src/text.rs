//! Text of others, made safe to show.
//!
//! Names, labels, hosts and programs come from whoever wrote them to the store. On a terminal a control character
//! could move the cursor, set the clipboard or hide what follows, and a direction mark could make one name look
//! like another; some letters draw nothing at all. Such characters are shown as escapes, in JSON as its own: there it is the same
//! text to whoever reads it.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The same text with every character that a terminal would act upon, or not draw, written out as an escape.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_hostile(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The same for JSON that is already written: what is left of such characters stands in its strings.
pub(crate) fn clean_json(json: &str) -> Cow<'_, str> {
    // Line breaks between values are the writer's own: those in strings are escaped.
    let acts = |c: char| c != '\n' && is_hostile(c);
    if !json.chars().any(acts) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if acts(c) {
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn is_hostile(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}');
    c.is_control() || invisible
}

/// How many columns a terminal uses for it.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text cut to so many columns, with a sign that it was.
pub(crate) fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    out.push('…');
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_upon_is_written_out() {
        let cases = [
            ("\u{1b}]52;c;aGk=\u{7}", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("a\nb\r\tc\u{7f}", "a\\u{a}b\\u{d}\\u{9}c\\u{7f}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("abc\u{202e}fed", "abc\\u{202e}fed"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("pay\u{3164}\u{ffa0}\u{2800}\u{fe0f}", "pay\\u{3164}\\u{ffa0}\\u{2800}\\u{fe0f}"),
            ("pay\u{115f}\u{1160}\u{34f}\u{e0100}", "pay\\u{115f}\\u{1160}\\u{34f}\\u{e0100}"),
        ];
        for (text, shown) in cases {
            assert_eq!(clean(text), shown);
        }
    }

    #[test]
    fn in_json_it_is_written_as_json_has_it_and_reads_the_same() {
        let text = "\u{9b}31m \u{7f}\u{202e}\u{e0041}\u{3164}\n锁";
        for json in [serde_json::to_string(&[text]).unwrap(), serde_json::to_string_pretty(&[text]).unwrap()]
        {
            let clean = clean_json(&json);
            assert!(!clean.chars().any(|c| c != '\n' && is_hostile(c)), "{clean:?}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&clean).unwrap(), [text]);
        }
        assert!(matches!(clean_json("{\"锁\":1}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["order:42", "锁", "naïve café", "a b", "{x}\\n"] {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn text_is_cut_by_columns_not_by_bytes() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("锁锁锁锁", 6), "锁锁…");
        assert_eq!(fit("锁锁锁锁", 8), "锁锁锁锁");
    }
}
