"""PTC-Lisp: a small, eager, sandboxed Clojure subset in which models write programs. An island."""
