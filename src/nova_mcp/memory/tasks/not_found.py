"""What a caller is told when a task, a run or a piece of guidance is not there, or not its own."""

from nova_mcp.errors import NotFound


def no_profile(profile_id: str) -> NotFound:
    return NotFound("task.profile_not_found", f'There is no profile "{profile_id[:64]}".')


def no_run(instance_id: str) -> NotFound:
    return NotFound("task.instance_not_found", f'There is no run "{instance_id[:64]}".')


def no_guidance(log_id: str) -> NotFound:
    return NotFound("task.guidance_not_found", f'There is no guidance "{log_id[:64]}".')
