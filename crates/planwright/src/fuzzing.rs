//! A door for the fuzzer: it reads a configuration as every command does, and nothing else.

use crate::config::file::Config;
use std::path::Path;

/// Reads the text of a `planwright.toml` and what follows from it. Returns what a person would be
/// told if it is refused.
pub fn read_configuration(text: &str) -> Result<(), String> {
    let nowhere = Path::new("/nonexistent");
    let read = || {
        let config = Config::parse(text)?;
        config.models(nowhere, &|_| None)?.check()?;
        config.policy_version()?;
        config.toolbox();
        config.limits();
        config.bounds();
        config.retention();
        Ok(())
    };
    read().map_err(|failure: crate::exit::Failure| failure.message)
}
