//! Leasehold's attributes. Use them through the `leasehold` crate, whose documentation explains them.
//!
//! An attribute is read into `options`, the braces of its key become expressions in `key`, and `expand` puts the body of the
//! function under the lock; `timetable` and `scheduled` are the same for jobs. What is wrong is said where it stands, with what to write instead; what only types can tell is
//! left to traits in `leasehold::attribute`, whose messages say the same.

mod expand;
mod function;
mod key;
mod list;
mod options;
mod scheduled;
mod time;
mod timetable;
mod words;

use proc_macro::TokenStream;
use quote::quote;

/// Holds a lock while the function runs. See `leasehold::locked`.
#[proc_macro_attribute]
pub fn locked(options: TokenStream, item: TokenStream) -> TokenStream {
    written_out(item, |item| expand::locked(options.into(), item))
}

/// Makes a job of a function. See `leasehold::scheduled`.
#[proc_macro_attribute]
pub fn scheduled(options: TokenStream, item: TokenStream) -> TokenStream {
    written_out(item, |item| scheduled::scheduled(options.into(), item))
}

fn written_out(
    item: TokenStream,
    expand: impl FnOnce(&proc_macro2::TokenStream) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let written = proc_macro2::TokenStream::from(item);
    match expand(&written) {
        Ok(tokens) => tokens.into(),
        Err(error) => {
            // The function stays, so that neither its callers nor itself are complained of besides.
            let error = error.to_compile_error();
            quote!(#error #[allow(unused)] #written).into()
        }
    }
}
