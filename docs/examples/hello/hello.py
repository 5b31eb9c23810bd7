"""Native sparse attention of numpy arrays in host memory. With TREE, an installed tree or an unpacked bundle:
python3 hello.py $TREE/lib/libnsa.so"""
import ctypes as c, os, sys
import numpy as np
def fields(kind, names): return [(name, kind) for name in names.split()]
class Error(c.Structure):  # the structs of nsa/nsa.h
    _fields_ = [("code", c.c_int32)] + [(name, c.c_char * size) for name, size in
                dict(field=64, value=128, rule=256, message=512, hint=384).items()]
class Spec(c.Structure):
    _fields_ = [("size", c.c_size_t)] + fields(c.c_int32, "op dtype layout query_heads kv_heads qk_dim v_dim window") + [
        ("scale", c.c_float)] + fields(c.c_int32, "cmp_block cmp_stride cmp_kind mlp_hidden mlp_activation sel_block sel_count"
        " init_blocks local_blocks gate gate_per_group branches page_size") + [("later_fields", c.c_int32 * 23)]
class Maxima(c.Structure):
    _fields_ = [("size", c.c_size_t)] + fields(c.c_int64, "batch tokens_q seqlen_q seqlen_k") + [("reserved", c.c_int64 * 4)]
class Tensor(c.Structure):
    _fields_ = [("filled_by_nsa_tensor_rows_sized", c.c_int64 * 17)]
class Binding(c.Structure):
    _fields_ = [("name", c.c_int32), ("tensor", c.POINTER(Tensor))]

OP_WINDOW, OP_NSA, FP32, Q, K, V, OUT, GATES = 1, 7, 2, 0, 1, 2, 5, 17
error = Error()
def must(status):
    if status: sys.exit(f"{error.message.decode()}\n{error.hint.decode()}")
def tensor_of(nsa, array):
    assert array.dtype == np.float32 and array.flags.c_contiguous, "the tensors of this program are contiguous and FP32"
    tensor = Tensor()
    tensor.array = array  # which must live as long as the tensor
    nsa.nsa_tensor_rows_sized(c.byref(tensor), c.c_size_t(c.sizeof(tensor)), c.c_void_p(array.ctypes.data), FP32,
                              array.ndim, array.ctypes.shape_as(c.c_int64))
    return tensor
def bind(nsa, name, array): return Binding(name, c.pointer(tensor_of(nsa, array)))

def main(library):
    os.environ["NSA_DEVICE"] = "cpu"  # "cuda:0" takes device pointers
    nsa, engine, plan, size = c.CDLL(library), c.c_void_p(), c.c_void_p(), c.c_size_t()
    tokens, heads, kv_heads, dim = 1024, 8, 2, 64
    q, k, v = (np.random.randn(1, tokens, h, dim).astype(np.float32) for h in (heads, kv_heads, kv_heads))
    gates = np.full((1, tokens, heads, 3), 0.5, np.float32)  # of the compressed, the selected and the window branch
    out = np.empty_like(q)
    must(nsa.nsa_engine_create(None, c.byref(engine), c.byref(error)))
    spec = Spec(size=c.sizeof(Spec))
    nsa.nsa_spec_init_sized(c.byref(spec), c.c_size_t(c.sizeof(spec)))  # the defaults of blocks, window and scale
    spec.op, spec.dtype = OP_NSA, FP32
    spec.query_heads, spec.kv_heads, spec.qk_dim, spec.v_dim = heads, kv_heads, dim, dim
    maxima = Maxima(size=c.sizeof(Maxima), batch=1, seqlen_q=tokens, seqlen_k=tokens)
    must(nsa.nsa_plan_create_with(engine, c.byref(spec), c.byref(maxima), None, None, c.byref(plan), c.byref(error)))
    must(nsa.nsa_plan_workspace_size(plan, c.byref(size), c.byref(error)))
    workspace = np.empty(size.value + 255, np.uint8)
    aligned = c.c_void_p((workspace.ctypes.data + 255) // 256 * 256)
    bound = [bind(nsa, *pair) for pair in ((Q, q), (K, k), (V, v), (GATES, gates), (OUT, out))]
    must(nsa.nsa_run(plan, (Binding * len(bound))(*bound), c.c_size_t(len(bound)), aligned, size, None, c.byref(error)))
    print(f"The first token attends itself alone: out {out[0, 0, 0, 0]:.6f} is its value {v[0, 0, 0, 0]:.6f}")

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "usage: python3 hello.py TREE/lib/libnsa.so")
