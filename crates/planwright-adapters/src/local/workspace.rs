//! The directory that the file tools cannot leave.
//!
//! A path is walked one name at a time. Each directory is opened relative to the handle of the one
//! before and never through a link; a link is read, and its target walked by the same rules. `..`
//! goes back to a handle the walk came through. So a directory or link that is swapped while the
//! walk is under way can lead to another place in the workspace or to an error, but not outside.
//!
//! Linux can do this in one call (`openat2` with `RESOLVE_BENEATH`). That would need a second way
//! for other systems, and would not say whether the way led through `.plans`; one walk that is
//! always the same is easier to trust.

use crate::scarcity::wait_for_room_blocking;
use planwright_core::run::CallEffect;
use planwright_engine::port::CallError;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat, statat,
};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// The directory of plans, journals and approvals. No tool reads or writes there, regardless of the
/// path.
const PLANS: &str = ".plans";
/// The operator's rules. Tools may read them, as they may be part of a project, but never write
/// them.
const POLICY: &str = "planwright.toml";

const MAX_PATH_BYTES: usize = 4096;
/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

#[cfg(target_os = "linux")]
const SEARCH_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const SEARCH_ONLY: OFlags = OFlags::RDONLY;

/// A fault of a path, or of the file it names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PathFault {
    #[error("is not a usable path")]
    Unusable,
    #[error("lies outside the workspace")]
    Outside,
    #[error("belongs to Planwright and is closed to tools")]
    Protected,
    #[error("does not exist")]
    Missing,
    #[error("is not a directory")]
    NotADirectory,
    #[error("is not a regular file")]
    NotAFile,
    #[error("leads through more than {MAX_LINKS} symbolic links")]
    TooManyLinks,
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
    #[error("is not UTF-8 text")]
    NotUtf8,
    #[error("cannot be used: {0}")]
    Io(Errno),
}

impl PathFault {
    fn code(&self) -> &'static str {
        match self {
            Self::Unusable => "invalid_args",
            Self::Outside => "outside_workspace",
            Self::Protected => "protected",
            Self::Missing => "not_found",
            Self::NotADirectory => "not_a_directory",
            Self::NotAFile => "not_a_file",
            Self::TooManyLinks => "too_many_links",
            Self::TooLarge(_) => "too_large",
            Self::NotUtf8 => "not_utf8",
            Self::Io(_) => "io_error",
        }
    }

    /// Returns whether the system was short of something that it may have again later.
    fn may_pass(&self) -> bool {
        use Errno as E;
        matches!(
            self,
            Self::Io(E::MFILE | E::NFILE | E::NOMEM | E::AGAIN | E::BUSY)
        )
    }

    /// The failure of a call that was given this path.
    pub(super) fn at(self, path: &str) -> CallError {
        self.failure(path, CallEffect::Unknown)
    }

    /// The same for a call that has changed nothing yet.
    pub(super) fn refused_at(self, path: &str) -> CallError {
        self.failure(path, CallEffect::None)
    }

    fn failure(self, path: &str, effect: CallEffect) -> CallError {
        let shown: String = path.chars().take(200).collect();
        CallError::Failed {
            code: self.code().into(),
            message: format!("{shown:?} {self}"),
            retryable: self.may_pass(),
            effect,
        }
    }
}

impl From<Errno> for PathFault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotADirectory,
            // A link took the place of what was there a moment ago, or a directory stands where a
            // file is wanted.
            Errno::LOOP | Errno::ISDIR | Errno::NXIO => Self::NotAFile,
            Errno::NAMETOOLONG | Errno::INVAL => Self::Unusable,
            other => Self::Io(other),
        }
    }
}

impl From<io::Error> for PathFault {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).unwrap_or(Errno::IO).into()
    }
}

/// An open directory that paths are relative to.
#[derive(Debug)]
pub(super) struct Workspace {
    root: PathBuf,
    /// The name the operator uses, which may lead through links.
    alias: PathBuf,
    handle: OwnedFd,
}

