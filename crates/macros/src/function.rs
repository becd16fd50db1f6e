//! The function that is to be put under a lock: whether it can be, and what its arguments are called.

use proc_macro2::{Ident, TokenStream};
use syn::{
    Error, FnArg, ItemFn, Result, ReturnType, Signature, TraitItemFn, Type,
    spanned::Spanned as _,
    visit::{self, Visit},
};

use crate::words::nearest;

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
    names: Vec<String>,
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
        if self.names.contains(&name) || !name.starts_with(char::is_lowercase) {
            return None;
        }
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let instead = match nearest(&name, known.iter().copied()) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None if known.is_empty() => "; this function has none".to_owned(),
            None => format!("; there are `{}`", known.join("`, `")),
        };
        Some(format!("there is no argument `{name}`{instead}"))
    }
}

impl Visit<'_> for Arguments {
    fn visit_pat_ident(&mut self, pattern: &syn::PatIdent) {
        self.names.push(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}
