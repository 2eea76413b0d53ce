//! Approvals that count no more: taken back by their approver, or lost with the access of their
//! approver.
//!
//! Whether access was taken away is the core's to say, from the tokens that are kept. It is asked
//! when a token is revoked, for all plans, and again when a plan is approved or a run would begin:
//! nothing hangs on the first look.

use crate::journal::load::{LoadError, load_review};
use crate::port::{AppendError, StoreError, Token};
use crate::review::plans::Plans;
use crate::review::plans::ReviewError;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, StreamName, decode};
use planwright_core::policy::Permission;
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::{
    Access, Approval, Review, ReviewCommand, ReviewEvent, ReviewRefusal, Revocation, access_holds,
};
use planwright_core::run::{Run, RunEvent};
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of times a plan that others write to at the same moment is looked at again.
const MAX_TRIES: usize = 10;

/// The reason that is kept where a look at the tokens was enough.
const NO_ACCESS: &str = "their access was revoked";

/// A look at all plans for approvals that were lost.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Whose; everybody's when absent.
    pub of: Option<Principal>,
    /// The principal on whose order approvals are revoked.
    pub by: Principal,
    /// The reason that is stored with each revocation.
    pub reason: String,
    /// Which approvals are lost.
    pub lost: LostApprovals,
}

/// Which approvals a sweep looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostApprovals {
    /// Those whose token was taken away from their giver.
    WithToken,
    /// All that no run has used.
    All,
}

/// The result of a sweep.
#[derive(Debug, Default)]
pub struct Swept {
    /// The plans whose approvals were revoked, as they are now.
    pub plans: Vec<Review>,
    /// Runs that go on and whose approver has lost their access.
    pub running: Vec<(PlanId, RunId)>,
    /// Plans that could not be looked at or written to, and why.
    pub failed: Vec<(PlanId, String)>,
}

impl Sweep {
    /// After a token was revoked.
    pub fn of(of: Principal, by: Principal) -> Self {
        Self {
            of: Some(of),
            by,
            reason: NO_ACCESS.to_owned(),
            lost: LostApprovals::WithToken,
        }
    }

    /// While a store from elsewhere is adopted: what was agreed to there is no consent here.
    pub fn on_adoption() -> Self {
        Self {
            of: None,
            by: adoption_rule(),
            reason: "the store came from elsewhere and was adopted".to_owned(),
            lost: LostApprovals::All,
        }
    }

    /// After a store was restored from a backup, which revokes all tokens.
    pub fn after_restore() -> Self {
        let reason = "the store was restored from a backup, and all tokens were revoked".to_owned();
        Self {
            of: None,
            by: rule("restore"),
            reason,
            lost: LostApprovals::WithToken,
        }
    }
}

/// The rule that holds what came with a store from elsewhere until a person ends it.
pub fn adoption_rule() -> Principal {
    rule("adoption")
}

/// A rule that takes consent away by itself.
fn rule(name: &str) -> Principal {
    Principal {
        kind: PrincipalKind::Policy,
        name: name.to_owned(),
    }
}

/// Returns whether the token this was given with was taken away from its giver.
fn is_lost(approval: &Approval, tokens: &[Token]) -> bool {
    let lets_approve =
        |token: &&Token| token.principal == approval.by && token.role.includes(Permission::Approve);
    let access = |token: &Token| Access {
        created_at: token.created_at,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
    };
    let tokens: Vec<Access> = tokens.iter().filter(lets_approve).map(access).collect();
    approval.assurance == Assurance::Token && !access_holds(&tokens, approval.at)
}

impl Plans {
    /// Voids the unused approvals of the approver `of`: their own wish, or that of an
    /// administrator.
    pub async fn revoke_approval(
        &self,
        id: &PlanId,
        of: &Principal,
        by: &Principal,
        reason: Option<String>,
    ) -> Result<Review, ReviewError> {
        let (review, head) = load_review(&*self.context.ports.store, id).await?;
        let revocation = self.revocation(of, by, None, reason);
        let now = self.context.ports.clock.now();
        let events = review.decide(&revocation, now)?;
        if events.is_empty() {
            return Err(ReviewRefusal::NothingToRevoke(of.clone()).into());
        }
        self.append_review(review, head, (now, events)).await
    }

