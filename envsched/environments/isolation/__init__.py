"""What keeps environment code in its place.

limits.py: memory, files, threads, and what Python itself can refuse. landlock.py: which files can be read.
seccomp.py: no sockets, processes, signals or changes to the file system. integrity.py: whether code that
scores other episodes was tampered with.
"""
