//! Tests of the adapters against the real outside.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod artifacts;
#[cfg(test)]
mod backups;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod entry_index;
#[cfg(test)]
mod feed;
#[cfg(test)]
mod health;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod known_streams;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod log_room;
#[cfg(test)]
mod objects;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod rewriting;
#[cfg(test)]
mod scarce;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod sealed;
#[cfg(test)]
mod sealed_attacks;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod tokens;
