//! Tests of the store in Postgres, against a real server that the tests start.

#[cfg(test)]
mod alone;
#[cfg(test)]
mod chains;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod databases;
#[cfg(test)]
mod encryption;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod kept_statements;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod lookups;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod pooled;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod rates;
#[cfg(test)]
mod rewriting;
#[cfg(test)]
mod sealed;
#[cfg(test)]
mod sealed_attacks;
#[cfg(test)]
mod sign_ins;
