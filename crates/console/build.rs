//! Lists the files of the page, so that the binary carries them: `page/` is the list, and there is no other.

use std::{env, fmt::Write as _, fs, io, path::Path};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let mut list = String::from("&[\n");
    add(Path::new("page"), "", &mut list)?;
    list.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("files.rs"), list)
}

fn add(folder: &Path, below: &str, list: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name =
            entry.file_name().into_string().map_err(|_| io::Error::other("a name that is not text"))?;
        let path = format!("{below}/{name}");
        if entry.file_type()?.is_dir() {
            println!("cargo::rerun-if-changed=page{path}");
            add(&entry.path(), &path, list)?;
        } else if !name.starts_with('.') {
            let file = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/page\", {path:?})");
            writeln!(list, "    ({path:?}, include_bytes!({file})),").map_err(io::Error::other)?;
        }
    }
    Ok(())
}
