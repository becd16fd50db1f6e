//! Lengths of time: texts are read while compiling, anything else is left to run time.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Error, Expr, ExprLit, Lit, Result};

/// A length of time, as it stands in an attribute.
pub(crate) enum Time {
    Known(Duration),
    /// A `Duration`, or a text, that is known at run time.
    Later(Box<Expr>),
}

impl Time {
    /// Reads it; `least` is the shortest that makes sense.
    pub(crate) fn read(option: &str, expr: Expr, least: Duration) -> Result<Self> {
        let Expr::Lit(ExprLit { lit, .. }) = &expr else { return Ok(Self::Later(Box::new(expr))) };
        let Lit::Str(text) = lit else {
            let message =
                format!("`{option}` needs a unit; write it like {option} = \"5s\" or {option} = \"250ms\"");
            return Err(Error::new_spanned(lit, message));
        };
        let duration = humantime::parse_duration(&text.value()).map_err(|error| {
            let message = format!(
                "{:?} is not a length of time ({error}); write it like \"30s\", \"250ms\" or \"1h 30m\"",
                text.value()
            );
            Error::new_spanned(text, message)
        })?;
        if duration < least {
            let least = humantime::format_duration(least);
            return Err(Error::new_spanned(text, format!("`{option}` must be {least} at least")));
        }
        Ok(Self::Known(duration))
    }
}

impl ToTokens for Time {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Known(duration) => {
                let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
                tokens.extend(quote!(::core::time::Duration::new(#seconds, #nanos)));
            }
            Self::Later(expr) => expr.to_tokens(tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{proptest, test_runner::Config};
    use syn::parse_quote;

    use super::*;

    #[test]
    fn texts_are_read_and_other_expressions_are_left_alone() {
        let read = |expr| Time::read("wait", expr, Duration::ZERO);
        assert!(
            matches!(read(parse_quote!("1m 30s")), Ok(Time::Known(time)) if time == Duration::from_secs(90))
        );
        assert!(matches!(read(parse_quote!(self.patience)), Ok(Time::Later(_))));
        assert!(read(parse_quote!(5)).err().unwrap().to_string().contains("needs a unit"));
    }

    proptest! {
        #![proptest_config(Config { cases: 1000, failure_persistence: None, ..Config::default() })]

        #[test]
        fn no_text_makes_reading_a_time_panic(text in "([0-9]{0,21}[ ]?(ns|ms|s|m|h|days|µs)?[ .]?){0,3}|.{0,20}") {
            drop(Time::read("ttl", parse_quote!(#text), Duration::from_millis(1)));
        }
    }
}
