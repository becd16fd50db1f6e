//! Keys: text with Rust expressions in braces.
//!
//! Each expression bears the place of the key, so that whatever the compiler has against it is said there. `{{` and `}}`
//! are braces themselves.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Error, Expr, Ident, LitStr, Result};

use crate::function::Arguments;

/// The longest name a lock can have, in bytes.
const LONGEST: usize = 512;

/// A key, taken apart.
pub(crate) struct Key {
    written: LitStr,
    /// The text around the expressions, as a format string.
    format: String,
    /// The same as it is read: what its locks are called in metrics.
    template: String,
    parts: Vec<Expr>,
}

impl Key {
    pub(crate) fn read(written: LitStr, arguments: &Arguments) -> Result<Self> {
        let text = written.value();
        if text.is_empty() {
            return Err(Error::new_spanned(
                written,
                "the key is empty; give the lock a name, such as \"order:{order.id}\"",
            ));
        }
        let (mut format, mut template, mut parts, mut plain) = (String::new(), String::new(), Vec::new(), 0);
        for piece in pieces(&text).map_err(|why| Error::new_spanned(&written, why))? {
            match piece {
                Piece::Text(letter @ ('{' | '}')) => {
                    format.extend([letter, letter]);
                    template.push(letter);
                    plain += 1;
                }
                Piece::Text(letter) if letter.is_control() => {
                    let message = "a key has no control characters; use printable text";
                    return Err(Error::new_spanned(&written, message));
                }
                Piece::Text(letter) => {
                    format.push(letter);
                    template.push(letter);
                    plain += letter.len_utf8();
                }
                Piece::Expression(source) => {
                    format.push_str("{}");
                    template.push_str("{}");
                    parts.push(expression(source, &written, arguments)?);
                }
            }
        }
        if plain > LONGEST {
            let message =
                format!("the key has {plain} bytes without its expressions; {LONGEST} is the limit");
            return Err(Error::new_spanned(&written, message));
        }
        Ok(Self { written, format, template, parts })
    }

    /// An expression that is the name, evaluating each part once, and its template.
    pub(crate) fn name(&self) -> TokenStream {
        let Self { written, format, template, parts } = self;
        let format = LitStr::new(format, written.span());
        let parts = parts.iter().map(|part| {
            let part = if is_tight(part) { quote!(#part) } else { quote!((#part)) };
            quote_spanned!(place(written)=> ::leasehold::attribute::part(&#part))
        });
        quote!((::std::format!(#format #(, #parts)*), #template))
    }
}

/// Where the key stands, as code of ours: the compiler then does not propose to replace the key by a part of it.
fn place(written: &LitStr) -> Span {
    Span::call_site().located_at(written.span())
}

/// Whether `&` before it takes it as a whole.
fn is_tight(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Path(_)
            | Expr::Field(_)
            | Expr::MethodCall(_)
            | Expr::Call(_)
            | Expr::Index(_)
            | Expr::Lit(_)
            | Expr::Macro(_)
            | Expr::Paren(_)
    )
}

fn expression(source: &str, written: &LitStr, arguments: &Arguments) -> Result<Expr> {
    let refuse = |why: String| Error::new_spanned(written, format!("`{{{source}}}` in this key: {why}"));
    if source.trim().is_empty() {
        return Err(refuse(
            "the braces are empty; put an expression into them, or write `{{}}` for braces".to_owned(),
        ));
    }
    let expr: Expr = LitStr::new(source, place(written)).parse().map_err(|error| {
        let is_format = source.rsplit_once(':').is_some_and(|(before, _)| !before.ends_with(':'));
        let advice =
            if is_format { "; a format such as `:?` has no place here, use format! for it" } else { "" };
        refuse(format!("this is not a Rust expression ({error}){advice}"))
    })?;
    match root(&expr).and_then(|name| arguments.refusal(name)) {
        Some(why) => Err(refuse(why)),
        None => Ok(expr),
    }
}

/// The name that an expression such as `order.lines[0].id()` begins with.
fn root(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Field(field) => root(&field.base),
        Expr::MethodCall(call) => root(&call.receiver),
        Expr::Index(index) => root(&index.expr),
        Expr::Paren(paren) => root(&paren.expr),
        Expr::Reference(reference) => root(&reference.expr),
        Expr::Unary(unary) => root(&unary.expr),
        Expr::Try(tried) => root(&tried.expr),
        _ => None,
    }
}

#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(char),
    Expression(&'a str),
}

fn pieces(text: &str) -> std::result::Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        rest = match letter {
            '{' | '}' if after.starts_with(letter) => {
                pieces.push(Piece::Text(letter));
                &after[1..]
            }
            '{' => {
                let end = closing(after)
                    .ok_or("a `{` in this key has no end; close it, or write `{{` for a brace")?;
                pieces.push(Piece::Expression(&after[..end]));
                &after[end + 1..]
            }
            '}' => return Err("a `}` in this key has no beginning; write `}}` for a brace".to_owned()),
            _ => {
                pieces.push(Piece::Text(letter));
                after
            }
        };
    }
    Ok(pieces)
}

/// Where the brace closes that was opened before this: braces of the expression itself, and within quotes, are not it.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    while let Some(letter) = text[at..].chars().next() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            '"' => at += quoted(&text[at + 1..], '"')?,
            '\'' if is_letter(&text[at + 1..]) => at += quoted(&text[at + 1..], '\'')?,
            _ => {}
        }
        at += letter.len_utf8();
    }
    None
}

