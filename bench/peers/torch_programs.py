#!/usr/bin/env python3
"""The example programs in torch's eager mode and in Triton, for `nsa bench program` (peer_session.py has the protocol).

A question has "program", "dtype" and "values", the sizes by their names in the program. Each implementation says how
many lines it has, and one in Triton how long its first configuration took to compile from nothing.
"""

import inspect
import os
import tempfile
import time

from peer_session import TOLERANCE, WARM_UPS, Timer, dtype_of, first_line, serve

TRIED = 5  # runs of a configuration, of which the fastest one counts
EPSILON, CAP = 1e-5, 30.0


def sizes_of(question):
    return {name: int(value) for name, value in question["values"].items() if value.isdecimal()}


def drawn(torch, device, question):
    """The inputs of a program by name, and its outputs, empty."""
    size = sizes_of(question)
    dtype = dtype_of(torch, question["dtype"])
    generator = torch.Generator(device=device).manual_seed(1)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype, device=device)

    program = question["program"]
    if program == "softmax":
        x = draw(size["rows"], size["columns"])
        return {"x": x, "y": torch.empty_like(x)}
    if program == "rms_norm":
        x, residual = (draw(size["rows"], size["columns"]) for _ in range(2))
        return {"x": x, "residual": residual, "weight": draw(size["columns"]), "epsilon": EPSILON,
                "y": torch.empty_like(x), "new_residual": torch.empty_like(x)}  # fmt: skip
    if program == "gemm":
        a, b = draw(size["rows"], size["depth"]), draw(size["columns"], size["depth"]) * size["depth"] ** -0.5
        return {"a": a, "b": b, "bias": draw(size["columns"]), "out": draw(size["rows"], size["columns"])}
    width = size["width"]
    kv_heads = size["heads"] if program == "alibi" else size["kv_heads"]
    heads = kv_heads * size.get("group", 1)
    tensors = {"q": draw(size["batch"], size["length"], heads, width), "scale": width**-0.5, "cap": CAP}
    tensors |= {name: draw(size["batch"], size["length"], kv_heads, width) for name in ("k", "v")}
    exponents = -8.0 * torch.arange(1, heads + 1, device=device) / heads
    return tensors | {"slopes": torch.exp2(exponents).float(), "out": torch.empty_like(tensors["q"])}


def eager_softmax(torch, t):
    return torch.softmax(t["x"], -1)


def eager_rms_norm(torch, t):
    r = t["x"] + t["residual"]
    return torch.nn.functional.rms_norm(r, r.shape[-1:], t["weight"], t["epsilon"])


def eager_gemm(torch, t):
    return torch.nn.functional.silu(torch.nn.functional.linear(t["a"], t["b"], t["bias"]))


def eager_attention(torch, t, change):
    q, k, v = (t[name].transpose(1, 2) for name in ("q", "k", "v"))
    group = q.shape[1] // k.shape[1]
    k, v = (tensor.repeat_interleave(group, 1) for tensor in (k, v))
    index = torch.arange(q.shape[2], device=q.device)
    s = change(q @ k.transpose(-1, -2) * t["scale"], index)
    s = s.masked_fill(index > index[:, None], float("-inf"))
    return (torch.softmax(s, -1) @ v).transpose(1, 2)


def eager_alibi(torch, t):
    def biased(s, index):
        return s - (t["slopes"][:, None, None] * (index[:, None] - index)).to(s.dtype)

    return eager_attention(torch, t, biased)


def eager_soft_cap(torch, t):
    return eager_attention(torch, t, lambda s, _: torch.tanh(s / t["cap"]) * t["cap"])


# The function of each program, and what it calls.
EAGER = {
    "softmax": (eager_softmax,),
    "rms_norm": (eager_rms_norm,),
    "gemm": (eager_gemm,),
    "alibi": (eager_alibi, eager_attention),
    "soft_cap": (eager_soft_cap, eager_attention),
}