/// A name in an open directory of the workspace, or that directory itself.
#[derive(Debug)]
pub(super) struct Place {
    dir: OwnedFd,
    name: Option<OsString>,
    /// From the root of the workspace, without links.
    path: PathBuf,
}

/// The file that must not be entered, recognised under any name.
type Identity = (u64, u64);

impl Workspace {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let root = directory.canonicalize()?;
        let handle = rustix::fs::open(
            &root,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self {
            root,
            alias: std::path::absolute(directory)?,
            handle,
        })
    }

    /// The workspace as a path, for what cannot work on handles. Such a path is a name, not a
    /// guarantee.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Finds a place to read. Its last name may not exist, but is no link.
    pub(super) fn locate(&self, path: &str) -> Result<Place, PathFault> {
        Walk::new(self, path, false)?.go()
    }

    /// Finds a place to write, making the directories on the way.
    pub(super) fn locate_for_writing(&self, path: &str) -> Result<Place, PathFault> {
        let place = Walk::new(self, path, true)?.go()?;
        if is_name(place.path.as_os_str(), POLICY) {
            return Err(PathFault::Protected);
        }
        Ok(place)
    }

    /// The part of a path below the root.
    fn relative<'p>(&self, path: &'p Path) -> Result<&'p Path, PathFault> {
        if path.is_relative() {
            return Ok(path);
        }
        path.strip_prefix(&self.root)
            .or_else(|_| path.strip_prefix(&self.alias))
            .map_err(|_| PathFault::Outside)
    }

    /// Identifies `.plans` as it is at the moment, if it is there. It may be a link to somewhere
    /// else in the workspace.
    pub(super) fn plans(&self) -> Option<Identity> {
        statat(&self.handle, PLANS, AtFlags::empty())
            .ok()
            .map(|stat| identity(&stat))
    }
}

impl Place {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The name in [`Self::dir`], unless the place is that directory itself.
    pub(super) fn file_name(&self) -> Result<&OsStr, PathFault> {
        self.name.as_deref().ok_or(PathFault::NotAFile)
    }

    pub(super) fn is_dir(&self) -> bool {
        self.name.is_none()
    }

    /// Opens the place as a regular file. Opening does not wait, so a pipe without a writer is an
    /// error, not a hang.
    pub(super) fn open_file(&self, flags: OFlags) -> Result<File, PathFault> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let file = open_patiently(self.dir.as_fd(), self.file_name()?, flags, mode)?;
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Err(PathFault::NotAFile);
        }
        Ok(file.into())
    }

    /// The place as a directory.
    pub(super) fn directory(&self) -> Result<BorrowedFd<'_>, PathFault> {
        if let Some(name) = &self.name {
            statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            return Err(PathFault::NotADirectory);
        }
        Ok(self.dir())
    }
}

/// Opens a name in a directory, and waits for a free descriptor if there is none.
fn open_patiently(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    match openat(dir, name, flags, mode) {
        Err(Errno::MFILE | Errno::NFILE) => {
            let opened = wait_for_room_blocking(|| Ok(openat(dir, name, flags, mode)?));
            opened.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }
        opened => opened,
    }
}

/// One path on its way to a [`Place`].
struct Walk<'w> {
    workspace: &'w Workspace,
    plans: Option<Identity>,
    make_directories: bool,
    ahead: VecDeque<OsString>,
    behind: Vec<(OwnedFd, OsString)>,
    links: usize,
}

impl<'w> Walk<'w> {
    fn new(
        workspace: &'w Workspace,
        path: &str,
        make_directories: bool,
    ) -> Result<Self, PathFault> {
        if path.len() > MAX_PATH_BYTES || path.contains('\0') {
            return Err(PathFault::Unusable);
        }
        Ok(Self {
            workspace,
            plans: workspace.plans(),
            make_directories,
            ahead: names(workspace.relative(Path::new(path))?).collect(),
            behind: Vec::new(),
            links: 0,
        })
    }

