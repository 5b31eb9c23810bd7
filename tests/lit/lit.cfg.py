# Tests of the dialect, the passes and the emitter: nsa-opt and FileCheck over .mlir files.
import os

import lit.formats

config.name = "nsa"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".tile"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.nsa_lit_output
config.environment["PATH"] = os.pathsep.join([config.nsa_tools, config.llvm_tools, config.environment["PATH"]])
