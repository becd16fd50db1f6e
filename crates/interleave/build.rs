//! Chooses shuttle's mutexes and atomics for this copy of core, and for no other.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=shuttle");
}
