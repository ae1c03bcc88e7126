"""What every test shares: properties are judged by what they find, never by how long it took."""

from hypothesis import settings

settings.register_profile("no deadlines", deadline=None)
settings.load_profile("no deadlines")
