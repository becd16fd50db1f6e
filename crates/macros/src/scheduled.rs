//! The function that makes a job out of its body.
//!
//! `async fn nightly(run: &Run, db: Pool)` becomes `fn nightly(db: Pool) -> Scheduled`: what it is given is cloned for every
//! run, and the body is called with it, once per slot, on one machine of all.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Error, FnArg, ItemFn, Pat, PatType, Result, ReturnType, Signature, Type, parse_quote,
    spanned::Spanned as _,
};

use crate::{expand::hidden, options::Client, timetable::Timetable};

/// `#[scheduled(options)] item`, written out.
pub(crate) fn scheduled(options: TokenStream, item: &TokenStream) -> Result<TokenStream> {
    let mut function = read(item)?;
    let timetable: Timetable = syn::parse2(options)?;
    let given = Given::of(&function.sig)?;
    let (visibility, name, body) = (function.vis.clone(), function.sig.ident.clone(), hidden("body"));
    let attributes = std::mem::take(&mut function.attrs);
    function.vis = syn::Visibility::Inherited;
    function.sig.ident = body.clone();
    let (found, client, job) = (client(&timetable.client), hidden("client"), timetable.job());
    let work = given.work(&body, &function.sig.output);
    let arguments = &given.arguments;
    Ok(quote! {
        #(#attributes)*
        #visibility fn #name(#(#arguments),*) -> ::leasehold::Scheduled {
            #[allow(clippy::unused_async)]
            #function
            ::leasehold::Scheduled::new(#found.map(|#client| #client #job), #work)
        }
    })
}

/// The function, if it can be a job.
fn read(item: &TokenStream) -> Result<ItemFn> {
    let function: ItemFn = syn::parse2(item.clone()).map_err(|_| {
        let first = item.clone().into_iter().next();
        let at = first.map_or_else(Span::call_site, |token| token.span());
        Error::new(at, "`#[scheduled]` goes on an `async fn` that stands by itself")
    })?;
    let signature = &function.sig;
    if let Some(receiver) = signature.receiver() {
        let message = "a job stands by itself and has no `self`; take what it needs as an argument, which is cloned for \
                       every run: `async fn nightly(shop: Arc<Shop>)`";
        return Err(Error::new_spanned(receiver, message));
    }
    if signature.asyncness.is_none() {
        let message =
            "a job is an `async fn`; to run work that blocks, call `tokio::task::spawn_blocking` in it";
        return Err(Error::new_spanned(signature.fn_token, message));
    }
    if let Some(parameter) = signature.generics.params.first() {
        let message = "a job has one name and so one form: it takes no parameters in angle brackets";
        return Err(Error::new_spanned(parameter, message));
    }
    Ok(function)
}

/// What the function is given: the run, if it wants it, and what the caller passes.
struct Given {
    wants_run: bool,
    arguments: Vec<PatType>,
    names: Vec<Ident>,
}

impl Given {
    fn of(signature: &Signature) -> Result<Self> {
        let mut given = Self { wants_run: false, arguments: Vec::new(), names: Vec::new() };
        for (at, input) in signature.inputs.iter().enumerate() {
            let FnArg::Typed(argument) = input else { continue };
            match is_run(&argument.ty) {
                true if at == 0 => given.wants_run = true,
                true => {
                    return Err(Error::new_spanned(
                        argument,
                        "the run comes first, before the other arguments",
                    ));
                }
                false => given.take(argument)?,
            }
        }
        Ok(given)
    }

    fn take(&mut self, argument: &PatType) -> Result<()> {
        if let Type::Reference(reference) = &*argument.ty
            && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static")
        {
            let message = "a job outlives whoever starts it, so it cannot borrow; take the value itself, or an `Arc` of it, \
                           which is cloned for every run";
            return Err(Error::new_spanned(reference, message));
        }
        let Pat::Ident(name) = &*argument.pat else {
            return Err(Error::new_spanned(
                &argument.pat,
                "give this argument a plain name, and take it apart in the body",
            ));
        };
        let name = name.ident.clone();
        self.arguments.push(PatType { pat: parse_quote!(#name), ..argument.clone() });
        self.names.push(name);
        Ok(())
    }

    /// What every run does.
    fn work(&self, body: &Ident, output: &ReturnType) -> TokenStream {
        let (names, run) = (&self.names, hidden("run"));
        let passed = self.wants_run.then(|| quote!(#run,));
        let again = self.arguments.iter().zip(names).map(|(argument, name)| {
            quote_spanned!(argument.ty.span()=> let #name = ::leasehold::attribute::again(&#name);)
        });
        let ended = quote_spanned!(output.span()=> ::leasehold::attribute::ended);
        quote! {
            move |#run: &::leasehold::Run| {
                #(#again)*
                ::std::boxed::Box::pin(async move {
                    let _ = #run;
                    #ended(#body(#passed #(#names),*).await)
                })
            }
        }
    }
}

/// Whether this is how the run is passed.
fn is_run(of: &Type) -> bool {
    let Type::Reference(reference) = of else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Run")
}

/// Whose job it is: a `Result`, since the installed client may be missing.
fn client(client: &Client) -> TokenStream {
    match client {
        Client::Installed => quote!(::leasehold::installed()),
        Client::InstalledAs(name) => quote!(::leasehold::installed_as(#name)),
        Client::Expression(expr) => quote_spanned!(expr.span()=> ::leasehold::attribute::client(&#expr)),
    }
}
