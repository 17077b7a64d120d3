"""Django's admin on SQLite as a process of its own: `django_server.py <database>` prints its address and serves."""
# mypy: disable-error-code="import-not-found"

import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

ADMIN = "keeper"
PASSWORD = "a long pass phrase"


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        return


class _Threaded(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def _configure(database: Path) -> None:
    from django.conf import settings

    middleware = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ]
    processors = [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]
    settings.configure(
        SECRET_KEY="only for measuring",
        DEBUG=True,
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="lab_urls",
        STATIC_URL="/static/",
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(database)}},
        INSTALLED_APPS=[
            f"django.contrib.{name}"
            for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")
        ],
        MIDDLEWARE=middleware,
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": processors},
            }
        ],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        AUTH_PASSWORD_VALIDATORS=[],
    )


def main() -> None:
    import types

    import django

    _configure(Path(sys.argv[1]))
    django.setup()
    from django.contrib import admin
    from django.contrib.auth import get_user_model
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.handlers.wsgi import WSGIHandler
    from django.core.management import call_command
    from django.urls import path

    urls = types.ModuleType("lab_urls")
    urls.urlpatterns = [path("admin/", admin.site.urls)]  # type: ignore[attr-defined]
    sys.modules["lab_urls"] = urls
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser(ADMIN, "keeper@example.org", PASSWORD)
    server = make_server("127.0.0.1", 0, StaticFilesHandler(WSGIHandler()), _Threaded, _Quiet)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
