"""The agent-native trace engine: evidence for agents, alone or inside. An island."""
