"""The principals that have rows of some kind, found by skipping through an index that begins with them."""

from typing import Final

from sqlalchemy import Column, Connection, select

MOST: Final = 50


def principals(conn: Connection, column: Column[str], most: int = MOST) -> list[str]:
    found: list[str] = []
    while len(found) < most:
        following = select(column).order_by(column).limit(1)
        name = conn.execute(following.where(column > found[-1]) if found else following).scalar_one_or_none()
        if name is None:
            break
        found.append(name)
    return found
