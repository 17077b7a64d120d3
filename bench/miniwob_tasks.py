"""Thirty open MiniWoB++ tasks: for each a right script and a plausible wrong one, under one contract from its text."""

import re
from collections.abc import Awaitable, Callable, Sequence

from bench.miniwob_agent import HANDED_IN, Agent, holds, there

Script = Callable[[Agent, bool], Awaitable[None]]

SUBMIT = "#subbtn"
ELSEWHERE = "#query"


def quoted(query: str) -> list[str]:
    return re.findall(r'"([^"]*)"', query)


def _other(items: Sequence[str], wanted: str) -> int | None:
    """The first item that is not the wanted one."""
    return next((index for index, item in enumerate(items) if item != wanted), None)


async def click_test(agent: Agent, right: bool) -> None:
    await agent.press(SUBMIT if right else ELSEWHERE)


async def click_test_2(agent: Agent, right: bool) -> None:
    target = SUBMIT if right else "#subbtn2"
    await agent.press(target, [holds(target, "text", "ONE")])


async def click_button(agent: Agent, right: bool) -> None:
    wanted = quoted(await agent.query())[0]
    names = await agent.texts("#area button")
    index = names.index(wanted) if right else _other(names, wanted)
    if index is None:
        await agent.press(ELSEWHERE)
        return
    target = f"#area > button:nth-of-type({index + 1})"
    await agent.press(target, [holds(target, "text", wanted)])


async def click_button_sequence(agent: Agent, right: bool) -> None:
    first, second = (SUBMIT, "#subbtn2") if right else ("#subbtn2", SUBMIT)
    await agent.press_quietly(first, [holds(first, "text", "ONE")])
    await agent.press(second, [holds(second, "text", "TWO")])


async def click_link(agent: Agent, right: bool) -> None:
    wanted = quoted(await agent.query())[0]
    await _link_in(agent, "#area", wanted, right)


async def _link_in(agent: Agent, place: str, wanted: str, right: bool) -> None:
    names = await agent.texts(f"{place} span.alink")
    index = (names.index(wanted) if wanted in names else None) if right else _other(names, wanted)
    if index is None:
        await agent.press(ELSEWHERE)
        return
    target = f"{place} span.alink:nth-of-type({index + 1})"
    await agent.press(target, [holds(target, "text", wanted)])


async def click_dialog(agent: Agent, right: bool) -> None:
    target = ".ui-dialog-titlebar-close" if right else "#dialog p"
    await agent.press(target, after=[HANDED_IN, holds(".ui-dialog", "gone")])


async def click_dialog_2(agent: Agent, right: bool) -> None:
    wanted = quoted(await agent.query())[0]
    place = {
        "Cancel": ".ui-dialog-buttonset button:nth-of-type(1)",
        "OK": ".ui-dialog-buttonset button:nth-of-type(2)",
        "x": ".ui-dialog-titlebar-close",
    }
    pressed = wanted if right else ("OK" if wanted != "OK" else "Cancel")
    if wanted == "x":
        await agent.press(place[pressed], after=[HANDED_IN, holds(".ui-dialog", "gone")])
    else:
        await agent.press(place[pressed], [holds(place[pressed], "text", wanted)])


async def click_tab(agent: Agent, right: bool) -> None:
    match = re.search(r"#(\d)", await agent.query())
    wanted = int(match.group(1)) if match else 1
    pressed = wanted if right else wanted % 3 + 1
    await agent.press(f'#area ul a[href="#tabs-{pressed}"]', after=[HANDED_IN, holds(f"#tabs-{wanted}", "visible")])


def _click_tab_2(tabs: int) -> Script:
    async def script(agent: Agent, right: bool) -> None:
        wanted = quoted(await agent.query())[0]
        for number in range(1, tabs + 1):
            if number > 1:
                shown = [holds(f"#tabs-{number}", "visible")]
                await agent.press(f'#area ul a[href="#tabs-{number}"]', after=shown)
            names = await agent.texts(f"#tabs-{number} span.alink")
            if (wanted in names) if right else (_other(names, wanted) is not None):
                await _link_in(agent, f"#tabs-{number}", wanted, right)
                return
        await agent.press(ELSEWHERE)

    return script


async def click_collapsible(agent: Agent, right: bool) -> None:
    opened = holds("#area .ui-accordion-content", "visible")
    if right:
        await agent.press("#area h3", after=[opened])
    await agent.press(SUBMIT, [opened])


