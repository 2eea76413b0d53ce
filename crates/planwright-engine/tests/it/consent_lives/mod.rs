//! Random lives of plans with executors that want calls, and reflections that change what is left
//! to do: no call leaves that an oracle, which knows only what was said and written down, does not
//! find covered.

mod author;
mod brain;
mod histories;
mod life;
mod opening;
mod oracle;
mod orders;
mod past;
mod rules;
mod stage;
mod versions;
