//! Values given at run time: `--var name=value` and `--vars FILE`.

use crate::exit::Failure;
use clap::Args;
use planwright_core::json::parse_strict;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// They win over the plan's own values, and are part of what is approved.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct VariableFlags {
    /// A variable. The value is JSON if it reads as JSON (`n=5` is a number, `s='"5"'` a text),
    /// else text.
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub(crate) var: Vec<String>,
    /// A JSON file with an object of variables. `--var` wins over it.
    #[arg(long = "vars", value_name = "FILE")]
    pub(crate) vars: Option<PathBuf>,
}

impl VariableFlags {
    pub(crate) fn read(&self) -> Result<Map<String, Value>, Failure> {
        let mut variables = read_object(self.vars.as_deref())?;
        read_assignments("--var", &self.var, &mut variables)?;
        Ok(variables)
    }

    /// The flags as they would be typed, for hints.
    pub(crate) fn as_typed(&self) -> String {
        let file = self
            .vars
            .iter()
            .map(|path| format!(" --vars {}", quote_word(&path.to_string_lossy())));
        let each = self
            .var
            .iter()
            .map(|assignment| format!(" --var {}", quote_word(assignment)));
        file.chain(each).collect()
    }
}

/// The object in a JSON file; empty without one.
pub(crate) fn read_object(path: Option<&Path>) -> Result<Map<String, Value>, Failure> {
    let Some(path) = path else {
        return Ok(Map::new());
    };
    let at = path.display();
    let text = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("cannot read {at}: {error}")))?;
    match parse_strict(&text) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err(Failure::usage(format!("{at} is not a JSON object"))
            .hint("write it as {\"name\": value, …}")),
        Err(error) => Err(Failure::usage(format!("{at}: {error}"))),
    }
}

/// Adds what was given as `NAME=VALUE`.
pub(crate) fn read_assignments(
    flag: &str,
    assignments: &[String],
    values: &mut Map<String, Value>,
) -> Result<(), Failure> {
    for assignment in assignments {
        let Some((name, text)) = assignment
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
        else {
            return Err(Failure::usage(format!(
                "`{flag} {assignment}` is not NAME=VALUE"
            )));
        };
        let value =
            parse_strict(text.as_bytes()).unwrap_or_else(|_| Value::String(text.to_owned()));
        values.insert(name.to_owned(), value);
    }
    Ok(())
}

/// A word as a shell takes it.
pub(crate) fn quote_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_json_if_it_reads_as_json() {
        let flags = |var: &[&str]| VariableFlags {
            var: var.iter().map(|&v| v.to_owned()).collect(),
            vars: None,
        };
        let read = flags(&[
            "n=5",
            "s=\"5\"",
            "t=main",
            "l=[1,2]",
            "e=",
            "url=https://x?a=b",
        ])
        .read()
        .unwrap();
        let wanted =
            json!({"n": 5, "s": "5", "t": "main", "l": [1, 2], "e": "", "url": "https://x?a=b"});
        assert_eq!(Value::Object(read), wanted);
        assert!(flags(&["novalue"]).read().is_err());
        assert!(flags(&["=x"]).read().is_err());
    }

    #[test]
    fn hints_quote_what_a_shell_would_take_apart() {
        let flags = VariableFlags {
            var: vec!["a=it's".into(), "b=1".into()],
            vars: None,
        };
        assert_eq!(flags.as_typed(), r" --var 'a=it'\''s' --var b=1");
    }
}
