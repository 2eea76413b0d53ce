//! Ids nobody can guess.

use planwright_engine::port::Ids;

/// Takes its randomness from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn entropy(&self) -> u64 {
        getrandom::u64().expect("the operating system has randomness once it has booted")
    }
}
