//! Where the passphrase of an encrypted store comes from: a file, an open descriptor, the
//! configuration, or a person. Never from arguments or the environment, which other processes can
//! see.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, Printer};
use crate::workspace::app::CommandContext;
use planwright_adapters::vault::{Passphrase, ReadPassphraseError};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// What the command line says about the store and how it is opened.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct Unlock {
    /// The store, if it is not the workspace's own: postgres://USER@HOST/DATABASE. Default:
    /// PLANWRIGHT_STORE. The password may be in PGPASSWORD.
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// A file with the passphrase of an encrypted store, readable by its owner only.
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        conflicts_with = "passphrase_fd"
    )]
    passphrase_file: Option<PathBuf>,
    /// The number of an open descriptor to read the passphrase from.
    #[arg(long, global = true, value_name = "N")]
    passphrase_fd: Option<u32>,
    /// What was read before, in place of all of these: a descriptor is read once.
    #[arg(skip)]
    known: Option<KnownPassphrase>,
}

/// A passphrase that a command has read already, or that there is none.
#[derive(Clone)]
struct KnownPassphrase(Option<Passphrase>);

impl fmt::Debug for Unlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address of a store may hold a password.
        f.debug_struct("Unlock").finish_non_exhaustive()
    }
}

impl From<ReadPassphraseError> for Failure {
    fn from(error: ReadPassphraseError) -> Self {
        Self::from_error(Exit::Usage, &error)
    }
}

impl Unlock {
    /// The store that the command line names.
    pub(crate) fn store(&self) -> Option<&str> {
        self.store.as_deref().filter(|text| !text.is_empty())
    }

    /// The same, with this passphrase in place of what files and descriptors hold.
    pub(crate) fn with_passphrase(&self, passphrase: Option<Passphrase>) -> Self {
        Self {
            known: Some(KnownPassphrase(passphrase)),
            ..self.clone()
        }
    }

    /// The passphrase that a file or a descriptor holds, if one is named.
    pub(crate) fn read_passphrase(
        &self,
        context: &CommandContext,
    ) -> Result<Option<Passphrase>, Failure> {
        if let Some(KnownPassphrase(passphrase)) = &self.known {
            return Ok(passphrase.clone());
        }
        let configured = || context.config.passphrase_file(&context.workspace.root);
        let passphrase = match (self.passphrase_fd, &self.passphrase_file) {
            (Some(number), _) => Passphrase::from_descriptor(number)?,
            (None, Some(path)) => Passphrase::from_file(path)?,
            (None, None) => match configured() {
                Some(path) => Passphrase::from_file(&path)?,
                None => return Ok(None),
            },
        };
        keep_to_ourselves();
        Ok(Some(passphrase))
    }

    /// Reads the passphrase of the existing store: from a file, a descriptor or the terminal.
    pub(crate) fn existing(&self, context: &CommandContext) -> Result<Passphrase, Failure> {
        match self.read_passphrase(context)? {
            Some(passphrase) => Ok(passphrase),
            None => ask(context.printer, "Passphrase:"),
        }
    }

    /// A passphrase that is being set: typed twice, or from a file.
    pub(crate) fn new_one(&self, context: &CommandContext) -> Result<Passphrase, Failure> {
        match self.read_passphrase(context)? {
            Some(passphrase) => {
                passphrase.check_strength()?;
                Ok(passphrase)
            }
            None => ask_new(context.printer),
        }
    }
}

/// A dump of this process's memory would hold the key.
fn keep_to_ourselves() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    // If the limit cannot be lowered, nothing else changes.
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
}

/// Asks for a new passphrase, twice.
pub(crate) fn ask_new(printer: Printer) -> Result<Passphrase, Failure> {
    let first = ask(printer, "New passphrase:")?;
    first.check_strength()?;
    if !first.is(&ask(printer, "Once more:")?) {
        return Err(Failure::usage("the two are not the same"));
    }
    Ok(first)
}

/// Asks on the terminal, without showing what is typed.
pub(crate) fn ask(printer: Printer, question: &str) -> Result<Passphrase, Failure> {
    if !printer.can_ask() {
        return Err(Failure::new(Exit::Locked, "the store is encrypted, and there is no terminal to ask for the passphrase")
            .hint(
                "--passphrase-file PATH, --passphrase-fd N, or [store] passphrase_file in planwright.toml",
            ));
    }
    keep_to_ourselves();
    let failed = |error: io::Error| Failure::new(Exit::Locked, format!("cannot ask: {error}"));
    let mut err = io::stderr().lock();
    // Echo is off before the question is shown, so that early keystrokes are not shown either.
    let silence = Silence::begin().map_err(failed)?;
    write!(err, "{} ", printer.err(BOLD, question))
        .and_then(|()| err.flush())
        .map_err(failed)?;
    let typed = read_typed().map_err(failed);
    drop(silence);
    drop(writeln!(err));
    let typed = typed?.ok_or_else(|| Failure::new(Exit::Interrupted, "interrupted"))?;
    Ok(Passphrase::new(typed)?)
}

/// A terminal that shows nothing and sends every key at once; as it was before when this is
/// dropped.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        // An interrupt comes as a key, so that the terminal is never left silent.
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // There is nothing else to try.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// One line, key by key; `None` if it was interrupted.
fn read_typed() -> io::Result<Option<Zeroizing<String>>> {
    let mut typed = Zeroizing::new(Vec::with_capacity(Passphrase::MAX_BYTES + 8));
    let mut input = io::stdin().lock();
    let mut key = [0];
    loop {
        if input.read(&mut key)? == 0 {
            return Ok(None);
        }
        match key[0] {
            b'\n' | b'\r' => break,
            3 | 4 | 28 => return Ok(None),
            8 | 127 => {
                // A character may have several bytes.
                while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            21 => typed.clear(),
            byte if typed.len() <= Passphrase::MAX_BYTES => typed.push(byte),
            _ => {}
        }
    }
    let text = str::from_utf8(&typed).map_err(|_| io::Error::other("what was typed is no text"))?;
    Ok(Some(Zeroizing::new(text.to_owned())))
}
