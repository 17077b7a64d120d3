"""Addresses of the pages on what agents work at: goals, recurring tasks and their runs."""

from nova_mcp.dashboard.context import Entry, Place, View, Visit, missing
from nova_mcp.dashboard.formatting import plain
from nova_mcp.dashboard.pages import goals as goals_page
from nova_mcp.dashboard.pages import run as run_page
from nova_mcp.dashboard.pages import tasks as tasks_page
from nova_mcp.dashboard.pages.run import FILTERS, RunAsked
from nova_mcp.dashboard.pages.tasks import RunPlace
from nova_mcp.dashboard.request_query import address, text, whole

# -- goals


async def goals(visit: Visit) -> View:
    found = await visit.desk.read(goals_page.goals, visit.session.principal, visit.desk.now_ms())
    return View("work/goals.html", {"title": "Goals", "page": found})


async def goal(visit: Visit) -> View:
    goal_id = visit.part("goal_id")
    found = await visit.desk.read(goals_page.goal, visit.session.principal, goal_id, visit.desk.now_ms())
    if found is None:
        return missing("There is no such goal.")
    return View("work/goal.html", {"title": plain(found.row.goal.summary), "page": found})


# -- tasks


async def tasks(visit: Visit) -> View:
    ended = text(visit, "ended") == "yes"
    before = whole(visit, "before")
    after = None if before is None else RunPlace(before, text(visit, "run"))
    found = await visit.desk.read(tasks_page.tasks, after, visit.desk.now_ms(), ended=ended)
    following = found.following and address(
        "/tasks", ended="yes" if ended else "", before=found.following.at_ms, run=found.following.instance_id
    )
    return View("work/tasks.html", {"title": "Tasks", "page": found, "following": following})


async def run(visit: Visit) -> View:
    chosen = next((one for one in FILTERS if one == text(visit, "units")), None)
    after = whole(visit, "after")
    asked = RunAsked(visit.part("instance_id"), chosen, -1 if after is None else after)
    found = await visit.desk.read(run_page.run, asked, visit.desk.settings.tasks.url_coverage_gate)
    if found is None:
        return missing("There is no such run.")
    path = f"/tasks/runs/{found.run.instance_id}"
    following = None if found.next_after is None else address(path, units=chosen, after=found.next_after) + "#units"
    values = {"title": plain(found.run.content.display_name), "page": found, "following": following, "filters": FILTERS}
    return View("work/run.html", values)


async def profile(visit: Visit) -> View:
    found = await visit.desk.read(tasks_page.profile, text(visit, "principal"), text(visit, "id"), visit.desk.now_ms())
    if found is None:
        return missing("There is no such task profile.")
    return View("work/profile.html", {"title": plain(found.owned.profile.content.display_name), "page": found})


PLACES = (
    Place("/goals", "goals", get=goals, menu=Entry("Work", "Goals")),
    Place("/goals/{goal_id}", "goals", get=goal),
    Place("/tasks", "tasks", get=tasks, menu=Entry("Work", "Tasks")),
    Place("/tasks/profile", "tasks", get=profile),
    Place("/tasks/runs/{instance_id}", "tasks", get=run),
)
