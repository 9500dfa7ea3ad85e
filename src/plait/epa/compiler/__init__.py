"""`plait-cc` and `plait-c++`: clang for build systems, with programs that record themselves.

In: the arguments of clang. Out: what clang makes of them. `driver.py` runs clang: objects also contain their LLVM
bitcode, and a linker of ours links. `linker.py` finds the bitcode of all objects that a program uses, instruments it
(`plait.epa.instrumentation`), and links again. `objects.py` reads objects and archives. Open `driver.py` first.
"""
