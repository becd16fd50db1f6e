//! The function that is to be put under a lock: whether it can be, and what its arguments are called.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, FnArg, ItemFn, Pat, Receiver, ReceiverKind, Result, ReturnType, Signature, TraitItemFn,
    Type, parse_quote,
    spanned::Spanned as _,
    visit::{self, Visit},
};

use crate::{expand::hidden, words::nearest};

/// The function, if it can be locked.
pub(crate) fn read(item: &TokenStream) -> Result<ItemFn> {
    let function: ItemFn = syn::parse2(item.clone()).map_err(|_| misplaced(item))?;
    let signature = &function.sig;
    if let Some(constness) = &signature.constness {
        return Err(Error::new_spanned(constness, "a `const fn` cannot wait for a lock; leave out `const`"));
    }
    let ReturnType::Type(_, returns) = &signature.output else {
        let message = format!(
            "this function returns nothing, so it could not say that the lock was not to be had; \
             write `fn {}(…) -> Result<(), leasehold::Error>` and `Ok(())` at its end",
            signature.ident
        );
        return Err(Error::new_spanned(&signature.ident, message));
    };
    refuse_futures(returns)?;
    Ok(function)
}

/// What can be said of something that is no function with a body.
fn misplaced(item: &TokenStream) -> Error {
    if let Ok(function) = syn::parse2::<TraitItemFn>(item.clone()) {
        let message =
            "there is nothing to run under the lock here; put `#[locked]` on the functions of each `impl`";
        return Error::new_spanned(function.sig, message);
    }
    let message = "`#[locked]` goes on a function: `fn` or `async fn`, free or in an `impl`";
    let first = item.clone().into_iter().next();
    Error::new(first.map_or_else(proc_macro2::Span::call_site, |token| token.span()), message)
}

/// A lock around making a future is released before the future has done anything.
fn refuse_futures(returns: &Type) -> Result<()> {
    struct Hidden(bool);
    impl Visit<'_> for Hidden {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let path = if let Type::Path(path) = returns { path.path.segments.last() } else { None };
    if path.is_some_and(|last| last.ident == "Pin") {
        let message = "this function returns before its work begins, so the lock would be free again by then; put \
                       `#[locked]` on an `async fn` (with #[async_trait]: on one of its own that this method calls)";
        return Err(Error::new(returns.span(), message));
    }
    let mut hidden = Hidden(false);
    hidden.visit_type(returns);
    if hidden.0 {
        let message = "`#[locked]` must know what is returned; write the type instead of `impl …`, \
                       and `async fn` instead of `impl Future`";
        return Err(Error::new(returns.span(), message));
    }
    Ok(())
}

/// What a key's expressions can speak of.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    names: Vec<Ident>,
    has_self: bool,
}

impl Arguments {
    pub(crate) fn of(signature: &Signature) -> Self {
        let mut arguments = Self::default();
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(_) => arguments.has_self = true,
                FnArg::Typed(typed) => arguments.visit_pat(&typed.pat),
            }
        }
        arguments
    }

    /// What is wrong with an expression that begins with this name; only what certainly is wrong.
    pub(crate) fn refusal(&self, name: &Ident) -> Option<String> {
        let name = name.to_string();
        if name == "self" {
            return (!self.has_self).then(|| "this function has no `self`".to_owned());
        }
        // Constants and types are not in lower case, and what stands in a module has its path before it.
        let known: Vec<String> = self.names.iter().map(Ident::to_string).collect();
        if known.contains(&name) || !name.starts_with(char::is_lowercase) {
            return None;
        }
        let instead = match nearest(&name, known.iter().map(String::as_str)) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None if known.is_empty() => "; this function has none".to_owned(),
            None => format!("; there are `{}`", known.join("`, `")),
        };
        Some(format!("there is no argument `{name}`{instead}"))
    }
}

impl Visit<'_> for Arguments {
    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        self.names.push(pattern.ident.clone());
        visit::visit_pat_ident(self, pattern);
    }
}

/// What a function is given to keep: it is named at the beginning of the body, so that the body has all of it. A closure
/// takes along only what it names, and of that only the fields.
///
/// What a pattern leaves out of an argument, as in `(order, _)`, stays behind and is dropped after the release.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    names: Vec<TokenStream>,
}

impl Owned {
    /// Gives a name to what has none: `_` stays where it is until the function ends.
    pub(crate) fn of(signature: &mut Signature) -> Self {
        let mut owned = Self::default();
        for (at, input) in signature.inputs.iter_mut().enumerate() {
            match input {
                FnArg::Receiver(receiver) if !is_self_borrowed(receiver) => {
                    let name = receiver.self_token;
                    owned.names.push(quote!(let _ = &#name;));
                }
                FnArg::Typed(typed) if !is_borrowed(&typed.ty) => {
                    if let Pat::Wild(_) = &*typed.pat {
                        let name = hidden(&format!("unnamed_{at}"));
                        *typed.pat = parse_quote!(#name);
                    }
                    owned.take(&typed.pat, &typed.attrs);
                }
                _ => {}
            }
        }
        owned
    }

    fn take(&mut self, pattern: &Pat, attributes: &[Attribute]) {
        let mut arguments = Arguments::default();
        arguments.visit_pat(pattern);
        let there = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
        let there = quote!(#(#there)*);
        // A name that begins with `_` says that the body does not use it, and it does not.
        let there = quote!(#there #[allow(clippy::used_underscore_binding)]);
        self.names.extend(arguments.names.iter().map(|name| quote!(#there let _ = &#name;)));
    }
}

/// The last argument first: so they are dropped in any function.
impl ToTokens for Owned {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(self.names.iter().rev().cloned());
    }
}

/// A borrow does nothing when it is dropped.
fn is_borrowed(of: &Type) -> bool {
    matches!(of, Type::Reference(_))
}

fn is_self_borrowed(receiver: &Receiver) -> bool {
    match &receiver.kind {
        ReceiverKind::Reference(..) => true,
        ReceiverKind::Typed(_, of) => is_borrowed(of),
        _ => false,
    }
}
