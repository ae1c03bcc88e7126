"""How to run one attempt: the loop, the actions it reads from replies, its guards, the checks."""
