"""The pages of the practice site in two designs; the second renames, moves and swaps what was learned on the first."""

from bench.practice_site import Design

_NAV = '<nav><a href="/news">News</a><a href="/help">Help</a><a href="/about">About us</a></nav>'


def _main(title: str, body: str) -> str:
    return f"<header>{_NAV}</header><main><h1>{title}</h1>{body}</main>"


def _shows(target: str) -> str:
    return f"document.getElementById('{target}').hidden=false"


# -- layers


def _consent(refuse: str, accept: str) -> str:
    layer = (
        "<div id=cookie-box class=layer role=dialog aria-label=Cookies><div class=box><p>We use cookies to measure how "
        "the site is used.</p>{buttons}</div></div>"
    )
    gone = "onclick=\"document.getElementById('cookie-box').remove()\""
    buttons = (
        f"<button type=button id={refuse} data-k=refuse {gone}>Reject all</button> "
        f"<button type=button id={accept} data-k=accept {gone}>Accept all</button>"
    )
    return _main("News", "<p>What happened today.</p>") + layer.format(buttons=buttons)


def _newsletter(layer: str, close: str, link: str) -> str:
    gone = f"onclick=\"document.getElementById('{layer}').remove()\""
    return _main("Prices", f'<p>All of them.</p><a id={link} href="/prices/list" data-k=list>Full price list</a>') + (
        f"<div id={layer} class=layer role=dialog aria-label=Newsletter><div class=box><h2>Join our newsletter</h2>"
        "<p>Get ten per cent off your next order.</p><input type=email placeholder='you@example.com' data-k=mail> "
        f"<button type=button data-k=join>Sign me up</button> <button type=button id={close} data-k=close {gone}>"
        "No thanks</button></div></div>"
    )


# -- menus


def _office(moved: bool) -> str:
    menu = (
        f'<button type=button id=m-analytics data-k=analytics aria-expanded=false onclick="{_shows("sub-analytics")}">'
        "Analytics</button><div id=sub-analytics hidden>"
        f'<button type=button id=m-exports data-k=exports onclick="{_shows("sub-exports")}">Exports</button>'
        "<button type=button id=m-live data-k=live>Live view</button></div><div id=sub-exports hidden>"
        '<a id=m-weekly href="/report/weekly" data-k=weekly>Weekly report</a> '
        '<a id=m-monthly href="/report/monthly" data-k=monthly>Monthly report</a></div>'
    )
    if not moved:
        return _main("Office", f"<div id=menu class=top>{menu}</div><p>Choose what you want to see.</p>")
    more = "<button type=button id=m-people data-k=people>People</button>"
    return _main("Office", f"<p>Welcome back.</p><aside class=side><div id=menu class=x19>{more}{menu}</div></aside>")


def _team(moved: bool) -> str:
    pop = (
        f'<button type=button id=avatar data-k=avatar aria-haspopup=menu onclick="{_shows("pop")}">My account</button>'
        "<div id=pop hidden><a id=pop-profile href=/me data-k=profile>Profile</a> "
        '<a id=pop-billing href="/billing/history" data-k=billing>Billing history</a></div>'
    )
    if not moved:
        return _main("Team", f"<div id=bar>{pop}</div><p>Everybody who works here.</p>")
    return _main(
        "Team", f"<p>Everybody who works here, and where.</p><footer><div id=bar class=lower>{pop}</div></footer>"
    )


def _language(third: bool) -> str:
    names = ["English", "Deutsch", "Français"]
    if third:
        names = ["English", "Français", "Deutsch"]
    items = "".join(
        f"<button type=button id=lang-{number} data-k={name[:2].lower()} "
        f"onclick=\"document.getElementById('said').textContent='{name}'\">{name}</button>"
        for number, name in enumerate(names, 1)
    )
    return _main(
        "Start",
        f'<div id=lang-box><button type=button id=lang data-k=open onclick="{_shows("langs")}">Language</button>'
        f"<div id=langs hidden>{items}</div></div><p id=said>English</p>",
    )


