"""Every call of the service by a client that openapi-python-client generated, checked with mypy --strict.

usage.py ADDRESS TOKEN: prints the operations that it called.
"""

import sys
import time
from typing import TypeVar

import httpx

from planwright_client import AuthenticatedClient, Client
from planwright_client.api.access import sign_in, ticket, whoami
from planwright_client.api.chat import chat
from planwright_client.api.comments import add_comment, list_comments, reopen_comment, resolve_comment
from planwright_client.api.decisions import approve_plan, list_approvals, reject_plan, request_changes, revoke_approval
from planwright_client.api.events import events, plan_events
from planwright_client.api.plans import (
    archive_plan,
    create_plan,
    delete_plan,
    get_briefing,
    get_plan,
    list_plans,
    patch_plan,
)
from planwright_client.api.runs import (
    cancel_run,
    check_criteria,
    fail_run,
    fork_run,
    get_run,
    get_step_arguments,
    get_step_briefing,
    get_step_value,
    list_runs,
    pause_run,
    resume_run,
    run_plan,
    undo_run,
)
from planwright_client.api.service import healthz, list_queues, list_workers, metrics, openapi, readyz, stats
from planwright_client.api.steps import answer_step, approve_step, reject_step, resolve_step, retry_step, skip_step
from planwright_client.api.tools import list_tools
from planwright_client.api.trials import check_expression, dry_run, explain_policy, preview_edit, validate_plan
from planwright_client.api.versions import (
    diff_versions,
    get_version,
    list_versions,
    propose_draft,
    regenerate_plan,
    restore_version,
)
from planwright_client.models.add_comment import AddComment
from planwright_client.models.answer_step import AnswerStep
from planwright_client.models.answer_step_values_type_0 import AnswerStepValuesType0
from planwright_client.models.approve_plan_by_digest import ApprovePlanByDigest
from planwright_client.models.approve_plan_by_version import ApprovePlanByVersion
from planwright_client.models.approve_step_by_version import ApproveStepByVersion
from planwright_client.models.check_expression import CheckExpression
from planwright_client.models.chat_message import ChatMessage
from planwright_client.models.chat_request import ChatRequest
from planwright_client.models.chat_role import ChatRole
from planwright_client.models.cloud_event import CloudEvent
from planwright_client.models.explain_policy import ExplainPolicy
from planwright_client.models.fork_run import ForkRun
from planwright_client.models.merge_patch import MergePatch
from planwright_client.models.new_document import NewDocument
from planwright_client.models.new_goal import NewGoal
from planwright_client.models.outcome_word import OutcomeWord
from planwright_client.models.plan_edits import PlanEdits
from planwright_client.models.plan_status import PlanStatus
from planwright_client.models.problem import Problem
from planwright_client.models.problem_code import ProblemCode
from planwright_client.models.reject_plan_by_version import RejectPlanByVersion
from planwright_client.models.request_changes_by_version import RequestChangesByVersion
from planwright_client.models.resolve_step import ResolveStep
from planwright_client.models.restore_version import RestoreVersion
from planwright_client.models.sign_in_request_by_code import SignInRequestByCode
from planwright_client.models.ticket_request import TicketRequest
from planwright_client.models.undo_preview import UndoPreview
from planwright_client.models.undo_run import UndoRun
from planwright_client.models.yes import Yes
from planwright_client.types import Response, Unset

T = TypeVar("T")

ADDRESS, TOKEN = sys.argv[1:]
client = AuthenticatedClient(base_url=ADDRESS, token=TOKEN, timeout=httpx.Timeout(60))
stranger = Client(base_url=ADDRESS)


def good(answer: T | Problem | None) -> T:
    """What the service answered, which is no problem."""
    if answer is None or isinstance(answer, Problem):
        raise AssertionError(answer)
    return answer


def refused(answer: object, *codes: ProblemCode) -> None:
    """The service refused it, with one of these codes."""
    assert isinstance(answer, Problem), answer
    assert answer.code in codes, answer
    assert answer.type_ == f"urn:planwright:problem:{answer.code}", answer


def given(value: T | Unset | None) -> T:
    """What the service said, where it may say nothing."""
    if value is None or isinstance(value, Unset):
        raise AssertionError("nothing is there")
    return value


def tag(response: Response[T]) -> str:
    """The state of a plan."""
    return response.headers["etag"]


def new_plan(id: str, *steps: dict[str, object]) -> None:
    """Proposes a plan."""
    document = NewDocument.from_dict({"id": id, "title": f"Plan {id}", "steps": list(steps)})
    created = good(create_plan.sync(client=client, body=document))
    assert created.plan.status == PlanStatus.PROPOSED


