//! The fuzzer: libFuzzer's `main`, and the target that the environment names.
#![no_main]

use planwright_fuzz::{Target, try_input};
use std::sync::OnceLock;

static TARGET: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("PLANWRIGHT_FUZZ_TARGET").unwrap_or_default();
        let target = Target::find(&name);
        let names = || Target::ALL.map(|target| target.name).join(", ");
        TARGET.get_or_init(|| {
            target.unwrap_or_else(|| panic!("PLANWRIGHT_FUZZ_TARGET is one of {}", names()))
        });
    },
    |input: &[u8]| {
        try_input(TARGET.get().expect("libFuzzer initializes first"), input);
    }
);
