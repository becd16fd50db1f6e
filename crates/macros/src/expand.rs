//! The function with its body under the lock.
//!
//! The body becomes an `async` block, or a closure in a synchronous function, so that `return` and `?` end it and nothing
//! else: the release comes after it whatever it does. It is handed to `leasehold::attribute` only together with proof
//! that the lock is held; no path leads to it otherwise. What the function owns goes with it and ends with it, under the
//! lock: an argument may do its last work as it is dropped.
//!
//! A name written out here would be read as an item of the user's module if there is one of that name: hence
//! `__leasehold_`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::{Block, Error, Expr, ItemFn, Result, ReturnType, Stmt, spanned::Spanned as _};

use crate::{
    function::{self, Arguments, Owned},
    key::Key,
    options::{Client, Kind, OnBusy, OnLost, Options},
};

/// `#[locked(options)] item`, written out.
pub(crate) fn locked(options: TokenStream, item: &TokenStream) -> Result<TokenStream> {
    let mut function = function::read(item)?;
    let options: Options = syn::parse2(options)?;
    let (arguments, owned) = (Arguments::of(&function.sig), Owned::of(&mut function.sig));
    let body = Body::new(&options, &function, &arguments, owned)?.under_lock(&function.block);
    *function.block = Block {
        brace_token: function.block.brace_token,
        stmts: vec![Stmt::Expr(Expr::Verbatim(body), None)],
    };
    Ok(function.into_token_stream())
}

struct Body<'a> {
    options: &'a Options,
    function: &'a ItemFn,
    owned: Owned,
    keys: Vec<Key>,
    /// Names that the body cannot see.
    answer: Ident,
    wanted: Ident,
    held: Ident,
    error: Ident,
}

impl<'a> Body<'a> {
    fn new(options: &'a Options, function: &'a ItemFn, arguments: &Arguments, owned: Owned) -> Result<Self> {
        if let Some((OnLost::Cancel, at)) = options.on_lost
            && function.sig.asyncness.is_none()
        {
            let message = "a `fn` cannot be stopped where it stands; write `on_lost = finish`, or make it an `async fn`. \
                           Without `on_lost` a loss is an error once it has ended";
            return Err(Error::new(at, message));
        }
        let keys =
            options.keys.iter().cloned().map(|key| Key::read(key, arguments)).collect::<Result<_>>()?;
        Ok(Self {
            options,
            function,
            owned,
            keys,
            answer: hidden("answer"),
            wanted: hidden("wanted"),
            held: hidden("held"),
            error: hidden("error"),
        })
    }

    fn is_async(&self) -> bool {
        self.function.sig.asyncness.is_some()
    }

