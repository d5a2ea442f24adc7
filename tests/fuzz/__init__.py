"""Seeded fuzzers: hostile input of every kind that Trapline reads, each case in a child process.

A fuzzer (`tests.fuzz.inputs`) makes a case from a number, and runs it.  A case is well when it is
refused by one of the errors the fuzzer expects, or not refused at all.  It is found when it ends in
any other exception, or takes longer or more memory than the fuzzer allows, or brings its process
down (`tests.fuzz.runner`).  The same number makes the same case on every host.

    make fuzz                                  # every class, for hours; it continues where it
    stopped python -m tests.fuzz elf dof --cases 5000  # two classes, so many cases more python -m
    tests.fuzz --first 7000000 --minutes 30   # from there, and apart from the totals python -m
    tests.fuzz elf --case 4711       # one case, with its traceback python -m tests.fuzz elf
    --compare 100     # do cases end alone as they end among others?

What is found is kept in tests/fuzz/regressions, and `make test` runs it from then on.
"""
