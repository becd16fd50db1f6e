//! What stands between the parentheses of `#[locked(…)]`.

use std::time::Duration;

use proc_macro2::{Ident, Span};
use syn::{
    Error, Expr, ExprLit, ExprPath, Lit, LitStr, Result, Token,
    ext::IdentExt as _,
    parenthesized,
    parse::{Parse, ParseStream, Parser as _},
    punctuated::Punctuated,
    spanned::Spanned as _,
    token::Paren,
};

use crate::{list, time::Time};

const WORDS: &[&str] =
    &["key", "client", "wait", "ttl", "max_hold", "kind", "reentrant", "on_busy", "on_lost"];
const KINDS: &[&str] = &["read", "write", "fair", "permits(take, of)"];
const BUSY: &[&str] = &["error", "skip", "return(expression)", "call(function)"];
const LOST: &[&str] = &["cancel", "finish"];

/// How a function is to be locked.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) keys: Vec<LitStr>,
    pub(crate) client: Client,
    pub(crate) wait: Option<Time>,
    pub(crate) ttl: Option<Time>,
    pub(crate) max_hold: Option<Time>,
    pub(crate) kind: Kind,
    pub(crate) reentrant: Option<Span>,
    pub(crate) on_busy: Option<OnBusy>,
    pub(crate) on_lost: Option<(OnLost, Span)>,
}

/// Whose lock it is.
#[derive(Default)]
pub(crate) enum Client {
    #[default]
    Installed,
    InstalledAs(LitStr),
    Expression(Box<Expr>),
}

/// How it is held.
#[derive(Default)]
pub(crate) enum Kind {
    #[default]
    Exclusive,
    Read,
    Write,
    Fair,
    Permits(Box<Expr>, Box<Expr>),
}

/// What to do when somebody else has it.
pub(crate) enum OnBusy {
    Error,
    Skip,
    Return(Box<Expr>),
    Call(ExprPath),
}

/// What to do when it is lost while the function runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLost {
    Cancel,
    Finish,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        list::each(input, "key", "; for several keys write `key = [\"a\", \"b\"]`", |word, input| {
            options.option(word, input)
        })?;
        options.check()?;
        Ok(options)
    }
}

impl Options {
    fn option(&mut self, word: &Ident, input: ParseStream<'_>) -> Result<()> {
        let name = list::known(word, WORDS)?;
        if name == "reentrant" {
            if input.peek(Token![=]) {
                return Err(input.error("write `reentrant` alone; leave it out where it is not wanted"));
            }
            self.reentrant = Some(word.span());
            return Ok(());
        }
        list::value(word, input)?;
        match name.as_str() {
            "key" => self.keys = keys(input.parse()?)?,
            "client" => self.client = Client::read(input.parse()?),
            "wait" => self.wait = Some(Time::read("wait", input.parse()?, Duration::ZERO)?),
            "ttl" => self.ttl = Some(Time::read("ttl", input.parse()?, Duration::from_millis(1))?),
            "max_hold" => {
                self.max_hold = Some(Time::read("max_hold", input.parse()?, Duration::from_millis(100))?);
            }
            "kind" => self.kind = Kind::read(input)?,
            "on_busy" => self.on_busy = Some(OnBusy::read(input)?),
            _ => {
                let at = input.span();
                self.on_lost = Some((OnLost::read(input)?, at));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if self.keys.is_empty() {
            let message = "say what to lock: `#[locked(key = \"order:{order.id}\")]`";
            return Err(Error::new(Span::call_site(), message));
        }
        match (&self.kind, self.reentrant) {
            (Kind::Permits(..), Some(at)) => {
                let message = "permits cannot be entered again, they are only counted; leave out `reentrant`, and take \
                               as many as are needed at once";
                Err(Error::new(at, message))
            }
            _ => Ok(()),
        }
    }
}

/// One text, or several in brackets.
fn keys(expr: Expr) -> Result<Vec<LitStr>> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(key), .. }) => Ok(vec![key]),
        Expr::Array(keys) if !keys.elems.is_empty() => {
            keys.elems.into_iter().map(keys_of_one).collect::<Result<Vec<_>>>()
        }
        other => Err(not_a_key(&other)),
    }
}

