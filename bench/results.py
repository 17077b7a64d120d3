"""What a measurement leaves behind: tables, findings beside their aims, remarks; as values and as JSON on disk."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

FOLDER: Final = Path(__file__).with_name("results")
Form = Literal["short", "long"]
Status = Literal["done", "failed", "cut off"]


class Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Table(Value):
    kind: Literal["table"] = "table"
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Finding(Value):
    """One figure beside what was promised of it.

    `met` is unknown where a figure is told without a bound, or where there was nothing to count. `smaller` says what
    the promise asks for beyond this sample.
    """

    kind: Literal["finding"] = "finding"
    aim: str
    what: str
    measured: str
    bound: str
    n: int
    met: bool | None
    smaller: str = ""


class Remark(Value):
    kind: Literal["remark"] = "remark"
    text: str


class LeftOut(Value):
    """A part that could not be measured here, and why."""

    kind: Literal["left_out"] = "left_out"
    reason: str


class Ended(Value):
    """The last line of a measurement that came to its end; without it the process broke off."""

    kind: Literal["ended"] = "ended"
    code: int


Line = Annotated[Table | Finding | Remark | LeftOut | Ended, Field(discriminator="kind")]
LINE: Final[TypeAdapter[Line]] = TypeAdapter(Line)


class Environment(Value):
    """Where a section was measured; `versions` in the order in which they are told."""

    cores: int
    memory_gb: float
    kernel: str
    commit: str
    versions: tuple[tuple[str, str], ...]


class Section(Value):
    """One benchmark as it was last run. `load` is how many processes wanted a core when it began."""

    name: str
    form: Form
    arguments: tuple[str, ...]
    measured_at: str
    seconds: float
    load: float
    status: Status
    problem: str = ""
    environment: Environment
    lines: tuple[Line, ...]

    @property
    def tables(self) -> list[Table]:
        return [line for line in self.lines if isinstance(line, Table)]

    @property
    def findings(self) -> list[Finding]:
        return [line for line in self.lines if isinstance(line, Finding)]

    @property
    def remarks(self) -> list[str]:
        return [line.text for line in self.lines if isinstance(line, Remark)]

    @property
    def left_out(self) -> list[str]:
        return [line.reason for line in self.lines if isinstance(line, LeftOut)]


def file_of(folder: Path, name: str, form: Form) -> Path:
    return folder / f"{name}{'.long' if form == 'long' else ''}.json"


def stored(folder: Path = FOLDER) -> list[Section]:
    """Every section that was ever measured, short and long forms beside each other."""
    return [Section.model_validate_json(path.read_bytes()) for path in sorted(folder.glob("*.json"))]


def store(section: Section, folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = section.model_dump_json(indent=1) + "\n"
    file_of(folder, section.name, section.form).write_text(text, encoding="utf-8")
