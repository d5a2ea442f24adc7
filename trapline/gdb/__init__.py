"""gdb's remote serial protocol: a debugger on a traced machine.

server = Server(machine)            # a `trapline.consumer.environment.TracedMachine`
address = server.listen(port=0)     # gdb -ex 'target remote localhost:PORT'
server.run(None)                    # as `Guest.run`, but gdb decides when it goes on
"""

from trapline.gdb.server import Server

__all__ = ["Server"]