/// The length of what stands in quotes, with the last one.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    let end = text.find(|letter| {
        let ends = letter == quote && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    });
    end.map(|end| end + quote.len_utf8())
}

/// Whether a letter in quotes follows, as in `'}'`; the other thing that begins with `'` is a lifetime.
fn is_letter(text: &str) -> bool {
    text.starts_with('\\') || text.chars().nth(1) == Some('\'')
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};
    use syn::parse_quote;

    use super::*;

    fn read(text: &str) -> Result<Key> {
        let signature = parse_quote!(fn reserve(&self, order: &Order, (kind, n): (Kind, usize)));
        Key::read(LitStr::new(text, Span::call_site()), &Arguments::of(&signature))
    }

    #[test]
    fn text_and_expressions_are_told_apart() {
        for (text, format, template, parts) in [
            ("plain", "plain", "plain", 0),
            ("order:{order.id}:{kind}", "order:{}:{}", "order:{}:{}", 2),
            ("{{tag}}:{order.id}", "{{tag}}:{}", "{tag}:{}", 1),
            ("{if n > 1 { \"}\" } else { \"a\" }}!", "{}!", "{}!", 1),
            ("{{{order.id}}}", "{{{}}}", "{{}}", 1),
            ("{self.shop}/{SHARD}/{order.lines[n].sku()}", "{}/{}/{}", "{}/{}/{}", 3),
            ("{crate::limit}/{f(n)}", "{}/{}", "{}/{}", 2),
            ("锁:{n + 1}", "锁:{}", "锁:{}", 1),
            ("{order.text.split('}').count()}/{n}", "{}/{}", "{}/{}", 2),
            ("{order.text.split(['{', '\"', '\\'', '\\\\', '锁', '\\u{7d}']).count()}", "{}", "{}", 1),
            ("{f::<&'static str>(n)}:{'a: loop { break 'a n }}", "{}:{}", "{}:{}", 2),
        ] {
            let key = read(text).unwrap();
            let read = (key.format.as_str(), key.template.as_str(), key.parts.len());
            assert_eq!(read, (format, template, parts), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_expression() {
        for (text, said) in [
            ("", "the key is empty"),
            ("a{", "a `{` in this key has no end"),
            ("a}", "a `}` in this key has no beginning"),
            ("a{}", "`{}` in this key: the braces are empty"),
            ("{oder.id}", "`{oder.id}` in this key: there is no argument `oder`; did you mean `order`?"),
            ("{order.id:?}", "a format such as `:?` has no place here"),
            ("{order id}", "`{order id}` in this key: this is not a Rust expression"),
            ("a\nb", "a key has no control characters"),
            (&"x".repeat(513), "513 bytes"),
        ] {
            let error = read(text).err().unwrap().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    proptest! {
        #![proptest_config(Config { cases: 3000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_key_panic(text in "([{]|[}]|\"|\\\\|order|[.:;#'!?()\\[\\] a-z0-9锁]){0,24}|.{0,30}") {
            drop(read(&text));
        }

        #[test]
        fn a_key_without_braces_is_the_name(text in "[^{}\\pC]{1,40}") {
            let key = read(&text).unwrap();
            assert_eq!((key.format, key.parts.len()), (text, 0));
        }
    }
}