def lines_of(*functions):
    """Lines that are neither empty nor a comment."""
    sources = (inspect.getsource(getattr(function, "fn", function)) for function in functions)
    lines = (line.strip() for source in sources for line in source.splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def relative_error(torch, question, t, out):
    """Of a few rows of the result against fp64 arithmetic."""
    program = question["program"]
    if program in ("alibi", "soft_cap"):
        error = norm = 0.0
        group = t["q"].shape[2] // t["k"].shape[2]
        for query in {0, t["q"].shape[1] // 2, t["q"].shape[1] - 1}:
            q = t["q"][0, query].double().unflatten(0, (-1, group))
            k, v = (t[name][0, : query + 1].double() for name in ("k", "v"))
            s = torch.einsum("ghd,tgd->ght", q, k) * t["scale"]
            if program == "alibi":
                distance = query - torch.arange(query + 1, device=s.device)
                s = s - t["slopes"].double().unflatten(0, (-1, group))[..., None] * distance
            else:
                s = torch.tanh(s / t["cap"]) * t["cap"]
            expected = torch.einsum("ght,tgd->ghd", torch.softmax(s, -1), v).flatten(0, 1)
            error += (out[0, query].double() - expected).square().sum().item()
            norm += expected.square().sum().item()
        return (error / norm) ** 0.5
    rows = slice(0, None, max(1, out.shape[0] // 64))
    few = {name: tensor.double() if hasattr(tensor, "double") else tensor for name, tensor in t.items()
           if name not in ("x", "residual", "a", "y", "new_residual", "out")}  # fmt: skip
    few |= {name: t[name][rows].double() for name in ("x", "residual", "a") if name in t}
    expected = EAGER[program][0](torch, few)
    return ((out[rows].double() - expected).square().sum() / expected.square().sum()).item() ** 0.5


def checked(torch, question, t, run):
    """The facts of an implementation that computes the program, or its trouble."""
    for _ in range(WARM_UPS):
        out = run()
    error = relative_error(torch, question, t, out)
    if not error <= TOLERANCE[question["dtype"]]:
        return {"trouble": f"relative error {error:.2g}"}
    return {"relative_error": error}


def triton_runner(torch, device, question, t):
    """The fastest configuration, and how long the first one took to compile."""
    import triton_programs

    kernel, launch, configs = triton_programs.KERNELS[question["program"]]
    output = t["y"] if "y" in t else t["out"]
    timer = Timer(torch, device, int(question["flush_bytes"]))
    triton_programs.nothing[(1,)](output)  # Triton compiles its own helpers once, which no kernel has to answer for
    torch.cuda.synchronize()
    best, compile_ms = None, None
    for config in configs:
        try:
            start = time.perf_counter()
            launch(t, config)
            torch.cuda.synchronize()
            compile_ms = compile_ms or (time.perf_counter() - start) * 1e3
            fastest = min(timer(lambda: launch(t, config)) for _ in range(TRIED))
        except Exception as refused:  # such as one that needs more shared memory than there is
            trouble = first_line(refused)
            continue
        if best is None or fastest < best[0]:
            best = (fastest, config)
    if best is None:
        raise RuntimeError(trouble)

    def run():
        launch(t, best[1])
        return output

    config = " ".join(f"{name}={value}" for name, value in best[1].items())
    return run, {"lines": lines_of(kernel, launch), "compile_ms": compile_ms, "config": config}


def implementations(torch, device, question):
    if question["program"] not in EAGER:
        return
    t = drawn(torch, device, question)
    functions = EAGER[question["program"]]

    def run_eager():
        return functions[0](torch, t)

    makers = [("torch eager", lambda: (run_eager, {"lines": lines_of(*functions)}))]
    if device != "cpu":
        makers.append(("triton", lambda: triton_runner(torch, device, question, t)))
    for name, maker in makers:
        try:
            run, facts = maker()
            facts |= checked(torch, question, t, run)
        except Exception as error:  # the reason is all that is wanted
            facts = {"trouble": first_line(error)}
        yield name, None if "trouble" in facts else run, facts


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        os.environ["TRITON_CACHE_DIR"] = empty  # kernels compile from nothing
        serve("Measures the example programs in torch and in Triton for `nsa bench program`.", implementations)
