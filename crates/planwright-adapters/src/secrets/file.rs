//! Secrets in files that only their owner can read.

use super::{missing, unreadable};
use planwright_core::secret::{SecretName, SecretText};
use planwright_engine::port::SecretError;
use rustix::process::getuid;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use zeroize::Zeroizing;

pub(super) fn read(name: &SecretName, path: &Path) -> Result<Zeroizing<String>, SecretError> {
    let path = if path.is_dir() {
        path.join(name.as_str())
    } else {
        path.to_owned()
    };
    let shown = path.display();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => missing(name, format!("there is no file {shown}")),
        _ => unreadable(name, format!("{shown}: {error}")),
    };
    // What is checked is the file that was opened, regardless of where the path leads by then.
    let file = File::open(&path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(unreadable(name, format!("{shown} is not a file")));
    }
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        return Err(unreadable(
            name,
            format!("{shown} is open to others (mode {mode:o}): chmod 600 {shown}"),
        ));
    }
    let user = getuid().as_raw();
    if found.uid() != user && found.uid() != 0 {
        return Err(unreadable(
            name,
            format!("{shown} belongs to another user ({})", found.uid()),
        ));
    }
    let limit = SecretText::MAX_BYTES as u64 + 3;
    let mut bytes = Zeroizing::new(Vec::with_capacity(SecretText::MAX_BYTES + 3));
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    let text = str::from_utf8(&bytes)
        .map_err(|_| unreadable(name, format!("{shown} is not UTF-8 text")))?;
    // Editors end the last line; that end is not a part of the secret.
    let text = text
        .strip_suffix('\n')
        .map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    Ok(Zeroizing::new(text.to_owned()))
}
