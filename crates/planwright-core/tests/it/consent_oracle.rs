//! Says, independently of `decide`, whether a call was covered by consent at the moment it started.
//!
//! It knows the policies of the world by heart instead of reading them, and keeps its own books
//! about who agreed to what and when.

use crate::consent_world::{BASES, GATED, LIMITED, ROLES, always_allows, parts};
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::run::Verdict;
use std::collections::BTreeSet;

/// What a call's text argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To<'a> {
    Absent,
    Known(&'a str),
    Later,
}

/// What a person chose for a late-bound step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Any,
    Ask,
    /// Anything but `evil`.
    NotEvil,
}

/// The step of a plan, as the oracle sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) id: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) to: To<'static>,
    /// A person has to agree right before it, besides everything else that was agreed to.
    pub(crate) gate: bool,
}

/// What narrows a version beyond its calls, and whether the step is there that it narrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Guards {
    gate: bool,
    limits: bool,
    writes: bool,
}

impl Guards {
    fn of(doing: usize) -> Self {
        let gate = GATED.contains(&doing);
        Self {
            gate,
            limits: gate || doing == LIMITED,
            writes: parts(doing).iter().any(|part| part.id == "c"),
        }
    }

    /// A gate is gone with its step; limits are gone where the step goes on without.
    fn are_lost_in(self, later: Self) -> bool {
        self.gate && !later.gate || self.limits && later.writes && !later.limits
    }
}

/// A version as it was proposed, and whether a person ever agreed to it.
#[derive(Debug, Clone, Copy)]
struct Told {
    guards: Guards,
    by_person: bool,
}

/// Everything an approval is about: what the document does, the tools and the policy. Its words are
/// not in it.
pub(crate) type Fingerprint = (usize, Vec<u32>, usize);

