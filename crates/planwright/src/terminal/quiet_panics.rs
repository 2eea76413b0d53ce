//! A tool that panics may have a secret in its message, and the message goes to the terminal before
//! anybody can catch the panic.

use crate::telemetry::stderr;
use crate::terminal::printer::line;
use planwright_engine::Redaction;
use std::panic::PanicHookInfo;

/// From here on, panics are told with everything secret masked.
pub(crate) fn install(redaction: Redaction) {
    std::panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        let place = panic
            .location()
            .map(ToString::to_string)
            .unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        let message = redaction.redactor().text(message).into_owned();
        stderr::write(&format!("panicked at {place}: {}\n", line(&message)));
    }));
}
