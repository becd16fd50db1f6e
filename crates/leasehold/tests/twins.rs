//! Nothing asynchronous is without its blocking twin: the sources of both are read and compared.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, with the error it got")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{ImplItem, Item, Type, Visibility};

type Methods = BTreeMap<String, BTreeSet<String>>;

fn sources(folder: &str) -> Vec<syn::File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.map(|path| syn::parse_file(&fs::read_to_string(path).unwrap()).unwrap()).collect()
}

/// What is public and asynchronous in core, by type.
fn asynchronous() -> Methods {
    let mut methods = Methods::new();
    let client = syn::parse_file(include_str!("../../core/src/client.rs")).unwrap();
    for file in sources("../core/src/primitives").into_iter().chain([client]) {
        for item in file.items {
            let Item::Impl(block) = item else { continue };
            let Type::Path(path) = &*block.self_ty else { continue };
            let name = path.path.segments.last().unwrap().ident.to_string();
            for item in block.items {
                if let ImplItem::Fn(function) = item
                    && matches!(function.vis, Visibility::Public(_))
                    && function.sig.asyncness.is_some()
                {
                    methods.entry(name.clone()).or_default().insert(function.sig.ident.to_string());
                }
            }
        }
    }
    methods
}

/// All words that follow a type's name in its front.
fn words(tokens: TokenStream, into: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(word) => drop(into.insert(word.to_string())),
            TokenTree::Group(group) => words(group.stream(), into),
            _ => {}
        }
    }
}

fn fronts() -> Methods {
    let mut fronts = Methods::new();
    for item in sources("src/blocking").into_iter().flat_map(|file| file.items) {
        let (name, tokens) = match item {
            Item::Impl(block) => {
                let Type::Path(path) = &*block.self_ty else { continue };
                let name = path.path.segments.last().unwrap().ident.to_string();
                let functions = block.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
                    _ => None,
                });
                fronts.entry(name).or_default().extend(functions);
                continue;
            }
            // What both kinds of guard have is written once.
            Item::Macro(rules) if rules.ident.as_ref().is_some_and(|name| name == "guard") => {
                (Some("Guard".to_owned()), rules.mac.tokens)
            }
            Item::Macro(call) => {
                let name = call.mac.tokens.clone().into_iter().find_map(|token| match token {
                    TokenTree::Ident(name) => Some(name.to_string()),
                    _ => None,
                });
                (name, call.mac.tokens)
            }
            _ => continue,
        };
        if let Some(name) = name {
            words(tokens, fronts.entry(name).or_default());
        }
    }
    fronts
}

/// What a thread has no use for: it asks `check` of what it is lent, and its work is no future whose type could be unknown.
const SPARED: [(&str, &str); 3] = [("Job", "run_boxed"), ("Run", "lost"), ("Watch", "lost")];

#[test]
fn every_asynchronous_method_has_a_blocking_twin() {
    let (asynchronous, fronts) = (asynchronous(), fronts());
    assert!(asynchronous.values().flatten().count() > 40, "core was not read: {asynchronous:?}");
    let mut missing = Vec::new();
    for (name, methods) in &asynchronous {
        let front = fronts.get(name);
        let lacks = |method: &&String| !front.is_some_and(|front| front.contains(*method));
        let lacking = methods.iter().filter(lacks).map(|method| (name.as_str(), method.as_str()));
        missing.extend(lacking.filter(|twin| !SPARED.contains(twin)));
    }
    assert!(missing.is_empty(), "blocking lacks {missing:?}");
}
