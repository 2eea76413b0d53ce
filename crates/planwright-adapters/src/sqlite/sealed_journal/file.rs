//! The format of a sealed file: lines of JSON, described in `docs/store.md`.
//!
//! The first line says whose journal it is, one line per entry follows, then, in a file that is to
//! be taken away, the large values, and the last line says where the journal ends and what the
//! digest of everything before it is. Entries stand there as the database has them: in an encrypted
//! store they stay encrypted.

use crate::files::nofollow;
use crate::files::{WriteFileError, create_temporary};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use planwright_core::digest::Digest;
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::crash;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{
    self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The format this program writes.
const FORMAT: u32 = 1;
const MAGIC: &str = "sealed journal";
/// A longer line is not read: no entry and no large value is that long.
const MAX_LINE_BYTES: u64 = 1 << 30;

/// The first line of a sealed file. Texts are as the database has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    pub(super) planwright: String,
    pub(super) format: u32,
    pub(super) stream: String,
    pub(super) plan: Option<String>,
    pub(super) status: Option<String>,
    pub(super) label: Option<String>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    /// The key that the entries are encrypted with, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
}

impl Header {
    pub(super) fn new(stream: &StreamName, key: Option<&str>) -> Self {
        Self {
            planwright: MAGIC.to_owned(),
            format: FORMAT,
            stream: stream.to_string(),
            plan: None,
            status: None,
            label: None,
            created_at: 0,
            updated_at: 0,
            key: key.map(str::to_owned),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine {
    seq: u64,
    at: i64,
    epoch: u64,
    ordinal: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    hash: Digest,
    /// The body as text, or, where it is not text, as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArtifactLine {
    artifact: String,
    bytes: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndLine {
    end: End,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    seq: u64,
    hash: Digest,
    /// The digest of all lines before this one.
    digest: Digest,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Line {
    Entry(EntryLine),
    Artifact(ArtifactLine),
    End(EndLine),
}

/// An entry as the database keeps it, with its place in the order over all streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sqlite) struct SealedEntry {
    pub(in crate::sqlite) ordinal: i64,
    pub(in crate::sqlite) kept: Record,
}

/// A large value as it is kept: the name of its file, and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SealedArtifact {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// The reason a sealed file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadSealedError {
    #[error("it is missing")]
    Missing,
    #[error("it is no sealed journal")]
    NotSealed,
    #[error("it has format {0}, which this version of planwright does not know")]
    Newer(u32),
    #[error("line {0} cannot be read: the file was changed or cut")]
    Line(u64),
    #[error("it ends too early: the file was cut")]
    Cut,
    #[error("its content is not what was sealed: the file was changed")]
    Changed,
    #[error("{0}")]
    Chain(String),
    #[error("its entries are encrypted with another key than the store's")]
    OtherKey,
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl EntryLine {
    fn new(entry: &SealedEntry) -> Self {
        let SealedEntry { ordinal, kept } = entry;
        let text = std::str::from_utf8(&kept.body).ok().map(str::to_owned);
        Self {
            seq: kept.seq,
            at: kept.at.as_millis(),
            epoch: kept.epoch,
            ordinal: *ordinal,
            key: kept.key.clone(),
            hash: kept.hash,
            bytes: text.is_none().then(|| BASE64.encode(&kept.body)),
            body: text,
        }
    }

    fn entry(self) -> Option<SealedEntry> {
        let body = match (self.body, self.bytes) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(bytes)) => BASE64.decode(bytes).ok()?,
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(SealedEntry {
            ordinal: self.ordinal,
            kept: Record {
                seq: self.seq,
                at: Timestamp::from_millis(self.at),
                epoch: self.epoch,
                key: self.key,
                body,
                hash: self.hash,
            },
        })
    }
}

/// A sealed file that is being written. Dropped before it is finished, it leaves nothing behind.
pub(super) struct Draft {
    directory: PathBuf,
    path: PathBuf,
    writer: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
    head: Head,
}

/// A sealed file that is in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) name: String,
    pub(super) digest: Digest,
    pub(super) bytes: u64,
}

impl Draft {
    pub(super) fn begin(directory: &Path, header: &Header) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let (path, file) = create_temporary(directory)?;
        let mut draft = Self {
            directory: directory.to_owned(),
            path,
            writer: BufWriter::with_capacity(64 << 10, file),
            hash: Sha256::new(),
            bytes: 0,
            head: Head::EMPTY,
        };
        draft.line(header)?;
        Ok(draft)
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::other)?;
        text.push(b'\n');
        self.hash.update(&text);
        self.bytes += text.len() as u64;
        self.writer.write_all(&text)
    }

