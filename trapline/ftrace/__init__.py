"""Linux' uprobe_events and the tools built on them: definitions, fetch arguments, trace output."""