    /// Revokes the approvals that were lost with a token, in every plan. A plan that cannot be
    /// looked at does not keep the others from it; no run of it can begin before its tokens are
    /// looked at.
    pub async fn sweep_approvals(&self, sweep: &Sweep) -> Result<Swept, LoadError> {
        let mut swept = Swept::default();
        let Some(tokens) = self.all_tokens().await? else {
            return Ok(swept);
        };
        for info in self.context.ports.store.plans().await? {
            if info.status.status == CachedStatus::Deleted {
                continue;
            }
            let plan = info.status.plan;
            if let Err(error) = self.sweep_plan(&plan, &tokens, sweep, &mut swept).await {
                swept.failed.push((plan, error.to_string()));
            }
        }
        Ok(swept)
    }

    async fn sweep_plan(
        &self,
        plan: &PlanId,
        tokens: &[Token],
        sweep: &Sweep,
        swept: &mut Swept,
    ) -> Result<(), ReviewError> {
        let mut left = MAX_TRIES;
        loop {
            let (review, head) = load_review(&*self.context.ports.store, plan).await?;
            if let Some(run) = self.running_without(&review, tokens, sweep).await? {
                let known = (plan.clone(), run);
                if !swept.running.contains(&known) {
                    swept.running.push(known);
                }
            }
            let now = self.context.ports.clock.now();
            let events = self.revocations(&review, tokens, sweep, now)?;
            if events.is_empty() {
                return Ok(());
            }
            left -= 1;
            match self.append_review(review, head, (now, events)).await {
                Ok(review) => {
                    swept.plans.push(review);
                    return Ok(());
                }
                // Another process wrote to the plan just now: perhaps a run has begun.
                Err(ReviewError::Append(AppendError::Conflict { .. })) if left > 0 => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The review without approvals that were lost and not swept yet. They are revoked in the
    /// journal first: what is decided next is decided from there.
    pub(crate) async fn without_lost_approvals(
        &self,
        review: Review,
        head: Head,
    ) -> Result<(Review, Head), ReviewError> {
        let now = self.context.ports.clock.now();
        if review
            .revocable(Some(Assurance::Token), now)
            .next()
            .is_none()
        {
            return Ok((review, head));
        }
        let Some(tokens) = self.all_tokens().await.map_err(LoadError::from)? else {
            return Ok((review, head));
        };
        let sweep = Sweep {
            of: None,
            by: rule("access"),
            reason: NO_ACCESS.to_owned(),
            lost: LostApprovals::WithToken,
        };
        let events = self.revocations(&review, &tokens, &sweep, now)?;
        if events.is_empty() {
            return Ok((review, head));
        }
        let (mut append, review) = self.review_append(review, head, (now, events)).await?;
        // Found out on the way to what was asked for, and not what was asked for.
        append.requests.clear();
        let head = append
            .records
            .last()
            .map_or(head, planwright_core::journal::Record::head);
        self.context.ports.store.append(vec![append]).await?;
        Ok((review, head))
    }

    /// Returns the events to write into this plan. An approver who lost one approval of it loses
    /// all unused ones they gave with a token, also one they gave since: rather asked once too
    /// often.
    fn revocations(
        &self,
        review: &Review,
        tokens: &[Token],
        sweep: &Sweep,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let given = match sweep.lost {
            LostApprovals::WithToken => Some(Assurance::Token),
            LostApprovals::All => None,
        };
        let mut whose: Vec<&Principal> = Vec::new();
        for approval in review.revocable(given, now) {
            let is_meant = sweep.of.as_ref().is_none_or(|of| approval.by == *of);
            let is_lost = sweep.lost == LostApprovals::All || is_lost(approval, tokens);
            if is_meant && is_lost && !whose.contains(&&approval.by) {
                whose.push(&approval.by);
            }
        }
        let mut events = Vec::new();
        for of in whose {
            let reason = Some(sweep.reason.clone());
            let command = self.revocation(of, &sweep.by, given, reason);
            events.extend(review.decide(&command, now)?);
        }
        Ok(events)
    }

    /// The plan's latest run, if it goes on and its approver has lost their access.
    async fn running_without(
        &self,
        review: &Review,
        tokens: &[Token],
        sweep: &Sweep,
    ) -> Result<Option<RunId>, LoadError> {
        let Some(opened) = review.runs().last() else {
            return Ok(None);
        };
        let is_theirs = |approval: &&Approval| {
            let is_meant = sweep.of.as_ref().is_none_or(|of| approval.by == *of);
            is_meant && approval.spent_by.contains(&opened.run) && is_lost(approval, tokens)
        };
        if !review
            .approvals()
            .iter()
            .any(|approval| is_theirs(&approval))
        {
            return Ok(None);
        }
        let status = self.latest_run_status(review).await?;
        let goes_on = status.is_some_and(|status| !status.is_terminal());
        Ok(goes_on.then(|| opened.run.clone()))
    }

    /// Returns whether what was agreed to for this run, or for one whose work it goes on with, was
    /// agreed to by an approver who has lost their access.
    pub(crate) async fn rests_on_lost_approval(
        &self,
        run: &Run,
        review: &Review,
    ) -> Result<bool, LoadError> {
        let adopted_at = self.context.ports.store.adopted_at();
        if adopted_at.is_some_and(|at| run.start().at <= at) {
            return Ok(true);
        }
        let with_token = |approval: &&Approval| approval.assurance == Assurance::Token;
        let given: Vec<&Approval> = review.approvals().iter().filter(with_token).collect();
        if given.is_empty() {
            return Ok(false);
        }
        let Some(tokens) = self.all_tokens().await? else {
            return Ok(false);
        };
        let lost = given
            .into_iter()
            .filter(|approval| is_lost(approval, &tokens));
        let lost: BTreeSet<&RunId> = lost.flat_map(|approval| &approval.spent_by).collect();
        let mut id = run.id().clone();
        let mut before = run
            .start()
            .forked_from
            .as_ref()
            .map(|fork| fork.run.clone());
        for _ in 0..=review.runs().len() {
            if lost.contains(&id) {
                return Ok(true);
            }
            let Some(earlier) = before else {
                return Ok(false);
            };
            before = self.forked_from(&earlier).await?;
            id = earlier;
        }
        // Runs that go on from each other in a circle are no consent.
        Ok(true)
    }

    /// The run whose work this one goes on with.
    async fn forked_from(&self, run: &RunId) -> Result<Option<RunId>, LoadError> {
        let stream = StreamName::Run(run.clone());
        let first = self.context.ports.store.read(&stream, 0, 1).await?;
        let Some(first) = first.first() else {
            return Err(LoadError::NoSuchRun(run.clone()));
        };
        let entry = decode::<RunEvent>(first).map_err(|error| LoadError::Damaged {
            stream: stream.clone(),
            reason: error.to_string(),
        })?;
        Ok(match entry.event {
            RunEvent::RunStarted {
                forked_from: Some(fork),
                ..
            } => Some(fork.run),
            _ => None,
        })
    }

    fn revocation(
        &self,
        of: &Principal,
        by: &Principal,
        given: Option<Assurance>,
        reason: Option<String>,
    ) -> ReviewCommand {
        let of = of.clone();
        let by = by.clone();
        let policy = Arc::clone(&self.context.settings.policy);
        ReviewCommand::RevokeApprovals(Box::new(Revocation {
            of,
            by,
            given,
            reason,
            policy,
        }))
    }

    /// Every token there is; nothing where there is no service that could know any.
    async fn all_tokens(&self) -> Result<Option<Vec<Token>>, StoreError> {
        match &self.context.ports.tokens {
            Some(tokens) => tokens.list().await.map(Some),
            None => Ok(None),
        }
    }
}