async def click_checkboxes(agent: Agent, right: bool) -> None:
    query = await agent.query()
    match = re.match(r"Select (.*) and click Submit", query)
    asked = match.group(1).split(", ") if match else []
    wanted = [] if asked == ["nothing"] else asked
    names = await agent.texts("#boxes label")
    ticked = [index for index, name in enumerate(names) if name in wanted]
    if not right:
        ticked = ticked[:-1] if ticked else [0]
    for index in ticked:
        box = f"#ch{index}"
        await agent.press(box, after=[holds(box, "checked")])
    await agent.press(SUBMIT, [holds(f"#ch{index}", "checked", name in wanted) for index, name in enumerate(names)])


async def click_option(agent: Agent, right: bool) -> None:
    match = re.match(r"Select (.*) and click Submit", await agent.query())
    wanted = match.group(1) if match else ""
    names = await agent.texts("#boxes label")
    index = names.index(wanted) if right else _other(names, wanted)
    await agent.press(f"#ch{index}", after=[holds(f"#ch{index}", "checked")])
    await agent.press(SUBMIT, [holds(f"#ch{names.index(wanted)}", "checked")])


async def choose_list(agent: Agent, right: bool) -> None:
    match = re.match(r"Select (.*) from the list", await agent.query())
    wanted = match.group(1) if match else ""
    # The wrong script forgets to choose; now and then the list stands on the right entry all the same.
    if right:
        await agent.choose("#options", wanted)
    await agent.press("#area button", [holds("#options", "value", wanted)])


async def click_scroll_list(agent: Agent, right: bool) -> None:
    match = re.match(r"Select (.*) from the scroll list", await agent.query())
    wanted = match.group(1).split(", ") if match else []
    names = await agent.texts("#options option")
    picked = [names.index(name) for name in wanted]
    if not right:
        spare = next(index for index, name in enumerate(names) if name not in wanted)
        picked = [*picked[:-1], spare]
    for number, index in enumerate(picked):
        option = f"#options option:nth-of-type({index + 1})"
        held = ["Control"] if number else []
        await agent.press(option, after=[holds(f"{option}:checked", "exists")], modifiers=held)
    state = [
        holds(f"#options option:nth-of-type({index + 1}):checked", "exists", name in wanted)
        for index, name in enumerate(names)
    ]
    await agent.press("#area button", state)


async def _fill_and_submit(agent: Agent, field: str, wanted: str, typed: str) -> None:
    await agent.enter(field, typed)
    await agent.press(SUBMIT, [holds(field, "value", wanted)])


def _nearly(text: str) -> str:
    return text[:-1] if len(text) > 1 else text + "x"


async def enter_text(agent: Agent, right: bool) -> None:
    wanted = quoted(await agent.query())[0]
    await _fill_and_submit(agent, "#tt", wanted, wanted if right else _nearly(wanted))


async def enter_text_2(agent: Agent, right: bool) -> None:
    query = await agent.query()
    shown = quoted(query)[0]
    wanted = shown.upper() if "upper case" in query else shown.lower()
    await _fill_and_submit(agent, "#tt", wanted, wanted if right else shown)


async def enter_date(agent: Agent, right: bool) -> None:
    match = re.search(r"(\d+)/(\d+)/(\d+)", await agent.query())
    month, day, year = match.groups() if match else ("01", "01", "2010")
    wanted = f"{year}-{month}-{day}"
    next_day = f"{int(day) % 28 + 1:02d}"
    await _fill_and_submit(agent, "#tt", wanted, wanted if right else f"{year}-{month}-{next_day}")


async def login_user(agent: Agent, right: bool) -> None:
    user, password = quoted(await agent.query())[:2]
    await agent.enter("#username", user if right else _nearly(user))
    await agent.enter("#password", password)
    await agent.press(SUBMIT, [holds("#username", "value", user)])


async def focus_text(agent: Agent, right: bool) -> None:
    await agent.press("#tt" if right else ELSEWHERE)


async def _rows(agent: Agent) -> dict[str, str]:
    lines = (await agent.read("#tab") or "").splitlines()
    return {key: value for key, bar, value in (line.partition(" | ") for line in lines) if bar}


async def read_table(agent: Agent, right: bool) -> None:
    match = re.match(r"Enter the value of (.*) into the text field", await agent.query())
    rows = await _rows(agent)
    wanted = rows[match.group(1) if match else ""]
    wrong = next(value for value in rows.values() if value != wanted)
    await _fill_and_submit(agent, "#tt", wanted, wanted if right else wrong)


