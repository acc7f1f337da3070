# Cheats beside what fresh6_honest.py made the analysis accept: for each rule that was relaxed, programs that would
# pass if it had been relaxed too far. Format: see snippets.py.
