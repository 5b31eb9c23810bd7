// Nothing: the targets that hold precompiled headers need a source file (NsaTarget.cmake).
