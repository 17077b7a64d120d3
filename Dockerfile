# Nova with its browser. Build: docker build -t nova-mcp . Run with PostgreSQL: see compose.yaml.
FROM python:3.11.13-slim-trixie AS build
WORKDIR /src
RUN python -m venv /opt/nova
COPY requirements/runtime.lock requirements/runtime.lock
RUN /opt/nova/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/nova/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps .

FROM python:3.11.13-slim-trixie
LABEL org.opencontainers.image.title="nova-mcp" \
      org.opencontainers.image.licenses="Apache-2.0" \
      io.modelcontextprotocol.server.name="io.github.nova-mcp/nova"
# Debian keeps only the newest Chromium, so a pinned one could not be installed next month, and should not be.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends chromium fonts-liberation \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 nova \
    && install --directory --owner=nova --group=nova --mode=0700 /data
COPY --from=build /opt/nova /opt/nova
# Chromium's own sandbox needs what containers are not given by default; docs/security.md says what that means.
ENV PATH=/opt/nova/bin:$PATH \
    NOVA_DATA_DIR=/data \
    NOVA_BROWSER=/usr/bin/chromium \
    NOVA_BROWSER_CHROMIUM_SANDBOX=off
USER 10001
WORKDIR /home/nova
VOLUME ["/data"]
EXPOSE 27183
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=4 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:27183/health', timeout=4)"]
ENTRYPOINT ["nova"]
CMD ["serve", "--http", "0.0.0.0:27183"]
