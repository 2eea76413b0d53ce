//! What came of all histories, so that none passes by doing nothing.

/// What came of all histories.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) runs: u64,
    pub(super) asked: u64,
    pub(super) agreed: u64,
    pub(super) changed: u64,
    pub(super) denied: u64,
    pub(super) broken: u64,
    pub(super) expired: u64,
    /// Approvals that outlived an edit of words.
    pub(super) carried: u64,
    pub(super) revoked: u64,
    pub(super) refused: u64,
    /// Steps that a planner or a reflection wrote anew, and that were to keep their gate.
    pub(super) rewritten: u64,
    /// Calls behind a gate.
    pub(super) gated: u64,
    /// Policy was refused because a safeguard was lost.
    pub(super) lost: u64,
    /// Tools that people allowed for good, and calls that went without a question for it.
    pub(super) always: u64,
    pub(super) always_calls: u64,
    /// Runs that were to be narrower than approved: refused, and begun.
    pub(super) narrowed: [u64; 2],
    /// Approvals of something that was looked at before: refused, and given.
    pub(super) looked: [u64; 2],
    /// Pauses of people that a program wanted to lift, and that a person lifted.
    pub(super) pauses: [u64; 2],
    /// Steps that were not to be left out, and that were.
    pub(super) left_out: [u64; 2],
    pub(super) cancelled: u64,
    /// Runs that were not to be taken back, and that were.
    pub(super) undone: [u64; 2],
}

impl Tally {
    /// It must not pass by doing nothing.
    pub(super) fn check(&self) {
        let expected = [
            ("calls", self.calls, 20_000),
            ("runs", self.runs, 10_000),
            ("questions about calls", self.asked, 1_000),
            ("answers of people", self.agreed, 200),
            ("tools that changed", self.changed, 500),
            ("calls that policy denies", self.denied, 50),
            ("constraints that were broken", self.broken, 300),
            ("answers that came too late", self.expired, 20),
            ("approvals that outlived an edit", self.carried, 500),
            ("approvals that were taken back", self.revoked, 500),
            ("refusals", self.refused, 50_000),
            ("steps written anew behind a gate", self.rewritten, 500),
            ("calls behind a gate", self.gated, 100),
            (
                "lost safeguards that policy did not agree to",
                self.lost,
                100,
            ),
            ("tools that are always allowed", self.always, 500),
            (
                "calls of tools that are always allowed",
                self.always_calls,
                500,
            ),
            ("runs that could not be narrower", self.narrowed[0], 100),
            ("runs that were as narrow as wanted", self.narrowed[1], 20),
            ("approvals of what was not looked at", self.looked[0], 500),
            ("pauses of people that stood", self.pauses[0], 100),
            ("pauses of people that people lifted", self.pauses[1], 100),
            (
                "steps that others wait for and that stayed",
                self.left_out[0],
                100,
            ),
            (
                "steps that others wait for and that were left out",
                self.left_out[1],
                20,
            ),
            ("runs that were cancelled", self.cancelled, 200),
            ("runs that were not taken back", self.undone[0], 20),
            ("runs that were taken back", self.undone[1], 20),
        ];
        for (what, found, least) in expected {
            assert!(found > least, "only {found} {what}: {self:?}");
        }
    }
}
