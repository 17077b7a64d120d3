"""What Nova remembers between calls: journal, knowledge, promotion, facts, tasks, notes and claims."""
