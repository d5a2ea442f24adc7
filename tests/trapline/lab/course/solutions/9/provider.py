"""The model solution of sheet 9."""

from providers.base import Provider


class Coverage(Provider):
    name = "coverage"

    def __init__(self, framework, patcher, traps, sites):
        self.framework = framework
        self.patcher = patcher
        self.known = {}
        framework.register(self)
        for site in sites:
            tracepoint = patcher.create(site.address, site.patch, self.name)
            number = framework.probe_create(self, "kernel", site.function, "first", 0, tracepoint)
            self.known[site.address] = number, tracepoint, site.answer
        traps.add(self.handler)

    def handler(self, address, frame, extra):
        if address not in self.known:
            return 0
        number, tracepoint, answer = self.known[address]
        if not tracepoint.installed:
            return 0
        self.framework.probe(number, *frame.arguments())
        self.patcher.remove(tracepoint)
        return answer

    def enable(self, probe_id, arg):
        self.patcher.install(arg)

    def disable(self, probe_id, arg):
        self.patcher.remove(arg)

    def destroy(self, probe_id, arg):
        self.patcher.forget(arg)
