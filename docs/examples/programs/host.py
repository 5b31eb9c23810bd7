"""The softmax of the rows of a numpy array in host memory, by a program in the tile language. With TREE, an installed
tree or an unpacked bundle: python3 host.py $TREE/lib/libnsa.so softmax.tile"""
import ctypes as c, os, sys
import numpy as np
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hello"))
from hello import Tensor, error, must, tensor_of  # the structs of nsa/nsa.h

class Source(c.Structure):  # the structs of nsa/program.h
    _fields_ = [("size", c.c_size_t), ("path", c.c_char_p), ("text", c.c_char_p), ("name", c.c_char_p), ("reserved", c.c_int64 * 4)]
class Value(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]
class Named(c.Structure):
    _fields_ = [("name", c.c_char_p), ("tensor", c.POINTER(Tensor))]
def list_of(kind, pairs): return (kind * len(pairs))(*[kind(name.encode(), value) for name, value in pairs.items()])

def main(library, path):
    os.environ["NSA_DEVICE"] = "cpu"  # "cuda:0" takes device pointers
    nsa, engine, program, size = c.CDLL(library), c.c_void_p(), c.c_void_p(), c.c_size_t()
    rows, columns = 100, 1024
    x = np.random.randn(rows, columns).astype(np.float32)
    y = np.empty_like(x)
    must(nsa.nsa_engine_create(None, c.byref(engine), c.byref(error)))
    source = Source(size=c.sizeof(Source), path=path.encode())
    values = list_of(Value, {"dtype": b"fp32", "columns": b"%d" % columns, "rows": b"%d" % rows})
    must(nsa.nsa_program_create(engine, c.byref(source), values, c.c_size_t(len(values)), None, c.byref(program), c.byref(error)))
    must(nsa.nsa_program_workspace_size(program, c.byref(size), c.byref(error)))
    workspace = np.empty(size.value + 255, np.uint8)
    aligned = c.c_void_p((workspace.ctypes.data + 255) // 256 * 256)
    bound = list_of(Named, {name: c.pointer(tensor_of(nsa, array)) for name, array in (("x", x), ("y", y))})
    must(nsa.nsa_program_run(program, bound, c.c_size_t(len(bound)), None, c.c_size_t(0), aligned, size, None, c.byref(error)))
    expected = np.exp(x - x.max(axis=1, keepdims=True))
    worst = np.abs(y - expected / expected.sum(axis=1, keepdims=True)).max()
    print(f"The rows sum to {y.sum(axis=1).mean():.4f}, and differ from numpy's result by {worst:.0e}")

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 3 else "usage: python3 host.py TREE/lib/libnsa.so softmax.tile")