    pub(super) fn entry(&mut self, entry: &SealedEntry) -> io::Result<()> {
        self.head = entry.kept.head();
        self.line(&EntryLine::new(entry))
    }

    pub(super) fn artifact(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.line(&ArtifactLine {
            artifact: name.to_owned(),
            bytes: BASE64.encode(bytes),
        })
    }

    /// Writes the last line and makes everything durable.
    fn end(&mut self) -> io::Result<Digest> {
        let digest = Digest::from_bytes(self.hash.clone().finalize().into());
        let Head { seq, hash } = self.head;
        self.line(&EndLine {
            end: End { seq, hash, digest },
        })?;
        self.writer.flush()?;
        self.writer.get_ref().sync_all()?;
        Ok(Digest::from_bytes(self.hash.clone().finalize().into()))
    }

    /// Puts the file in place under a name that tells the stream and the content: what is written
    /// twice is the same file, and a file never replaces another.
    pub(super) fn finish(mut self, stream: &StreamName) -> io::Result<Written> {
        let digest = self.end()?;
        let name = file_name(stream, &digest);
        crash::point("seal: file written");
        std::fs::rename(&self.path, self.directory.join(&name))?;
        crash::point("seal: file renamed");
        File::open(&self.directory)?.sync_all()?;
        let bytes = self.bytes;
        Ok(Written {
            name,
            digest,
            bytes,
        })
    }

    /// Puts the file where a person wants it. Something that is there is not replaced.
    pub(super) fn finish_at(mut self, target: &Path) -> Result<(Digest, u64), WriteFileError> {
        let failed = |source| WriteFileError::Io {
            path: target.into(),
            source,
        };
        let digest = self.end().map_err(failed)?;
        // A link to a name that exists fails; a rename would replace it.
        std::fs::hard_link(&self.path, target).map_err(failed)?;
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(failed)?;
        Ok((digest, self.bytes))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename there is nothing under this name, and that is fine.
        drop(std::fs::remove_file(&self.path));
    }
}

fn file_name(stream: &StreamName, digest: &Digest) -> String {
    let name = match stream {
        StreamName::Plan(id) => format!("plan-{id}"),
        StreamName::Run(id) => format!("run-{id}"),
    };
    format!("{name}.{}.jsonl", digest.short())
}

/// Returns whether a sealed file could have this name.
pub(in crate::sqlite) fn is_sealed_name(name: &str) -> bool {
    let stem = name
        .strip_prefix("run-")
        .or_else(|| name.strip_prefix("plan-"));
    stem.is_some_and(|stem| stem.ends_with(".jsonl") && !stem.contains('/') && !stem.contains(".."))
}

fn open(path: &Path) -> Result<File, ReadSealedError> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nofollow());
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ReadSealedError::Missing),
        opened => Ok(opened?),
    }
}

/// The lines of a file, one after the other.
struct Lines {
    reader: BufReader<File>,
    number: u64,
    offset: u64,
    buffer: Vec<u8>,
}

impl Lines {
    fn new(file: File) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, file),
            number: 0,
            offset: 0,
            buffer: Vec::new(),
        }
    }

    /// The next line with its end; `None` after the last one.
    fn next(&mut self) -> Result<Option<&[u8]>, ReadSealedError> {
        self.buffer.clear();
        let mut limited = (&mut self.reader).take(MAX_LINE_BYTES);
        let read = limited.read_until(b'\n', &mut self.buffer)? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.offset += read;
        if self.buffer.last() != Some(&b'\n') {
            return Err(ReadSealedError::Cut);
        }
        Ok(Some(&self.buffer))
    }

    fn header(&mut self) -> Result<Header, ReadSealedError> {
        let Some(line) = self.next()? else {
            return Err(ReadSealedError::NotSealed);
        };
        let header: Header =
            serde_json::from_slice(line).map_err(|_| ReadSealedError::NotSealed)?;
        if header.planwright != MAGIC {
            return Err(ReadSealedError::NotSealed);
        }
        if header.format != FORMAT {
            return Err(ReadSealedError::Newer(header.format));
        }
        Ok(header)
    }

    fn line(&mut self) -> Result<Option<Line>, ReadSealedError> {
        let number = self.number + 1;
        let Some(line) = self.next()? else {
            return Ok(None);
        };
        let line = serde_json::from_slice(line).map_err(|_| ReadSealedError::Line(number))?;
        Ok(Some(line))
    }
}

/// A sealed file, read and checked from its first to its last byte.
#[derive(Debug)]
pub struct SealedFile {
    pub(super) header: Header,
    pub(super) stream: StreamName,
    /// As the file has it.
    pub(super) head: Head,
    pub(super) digest: Digest,
}

