//! File descriptors: as many as the system gives, and some of them kept for the store and for
//! programs that runs start.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More are of no use here, and children inherit the limit: programs that go through all
/// descriptors that they might have would take long.
const ENOUGH: u64 = 65_536;
/// Kept from connections: for the database and its files, for three pipes per program that is
/// started, for files that tools open.
const RESERVE: u64 = 512;

/// Raises the soft limit to the hard one. Systems start programs with a low one, for the sake of
/// programs that use `select`; this one does not.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        // It was allowed to have them, and has to do with fewer.
        tracing::debug!(%error, "the limit of file descriptors stays as it is");
    }
}

/// Returns how many connections a service can have at once: what is left after the reserve, which is
/// at most half.
pub(crate) fn connections_within_limit() -> usize {
    connections_within(getrlimit(Resource::Nofile).current)
}

fn connections_within(limit: Option<u64>) -> usize {
    let left = limit.map_or(u64::MAX, |limit| limit - RESERVE.min(limit / 2));
    usize::try_from(left).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_kept_from_connections() {
        for (limit, connections) in [(65_536, 65_024), (1_024, 512), (256, 128), (2, 1), (0, 1)] {
            assert_eq!(connections_within(Some(limit)), connections, "{limit}");
        }
        assert!(connections_within(None) > 1_000_000);
    }
}