#[derive(Debug, Clone)]
struct Yes {
    by: Principal,
    /// Given with a token.
    token: bool,
    about: Fingerprint,
    until: Option<i64>,
    uses: u32,
    choices: Vec<(&'static str, Choice)>,
}

#[derive(Debug, Clone)]
struct Running {
    about: Fingerprint,
    people: bool,
    proposer: Principal,
    choices: Vec<(&'static str, Choice)>,
    /// Step, tool and text that a person agreed to.
    agreed: BTreeSet<(String, String, String)>,
    /// Gates at which a person agreed.
    gates: BTreeSet<String>,
    asked: Vec<(String, i64)>,
    /// The principal who wants it to stand still: a person's word stands over that of a program.
    paused: Option<Principal>,
    cancelled: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    yes: Vec<Yes>,
    run: Option<Running>,
    versions: Vec<Told>,
}

/// What the policy says about a call of a step.
pub(crate) fn says(policy: usize, part: &Part, to: To<'_>) -> Verdict {
    match says_of_call(policy, part.tool, to) {
        Verdict::Allow if part.gate => Verdict::Ask,
        verdict => verdict,
    }
}

fn says_of_call(policy: usize, tool: &str, to: To<'_>) -> Verdict {
    let base = policy % BASES;
    // Where rules are only observed, so is what people always allow.
    let always = base != 5 && always_allows(policy, tool);
    let usual = if tool == "s.write" && !always {
        Verdict::Ask
    } else {
        Verdict::Allow
    };
    match (base, tool, to) {
        (1, "s.write", To::Known("evil")) => Verdict::Deny,
        (1, "s.write", To::Known("ok")) => Verdict::Allow,
        (3, "s.peek", _) => Verdict::Ask,
        (4, _, To::Known(text)) if text.len() <= 2 => Verdict::Allow,
        (4, _, _) => Verdict::Ask,
        _ => usual,
    }
}

fn people_needed(policy: usize) -> usize {
    if policy % BASES == 2 { 2 } else { 1 }
}

/// Whether only `ada` may agree here.
fn check_role(policy: usize, by: &Principal) {
    assert!(
        policy % BASES != ROLES || by.name == "ada",
        "{by} agreed without being an approver"
    );
}

fn lasts(policy: usize) -> Option<i64> {
    match policy % BASES {
        1 => Some(10_000),
        3 => Some(20_000),
        _ => None,
    }
}

impl Oracle {
    /// An approval was accepted.
    pub(crate) fn approved(
        &mut self,
        (by, proposer, token): (&Principal, &Principal, bool),
        (about, now): (&Fingerprint, i64),
        parts: &[Part],
        chosen: &[(&'static str, Choice)],
    ) {
        let policy = about.2;
        let verdicts: Vec<Verdict> = parts
            .iter()
            .map(|part| says(policy, part, part.to))
            .collect();
        assert!(
            !verdicts.contains(&Verdict::Deny),
            "what policy denies was approved"
        );
        match by.kind {
            PrincipalKind::Person => {
                assert!(
                    policy % BASES != 2 || by != proposer,
                    "four eyes: {by} approved their own plan"
                );
                check_role(policy, by);
                self.told_person();
            }
            PrincipalKind::Policy => {
                assert!(
                    verdicts.iter().all(|&verdict| verdict == Verdict::Allow),
                    "policy approved what it asks about"
                );
                assert!(
                    !self.lost_a_safeguard(),
                    "policy approved a version that lost a safeguard"
                );
            }
            PrincipalKind::Agent | PrincipalKind::Service => panic!("{by} approved a plan"),
        }
        let default = if policy % BASES == 2 {
            Choice::Ask
        } else {
            Choice::Any
        };
        let late = parts
            .iter()
            .zip(&verdicts)
            .filter(|(part, _)| part.to == To::Later);
        let choices = late.filter_map(|(part, &verdict)| {
            let chosen = chosen
                .iter()
                .find(|(step, _)| *step == part.id)
                .map(|(_, choice)| *choice);
            Some((
                part.id,
                chosen.or_else(|| (verdict == Verdict::Ask).then_some(default))?,
            ))
        });
        self.yes.push(Yes {
            by: by.clone(),
            token,
            about: about.clone(),
            until: lasts(policy).map(|span| now + span),
            uses: if policy % BASES == 3 { 2 } else { 1 },
            choices: choices.collect(),
        });
    }

    pub(crate) fn rejected(&mut self) {
        self.yes.clear();
    }

    /// The approvals of a principal no longer count. With `tokens`, only those given with a token
    /// are lost.
    pub(crate) fn revoked(&mut self, of: &Principal, by: &Principal, tokens: bool) {
        let may = by == of || by.kind == PrincipalKind::Person;
        assert!(may, "{by} revoked an approval of {of}");
        self.yes.retain(|yes| yes.by != *of || tokens && !yes.token);
    }

    /// A version was proposed.
    pub(crate) fn proposed(&mut self, doing: usize) {
        self.versions.push(Told {
            guards: Guards::of(doing),
            by_person: false,
        });
    }

    fn told_person(&mut self) {
        if let Some(current) = self.versions.last_mut() {
            current.by_person = true;
        }
    }

    /// Whether the current version lost something of an earlier one, and no person agreed to any
    /// version since then.
    fn lost_a_safeguard(&self) -> bool {
        let Some(current) = self.versions.last() else {
            return false;
        };
        let since = self.versions.iter().rev();
        let unseen = since.take_while(|told| !told.by_person);
        let seen = self.versions.iter().rfind(|told| told.by_person);
        !current.by_person
            && unseen
                .chain(seen)
                .any(|told| told.guards.are_lost_in(current.guards))
    }

    /// Another version is current. What was agreed to before counts only if that was exactly what
    /// this version does, with the tools and the policy there were when it was written.
    pub(crate) fn edited(&mut self, about: &Fingerprint) {
        self.yes.retain(|yes| yes.about == *about);
    }

    /// A person allows a tool for good, at the question about a plan with these steps.
    pub(crate) fn always(by: &Principal, policy: usize, tool: &str, shown: &[Part]) {
        assert_eq!(by.kind, PrincipalKind::Person, "{by} allowed for good");
        let asks = |part: &Part| says(policy, part, part.to) == Verdict::Ask && !part.gate;
        assert!(
            shown.iter().any(|part| part.tool == tool && asks(part)),
            "{tool} was allowed for good, and was not asked about"
        );
    }

    /// A run was opened. Panics if no valid approval of exactly this existed at that moment. Its
    /// starter may have wanted it narrower than it was approved.
    pub(crate) fn opened(
        &mut self,
        (about, now): (&Fingerprint, i64),
        proposer: &Principal,
        wanted: &[(&'static str, Choice)],
    ) {
        let counts = |yes: &Yes| {
            yes.about == *about && yes.uses > 0 && yes.until.is_none_or(|until| now < until)
        };
        let mut names = BTreeSet::new();
        let mut by_policy = false;
        let mut choices = Vec::new();
        for yes in self.yes.iter_mut().filter(|yes| counts(yes)) {
            yes.uses -= 1;
            match yes.by.kind {
                PrincipalKind::Policy => by_policy = true,
                _ => {
                    names.insert(yes.by.name.clone());
                }
            }
            choices.extend(yes.choices.clone());
        }
        assert!(
            by_policy || names.len() >= people_needed(about.2),
            "a run began without an approval"
        );
        choices.extend(wanted);
        self.run = Some(Running {
            about: about.clone(),
            people: names.len() >= people_needed(about.2),
            proposer: proposer.clone(),
            choices,
            agreed: BTreeSet::new(),
            gates: BTreeSet::new(),
            asked: Vec::new(),
            paused: None,
            cancelled: false,
        });
    }

    pub(crate) fn asked(&mut self, step: &str, now: i64) {
        let run = self.run.as_mut().expect("only a run asks");
        run.asked.retain(|(other, _)| other != step);
        run.asked.push((step.to_owned(), now));
    }

    /// A person agreed to a call that was shown.
    pub(crate) fn agreed(&mut self, by: &Principal, now: i64, call: (&str, &str, &str)) {
        self.check_answer(by, now, call.0);
        let run = self.run.as_mut().expect("only a run asks");
        run.agreed
            .insert((call.0.into(), call.1.into(), call.2.into()));
    }

    /// A person agreed at a gate.
    pub(crate) fn let_through(&mut self, by: &Principal, now: i64, step: &str) {
        self.check_answer(by, now, step);
        let run = self.run.as_mut().expect("only a run asks");
        run.gates.insert(step.to_owned());
    }

    /// A principal wants the run to stand still.
    pub(crate) fn paused(&mut self, by: &Principal) {
        let run = self.run.as_mut().expect("only a run is paused");
        let is_person = by.kind == PrincipalKind::Person;
        if run.paused.is_none() || is_person {
            run.paused = Some(by.clone());
        }
    }

    pub(crate) fn resumed(&mut self, by: &Principal) {
        let run = self.run.as_mut().expect("only a run is resumed");
        let paused = run.paused.take().expect("it was paused");
        assert!(
            paused.kind != PrincipalKind::Person || by.kind == PrincipalKind::Person,
            "{by} lifted the pause of {paused}"
        );
    }

    pub(crate) fn cancelled(&mut self) {
        let run = self.run.as_mut().expect("only a run is cancelled");
        run.cancelled = true;
    }

    /// A step was left out that others may wait for.
    pub(crate) fn left_out(&self, by: &Principal, is_waited_for: bool) {
        let run = self.run.as_ref().expect("only a run leaves steps out");
        assert_eq!(by.kind, PrincipalKind::Person, "{by} left a step out");
        if is_waited_for {
            check_role(run.about.2, by);
            assert!(
                run.about.2 % BASES != 2 || *by != run.proposer,
                "four eyes: {by} left out what others of their plan wait for"
            );
        }
    }

    /// A run is taken back.
    pub(crate) fn undone(&self, by: &Principal) {
        let run = self.run.as_ref().expect("only a run is taken back");
        assert_eq!(by.kind, PrincipalKind::Person, "{by} took a run back");
        check_role(run.about.2, by);
    }

    fn check_answer(&self, by: &Principal, now: i64, step: &str) {
        let run = self.run.as_ref().expect("only a run asks");
        assert_eq!(by.kind, PrincipalKind::Person, "{by} approved a call");
        check_role(run.about.2, by);
        if run.about.2 % BASES == 2 {
            assert_ne!(
                *by, run.proposer,
                "four eyes: {by} approved a call of their own plan"
            );
            let (_, at) = run
                .asked
                .iter()
                .find(|(asked, _)| asked == step)
                .expect("it was asked about");
            assert!(now < at + 5_000, "an approval was given after its time");
        }
    }

    /// A call started. Panics unless it is covered.
    pub(crate) fn started(&self, part: &Part, to: &str, tools: &[u32], tool_at: usize) {
        let run = self.run.as_ref().expect("only a run calls");
        assert!(run.paused.is_none(), "a run called that stands still");
        assert!(!run.cancelled, "a run called that was cancelled");
        assert!(
            !part.gate || run.gates.contains(part.id),
            "no person was asked at the gate of {}",
            part.id
        );
        assert_eq!(
            run.about.1[tool_at], tools[tool_at],
            "`{}` was called though it had changed",
            part.tool
        );
        let known = if part.to == To::Absent {
            To::Absent
        } else {
            To::Known(to)
        };
        // The argument of `peek` has another name, so the policies see none.
        let known = if part.tool == "s.peek" {
            To::Absent
        } else {
            known
        };
        let agreed =
            run.agreed
                .contains(&(part.id.to_owned(), part.tool.to_owned(), to.to_owned()));
        let verdict = says(run.about.2, part, known);
        assert_ne!(
            verdict,
            Verdict::Deny,
            "{} was called though policy denies it",
            part.id
        );
        let late = part.to == To::Later || part.tool == "s.peek";
        let choices: Vec<Choice> = run
            .choices
            .iter()
            .filter(|(step, _)| *step == part.id)
            .map(|(_, choice)| *choice)
            .collect();
        assert!(
            !(choices.contains(&Choice::NotEvil) && to == "evil"),
            "a constraint was broken"
        );
        assert!(
            !choices.contains(&Choice::Ask) || agreed,
            "a call left that was to be asked about"
        );
        if verdict == Verdict::Ask && !agreed {
            assert!(run.people, "only policy had approved {}", part.id);
            assert!(
                !late || !choices.is_empty(),
                "no person had agreed to unknown arguments of {}",
                part.id
            );
        }
    }
}