fn keys_of_one(expr: Expr) -> Result<LitStr> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Str(key), .. }) => Ok(key),
        other => Err(not_a_key(&other)),
    }
}

fn not_a_key(expr: &Expr) -> Error {
    let message = "a key is a text in quotes with expressions in braces; write `key = \"order:{order.id}\"`, \
                   or `key = [\"a\", \"b\"]` for several";
    Error::new(expr.span(), message)
}

impl Client {
    pub(crate) fn read(expr: Expr) -> Self {
        match expr {
            Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => Self::InstalledAs(name),
            other => Self::Expression(Box::new(other)),
        }
    }
}

/// A word out of a few, with what it has in parentheses.
pub(crate) fn choice(input: ParseStream<'_>, option: &str, known: &[&str]) -> Result<Ident> {
    let refuse = |word: &str| format!("`{option}` is one of {}{word}", known.join(", "));
    let word = input.call(Ident::parse_any).map_err(|error| Error::new(error.span(), refuse("")))?;
    let bare = |known: &&str| known.split('(').next().is_some_and(|known| word == known);
    if known.iter().any(bare) {
        return Ok(word);
    }
    Err(Error::new_spanned(&word, refuse(&format!(", not `{word}`"))))
}

impl Kind {
    fn read(input: ParseStream<'_>) -> Result<Self> {
        let word = choice(input, "kind", KINDS)?;
        match word.to_string().as_str() {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "fair" => Ok(Self::Fair),
            _ => Self::permits(&word, input),
        }
    }

    fn permits(word: &Ident, input: ParseStream<'_>) -> Result<Self> {
        let advice = "write `permits(take, of)`, such as `permits(1, 3)` for one of three";
        let wrong = || Error::new_spanned(word, advice);
        if !input.peek(Paren) {
            return Err(wrong());
        }
        let inside;
        parenthesized!(inside in input);
        let numbers = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(inside.parse()?)?;
        let numbers: Vec<Expr> = numbers.into_iter().collect();
        let Ok([take, of]) = <[Expr; 2]>::try_from(numbers) else { return Err(wrong()) };
        if let (Some(least), Some(most)) = (number(&take), number(&of))
            && (least == 0 || least > most)
        {
            let message = format!("cannot take {least} of {most} permits; take at least 1 and at most all");
            return Err(Error::new(take.span(), message));
        }
        Ok(Self::Permits(Box::new(take), Box::new(of)))
    }
}

/// A number that is known by now.
fn number(expr: &Expr) -> Option<u32> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        _ => None,
    }
}

impl OnBusy {
    fn read(input: ParseStream<'_>) -> Result<Self> {
        let word = choice(input, "on_busy", BUSY)?;
        let name = word.to_string();
        match name.as_str() {
            "error" => return Ok(Self::Error),
            "skip" => return Ok(Self::Skip),
            _ => {}
        }
        let example = if name == "return" { "return(Ok(false))" } else { "call(when_busy)" };
        if !input.peek(Paren) {
            let what = if name == "return" { "what to return" } else { "which function to call" };
            return Err(Error::new_spanned(word, format!("say {what}: `on_busy = {example}`")));
        }
        let inside;
        parenthesized!(inside in input);
        let wrong =
            |error: Error| Error::new(error.span(), format!("{error}; write it like `on_busy = {example}`"));
        if name == "return" {
            return inside.parse().map(|expr| Self::Return(Box::new(expr))).map_err(wrong);
        }
        let path = inside.parse().map_err(wrong)?;
        if !inside.is_empty() {
            let message = "`call` takes the path of a function, which is given the error; to pass arguments write \
                           `on_busy = return(function(arguments))`";
            return Err(inside.error(message));
        }
        Ok(Self::Call(path))
    }
}

impl OnLost {
    fn read(input: ParseStream<'_>) -> Result<Self> {
        let word = choice(input, "on_lost", LOST)?;
        Ok(if word == "cancel" { Self::Cancel } else { Self::Finish })
    }
}
