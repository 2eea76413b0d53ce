//! Reading what the person types: with a line editor at a terminal, line by line from anywhere
//! else.
//!
//! Reading blocks, so it has a thread of its own. It reads only on request: a prompt shown in
//! between has the keyboard for itself.

use super::completion::NameCompleter;
use super::history;
use reedline::{
    ColumnarMenu, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder as _, Prompt,
    PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal,
    ValidationResult, Validator, default_emacs_keybindings,
};
use std::borrow::Cow;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::sync::mpsc;
use tokio::sync::oneshot;

/// The longest message.
const MAX_MESSAGE: usize = 256 << 10;

/// What the person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedInput {
    Line(String),
    /// More than is read as one message.
    TooLong,
    /// Ctrl-C: what was typed is thrown away.
    Nothing,
    End,
}

/// Reads one message at a time.
#[derive(Debug)]
pub(super) struct Editor {
    wanted: mpsc::Sender<oneshot::Sender<TypedInput>>,
}

impl Editor {
    /// `keep` says whether what was typed may be kept for the next time. `prompts` turns the
    /// prompt on where there is no line editor.
    pub(super) fn start(names: NameCompleter, keep: bool, prompts: bool) -> Self {
        let (wanted, asked) = mpsc::channel::<oneshot::Sender<TypedInput>>();
        // It ends with the process: a thread that waits for a key cannot be woken.
        std::thread::spawn(move || {
            let mut reader = Reader::new(names, keep, prompts);
            while let Ok(reply) = asked.recv() {
                if reply.send(reader.read()).is_err() {
                    return;
                }
            }
        });
        Self { wanted }
    }

    pub(super) async fn read(&self) -> TypedInput {
        let (reply, typed) = oneshot::channel();
        if self.wanted.send(reply).is_err() {
            return TypedInput::End;
        }
        typed.await.unwrap_or(TypedInput::End)
    }
}

enum Reader {
    Live(Box<Reedline>),
    Plain { prompts: bool },
}

impl Reader {
    fn new(names: NameCompleter, keep: bool, prompts: bool) -> Self {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Self::Plain { prompts };
        }
        let mut keys = default_emacs_keybindings();
        let menu = vec![
            ReedlineEvent::Menu("names".to_owned()),
            ReedlineEvent::MenuNext,
        ];
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(menu),
        );
        let editor = Reedline::create()
            .with_completer(Box::new(names))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(
                ColumnarMenu::default().with_name("names"),
            )))
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_validator(Box::new(BackslashContinues));
        let kept = keep.then(history::file).flatten();
        let history =
            kept.and_then(|path| FileBackedHistory::with_file(history::MAX_LINES, path).ok());
        Self::Live(Box::new(match history {
            Some(history) => editor.with_history(Box::new(history)),
            None => editor,
        }))
    }

    fn read(&mut self) -> TypedInput {
        match self {
            Self::Live(editor) => read_live(editor),
            Self::Plain { prompts } => read_plain(*prompts),
        }
    }
}

fn read_live(editor: &mut Reedline) -> TypedInput {
    match editor.read_line(&ChatPrompt) {
        Ok(Signal::Success(text)) if text.len() > MAX_MESSAGE => TypedInput::TooLong,
        Ok(Signal::Success(text)) => {
            // What cannot be kept is typed again next time.
            drop(editor.sync_history());
            TypedInput::Line(joined(&text))
        }
        Ok(Signal::CtrlC) => TypedInput::Nothing,
        Ok(_) | Err(_) => TypedInput::End,
    }
}

/// The sign before what is typed.
const SIGN: &str = "› ";

/// The prompt of the line editor: the sign, and nothing of the editor's own.
struct ChatPrompt;

impl Prompt for ChatPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(SIGN)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("search: {} ", search.term))
    }
}

/// Lines that end in a backslash are one message.
fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// A line that ends in a backslash goes on.
struct BackslashContinues;

impl Validator for BackslashContinues {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

fn read_plain(prompts: bool) -> TypedInput {
    let mut message = String::new();
    loop {
        if prompts {
            let mut err = io::stderr().lock();
            // A prompt that cannot be written is no reason to stop.
            drop(write!(err, "{SIGN}").and_then(|()| err.flush()));
        }
        let mut line = Vec::new();
        // Read before it is examined: the lock on stdin must be free for the next reader.
        let read = io::stdin()
            .lock()
            .take(MAX_MESSAGE as u64 + 1)
            .read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) if message.is_empty() => return TypedInput::End,
            Ok(0) | Err(_) => return TypedInput::Line(message),
            Ok(_) if message.len() + line.len() > MAX_MESSAGE => {
                skip_line(&line);
                return TypedInput::TooLong;
            }
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        match text.strip_suffix('\\') {
            Some(begun) => {
                message.push_str(begun);
                message.push('\n');
            }
            None => {
                message.push_str(text);
                return TypedInput::Line(message);
            }
        }
    }
}

/// Reads the rest of a line that is too long, and forgets it.
fn skip_line(read: &[u8]) {
    if read.ends_with(b"\n") {
        return;
    }
    let mut piece = Vec::new();
    loop {
        piece.clear();
        let read = io::stdin()
            .lock()
            .take(MAX_MESSAGE as u64)
            .read_until(b'\n', &mut piece);
        match read {
            Ok(0) | Err(_) => return,
            Ok(_) if piece.ends_with(b"\n") => return,
            Ok(_) => {}
        }
    }
}
