"""JSON over HTTP, on the loopback: the use cases of the command line by routes.

`wire` reads requests and owns the one error shape; `context` is the table of routes, over
`app.desk` and `runs`; `serve` puts them behind a socket of 127.0.0.1. Nothing here decides: a rule
that is broken is refused below, and told here.
"""
