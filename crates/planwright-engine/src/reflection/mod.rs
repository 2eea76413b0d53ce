//! Looking at a run before it ends, and going on in another one: reflect → adjust → consent → go
//! on.
//!
//! The core says when a run has to be looked at and what may follow. Here the model is asked, the
//! next version of the plan is written in the same commit as the end of the run, and the run that
//! goes on is begun once the change is agreed to.

mod adjust;
mod continuation;
mod criteria;
mod look;
mod reapproval;
mod reflect;

pub use continuation::Continuation;
pub(crate) use continuation::Origin;
pub use criteria::CheckCriteriaError;
pub(crate) use look::{Looked, Looking};
pub use reapproval::Reapproval;
