"""What to show: gathers, fits and explains the bundle of a task."""