impl SealedFile {
    /// Reads all of a file. It is whole and what was written: its digest and its
    /// numbers are checked here, its chain by the caller that can open its entries.
    pub(super) fn read(
        path: &Path,
        mut entry: impl FnMut(SealedEntry) -> Result<(), ReadSealedError>,
        mut artifact: impl FnMut(SealedArtifact) -> Result<(), ReadSealedError>,
    ) -> Result<Self, ReadSealedError> {
        let mut lines = Lines::new(open(path)?);
        let mut hash = Sha256::new();
        let header = lines.header()?;
        hash.update(&lines.buffer);
        let stream = header
            .stream
            .parse()
            .map_err(|_| ReadSealedError::NotSealed)?;
        let mut head = Head::EMPTY;
        loop {
            let before = Digest::from_bytes(hash.clone().finalize().into());
            let Some(line) = lines.line()? else {
                return Err(ReadSealedError::Cut);
            };
            hash.update(&lines.buffer);
            let number = lines.number;
            match line {
                Line::Entry(line) => {
                    let found = line.entry().ok_or(ReadSealedError::Line(number))?;
                    head = found.kept.head();
                    entry(found)?;
                }
                Line::Artifact(line) => {
                    let bytes = BASE64.decode(&line.bytes);
                    let bytes = bytes.map_err(|_| ReadSealedError::Line(number))?;
                    artifact(SealedArtifact {
                        name: line.artifact,
                        bytes,
                    })?;
                }
                Line::End(EndLine { end }) => {
                    let is_last = lines.next()?.is_none();
                    let told = Head {
                        seq: end.seq,
                        hash: end.hash,
                    };
                    if !is_last || end.digest != before || told != head {
                        return Err(ReadSealedError::Changed);
                    }
                    let digest = Digest::from_bytes(hash.finalize().into());
                    return Ok(Self {
                        header,
                        stream,
                        head,
                        digest,
                    });
                }
            }
        }
    }

    /// The journal that the file holds.
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// The number of its last entry.
    pub fn entries(&self) -> u64 {
        self.head.seq
    }

    /// Returns whether its entries are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.header.key.is_some()
    }
}

/// Where to begin to read.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) enum After {
    Seq(u64),
    Ordinal(i64),
}

/// The directory of the sealed files of a store, for reading page by page.
#[derive(Debug)]
pub(in crate::sqlite) struct SealedFiles {
    directory: PathBuf,
    /// The end of the last page, so that the next one does not begin at the first line.
    last: Mutex<Option<Spot>>,
}

#[derive(Debug, Clone)]
struct Spot {
    file: String,
    seq: u64,
    ordinal: i64,
    offset: u64,
}

impl SealedFiles {
    pub(in crate::sqlite) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            last: Mutex::default(),
        }
    }

    pub(in crate::sqlite) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Up to `limit` entries of a file. The chain is checked by the reader.
    pub(in crate::sqlite) fn page(
        &self,
        file: &str,
        after: After,
        (limit, max_bytes): (usize, usize),
    ) -> Result<Vec<SealedEntry>, ReadSealedError> {
        let mut lines = Lines::new(open(&self.directory.join(file))?);
        match self.spot(file, after) {
            Some(spot) => {
                lines.reader.seek(SeekFrom::Start(spot.offset))?;
                lines.offset = spot.offset;
            }
            None => drop(lines.header()?),
        }
        let mut entries: Vec<SealedEntry> = Vec::new();
        let mut bytes = 0;
        while entries.len() < limit && bytes < max_bytes {
            let Some(Line::Entry(line)) = lines.line()? else {
                break;
            };
            let number = lines.number;
            let entry = line.entry().ok_or(ReadSealedError::Line(number))?;
            let is_wanted = match after {
                After::Seq(after) => entry.kept.seq > after,
                After::Ordinal(after) => entry.ordinal > after,
            };
            if is_wanted {
                bytes += entry.kept.body.len();
                entries.push(entry);
            }
        }
        if let Some(last) = entries.last() {
            let spot = Spot {
                file: file.to_owned(),
                seq: last.kept.seq,
                ordinal: last.ordinal,
                offset: lines.offset,
            };
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(spot);
        }
        Ok(entries)
    }

    /// A place in the file from which everything that is wanted follows.
    fn spot(&self, file: &str, after: After) -> Option<Spot> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_before = |spot: &&Spot| match after {
            After::Seq(after) => spot.seq <= after,
            After::Ordinal(after) => spot.ordinal <= after,
        };
        let spot = last.as_ref().filter(|spot| spot.file == file);
        spot.filter(is_before).cloned()
    }
}
