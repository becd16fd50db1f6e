//! What stands between the parentheses of `#[scheduled(…)]`: when a job runs, what it is called, how long it may take.
//!
//! The schedule is read here as it will be at run time, so one that is none does not compile.

use std::time::Duration;

use leasehold_schedule::Schedule;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::{
    Error, LitStr, Result,
    parse::{Parse, ParseStream},
};

use crate::{
    list,
    options::{Client, choice},
    time::Time,
};

const WORDS: &[&str] =
    &["cron", "zone", "name", "at_most", "at_least", "jitter", "catch_up", "ttl", "client"];
const CATCH_UP: &[&str] = &["latest", "all", "skip"];

/// How a function is to be run.
#[derive(Default)]
pub(crate) struct Timetable {
    cron: Option<LitStr>,
    zone: Option<LitStr>,
    name: Option<LitStr>,
    pub(crate) client: Client,
    /// The calls of a job's builder that say the rest.
    said: TokenStream,
    has_limit: bool,
}

impl Parse for Timetable {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut timetable = Self::default();
        list::each(input, "cron", "; a job has one schedule", |word, input| timetable.option(word, input))?;
        timetable.check()?;
        Ok(timetable)
    }
}

impl Timetable {
    fn option(&mut self, word: &Ident, input: ParseStream<'_>) -> Result<()> {
        let name = list::known(word, WORDS)?;
        list::value(word, input)?;
        match name.as_str() {
            "cron" => self.cron = Some(list::text(word, input, "\"0 2 * * *\"")?),
            "zone" => self.zone = Some(list::text(word, input, "\"Europe/Berlin\"")?),
            "name" => self.name = Some(list::text(word, input, "\"nightly\"")?),
            "client" => self.client = Client::read(input.parse()?),
            "catch_up" => {
                let catch_up = match choice(input, "catch_up", CATCH_UP)?.to_string().as_str() {
                    "all" => quote!(All),
                    "skip" => quote!(Skip),
                    _ => quote!(Latest),
                };
                self.said.extend(quote!(.catch_up(::leasehold::CatchUp::#catch_up)));
            }
            _ => {
                let least = Duration::from_millis(if name == "at_most" { 100 } else { 0 });
                let time = Time::read(&name, input.parse()?, least)?;
                self.has_limit |= name == "at_most";
                self.said.extend(quote!(.#word(#time)));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let missing = |message| Err(Error::new(Span::call_site(), message));
        let Some(cron) = &self.cron else {
            return missing(
                "say when it runs: `cron = \"0 2 * * *\"` is every day at two, in UTC unless a `zone` is named",
            );
        };
        match &self.name {
            None => {
                return missing(
                    "name the job: `name = \"nightly\"`; it is the same job wherever the name is the same",
                );
            }
            Some(name) if name.value().is_empty() => {
                return Err(Error::new_spanned(
                    name,
                    "a job without a name cannot be told from others; name it",
                ));
            }
            Some(_) => {}
        }
        if !self.has_limit {
            return missing(
                "say how long it may take: `at_most = \"2h\"`; a run that hangs would keep all others from running",
            );
        }
        let zone = self.zone.as_ref();
        if let Some(zone) = zone {
            let usable = Schedule::parse("* * * * *", Some(&zone.value()));
            usable.map_err(|message| Error::new_spanned(zone, message))?;
        }
        let usable = Schedule::parse(&cron.value(), zone.map(LitStr::value).as_deref());
        usable.map(drop).map_err(|message| Error::new_spanned(cron, message))
    }

    /// The calls that make the job out of a client.
    pub(crate) fn job(&self) -> TokenStream {
        let (cron, name, said) = (&self.cron, &self.name, &self.said);
        let zone = self.zone.as_ref().map(|zone| quote!(.zone(#zone)));
        quote!(.job(#name).schedule(#cron) #zone #said).into_token_stream()
    }
}
