//! The binary. What it does is in the library, where the fuzzer finds its readers.

use std::process::ExitCode;

/// A run makes and drops many small values.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    planwright::run()
}