    fn under_lock(&self, block: &Block) -> TokenStream {
        let Self { answer, wanted, held, error, .. } = self;
        let (made, asked, refused) = (self.answer(), self.wanted(), self.refused());
        let run = format_ident!(
            "{}",
            match self.options.on_lost {
                Some((OnLost::Finish, _)) => "finish",
                _ if self.is_async() => "cancel_if_lost",
                _ => "fail_if_lost",
            }
        );
        let (acquire, run) = if self.is_async() {
            let typed = self.typed(block);
            (quote!(acquire().await), quote!(#run(#held, async move #typed).await))
        } else {
            let (run, returns, owned, stmts) =
                (format_ident!("{run}_here"), self.returns(), &self.owned, &block.stmts);
            (quote!(acquire_here()), quote!(#run(#held, move || -> #returns { #owned #(#stmts)* })))
        };
        // What the options borrow on the way, such as a mutex around the client, ends before the wait begins.
        quote! {
            let #answer = #made;
            let #wanted = #asked;
            let #held = match #wanted.#acquire {
                ::core::result::Result::Ok(#held) => #held,
                ::core::result::Result::Err(#error) => { #refused }
            };
            #answer.#run
        }
    }

    /// The body, which knows what it returns: an `async` block cannot be told, so a first `return` that is never reached
    /// tells it.
    fn typed(&self, block: &Block) -> TokenStream {
        let (returns, owned, stmts, never) = (self.returns(), &self.owned, &block.stmts, hidden("never"));
        quote! {{
            #[allow(unreachable_code, clippy::all, clippy::pedantic)]
            if false {
                let #never: #returns = loop {};
                return #never;
            }
            #owned
            #(#stmts)*
        }}
    }

    fn returns(&self) -> &syn::Type {
        let ReturnType::Type(_, returns) = &self.function.sig.output else {
            unreachable!("a function that returns nothing is refused before")
        };
        returns
    }

    /// How the function says what happened; where its type cannot, this does not compile, and says so at the type.
    fn answer(&self) -> TokenStream {
        let returns = self.returns();
        let skips = matches!(self.options.on_busy, Some(OnBusy::Skip));
        let made = Ident::new(if skips { "skipping" } else { "failing" }, returns.span());
        quote_spanned!(returns.span()=> ::leasehold::attribute::Answer::<#returns>::#made())
    }

    fn wanted(&self) -> TokenStream {
        let Options { wait, ttl, max_hold, reentrant, on_busy, .. } = self.options;
        let (client, kind, name) = (self.client(), self.kind(), &self.function.sig.ident);
        let keys = self.keys.iter().map(Key::name);
        let wait = match (wait, on_busy) {
            (Some(wait), _) => Some(quote!(.wait(#wait))),
            // Whoever says what to do when it is busy does not want to wait for ever.
            (None, Some(_)) => Some(quote!(.wait(::core::time::Duration::ZERO))),
            (None, None) => None,
        };
        let ttl = ttl.as_ref().map(|ttl| quote!(.ttl(#ttl)));
        let max_hold = max_hold.as_ref().map(|max_hold| quote!(.max_hold(#max_hold)));
        let reentrant = reentrant.map(|_| quote!(.reentrant()));
        quote! {
            ::leasehold::attribute::Wanted::new(
                #client,
                [#(#keys),*],
                ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)),
            )
            #kind #wait #ttl #max_hold #reentrant
        }
    }

    fn client(&self) -> TokenStream {
        let found = match &self.options.client {
            Client::Installed => quote!(::leasehold::installed()),
            Client::InstalledAs(name) => quote!(::leasehold::installed_as(#name)),
            Client::Expression(expr) => {
                let of = if self.is_async() { quote!(client) } else { quote!(client_here) };
                return quote_spanned!(expr.span()=> ::leasehold::attribute::#of(&#expr));
            }
        };
        if self.is_async() { found } else { quote!(::leasehold::attribute::here(#found)) }
    }

    fn kind(&self) -> TokenStream {
        match &self.options.kind {
            Kind::Exclusive => quote!(),
            Kind::Read => quote!(.read()),
            Kind::Write => quote!(.write()),
            Kind::Fair => quote!(.fair()),
            Kind::Permits(take, of) => quote!(.permits(#take, #of)),
        }
    }

    /// What becomes of a lock that could not be had: always the end of the function.
    fn refused(&self) -> TokenStream {
        let Self { answer, error, .. } = self;
        let failed = quote!(return #answer.failed(#error));
        let busy = match &self.options.on_busy {
            None | Some(OnBusy::Error | OnBusy::Skip) => return quote!(#failed;),
            Some(OnBusy::Return(expr)) => quote!(return #expr;),
            Some(OnBusy::Call(path)) if self.is_async() => {
                quote_spanned!(path.span()=> return #path(#error).await;)
            }
            Some(OnBusy::Call(path)) => quote_spanned!(path.span()=> return #path(#error);),
        };
        quote! {
            if ::leasehold::attribute::is_busy(&#error) { #busy }
            #failed;
        }
    }
}

/// A name for what is written out, which neither the user's variables nor the user's items have.
pub(crate) fn hidden(name: &str) -> Ident {
    format_ident!("__leasehold_{name}", span = Span::mixed_site())
}
