//! The names of the sections of a plan file, in the order they are written.

pub(super) const GOAL: &str = "Goal";
pub(super) const STEPS: &str = "Steps";
pub(super) const SETTINGS: &str = "Settings";
pub(super) const SUCCESS_CRITERIA: &str = "Success Criteria";
pub(super) const CONTEXT: &str = "Context";
pub(super) const TOOL_OUTPUTS: &str = "Tool Outputs";
pub(super) const NOTES: &str = "Notes";
pub(super) const ARTIFACTS: &str = "Artifacts";
pub(super) const RISKS: &str = "Risks";
pub(super) const REJECTIONS: &str = "Rejections";
