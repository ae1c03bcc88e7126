"""The world behind the ports: models, tools, sandboxes, workspaces."""
