//! What is started or connected to, exactly as a file says it. Trust is bound to this text.

use super::expand::Scope;
use planwright_adapters::mcp::Transport;
use planwright_core::digest::Digest;
use planwright_core::text::sanitize_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// A launch line or an address as it was written, variables and all.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Launch {
    /// `stdio` or `http`; follows from the rest if absent.
    pub(crate) kind: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// A file of more variables. Those of `env` win.
    pub(crate) env_file: Option<String>,
    /// A command that prints more headers as a JSON object.
    pub(crate) headers_helper: Option<String>,
}

/// Servers that are part of the program.
const RESERVED: [&str; 2] = ["local", "demo"];

/// More arguments, variables or headers than this are a mistake.
const MAX_PARTS: usize = 1_000;

pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The names of servers are parts of tool names.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let good = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if (1..=64).contains(&name.len()) && name.chars().all(good) {
        return Ok(());
    }
    Err("a server's name has 1 to 64 letters, digits, `_` or `-`".to_owned())
}

impl Launch {
    /// Returns whether it says one thing, and nothing that could not be shown to a person.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => return Err("it has both a `command` and a `url`".to_owned()),
            (None, None) => return Err("it has neither a `command` nor a `url`".to_owned()),
            (Some(_), None) if !self.headers.is_empty() || self.headers_helper.is_some() => {
                return Err("it has `headers`, which belong to a `url`".to_owned());
            }
            (None, Some(_)) if self.env_file.is_some() => {
                return Err("it has a `url`, so `envFile` means nothing".to_owned());
            }
            (None, Some(_))
                if !self.args.is_empty() || !self.env.is_empty() || self.cwd.is_some() =>
            {
                return Err("it has a `url`, so `args`, `env` and `cwd` mean nothing".to_owned());
            }
            (Some(command), None) if command.trim().is_empty() => {
                return Err("its `command` is empty".to_owned());
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        self.check_kind()?;
        if self.is_this_program() {
            return Err("it is Planwright itself, which is not its own server".to_owned());
        }
        if self.args.len().max(self.env.len()).max(self.headers.len()) > MAX_PARTS {
            return Err(format!(
                "it has more than {MAX_PARTS} arguments, variables or headers"
            ));
        }
        let shown = std::iter::once(self.line())
            .chain(self.names().map(str::to_owned))
            .chain(self.cwd.clone());
        if shown.into_iter().any(|text| sanitize_line(&text) != text) {
            return Err("it contains characters that cannot be shown".to_owned());
        }
        Ok(())
    }

    /// Returns whether it starts this program as a server, as `planwright setup` writes it for clients.
    /// Each one would start the next.
    fn is_this_program(&self) -> bool {
        let name = self
            .command
            .as_deref()
            .map(Path::new)
            .and_then(Path::file_name);
        name.is_some_and(|name| name == "planwright")
            && self.args.first().is_some_and(|first| first == "mcp")
    }

    fn check_kind(&self) -> Result<(), String> {
        let wanted = if self.command.is_some() {
            "stdio"
        } else {
            "http"
        };
        match self.kind.as_deref() {
            None => Ok(()),
            Some("streamable-http" | "streamableHttp" | "streamable_http") if wanted == "http" => {
                Ok(())
            }
            Some(kind) if kind == wanted => Ok(()),
            Some("sse") if wanted == "http" => Ok(()),
            Some(kind @ "ws") => Err(format!(
                "its type is `{kind}`: only `stdio`, `http` and `sse` are supported"
            )),
            Some(kind @ ("stdio" | "http" | "sse")) => {
                Err(format!("its type is `{kind}`, which it is not"))
            }
            Some(kind) => Err(format!(
                "its type `{kind}` is unknown: `stdio`, `http` and `sse` are known"
            )),
        }
    }

    /// The digest of exactly this text: a value of a variable can change, the launch line cannot.
    pub(crate) fn digest(&self) -> Digest {
        let Self {
            kind: _,
            command,
            args,
            env,
            cwd,
            url,
            headers,
            env_file,
            headers_helper,
        } = self;
        let mut written = json!({
            "command": command, "args": args, "env": env, "cwd": cwd, "url": url, "headers": headers,
        });
        if let Some(file) = env_file {
            written["envFile"] = json!(file);
        }
        // How it is spoken to is no part of what is trusted, and never was.
        if let Some(helper) = headers_helper {
            written["headersHelper"] = json!(helper);
        }
        Digest::of_json(&written)
    }

    /// The same with what is in its file of variables: the project can write that.
    pub(crate) fn digest_with_files(&self, scope: &Scope<'_>) -> Digest {
        let written = self.digest();
        match &self.env_file {
            None => written,
            Some(file) => {
                let text = scope.expand_path(file).ok().and_then(read_env_file);
                Digest::of_json(&json!([written, text]))
            }
        }
    }

    /// The launch line or the address, for people: what is one argument looks like one.
    pub(crate) fn line(&self) -> String {
        match (&self.command, &self.url) {
            (Some(command), _) => {
                let words = std::iter::once(command)
                    .chain(&self.args)
                    .map(|word| quoted(word));
                let words = words.collect::<Vec<_>>().join(" ");
                match &self.env_file {
                    Some(file) => format!("{words} (variables of {})", quoted(file)),
                    None => words,
                }
            }
            (None, Some(url)) => match &self.headers_helper {
                Some(helper) => format!("{} (headers of {})", quoted(url), quoted(helper)),
                None => quoted(url),
            },
            (None, None) => String::new(),
        }
    }

