//! The times of tools in other plans, as they were last looked up: an estimate is not worth twenty looks at the store with
//! every run that starts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// For so long a time counts. It is an estimate, and changes little.
const KNOWN: Duration = Duration::from_secs(60);
/// For so long nothing is looked up again of which nothing was found: a run may end any moment.
const UNKNOWN: Duration = Duration::from_secs(1);
/// More tools than anyone has.
const MAX_TOOLS: usize = 10_000;

/// What was looked up, by the full names of tools.
#[derive(Debug, Default)]
pub(crate) struct KeptTimes(BTreeMap<String, KeptTime>);

#[derive(Debug)]
struct KeptTime {
    time: Option<Duration>,
    /// From then on it is looked up again.
    until: Duration,
}

impl KeptTimes {
    /// Takes from `wanted` what need not be looked up at this time of the clock, and returns what is known of it.
    pub(crate) fn take_known(
        &self,
        wanted: &mut BTreeSet<String>,
        uptime: Duration,
    ) -> BTreeMap<String, Duration> {
        let mut known = BTreeMap::new();
        wanted.retain(|tool| {
            let Some(kept) = self.0.get(tool).filter(|kept| kept.until > uptime) else {
                return true;
            };
            known.extend(kept.time.map(|time| (tool.clone(), time)));
            false
        });
        known
    }

    /// Notes what a look for a tool found.
    pub(crate) fn note(&mut self, tool: &str, time: Option<Duration>, uptime: Duration) {
        if self.0.len() >= MAX_TOOLS {
            self.0.clear();
        }
        let age = time.map_or(UNKNOWN, |_| KNOWN);
        let until = uptime + age;
        self.0.insert(tool.to_owned(), KeptTime { time, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(kept: &KeptTimes, uptime: u64) -> (Vec<String>, BTreeMap<String, Duration>) {
        let mut wanted = ["found", "missing", "new"].map(str::to_owned).into();
        let known = kept.take_known(&mut wanted, Duration::from_millis(uptime));
        (wanted.into_iter().collect(), known)
    }

    #[test]
    fn what_was_found_counts_longer_than_what_was_not() {
        let mut kept = KeptTimes::default();
        let time = Duration::from_millis(7);
        kept.note("found", Some(time), Duration::ZERO);
        kept.note("missing", None, Duration::ZERO);
        let known = BTreeMap::from([("found".to_owned(), time)]);
        assert_eq!(taken(&kept, 999), (vec!["new".to_owned()], known.clone()));
        let wanted = ["missing", "new"].map(str::to_owned).to_vec();
        assert_eq!(taken(&kept, 1_000), (wanted, known));
        let wanted = ["found", "missing", "new"].map(str::to_owned).to_vec();
        assert_eq!(taken(&kept, 60_000), (wanted, BTreeMap::new()));
    }
}
