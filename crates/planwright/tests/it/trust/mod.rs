//! Folders that no person trusted: clones that bring their own consent, and agents in people's shells.

mod agents;
mod asking;
mod clone;
mod hostile;
mod lives;
mod owners;
