//! A list of options as every attribute has it: `word = value` and words alone, with commas between, each said once.

use proc_macro2::Ident;
use syn::{Error, LitStr, Result, Token, ext::IdentExt as _, parse::ParseStream};

use crate::words::instead;

/// Has every option read. `first` is the word that matters most; `advice` is for who says it twice.
pub(crate) fn each(
    input: ParseStream<'_>,
    first: &str,
    advice: &str,
    mut read: impl FnMut(&Ident, ParseStream<'_>) -> Result<()>,
) -> Result<()> {
    let mut said: Vec<String> = Vec::new();
    while !input.is_empty() {
        if input.peek(LitStr) {
            return Err(input.error(format!("say what this text is; write `{first} = \"…\"`")));
        }
        let word = input.call(Ident::parse_any)?;
        if said.contains(&word.to_string()) {
            let advice = if word == first { advice } else { "" };
            return Err(Error::new_spanned(&word, format!("`{word}` is said twice{advice}")));
        }
        said.push(word.to_string());
        read(&word, input)?;
        if !input.is_empty() {
            let comma: Result<Token![,]> = input.parse();
            comma.map_err(|error| Error::new(error.span(), "a comma is missing between two options"))?;
        }
    }
    Ok(())
}

/// A word that must be one of these.
pub(crate) fn known(word: &Ident, words: &[&str]) -> Result<String> {
    let name = word.to_string();
    if words.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(Error::new_spanned(word, format!("unknown option `{word}`; {}", instead(&name, words))))
}

/// The `=` after a word, and that something comes after it.
pub(crate) fn value(word: &Ident, input: ParseStream<'_>) -> Result<()> {
    let missing = || Error::new_spanned(word, format!("`{word}` needs a value; write `{word} = …`"));
    let equals: Result<Token![=]> = input.parse();
    equals.map_err(|_| missing())?;
    if input.is_empty() { Err(missing()) } else { Ok(()) }
}

/// A text in quotes.
pub(crate) fn text(word: &Ident, input: ParseStream<'_>, example: &str) -> Result<LitStr> {
    let text: Result<LitStr> = input.parse();
    text.map_err(|error| Error::new(error.span(), format!("`{word}` is a text; write `{word} = {example}`")))
}
