//! Chooses shuttle's mutexes and atomics for this copy of core, and for no other.

#![expect(clippy::print_stdout, reason = "this is how cargo is told")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=shuttle");
}
