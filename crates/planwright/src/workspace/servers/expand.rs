//! `${VAR}` and `${VAR:-default}` in the settings of a server.
//!
//! A variable without a value makes the server unusable: a literal `${TOKEN}` must never reach a
//! command or an address.

use std::path::{Path, PathBuf};

/// Longer texts than this are a mistake, or an attack.
const MAX_TEXT: usize = 128 * 1024;

/// Where values come from.
pub(crate) struct Scope<'a> {
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(crate) workspace: &'a Path,
}

impl Scope<'_> {
    /// The text with its variables replaced, or why that cannot be. What a variable holds is not
    /// looked at again.
    pub(crate) fn expand(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            expanded.push_str(before);
            let (written, after) = after
                .split_once('}')
                .ok_or_else(|| "a `${` is never closed with `}`".to_owned())?;
            expanded.push_str(&self.value(written)?);
            rest = after;
            if expanded.len() > MAX_TEXT {
                break;
            }
        }
        expanded.push_str(rest);
        if expanded.len() > MAX_TEXT {
            return Err(format!(
                "a text is longer than {} KiB once its variables are put in",
                MAX_TEXT >> 10
            ));
        }
        Ok(expanded)
    }

    /// The same for a value of a variable or a header, in which secrets may stand: they are put in
    /// when the server is connected to, and never before.
    pub(crate) fn expand_value(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${secret.") {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| "a `${` is never closed with `}`".to_owned())?;
            expanded.push_str(&self.expand_without_secrets(before)?);
            expanded.push_str("${secret.");
            expanded.push_str(name);
            expanded.push('}');
            rest = after;
        }
        expanded.push_str(&self.expand_without_secrets(rest)?);
        Ok(expanded)
    }

    /// A variable may not hold a reference to a secret: it would be looked at again.
    fn expand_without_secrets(&self, text: &str) -> Result<String, String> {
        let expanded = self.expand(text)?;
        if expanded.contains("${secret.") {
            return Err("a variable holds a `${secret.`".to_owned());
        }
        Ok(expanded)
    }

    /// The same for a word that may begin with `~`, the user's own directory.
    pub(crate) fn expand_home(&self, text: &str) -> Result<String, String> {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = (self.variable)("HOME").ok_or("`~` is used, and HOME is not set")?;
                Ok(format!("{home}{}", self.expand(rest)?))
            }
            Some(_) | None => self.expand(text),
        }
    }

    /// A path, which is meant from the workspace, wherever the program was started.
    pub(crate) fn expand_path(&self, text: &str) -> Result<PathBuf, String> {
        Ok(self.workspace.join(self.expand_home(text)?))
    }

    fn value(&self, written: &str) -> Result<String, String> {
        if written.starts_with("secret.") {
            return Err("a secret can stand in `env` and `headers` only".to_owned());
        }
        if written == "userHome" {
            return (self.variable)("HOME").ok_or_else(|| "HOME is not set".to_owned());
        }
        if let Some(input) = written.strip_prefix("input:") {
            return Err(format!(
                "it asks for the input `{input}`, which only an editor can ask for"
            ));
        }
        if written == "workspaceFolder" {
            let workspace = self.workspace.to_str();
            return workspace
                .map(str::to_owned)
                .ok_or_else(|| "the workspace's path is not Unicode".to_owned());
        }
        let written = written.strip_prefix("env:").unwrap_or(written);
        let (name, default) = match written.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (written, None),
        };
        if !is_name(name) {
            return Err(format!("`${{{written}}}` is not the name of a variable"));
        }
        match (
            (self.variable)(name).filter(|value| !value.is_empty() || default.is_none()),
            default,
        ) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(format!(
                "the variable `{name}` is not set, and there is no default for it"
            )),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "TOKEN" => Some("t0k3n".to_owned()),
            "NESTED" => Some("${TOKEN}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        Scope {
            variable: &variable,
            workspace: Path::new("/home/me/project"),
        }
        .expand(text)
    }

    #[test]
    fn variables_and_defaults_are_put_in() {
        assert_eq!(expand("Bearer ${TOKEN}!").as_deref(), Ok("Bearer t0k3n!"));
        assert_eq!(
            expand("${HOST:-localhost}:${PORT:-80}").as_deref(),
            Ok("localhost:80")
        );
        assert_eq!(
            expand("${env:TOKEN}${EMPTY}${EMPTY:-x}").as_deref(),
            Ok("t0k3nx")
        );
        assert_eq!(
            expand("${workspaceFolder}/data").as_deref(),
            Ok("/home/me/project/data")
        );
        assert_eq!(expand("$HOME costs $5").as_deref(), Ok("$HOME costs $5"));
    }

    #[test]
    fn the_home_directory_and_secrets_stand_where_they_may() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/me".to_owned()),
            "SLY" => Some("${secret.X}".to_owned()),
            _ => None,
        };
        let scope = Scope {
            variable: &variable,
            workspace: Path::new("/w"),
        };
        assert_eq!(
            scope.expand_home("~/bin/x").as_deref(),
            Ok("/home/me/bin/x")
        );
        assert_eq!(scope.expand_home("~me/x").as_deref(), Ok("~me/x"));
        assert_eq!(scope.expand_path("x").unwrap(), Path::new("/w/x"));
        assert_eq!(
            scope.expand_value("Bearer ${secret.X}").as_deref(),
            Ok("Bearer ${secret.X}")
        );
        assert!(scope.expand_value("${SLY}").is_err());
        assert!(scope.expand("${secret.X}").is_err());
    }

    #[test]
    fn a_value_is_not_expanded_again() {
        assert_eq!(expand("${NESTED}").as_deref(), Ok("${TOKEN}"));
    }

    #[test]
    fn what_has_no_value_is_an_error_and_never_a_literal() {
        for (text, words) in [
            ("${MISSING}", "`MISSING` is not set"),
            ("${input:key}", "the input `key`"),
            ("${TOKEN", "never closed"),
            ("${a b}", "not the name of a variable"),
            ("${}", "not the name of a variable"),
        ] {
            let error = expand(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
