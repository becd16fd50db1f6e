//! What no compiler checks: sizes of files and functions, headers, and a word on cancel safety at every public
//! `async fn`. The rules are in CONTRIBUTING.md.

use std::{
    fs,
    path::{Path, PathBuf},
};

use quote::ToTokens as _;
use syn::{spanned::Spanned as _, visit::Visit};

use crate::steps::{self, Outcome};

/// Longest file, not counting the tests in it.
const FILE: usize = 400;
/// Longest function.
const FUNCTION: usize = 60;

/// Where our sources are.
const FOLDERS: &[&str] = &["crates", "examples", "interop", "xtask", "bench"];

/// Checks every source file; all findings are said before it fails.
pub(crate) fn run() -> Outcome {
    steps::say("==> tidy");
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(Path::new(folder), &mut files).map_err(|error| format!("cannot read {folder}: {error}"))?;
    }
    files.sort();
    let findings: Vec<String> = files.iter().flat_map(|file| check(file)).collect();
    for finding in &findings {
        steps::say(finding);
    }
    match findings.len() {
        0 => {
            steps::say(&format!("{} files are tidy", files.len()));
            Ok(())
        }
        count => Err(format!("{count} findings")),
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn check(file: &Path) -> Vec<String> {
    let name = file.display();
    let Ok(text) = fs::read_to_string(file) else { return vec![format!("{name}: cannot be read")] };
    let mut findings = Vec::new();
    if !text.starts_with("//!") && !text.starts_with("#![doc") {
        findings.push(format!("{name}:1: a file begins with //! and what it is for"));
    }
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
    if lines > FILE {
        findings.push(format!("{name}: {lines} lines without tests; {FILE} is the limit: split it by noun"));
    }
    match syn::parse_file(&text) {
        Ok(tree) => {
            let mut functions = Functions { file: name.to_string(), is_test: is_test(file), findings };
            functions.visit_file(&tree);
            functions.findings
        }
        Err(error) => {
            findings.push(format!("{name}: {error}"));
            findings
        }
    }
}

fn is_test(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests")
}

struct Functions {
    file: String,
    is_test: bool,
    findings: Vec<String>,
}

impl Functions {
    fn length(&mut self, signature: &syn::Signature, whole: proc_macro2::Span) {
        let (start, end) = (signature.span().start().line, whole.end().line);
        let lines = end + 1 - start;
        if lines > FUNCTION {
            let name = &signature.ident;
            self.findings
                .push(format!("{}:{start}: {name} has {lines} lines; {FUNCTION} is the limit", self.file));
        }
    }

    /// A public `async fn` says what dropping its future does.
    fn cancel_safety(&mut self, attributes: &[syn::Attribute], public: bool, signature: &syn::Signature) {
        if self.is_test || !public || signature.asyncness.is_none() {
            return;
        }
        let docs: String =
            attributes.iter().map(|attribute| attribute.to_token_stream().to_string()).collect();
        if !docs.contains("# Cancel safety") {
            let (line, name) = (signature.span().start().line, &signature.ident);
            self.findings.push(format!("{}:{line}: {name} has no \"# Cancel safety\"", self.file));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.length(&item.sig, item.span());
        self.cancel_safety(&item.attrs, matches!(item.vis, syn::Visibility::Public(_)), &item.sig);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.length(&item.sig, item.span());
        self.cancel_safety(&item.attrs, matches!(item.vis, syn::Visibility::Public(_)), &item.sig);
        syn::visit::visit_impl_item_fn(self, item);
    }
}
