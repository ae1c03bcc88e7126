"""Use cases over the store: each is one function, load → decide → write, inside one transaction."""
