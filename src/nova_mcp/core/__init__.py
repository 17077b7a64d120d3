"""Values and rules that every layer uses: clock and ids, URLs, hosts, text, tokens, redaction, policy."""
