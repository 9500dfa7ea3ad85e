"""From the name of a model to its System: a target such as `paxos` or `file.py:function` and parameters as text or data come
in, a System that remembers them goes out. Open `loader.py` first; `convert.py` converts parameters to the annotated types.
`files.py` notices that a file of a model was saved. `readers.py` registers readers of files that are not Python.
"""
