//! Strangers of one kind, by age and address: who gives way when there are too many of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

/// Programs on this machine share one address, and so do all clients behind a proxy on it.
const LOOPBACK_FACTOR: usize = 4;

/// As many strangers as there is room for. A new one always comes in: the one that has been there for
/// longest leaves, of the address that has the most, so that one address cannot crowd out the others.
#[derive(Debug)]
pub(super) struct Crowd<T> {
    most: usize,
    most_per_address: usize,
    members: BTreeMap<u64, (IpAddr, T)>,
    by_address: HashMap<IpAddr, BTreeSet<u64>>,
    turn: u64,
}

impl<T> Crowd<T> {
    pub(super) fn new(most: usize, most_per_address: usize) -> Self {
        Self {
            most: most.max(1),
            most_per_address,
            members: BTreeMap::new(),
            by_address: HashMap::new(),
            turn: 0,
        }
    }

    /// Lets one in. Returns its place, and the one that gives way to it, of those that may.
    pub(super) fn enter(
        &mut self,
        address: IpAddr,
        member: T,
        may_leave: impl Fn(&T) -> bool,
    ) -> (u64, Option<T>) {
        let counted = counted_address(address);
        let most_here = most_of(self.most_per_address, address);
        let own = self.by_address.get(&counted);
        let leaver = match own {
            Some(own) if own.len() >= most_here => self.oldest_of(own, &may_leave),
            Some(_) | None if self.members.len() >= self.most => self.oldest_of_most(&may_leave),
            Some(_) | None => None,
        };
        let left = leaver.and_then(|place| self.leave(place));
        self.turn += 1;
        self.members.insert(self.turn, (counted, member));
        self.by_address
            .entry(counted)
            .or_default()
            .insert(self.turn);
        (self.turn, left)
    }

    /// Takes out one that is done, or no stranger any more.
    pub(super) fn leave(&mut self, place: u64) -> Option<T> {
        let (address, member) = self.members.remove(&place)?;
        if let Some(own) = self.by_address.get_mut(&address) {
            own.remove(&place);
            if own.is_empty() {
                self.by_address.remove(&address);
            }
        }
        Some(member)
    }

    /// Makes one that may leave do so, as if another came.
    pub(super) fn give_way(&mut self, may_leave: impl Fn(&T) -> bool) -> Option<T> {
        let place = self.oldest_of_most(&may_leave)?;
        self.leave(place)
    }

    fn oldest_of(&self, own: &BTreeSet<u64>, may_leave: &impl Fn(&T) -> bool) -> Option<u64> {
        let is_free = |place: &&u64| {
            self.members
                .get(place)
                .is_some_and(|(_, member)| may_leave(member))
        };
        own.iter().find(is_free).copied()
    }

    fn oldest_of_most(&self, may_leave: &impl Fn(&T) -> bool) -> Option<u64> {
        self.by_address
            .values()
            .filter_map(|own| Some((own.len(), Reverse(self.oldest_of(own, may_leave)?))))
            .max()
            .map(|(_, Reverse(oldest))| oldest)
    }
}

/// How many an address may have, if another machine may have `most`.
pub(super) fn most_of(most: usize, address: IpAddr) -> usize {
    if address.to_canonical().is_loopback() {
        most.saturating_mul(LOOPBACK_FACTOR)
    } else {
        most
    }
}

/// The address that a limit counts: one machine has a whole network of 64 bits in IPv6.
pub(super) fn counted_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_address_with_the_most_makes_room_for_the_others() {
        let mut crowd = Crowd::new(4, 10);
        for name in ["a", "b", "c"] {
            assert_eq!(crowd.enter(ip("192.0.2.1"), name, |_| true).1, None);
        }
        assert_eq!(crowd.enter(ip("192.0.2.2"), "quiet", |_| true).1, None);
        assert_eq!(crowd.enter(ip("192.0.2.1"), "d", |_| true).1, Some("a"));
        assert_eq!(crowd.enter(ip("192.0.2.3"), "other", |_| true).1, Some("b"));
        assert_eq!(crowd.members.len(), 4);
        assert!(crowd.members.values().any(|(_, name)| *name == "quiet"));
    }

    #[test]
    fn an_address_has_a_limit_of_its_own_and_this_machine_four_times_that() {
        let mut crowd = Crowd::new(100, 1);
        assert_eq!(crowd.enter(ip("2001:db8::1"), 1, |_| true).1, None);
        assert_eq!(crowd.enter(ip("2001:db8::2"), 2, |_| true).1, Some(1));
        for number in 0..4 {
            assert_eq!(crowd.enter(ip("127.0.0.1"), number, |_| true).1, None);
        }
        assert_eq!(crowd.enter(ip("127.0.0.1"), 4, |_| true).1, Some(0));
    }

    #[test]
    fn the_oldest_that_may_leave_does_and_without_one_there_is_one_more() {
        let mut crowd = Crowd::new(2, 2);
        let here = ip("192.0.2.1");
        for number in [1, 2] {
            crowd.enter(here, number, |_| true);
        }
        assert_eq!(crowd.enter(here, 3, |number| *number > 1).1, Some(2));
        assert_eq!(crowd.enter(here, 4, |_| false).1, None);
        assert_eq!(crowd.members.len(), 3);
        assert_eq!(crowd.give_way(|number| *number > 3), Some(4));
        assert_eq!(crowd.give_way(|_| false), None);
    }

    #[test]
    fn who_left_is_forgotten() {
        let mut crowd = Crowd::new(1, 1);
        let (place, _) = crowd.enter(ip("192.0.2.1"), "a", |_| true);
        assert_eq!(crowd.leave(place), Some("a"));
        assert_eq!(crowd.leave(place), None);
        assert!(crowd.by_address.is_empty());
    }
}
