"""`python -m nova_mcp.cli` is `nova`."""

from nova_mcp.cli import main

if __name__ == "__main__":
    main()