# -- forms


def _catalog(swapped: bool) -> str:
    apply_, reset = ("show-results", "apply") if swapped else ("apply", "reset")
    return _main(
        "Catalogue",
        '<form id=filters method=get action="/catalog/hits"><label for=lo>Lowest price</label>'
        "<input id=lo name=lo data-k=lo><label for=hi>Highest price</label><input id=hi name=hi data-k=hi>"
        "<input type=checkbox id=blue name=blue value=yes data-k=blue><label for=blue>Blue</label>"
        "<input type=checkbox id=stock name=stock value=yes data-k=stock><label for=stock>In stock</label>"
        "<input type=radio id=cheap name=by value=price data-k=cheap><label for=cheap>Cheapest first</label>"
        f"<button type=reset id={reset} data-k=reset>Reset filters</button>"
        f"<button id={apply_} data-k=apply>Apply filters</button></form>",
    )


def _library(field: str, button: str) -> str:
    return _main(
        "Library",
        '<form id=searchbox role=search method=get action="/library/hits">'
        f"<label for={field}>Title or author</label><input id={field} name=q data-k=q>"
        f"<button id={button} data-k=search>Search</button></form><p>Opening hours: nine to five.</p>",
    )


_HITS = _main(
    "Hits",
    "<div id=hits><button type=button id=books data-k=books "
    "onclick=\"document.getElementById('kind').textContent='books'\">Books only</button>"
    "<button type=button id=lent data-k=lent "
    "onclick=\"document.getElementById('state').textContent='here'\">Not lent out</button>"
    "<p id=kind>everything</p><p id=state>everywhere</p></div>",
)


def _account(swapped: bool) -> str:
    names = ["General", "Privacy", "Notifications"]
    if swapped:
        names = ["General", "Notifications", "Close account"]
    ticks = (
        "<input type=checkbox id={0} data-k=digest><label for={0}>Weekly digest</label>"
        "<input type=checkbox id=quiet data-k=quiet><label for=quiet>Quiet at night</label>"
    )
    panels = {
        "General": "<p>Your name is Ada.</p>",
        "Privacy": "<p>Nobody sees your page.</p>",
        "Notifications": ticks.format("digest" if swapped else "weekly"),
        "Close account": "<input type=checkbox id=weekly data-k=erase><label for=weekly>Erase all I wrote</label>",
    }
    tabs = "".join(
        f'<button type=button role=tab id=tab-{number} data-k="tab {name}" onclick="{_shows(f"panel-{number}")}">{name}'
        "</button>"
        for number, name in enumerate(names, 1)
    )
    shown = "".join(
        f"<div role=tabpanel id=panel-{number} hidden>{panels[name]}</div>" for number, name in enumerate(names, 1)
    )
    save = "<button id=store data-k=store>Save settings</button>"
    return _main("Account", f'<form id=settings method=post action="/account/kept">{tabs}{shown}{save}</form>')


def _club(second: bool) -> str:
    user = "<label for={0}>User name</label><input id={0} name=user data-k=user>"
    fields = user.format("member" if second else "f1")
    if second:
        fields = "<label for=f1>Voucher</label><input id=f1 name=voucher data-k=voucher>" + fields
    gone = "onclick=\"document.getElementById('wall').remove()\""
    return _main(
        "Club",
        f'<form id=signin method=post action="/club/in">{fields}<label for=f2>Password</label>'
        "<input id=f2 name=pass type=password data-k=pass><button id=enter data-k=enter>Sign in</button></form>",
    ) + (
        "<div id=wall class=layer role=dialog aria-label=Cookies><div class=box><p>This club uses cookies. Choose "
        f"before you go on.</p><button type=button id=wall-no data-k=refuse {gone}>Only necessary</button> "
        f"<button type=button id=wall-yes data-k=accept {gone}>Accept all</button></div></div>"
    )


_IN = _main(
    "Club",
    '<p>Signed in as Ada</p><button type=button id=me aria-label="Account menu" data-k=me>Ada</button>'
    '<a id=out href="/club/out" data-k=out>Sign out</a>',
)


