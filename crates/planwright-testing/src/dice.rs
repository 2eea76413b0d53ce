//! Numbers that look random and are the same for the same seed.

/// A generator of numbers.
///
/// There are three sequences, because seeds stand in tests and in the records of failures: a seed
/// means the same history for as long as its test draws from the same sequence.
#[derive(Debug, Clone)]
pub struct Dice {
    state: u64,
    sequence: Sequence,
}

#[derive(Debug, Clone, Copy)]
enum Sequence {
    SplitMix,
    Congruential,
    XorShift,
}

impl Dice {
    /// Draws from splitmix64: every seed is good, and neighbouring seeds share nothing. The one to
    /// take for a new test.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            sequence: Sequence::SplitMix,
        }
    }

    /// Draws the upper 31 bits of a linear congruential generator (Knuth's MMIX).
    pub fn congruential(seed: u64) -> Self {
        Self {
            state: seed,
            sequence: Sequence::Congruential,
        }
    }

    /// Draws from xorshift64. Its seed must not be 0, which it would never leave.
    pub fn xor_shift(seed: u64) -> Self {
        assert_ne!(seed, 0, "xorshift64 never leaves 0");
        Self {
            state: seed,
            sequence: Sequence::XorShift,
        }
    }

    /// Draws the next number.
    pub fn roll(&mut self) -> u64 {
        match self.sequence {
            Sequence::SplitMix => {
                self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = self.state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
            Sequence::Congruential => {
                self.state = self
                    .state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                self.state >> 33
            }
            Sequence::XorShift => {
                self.state ^= self.state << 13;
                self.state ^= self.state >> 7;
                self.state ^= self.state << 17;
                self.state
            }
        }
    }

    /// Draws a number below `bound`, or 0 where there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound.max(1) as u64).expect("it is below a usize")
    }

    /// Draws a yes in `percent` of all cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Draws one of the items, of which there must be one.
    #[track_caller]
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        self.try_pick(items).expect("there are items to pick from")
    }

    /// Draws one of the items, and nothing where there is none.
    pub fn try_pick<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.below(items.len())].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds that failures were recorded with must give the same history.
    #[test]
    fn every_sequence_is_the_one_its_seeds_were_recorded_with() {
        let rolls = |mut dice: Dice| [dice.roll(), dice.roll(), dice.roll()];
        assert_eq!(
            rolls(Dice::new(1)),
            [
                0x910a_2dec_8902_5cc1,
                0xbeeb_8da1_658e_ec67,
                0xf893_a2ee_fb32_555e
            ]
        );
        assert_eq!(
            rolls(Dice::congruential(1)),
            [908_834_774, 1_093_944_153, 1_392_341_196]
        );
        assert_eq!(
            rolls(Dice::xor_shift(1)),
            [
                0x0000_0000_4082_2041,
                0x1000_4106_0c01_1441,
                0x9b1e_842f_6e86_2629
            ]
        );
    }

    #[test]
    fn items_are_picked_and_nothing_is_drawn_where_there_is_none() {
        let mut dice = Dice::new(7);
        let mut same = dice.clone();
        assert_eq!(dice.try_pick::<u8>(&[]), None);
        assert_eq!(dice.roll(), same.roll());
        assert!((0..1_000).all(|_| dice.pick(&[1, 2, 3]) <= 3 && dice.below(5) < 5));
        assert!((0..1_000).all(|_| dice.chance(100) && !dice.chance(0)));
    }
}
