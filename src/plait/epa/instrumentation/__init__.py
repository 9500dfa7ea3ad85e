"""Instrumentation: build programs that record themselves (Saissi 2019, section 5.4.1).

In: C and C++ sources. Out: a program whose runs write a trace, and the table with the meaning of each recorded number.
Open `build.py` first: it compiles with `toolchain.py`, changes the LLVM IR with `instrument.py`, and links the
recorder.
"""