async def read_table_2(agent: Agent, right: bool) -> None:
    rows = await _rows(agent)
    labels = [(await agent.read(f"#ll{number}") or "").rstrip(":") for number in (1, 2)]
    wanted = [rows[label] for label in labels]
    typed = wanted if right else [wanted[0], next(value for value in rows.values() if value != wanted[1])]
    for number, text in enumerate(typed, 1):
        await agent.enter(f"#tt{number}", text)
    await agent.press(SUBMIT, [holds(f"#tt{number}", "value", text) for number, text in enumerate(wanted, 1)])


WIDGETS = {
    "radio": "input[type=radio]",
    "checkbox": "input[type=checkbox]",
    "text": "input[type=input]",
    "textarea": "textarea",
    "button": "button",
}


async def click_widget(agent: Agent, right: bool) -> None:
    wanted = quoted(await agent.query())[0]
    for kind, css in WIDGETS.items():
        if (kind == wanted) is not right:
            continue
        for number in range(1, 6):
            widget = f"#area .widget:nth-of-type({number})"
            if await agent.exists(f"{widget} {css}"):
                await agent.press(f"{widget} {css}", [there(f"{widget} {WIDGETS[wanted]}")])
                return
    await agent.press(ELSEWHERE)


async def choose_date_easy(agent: Agent, right: bool) -> None:
    match = re.search(r"(\d+)/(\d+)/(\d+)", await agent.query())
    month, day, year = match.groups() if match else ("12", "01", "2016")
    pressed = int(day) if right else int(day) % 28 + 1
    await agent.press("#datepicker", after=[holds("#ui-datepicker-div", "visible")])
    filled = holds("#datepicker", "value", f"{month}/{pressed:02d}/{year}")
    await agent.press("#ui-datepicker-div td a", after=[filled], nth=pressed - 1)
    await agent.press(SUBMIT, [holds("#datepicker", "value", f"{month}/{day}/{year}")])


async def find_word(agent: Agent, right: bool) -> None:
    match = re.search(r"(\d+)\w\w word", await agent.query())
    words = [re.sub(r"[^A-Za-z]", "", word) for word in (await agent.read("#area p") or "").split()]
    position = int(match.group(1)) - 1 if match else 0
    wanted = words[position]
    wrong = next((word for word in words[position + 1 :] + words if word != wanted), "nothing")
    await _fill_and_submit(agent, "#answer-input", wanted, wanted if right else wrong)


async def copy_paste(agent: Agent, right: bool) -> None:
    wanted = await agent.fact("#to-copy", "value")
    await _fill_and_submit(agent, "#answer-input", wanted, wanted if right else wanted.strip()[:-1])


async def simple_arithmetic(agent: Agent, right: bool) -> None:
    match = re.search(r"(\d) ([-+x]) (\d)", await agent.read("#math-problem") or "")
    left, sign, other = match.groups() if match else ("0", "+", "0")
    results = {"+": int(left) + int(other), "-": int(left) - int(other), "x": int(left) * int(other)}
    wanted = str(results[sign])
    await _fill_and_submit(agent, "#math-answer", wanted, wanted if right else str(results[sign] + 1))


TASKS: dict[str, Script] = {
    "click-test": click_test,
    "click-test-2": click_test_2,
    "click-button": click_button,
    "click-button-sequence": click_button_sequence,
    "click-link": click_link,
    "click-dialog": click_dialog,
    "click-dialog-2": click_dialog_2,
    "click-tab": click_tab,
    "click-tab-2": _click_tab_2(3),
    "click-tab-2-easy": _click_tab_2(1),
    "click-tab-2-medium": _click_tab_2(2),
    "click-collapsible": click_collapsible,
    "click-checkboxes": click_checkboxes,
    "click-checkboxes-transfer": click_checkboxes,
    "click-option": click_option,
    "choose-list": choose_list,
    "click-scroll-list": click_scroll_list,
    "enter-text": enter_text,
    "enter-text-dynamic": enter_text,
    "enter-text-2": enter_text_2,
    "enter-date": enter_date,
    "login-user": login_user,
    "focus-text": focus_text,
    "read-table": read_table,
    "read-table-2": read_table_2,
    "click-widget": click_widget,
    "choose-date-easy": choose_date_easy,
    "find-word": find_word,
    "copy-paste": copy_paste,
    "simple-arithmetic": simple_arithmetic,
}
