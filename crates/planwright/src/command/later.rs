//! Arguments that are described to the parser when their command is named, and not before: describing those of all commands
//! takes longer than most of what a start of the program does.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use std::cell::Cell;
use std::ops::Deref;

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Has everything described at once that `make` makes. A shell lists the options of a command in the order in which they
/// were described: its own before those that every command has.
pub(super) fn describe_at_once<T>(make: impl FnOnce() -> T) -> T {
    AT_ONCE.set(true);
    let made = make();
    AT_ONCE.set(false);
    made
}

/// The arguments of one command, or the commands below one.
#[derive(Debug)]
pub(crate) struct Later<T>(pub(crate) T);

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Describes a command, and leaves it the sentences about it: those about a part of its arguments are not meant for it.
fn describe(command: Command, augment: fn(Command) -> Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    augment(command)
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
}

fn describe_later(command: Command, augment: fn(Command) -> Command) -> Command {
    match AT_ONCE.get() {
        true => augment(command),
        false => command.defer(augment),
    }
}

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        describe_later(command, |command| describe(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        describe_later(command, |command| {
            describe(command, T::augment_args_for_update)
        })
    }
}

impl<T: Subcommand> Subcommand for Later<T> {
    fn augment_subcommands(command: Command) -> Command {
        describe_later(command, |command| describe(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        describe_later(command, |command| {
            describe(command, T::augment_subcommands_for_update)
        })
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}
