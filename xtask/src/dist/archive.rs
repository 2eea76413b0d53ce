//! The three formats of archives that packages are: tar, zip and ar, as far as packages use them.
//!
//! Entries are in the order of their paths and belong to root; their time is always the same.

use anyhow::{Context as _, Result, ensure};
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use std::collections::BTreeSet;
use std::io::Write as _;

/// The first moment that a zip file can express: 1980 began.
const TIME: u64 = 315_532_800;
const ZIP_DATE: u16 = 1 << 5 | 1;
/// The size of a block of a tar file, and of the longest path in its header.
const BLOCK: usize = 512;
const MAX_TAR_PATH: usize = 100;

/// A file in an archive.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) path: String,
    pub(super) bytes: &'a [u8],
    pub(super) is_executable: bool,
}

impl<'a> Entry<'a> {
    pub(super) fn text(path: impl Into<String>, text: &'a str) -> Self {
        Self {
            path: path.into(),
            bytes: text.as_bytes(),
            is_executable: false,
        }
    }

    fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }
}

/// Makes a compressed tar file. The folders of the files are entries too: dpkg makes none by itself.
pub(super) fn make_tar_gz(mut entries: Vec<Entry<'_>>, level: Compression) -> Result<Vec<u8>> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let mut out = GzEncoder::new(Vec::new(), level);
    let mut folders = BTreeSet::new();
    for entry in &entries {
        for (end, _) in entry.path.match_indices('/') {
            let folder = &entry.path[..=end];
            if folders.insert(folder) {
                out.write_all(&tar_header(folder, 0, 0o755, b'5')?)?;
            }
        }
        out.write_all(&tar_header(
            &entry.path,
            entry.bytes.len(),
            entry.mode(),
            b'0',
        )?)?;
        out.write_all(entry.bytes)?;
        let padding = entry.bytes.len().next_multiple_of(BLOCK) - entry.bytes.len();
        out.write_all(&[0; BLOCK][..padding])?;
    }
    out.write_all(&[0; 2 * BLOCK])?;
    Ok(out.finish()?)
}

