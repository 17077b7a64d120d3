"""Sites whose packages were published again and again: which versions and pages of them are set side by side."""

from dataclasses import dataclass
from typing import Literal

Use = Literal["tuning", "held out"]


@dataclass(frozen=True, slots=True)
class Site:
    """One site: its versions, oldest first, each with the folder its pages stand in, and where each page stands there.

    A page's paths are in the order of the versions; "" where a version has no such page. The same path everywhere is
    given once. `use` says whether rules may be studied on it.
    """

    name: str
    package: str
    use: Use
    versions: tuple[tuple[str, str], ...]
    pages: tuple[tuple[str, ...], ...]

    def path(self, page: int, version: int) -> str:
        paths = self.pages[page]
        return paths[0] if len(paths) == 1 else paths[version]

    def pairs(self) -> list[tuple[int, int, int]]:
        """Page, older and newer version for every two neighbouring versions that both have the page."""
        return [
            (page, version, version + 1)
            for version in range(len(self.versions) - 1)
            for page in range(len(self.pages))
            if self.path(page, version) and self.path(page, version + 1)
        ]


def _start_bootstrap(
    name: str, use: Use, *versions: str, pages: tuple[tuple[str, ...], ...] = (("index.html",),)
) -> Site:
    """Themes of one publisher, whose newer versions keep their pages in `dist`; a leading `/` marks those."""
    placed = tuple((one.lstrip("/"), "dist" if one.startswith("/") else "") for one in versions)
    return Site(name, f"startbootstrap-{name}", use, placed, pages)


SITES = (
    _start_bootstrap(
        "sb-admin", "tuning", "4.0.0", "5.1.1", "/6.0.2", "/7.0.7",
        pages=(
            ("login.html",),
            ("register.html",),
            ("forgot-password.html", "forgot-password.html", "password.html", "password.html"),
            ("index.html",),
            ("tables.html",),
            ("charts.html",),
        ),
    ),
    _start_bootstrap("freelancer", "tuning", "4.1.1", "5.1.3", "/6.0.6", "/7.0.7"),
    _start_bootstrap(
        "clean-blog", "tuning", "4.1.1", "/5.1.0", "/6.0.9",
        pages=(("index.html",), ("about.html",), ("contact.html",), ("post.html",)),
    ),
    Site(
        "admin-lte", "admin-lte", "tuning",
        (("2.4.18", ""), ("3.0.5", ""), ("3.2.0", ""), ("4.0.0", "dist")),
        (
            (*["pages/examples/login.html"] * 3, "examples/login.html"),
            (*["pages/examples/register.html"] * 3, "examples/register.html"),
            (*["pages/examples/lockscreen.html"] * 3, "examples/lockscreen.html"),
            (*["pages/mailbox/compose.html"] * 3, ""),
            (*["pages/tables/simple.html"] * 3, "tables/simple.html"),
        ),
    ),
    Site(
        "now-ui-kit", "now-ui-kit", "tuning",
        (("1.0.1", ""), ("1.3.0", "")),
        (
            ("index.html",),
            ("examples/login-page.html",),
            ("examples/landing-page.html",),
            ("examples/profile-page.html",),
        ),
    ),
    _start_bootstrap(
        "sb-admin-2", "held out", "3.3.7", "4.0.7", "4.1.4",
        pages=(
            ("pages/login.html", "login.html", "login.html"),
            ("pages/index.html", "index.html", "index.html"),
            ("", "register.html", "register.html"),
            ("", "forgot-password.html", "forgot-password.html"),
            ("pages/tables.html", "tables.html", "tables.html"),
        ),
    ),
    Site(
        "material-dashboard", "material-dashboard", "held out",
        (("1.2.0", ""), ("2.1.0", ""), ("3.1.0", "")),
        (
            ("examples/dashboard.html", "examples/dashboard.html", "pages/dashboard.html"),
            ("examples/user.html", "examples/user.html", ""),
            ("examples/table.html", "examples/tables.html", "pages/tables.html"),
            ("examples/notifications.html", "examples/notifications.html", "pages/notifications.html"),
        ),
    ),
    Site(
        "gentelella", "gentelella", "held out",
        (("1.4.0", ""), ("2.1.0", ""), ("4.2.0", "dist")),
        (
            ("production/login.html",),
            ("production/form_validation.html",),
            ("production/projects.html",),
        ),
    ),
    Site(
        "argon", "argon-design-system-free", "held out",
        (("1.0.1", ""), ("1.2.0", "")),
        (("examples/login.html",), ("examples/register.html",), ("examples/landing.html",), ("examples/profile.html",)),
    ),
    _start_bootstrap("agency", "held out", "4.1.1", "5.2.2", "/6.0.5", "/7.0.12"),
    _start_bootstrap("creative", "held out", "4.1.1", "5.1.8", "/6.0.5", "/7.0.7"),
    _start_bootstrap("grayscale", "held out", "4.1.1", "5.0.9", "/6.0.4", "/7.0.6"),
    _start_bootstrap("resume", "held out", "4.1.1", "5.0.8", "/6.0.2", "/7.0.6"),
    _start_bootstrap("landing-page", "held out", "4.1.1", "/5.1.0", "/6.0.6"),
    _start_bootstrap("new-age", "held out", "4.1.1", "/5.1.0", "/6.0.7"),
    # Programs that write their pages themselves; the second version of Swagger UI was another package.
    Site(
        "django-admin", "Django", "held out",
        (("3.2", ""), ("4.2", ""), ("5.2", "")),
        (
            ("/admin/login/?next=/admin/",),
            ("/admin/",),
            ("/admin/auth/group/",),
            ("/admin/auth/group/add/",),
            ("/admin/auth/group/1/delete/",),
            ("/admin/auth/user/",),
            ("/admin/auth/user/add/",),
            ("/admin/auth/user/2/change/",),
            ("/admin/password_change/",),
        ),
    ),
    Site(
        "swagger-ui", "swagger-ui", "held out",
        (("2.2.10", "dist"), ("3.52.5", ""), ("5.34.1", "")),
        (("list.html",), ("full.html",)),
    ),
)  # fmt: skip
