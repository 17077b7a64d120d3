"""Notes that somebody wrote on purpose: per site for a user, across tasks for operators, per site for every agent."""