    fn go(mut self) -> Result<Place, PathFault> {
        while let Some(name) = self.ahead.pop_front() {
            if name == ".." {
                self.behind.pop().ok_or(PathFault::Outside)?;
                continue;
            }
            if self.behind.is_empty() && is_name(&name, PLANS) {
                return Err(PathFault::Protected);
            }
            let flags = SEARCH_ONLY | DIRECTORY;
            match open_patiently(self.here(), &name, flags, Mode::empty()) {
                Ok(dir) => self.enter(dir, name)?,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    match readlinkat(self.here(), &name, Vec::new()) {
                        Ok(target) => {
                            self.follow(Path::new(OsStr::from_bytes(target.as_bytes())))?;
                        }
                        // It is no link, so it is a file.
                        Err(Errno::INVAL) if self.ahead.is_empty() => {
                            return self.arrive(Some(name));
                        }
                        Err(Errno::INVAL) => return Err(PathFault::NotADirectory),
                        Err(other) => return Err(other.into()),
                    }
                }
                Err(Errno::NOENT) if self.ahead.is_empty() => return self.arrive(Some(name)),
                // `missing/../x` is refused rather than leaving a directory behind that the caller
                // did not ask for.
                Err(Errno::NOENT)
                    if self.make_directories && !self.ahead.iter().any(|name| name == "..") =>
                {
                    self.make(&name)?;
                    self.ahead.push_front(name);
                }
                Err(other) => return Err(other.into()),
            }
        }
        self.arrive(None)
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.behind
            .last()
            .map_or_else(|| self.workspace.handle.as_fd(), |(dir, _)| dir.as_fd())
    }

    fn enter(&mut self, dir: OwnedFd, name: OsString) -> Result<(), PathFault> {
        if self.plans == Some(identity(&fstat(&dir)?)) {
            return Err(PathFault::Protected);
        }
        self.behind.push((dir, name));
        Ok(())
    }

    fn follow(&mut self, target: &Path) -> Result<(), PathFault> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(PathFault::TooManyLinks);
        }
        if target.is_absolute() {
            self.behind.clear();
        }
        for name in names(self.workspace.relative(target)?).rev() {
            self.ahead.push_front(name);
        }
        Ok(())
    }

    fn make(&self, name: &OsStr) -> Result<(), PathFault> {
        match mkdirat(self.here(), name, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(sync_dir(self.here())?),
            // Another call made it first.
            Err(Errno::EXIST) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }

    fn arrive(self, name: Option<OsString>) -> Result<Place, PathFault> {
        let path = self
            .behind
            .iter()
            .map(|(_, name)| name)
            .chain(&name)
            .collect();
        // The handle is opened again because a search-only handle cannot be listed or synced.
        let dir = openat(self.here(), ".", OFlags::RDONLY | DIRECTORY, Mode::empty())?;
        Ok(Place { dir, name, path })
    }
}

/// Flags that open a directory as itself or not at all.
pub(super) const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes a change of the directory's entries durable.
pub(super) fn sync_dir(dir: BorrowedFd<'_>) -> rustix::io::Result<()> {
    rustix::fs::fsync(openat(dir, ".", OFlags::RDONLY | DIRECTORY, Mode::empty())?)
}

pub(super) fn identity(stat: &Stat) -> Identity {
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// Compares as a file system that ignores case would, since the workspace may lie on one.
pub(super) fn is_name(name: &OsStr, reserved: &str) -> bool {
    name.as_bytes().eq_ignore_ascii_case(reserved.as_bytes())
}

/// Returns whether an entry at the root of the workspace is closed to tools by its name.
pub(super) fn is_closed(name: &OsStr) -> bool {
    is_name(name, PLANS)
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}
