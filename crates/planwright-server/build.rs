//! Lists the files of the built page (`web/dist`), so that they become part of the program.
//!
//! A list in the source is enough for that, and needs no further crate. Without a built page the
//! list is empty, and the program says on `/` how to build it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = manifest.join("../../web/dist");
    // The folder is always there: a path that does not exist would make cargo build this again each time.
    println!("cargo:rerun-if-changed={}", dist.display());
    println!("cargo:rerun-if-changed=build.rs");
    let mut files = Vec::new();
    if dist.join("index.html").is_file() {
        list_files(&dist, &dist, &mut files)?;
    }
    files.sort();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let mut list = String::from("&[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        // Copied: the page may be built again before the compiler reads what is listed here.
        fs::copy(path, out.join(format!("page_file_{number}")))?;
        let copied = format!("concat!(env!(\"OUT_DIR\"), \"/page_file_{number}\")");
        // Writing to a string cannot fail.
        let _ = writeln!(list, "    ({name:?}, include_bytes!({copied})),");
    }
    list.push(']');
    fs::write(out.join("page_files.rs"), list)
}

fn list_files(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list_files(root, &path, files)?;
            continue;
        }
        let Ok(name) = path.strip_prefix(root) else {
            continue;
        };
        let name = name.to_string_lossy().replace('\\', "/");
        if !name.starts_with('.') {
            files.push((name, path));
        }
    }
    Ok(())
}