def _profile(save: str) -> str:
    return _main(
        "Profile",
        f'<div id=card><button type=button id=edit data-k=edit onclick="{_shows("editor")}">Edit profile</button>'
        "<div id=editor hidden><label for=shown>Shown name</label><input id=shown data-k=shown>"
        "<label for=town>Town</label><input id=town data-k=town>"
        "<button type=button id=keep data-k=keep onclick=\"document.getElementById('now').textContent="
        f"document.getElementById('shown').value\">{save}</button></div></div><p id=now>Ada</p>",
    )


# -- several steps


def _setup(swapped: bool) -> str:
    go = "forward" if swapped else "next"
    delete = "next" if swapped else "discard"
    steps = (
        "<div id=s1><h2>Step 1 of 4</h2><label for=project>Project name</label><input id=project data-k=project></div>"
        "<div id=s2 hidden><h2>Step 2 of 4</h2><input type=radio name=size id=small data-k=small>"
        "<label for=small>Small team</label><input type=radio name=size id=large data-k=large>"
        "<label for=large>Large team</label></div><div id=s3 hidden><h2>Step 3 of 4</h2><label for=owner>Owner</label>"
        "<input id=owner data-k=owner><input type=checkbox id=remind data-k=remind><label for=remind>Remind me</label>"
        "</div><div id=s4 hidden><h2>Step 4 of 4</h2><p>That is all.</p></div>"
        "<p id=ready hidden>Your project is ready.</p>"
    )
    move = (
        "<script>let step=1;const show=(id,on)=>{document.getElementById(id).hidden=!on};const forward=()=>{"
        "if(step<4){show('s'+step,false);step+=1;show('s'+step,true)}else{show('ready',true)}}</script>"
    )
    buttons = (
        f"<button type=button id={delete} data-k=delete>Delete draft</button>"
        f'<button type=button id={go} data-k=next onclick="forward()">Next</button>'
    )
    return _main("New project", f"<section id=wizard>{steps}{buttons}</section>{move}")


_SHELVES = (
    '<div id=shelves><a id=c-1 href="/shop/kitchen" data-k=kitchen>Kitchen</a> '
    '<a id=c-2 href="/shop/garden" data-k=garden>Garden</a></div>'
)


def _garden(swapped: bool) -> str:
    names = ("Pumps", "Hoses") if swapped else ("Hoses", "Pumps")
    return _main(
        "Garden",
        "<div id=kinds>"
        + " ".join(
            f'<a id=k-{number} href="/shop/{name.lower()}" data-k={name.lower()}>{name}</a>'
            for number, name in enumerate(names, 1)
        )
        + "</div>",
    )


_HOSES = _main(
    "Hoses",
    f'<div id=item><button type=button id=specs data-k=specs onclick="{_shows("table")}">Specifications</button>'
    "<table id=table hidden><tr><td>Length<td>20 m</table></div>",
)


def _design(*, second: bool) -> dict[str, str]:
    return {
        "/news": _consent("cookie-b", "cookie-no") if second else _consent("cookie-no", "cookie-yes"),
        "/prices": _newsletter("promo-layer", "dismiss-it", "full-list")
        if second
        else _newsletter("newsletter", "nl-close", "full-list"),
        "/office": _office(second),
        "/team": _team(second),
        "/start": _language(second),
        "/catalog": _catalog(second),
        "/library": _library("query-field", "find-it") if second else _library("q", "go"),
        "/library/hits": _HITS,
        "/account": _account(second),
        "/club": _club(second),
        "/club/in/done": _IN,
        "/profile": _profile("Apply changes" if second else "Keep it"),
        "/setup": _setup(second),
        "/shop": _main("Shop", _SHELVES),
        "/shop/garden": _garden(second),
        "/shop/hoses": _HOSES,
    }


PAGES: dict[Design, dict[str, str]] = {"first": _design(second=False), "second": _design(second=True)}