    /// The names of its variables and headers. Their values may be secrets.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.env
            .keys()
            .chain(self.headers.keys())
            .map(String::as_str)
    }

    pub(crate) fn transport(&self) -> &'static str {
        if self.url.is_some() { "http" } else { "stdio" }
    }

    /// With its variables put in.
    pub(crate) fn expand(&self, scope: &Scope<'_>) -> Result<Transport, String> {
        let all = |values: &BTreeMap<String, String>| -> Result<BTreeMap<String, String>, String> {
            values
                .iter()
                .map(|(name, value)| Ok((name.clone(), scope.expand_value(value)?)))
                .collect()
        };
        if let Some(url) = &self.url {
            return Ok(Transport::Http {
                url: scope.expand(url)?,
                headers: all(&self.headers)?,
            });
        }
        let command = scope.expand_home(self.command.as_deref().unwrap_or_default())?;
        if command.trim().is_empty() {
            return Err("its `command` is empty once its variables are put in".to_owned());
        }
        let args = self
            .args
            .iter()
            .map(|arg| scope.expand_home(arg))
            .collect::<Result<_, _>>()?;
        // A directory is meant from the workspace, wherever the program was started.
        let cwd = self
            .cwd
            .as_deref()
            .map(|cwd| scope.expand_path(cwd))
            .transpose()?;
        let mut variables = match &self.env_file {
            Some(file) => {
                let path = scope.expand_path(file)?;
                let text = read_env_file(path).ok_or("its `envFile` cannot be read")?;
                parse_env_file(&text)?
            }
            None => BTreeMap::new(),
        };
        variables.extend(all(&self.env)?);
        Ok(Transport::Stdio {
            command,
            args,
            env: variables,
            cwd,
        })
    }
}

/// The largest file of variables.
const MAX_ENV_FILE: u64 = 256 << 10;

fn read_env_file(path: PathBuf) -> Option<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MAX_ENV_FILE + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= MAX_ENV_FILE).then_some(text)
}

/// `NAME=value` lines, as editors read them: with comments, `export` and quotes.
fn parse_env_file(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut variables = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            return Err("a line of its `envFile` is not NAME=value".to_owned());
        };
        let value = value.trim();
        let quoted = |quote: char| {
            let inside = value.strip_prefix(quote)?.strip_suffix(quote)?;
            Some(inside.to_owned())
        };
        let value = quoted('"')
            .or_else(|| quoted('\''))
            .unwrap_or_else(|| value.to_owned());
        // A value that looks like a reference is text: the file is not ours to read more into.
        if value.contains("${") {
            return Err(format!("`{}` in its `envFile` has a `${{`", name.trim()));
        }
        variables.insert(name.trim().to_owned(), value);
    }
    Ok(variables)
}

/// Values of variables and headers may be secrets: only their names are shown.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("line", &self.line())
            .finish_non_exhaustive()
    }
}

/// A word as it would be typed; quoted like JSON if it could be taken for several, or for none.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-./:=@%+,${}~?&#".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    Value::from(word).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Launch {
        let mut words = words.iter().map(|&word| word.to_owned());
        Launch {
            command: words.next(),
            args: words.collect(),
            ..Launch::default()
        }
    }

    #[test]
    fn a_launch_line_shows_where_an_argument_ends() {
        assert_eq!(
            command(&["node", "a b", "", "${HOME}/x"]).line(),
            r#"node "a b" "" ${HOME}/x"#
        );
        assert_ne!(
            command(&["a", "b c"]).line(),
            command(&["a", "b", "c"]).line()
        );
    }

    #[test]
    fn what_cannot_be_shown_is_refused() {
        assert!(command(&["sh", "-c", "one\ntwo"]).check().is_ok());
        assert!(command(&["sh", "-c", "rm -rf x\u{202e}"]).check().is_err());
        assert!(command(&["  "]).check().is_err());
    }

    #[test]
    fn the_digest_covers_the_text_and_not_the_values() {
        let mut one = command(&["node", "${ENTRY}"]);
        one.env.insert("TOKEN".into(), "${TOKEN}".into());
        let mut other = one.clone();
        assert_eq!(one.digest(), other.digest());
        other
            .env
            .insert("NODE_OPTIONS".into(), "--require ./x.js".into());
        assert_ne!(one.digest(), other.digest());
    }

    #[test]
    fn contradictions_are_named() {
        let both = Launch {
            url: Some("http://localhost".into()),
            ..command(&["node"])
        };
        assert!(both.check().unwrap_err().contains("both"));
        let socket = Launch {
            kind: Some("ws".into()),
            url: Some("http://x".into()),
            ..Launch::default()
        };
        assert!(socket.check().unwrap_err().contains("only `stdio`"));
        let wrong = Launch {
            kind: Some("http".into()),
            ..command(&["node"])
        };
        assert!(wrong.check().unwrap_err().contains("which it is not"));
    }

    #[test]
    fn files_of_variables_are_read_as_editors_read_them() {
        let text = "# mine\n\nA=1\nexport B = \"two words\"\nC='x=y'\n";
        let variables = parse_env_file(text).unwrap();
        let expected = [("A", "1"), ("B", "two words"), ("C", "x=y")];
        assert!(
            variables
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .eq(expected)
        );
        assert!(parse_env_file("A").is_err());
        assert!(parse_env_file("A=${secret.X}").is_err());
    }

    #[test]
    fn names_of_servers_are_strict() {
        assert!(check_name("git_hub-2").is_ok());
        for name in ["", "a.b", "a b", "ä", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