def approve(id: str) -> None:
    """Approves the first version of a plan."""
    decision = ApprovePlanByVersion(decision=Yes.APPROVE, version=1)
    decided = good(approve_plan.sync(id, client=client, body=decision))
    assert decided.status == PlanStatus.APPROVED


def start(id: str, *steps: dict[str, object]) -> str:
    """Proposes a plan, approves it and begins a run."""
    new_plan(id, *steps)
    approve(id)
    return good(run_plan.sync(id, client=client)).run_id


def wait(id: str, status: PlanStatus) -> None:
    """Waits until the plan stands there."""
    for _ in range(600):
        plan = good(get_plan.sync(id, client=client))
        if plan.status == status:
            return
        time.sleep(0.05)
    raise AssertionError(f"{id} is not {status}")


NOTE: dict[str, object] = {"id": "note", "tool": "demo.echo", "args": {"value": 1}, "timeoutSeconds": 300}
GATE: dict[str, object] = {"id": "gate", "tool": "demo.echo", "args": {"value": 2}, "approvalRequired": True}
ASK: dict[str, object] = {
    "id": "ask",
    "input": {
        "message": "How many?",
        "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
}


def look_around() -> None:
    """What needs no plan."""
    assert good(healthz.sync(client=stranger)).alive
    assert good(readyz.sync(client=stranger)).ready
    assert good(openapi.sync(client=stranger))["openapi"] == "3.1.0"
    assert "planwright_" in good(metrics.sync(client=client))
    assert good(whoami.sync(client=client)).name == "ada"
    assert good(list_tools.sync(client=client, limit=1))[0].input_schema.to_dict()
    assert good(stats.sync(client=client)).unreadable == 0
    refused(list_workers.sync(client=client), ProblemCode.NO_WORKERS)
    refused(list_queues.sync(client=client), ProblemCode.NO_BROKER)
    refused(sign_in.sync(client=stranger, body=SignInRequestByCode(code="x")), ProblemCode.SIGN_IN_REFUSED)
    assert good(ticket.sync(client=client, body=TicketRequest(path="/events"))).expires_at.tzinfo
    assert good(validate_plan.sync(client=client, body=NewDocument.from_dict({"steps": [NOTE]}))).ok
    assert good(check_expression.sync(client=client, body=CheckExpression(expression="1 < 2"))).ok
    message = ChatMessage(role=ChatRole.USER, content="Hello")
    refused(chat.sync(client=client, body=ChatRequest(messages=[message])), ProblemCode.MODEL_NOT_CONFIGURED)


def write() -> None:
    """A plan from its goal to its review."""
    created = good(create_plan.sync(client=client, body=NewGoal(goal="Ship it")))
    id = created.plan.id
    assert created.plan.status == PlanStatus.DRAFT
    read = get_plan.sync_detailed(id, client=client)
    edits = PlanEdits.from_dict({"edits": [{"op": "add", "step": NOTE}], "reason": "it needs a step"})
    assert good(preview_edit.sync(id, client=client, body=edits)).ok
    edited = patch_plan.sync_detailed(id, client=client, body=edits, if_match=tag(read))
    assert good(edited.parsed).version == 2
    # What a colleague says does not keep an editor from saving.
    said = good(add_comment.sync(id, client=client, body=AddComment(text="Why?", step="note")))
    patched = patch_plan.sync_detailed(
        id, client=client, body=MergePatch(title="Better"), if_match=tag(edited), reason="a better title"
    )
    assert good(patched.parsed).title == "Better"
    stale = patch_plan.sync(id, client=client, body=MergePatch(title="Late"), if_match=tag(edited))
    refused(stale, ProblemCode.STATE_CHANGED)
    assert good(list_comments.sync(id, client=client))[0].comments[0].at.tzinfo
    good(resolve_comment.sync(id, said.id, client=client))
    good(reopen_comment.sync(id, said.id, client=client))
    good(resolve_comment.sync(id, said.id, client=client))
    versions = good(list_versions.sync(id, client=client))
    assert [version.reason for version in versions[1:]] == ["it needs a step", "a better title"]
    assert good(get_version.sync(id, 2, client=client)).document.steps
    assert good(diff_versions.sync(id, client=client, from_=1, to=2)).steps
    assert good(restore_version.sync(id, client=client, body=RestoreVersion(version=2))).version == 4
    good(propose_draft.sync(id, client=client))
    listed = good(list_plans.sync(client=client, status="proposed"))
    assert "Ship it" in [plan.title for plan in listed.items]
    briefing = good(get_briefing.sync(id, client=client))
    assert briefing.steps[0].timeout_seconds == 300
    refused(regenerate_plan.sync(id, client=client), ProblemCode.MODEL_NOT_CONFIGURED)
    wish = RequestChangesByVersion(version=4, reason="say where")
    assert good(request_changes.sync(id, client=client, body=wish)).status == PlanStatus.CHANGES_REQUESTED
    assert delete_plan.sync_detailed(id, client=client).status_code == 204


def decide() -> None:
    """What people decide about a plan."""
    new_plan("decided", NOTE)
    no = RejectPlanByVersion(version=1, reason="not today")
    assert good(reject_plan.sync("decided", client=client, body=no)).status == PlanStatus.REJECTED
    new_plan("agreed", NOTE)
    assert good(list_approvals.sync(client=client, limit=1)).items[0].plan_id == "agreed"
    good(dry_run.sync("agreed", client=client))
    assert good(explain_policy.sync(client=client, body=ExplainPolicy(id="agreed"))).steps
    digest = good(get_plan.sync("agreed", client=client)).digest
    yes = ApprovePlanByDigest(decision=Yes.APPROVE, digest=digest)
    assert good(approve_plan.sync("agreed", client=client, body=yes)).approvals == 1
    assert good(revoke_approval.sync("agreed", client=client)).status == PlanStatus.PROPOSED
    refused(pause_run.sync("agreed", client=client), ProblemCode.NO_RUN)


def run() -> None:
    """A run and what came of it."""
    run = start("over", NOTE)
    wait("over", PlanStatus.COMPLETED)
    result = good(get_run.sync("over", run, client=client))
    assert result.success and result.steps[0].value == 1
    assert good(list_runs.sync("over", client=client))[0].id == run
    assert good(get_step_value.sync("over", run, "note", client=client)) == 1
    assert good(get_step_arguments.sync("over", run, "note", client=client)) == {"value": 1}
    good(get_step_briefing.sync("over", run, "note", client=client))
    told = good(plan_events.sync("over", client=client)).events
    assert len(told) > 4 and not isinstance(told[0], CloudEvent) and told[0].event == "plan.created"
    assert good(events.sync(client=client)).events
    approve("over")
    good(fork_run.sync("over", client=client, body=ForkRun(from_=["note"])))
    wait("over", PlanStatus.COMPLETED)
    approve("over")
    good(retry_step.sync("over", "note", client=client))
    wait("over", PlanStatus.COMPLETED)
    refused(check_criteria.sync("over", client=client), ProblemCode.NO_CRITERIA)
    undone = undo_run.sync("over", client=client, body=UndoRun(dry_run=True))
    if not isinstance(undone, UndoPreview):
        refused(undone, ProblemCode.NOTHING_TO_UNDO)
    refused(resume_run.sync("over", client=client), ProblemCode.RUN_ENDED, ProblemCode.NOT_PAUSED)
    good(archive_plan.sync("over", client=client))


def steps() -> None:
    """Single steps of runs that wait."""
    start("gated", GATE)
    wait("gated", PlanStatus.WAITING)
    refused(
        resolve_step.sync("gated", "gate", client=client, body=ResolveStep(outcome=OutcomeWord.HAPPENED)),
        ProblemCode.NOTHING_TO_RESOLVE,
    )
    agreed = ApproveStepByVersion(decision=Yes.APPROVE, version=1)
    good(approve_step.sync("gated", "gate", client=client, body=agreed))
    wait("gated", PlanStatus.COMPLETED)
    start("refused", GATE)
    wait("refused", PlanStatus.WAITING)
    good(reject_step.sync("refused", "gate", client=client, body=RejectPlanByVersion(version=1)))
    wait("refused", PlanStatus.FAILED)
    start("skipped", GATE, NOTE)
    wait("skipped", PlanStatus.WAITING)
    good(pause_run.sync("skipped", client=client))
    good(resume_run.sync("skipped", client=client))
    good(skip_step.sync("skipped", "gate", client=client))
    wait("skipped", PlanStatus.COMPLETED)
    start("asking", ASK)
    wait("asking", PlanStatus.WAITING)
    waiting = [item for item in good(list_approvals.sync(client=client)).items if item.plan_id == "asking"]
    assert given(waiting[0].questions)[0].message == "How many?"
    answer = AnswerStep(question=waiting[0].digest, values=AnswerStepValuesType0.from_dict({"n": 3}))
    good(answer_step.sync("asking", "ask", client=client, body=answer))
    wait("asking", PlanStatus.COMPLETED)
    start("cancelled", GATE)
    wait("cancelled", PlanStatus.WAITING)
    good(cancel_run.sync("cancelled", client=client))
    wait("cancelled", PlanStatus.CANCELLED)
    start("failed", GATE)
    wait("failed", PlanStatus.WAITING)
    good(fail_run.sync("failed", client=client))
    wait("failed", PlanStatus.FAILED)


for part in [look_around, write, decide, run, steps]:
    part()