fn tar_header(path: &str, size: usize, mode: u32, kind: u8) -> Result<[u8; BLOCK]> {
    ensure!(path.len() <= MAX_TAR_PATH, "{path} is too long for tar");
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, format!("{TIME:011o}").as_bytes());
    // The sum is taken with spaces in its own place.
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    put(265, b"root");
    put(297, b"root");
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Makes a zip file. Its entries stay in the order they are given: a wheel has its record last.
pub(super) fn make_zip(entries: &[Entry<'_>], level: Compression) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let at = u32::try_from(out.len()).context("the zip file is too large")?;
        let described = describe_for_zip(entry, level)?;
        out.extend(b"PK\x03\x04");
        out.extend(&described.common);
        // No further fields.
        out.extend([0; 2]);
        out.extend(entry.path.as_bytes());
        out.extend(described.compressed);

        directory.extend(b"PK\x01\x02");
        // Made on Unix, so that the mode counts, by version 3.0.
        directory.extend([30, 3]);
        directory.extend(&described.common);
        // No further fields, no comment, the first disk, no internal attributes.
        directory.extend([0; 8]);
        directory.extend(((0o100_000 | entry.mode()) << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(entry.path.as_bytes());
    }
    let at = u32::try_from(out.len()).context("the zip file is too large")?;
    let size = u32::try_from(directory.len())?;
    let count = u16::try_from(entries.len())?;
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(size.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0; 2]);
    Ok(out)
}

/// A file of a zip file, and the fields that its two headers share.
struct Described {
    common: Vec<u8>,
    compressed: Vec<u8>,
}

fn describe_for_zip(entry: &Entry<'_>, level: Compression) -> Result<Described> {
    const VERSION: u16 = 20;
    const DEFLATED: u16 = 8;
    let mut encoder = DeflateEncoder::new(Vec::new(), level);
    encoder.write_all(entry.bytes)?;
    let compressed = encoder.finish()?;
    let mut crc = Crc::new();
    crc.update(entry.bytes);
    let mut common = Vec::new();
    for field in [VERSION, 0, DEFLATED, 0, ZIP_DATE] {
        common.extend(field.to_le_bytes());
    }
    common.extend(crc.sum().to_le_bytes());
    common.extend(u32::try_from(compressed.len())?.to_le_bytes());
    common.extend(u32::try_from(entry.bytes.len())?.to_le_bytes());
    common.extend(u16::try_from(entry.path.len())?.to_le_bytes());
    Ok(Described { common, compressed })
}

/// Makes an ar file, as packages of Debian are.
pub(super) fn make_ar(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in entries {
        let size = bytes.len();
        let header = format!("{name:<16}{TIME:<12}{:<6}{:<6}100644  {size:<10}`\n", 0, 0);
        out.extend(header.as_bytes());
        out.extend(*bytes);
        if size % 2 == 1 {
            out.push(b'\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    fn entries() -> Vec<Entry<'static>> {
        let program = Entry {
            path: "b/bin/run".to_owned(),
            bytes: b"#!/bin/sh\necho hello\n",
            is_executable: true,
        };
        vec![program, Entry::text("a.txt", "text\n")]
    }

    /// Runs a program of the system in a folder that has the archive `it`, and returns what it says.
    fn ask(archive: &[u8], program: &str, args: &[&str]) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("it"), archive).unwrap();
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(folder.path())
            .env("TZ", "UTC");
        let output = command.output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{complaint}");
        (folder, String::from_utf8(output.stdout).unwrap())
    }

    fn says_hello(program: &Path) {
        let output = Command::new(program).output().unwrap();
        assert_eq!(output.stdout, b"hello\n");
    }

    #[test]
    fn tar_reads_our_tar_files() {
        let archive = make_tar_gz(entries(), Compression::best()).unwrap();
        let (folder, _) = ask(&archive, "tar", &["-xzf", "it"]);
        says_hello(&folder.path().join("b/bin/run"));
        let (_, listed) = ask(&archive, "tar", &["-tvzf", "it"]);
        let lines: Vec<&str> = listed.lines().collect();
        assert_eq!(lines.len(), 4, "{listed}");
        assert!(lines[0].starts_with("-rw-r--r-- root/root"), "{listed}");
        assert!(lines[0].ends_with("1980-01-01 00:00 a.txt"), "{listed}");
        assert!(lines[1].starts_with("drwxr-xr-x"), "{listed}");
        assert!(lines[3].starts_with("-rwxr-xr-x"), "{listed}");
    }

    #[test]
    fn a_path_that_tar_cannot_hold_is_refused() {
        let long = "x".repeat(MAX_TAR_PATH + 1);
        let made = make_tar_gz(vec![Entry::text(long, "")], Compression::fast());
        assert!(made.is_err());
    }

    #[test]
    fn python_reads_our_zip_files() {
        let archive = make_zip(&entries(), Compression::best()).unwrap();
        let script = "import zipfile\nz = zipfile.ZipFile('it')\nassert z.testzip() is None\n\
            for i in z.infolist(): print(i.filename, oct(i.external_attr >> 16), i.date_time, z.read(i))";
        let (_, listed) = ask(&archive, "python3", &["-c", script]);
        let expected = "b/bin/run 0o100755 (1980, 1, 1, 0, 0, 0) b'#!/bin/sh\\necho hello\\n'\n\
            a.txt 0o100644 (1980, 1, 1, 0, 0, 0) b'text\\n'\n";
        assert_eq!(listed, expected);
    }

    #[test]
    fn ar_reads_our_ar_files() {
        let archive = make_ar(&[("odd", b"abc"), ("even", b"abcd")]);
        let (folder, _) = ask(&archive, "ar", &["x", "it"]);
        for (name, bytes) in [("odd", &b"abc"[..]), ("even", b"abcd")] {
            assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), bytes);
        }
    }
}
