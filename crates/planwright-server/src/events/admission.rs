//! How many streams may be open.

use super::options::EventsOptions;
use crate::observe::Counted;
use planwright_core::principal::Principal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the open streams.
#[derive(Debug, Default)]
pub(super) struct Admission(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    all: usize,
    global: usize,
    each: BTreeMap<String, usize>,
}

/// One open stream. Dropping it makes room.
#[derive(Debug)]
pub(crate) struct Place {
    admission: Arc<Admission>,
    who: String,
    global: bool,
    _counted: Counted,
}

impl Admission {
    /// A place for one more stream, if there is room.
    pub(super) fn enter(
        self: &Arc<Self>,
        who: &Principal,
        global: bool,
        options: &EventsOptions,
    ) -> Option<Place> {
        let who = format!("{} {}", who.kind.as_str(), who.name);
        let mut open = self.open();
        let own = open.each.get(&who).copied().unwrap_or_default();
        let full = open.all >= options.max_streams
            || own >= options.max_streams_each
            || (global && open.global >= options.max_global_streams);
        if full {
            return None;
        }
        open.all += 1;
        open.global += usize::from(global);
        *open.each.entry(who.clone()).or_default() += 1;
        Some(Place { admission: Arc::clone(self), who, global, _counted: Counted::stream() })
    }

    /// How many streams are open.
    pub(super) fn count(&self) -> usize {
        self.open().all
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.admission.open();
        open.all -= 1;
        open.global -= usize::from(self.global);
        if let Some(own) = open.each.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                open.each.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_once_its_stream_is_closed() {
        let admission = Arc::new(Admission::default());
        let options = EventsOptions {
            max_streams: 3,
            max_streams_each: 2,
            max_global_streams: 1,
            ..Default::default()
        };
        let (ada, eve) = (Principal::person("ada"), Principal::person("eve"));
        let first = admission.enter(&ada, true, &options);
        assert!(first.is_some());
        assert!(admission.enter(&ada, true, &options).is_none(), "one global stream");
        let second = admission.enter(&ada, false, &options);
        assert!(admission.enter(&ada, false, &options).is_none(), "two for each");
        let third = admission.enter(&eve, false, &options);
        assert!(admission.enter(&eve, false, &options).is_none(), "three for all");
        assert_eq!(admission.count(), 3);
        drop((first, second, third));
        assert_eq!(admission.count(), 0);
        assert!(admission.enter(&ada, true, &options).is_some());
    }
}
