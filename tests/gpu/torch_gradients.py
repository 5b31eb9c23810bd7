#!/usr/bin/env python3
"""Compares gradients with torch in fp64, which shares no code with this project.

  torch_gradients.py BUNDLE [--device cuda:0] [--record FILE] [--parts autograd,selected,whole]

BUNDLE is an unpacked bundle, or any folder with include/nsa, lib/libnsa.so and libexec/nsa/configs. The parts:
  autograd  the gradients of small calls of every cmp_kind beside torch's autograd through attention with dense masks
  selected  the error of each gradient of sel_bwd, 2048 tokens of the heads of nsa128, over all heads and rows
  whole     nsa and nsa_bwd of the four shapes of bench/configs at 32768 tokens: one key/value head with all of its query
            heads and rows beside fp64 sums, 100 repeats with the same bits, and both calls in one CUDA graph

Python only asks questions here: the library is called through its C ABI, whose names are read from its headers.
"""

import argparse
import ctypes
import json
import pathlib
import re
import sys
import time

import torch

DTYPES = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2, torch.int32: 3}
# docs/specification.md 11: twice the limits of the forward pass.
LIMITS = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 2e-5}
# A target of this project: the errors with which the fastest other implementation of the selected branch, a Triton
# kernel, was measured on an H200, with the heads of nsa128, 2048 tokens and bf16.
SELECTED_LIMITS = {"d_q": 2.5e-3, "d_k": 2.5e-3, "d_v": 2.3e-3}
# The weights of phi that move all compressed keys alike. An mlp sees its position embeddings and its first bias through
# the activation, so these move each key in another way.
ALIKE = {"mean": (), "linear": ("d_pe_k", "d_b_k"), "mlp": ("d_b2_k",)}
BLOCK, STRIDE, SEL_BLOCK, SEL_COUNT, WINDOW = 32, 16, 64, 16, 512


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int32)] + [
        (name, ctypes.c_char * size)
        for name, size in (("field", 64), ("value", 128), ("rule", 256), ("message", 512), ("hint", 384))
    ]


def struct_of(header, name):
    """The ctypes type of a struct in a header, whose fields are plain numbers, enumerations, pointers and arrays."""
    body = re.sub(r"/\*.*?\*/", "", re.search(rf"typedef struct {name} \{{(.*?)\}} {name};", header, re.S)[1], flags=re.S)
    types = {"size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "float": ctypes.c_float, "double": ctypes.c_double}
    fields = []
    for declaration in filter(None, (text.strip() for text in body.split(";"))):
        kind, _, names = declaration.removeprefix("const ").partition(" ")
        for text in names.split(","):
            field, count = re.fullmatch(r"\s*\*?(\w+)(?:\[(\d+)\])?\s*", text).groups()
            base = ctypes.c_void_p if "*" in text or kind.endswith("callback") else types.get(kind, ctypes.c_int32)
            fields.append((field, base * int(count) if count else base))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


class Library:
    """The library's engine on one device."""

    def __init__(self, bundle, device):
        include = bundle / "include/nsa"
        header = (include / "nsa.h").read_text()
        text = header + (include / "names.h").read_text()
        self.numbers = {name: int(value) for name, value in re.findall(r"\b(NSA_\w+) = (\d+)", text)}
        self.Spec, self.Maxima, self.Tensor, self.Options = (
            struct_of(header, name) for name in ("nsa_spec", "nsa_maxima", "nsa_tensor", "nsa_engine_options")
        )
        self.Binding = type("Binding", (ctypes.Structure,),
                            {"_fields_": [("name", ctypes.c_int32), ("tensor", ctypes.POINTER(self.Tensor))]})
        self.c, self.device, self.error = ctypes.CDLL(str(bundle / "lib/libnsa.so")), torch.device(device), Error()
        self.c.nsa_source_id.restype = self.c.nsa_version.restype = ctypes.c_char_p
        options, self.engine = self.Options(size=ctypes.sizeof(self.Options)), ctypes.c_void_p()
        texts = {"device": device, "cache_path": ":memory:", "cache_packs": "none"}
        self.kept = [ctypes.create_string_buffer(value.encode()) for value in texts.values()]
        for name, value in zip(texts, self.kept):
            setattr(options, name, ctypes.cast(value, ctypes.c_void_p))
        self.must(self.c.nsa_engine_create(ctypes.byref(options), ctypes.byref(self.engine), ctypes.byref(self.error)))

    def must(self, status):
        if status != 0:
            words = [getattr(self.error, name).decode() for name in ("message", "field", "value", "rule", "hint")]
            raise RuntimeError(" | ".join(filter(None, words)))

    def stream(self):
        return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream if self.device.type == "cuda" else None)


class Call:
    """A plan with its workspace and tensors, by their names in names.h."""

    def __init__(self, library, op, fields, tensors):
        self.library, self.tensors, lib = library, tensors, library
        spec = lib.Spec()
        lib.c.nsa_spec_init_sized(ctypes.byref(spec), ctypes.c_size_t(ctypes.sizeof(spec)))
        assert (spec.sel_count, spec.window, spec.rotary_base) == (16, 512, 10000.0), "nsa_spec was read wrongly"
        for name, value in ({"op": lib.numbers[f"NSA_OP_{op.upper()}"]} | fields).items():
            setattr(spec, name, value)
        batch, tokens = tensors["q"].shape[:2]
        maxima = lib.Maxima(size=ctypes.sizeof(lib.Maxima), max_batch=batch, max_seqlen_q=tokens, max_seqlen_k=tokens)
        self.plan, size = ctypes.c_void_p(), ctypes.c_size_t()
        lib.must(lib.c.nsa_plan_create_with(lib.engine, ctypes.byref(spec), ctypes.byref(maxima), None, lib.stream(),
                                            ctypes.byref(self.plan), ctypes.byref(lib.error)))
        lib.must(lib.c.nsa_plan_workspace_size(self.plan, ctypes.byref(size), ctypes.byref(lib.error)))
        self.workspace = torch.empty(size.value + 256, dtype=torch.uint8, device=lib.device)
        self.size, self.place = size, ctypes.c_void_p(-(-self.workspace.data_ptr() // 256) * 256)
        self.bound = [self.tensor(t) for t in tensors.values()]
        numbers = [lib.numbers["NSA_" + name.upper()] for name in tensors]
        self.bindings = (lib.Binding * len(numbers))(
            *[lib.Binding(number, ctypes.pointer(t)) for number, t in zip(numbers, self.bound)])

    def tensor(self, source):
        own, strides = self.library.Tensor(), source.stride()
        own.size, own.data, own.dtype, own.rank = ctypes.sizeof(own), source.data_ptr(), DTYPES[source.dtype], source.dim()
        own.shape[: source.dim()], own.strides[: source.dim()] = tuple(source.shape), strides
        return own

    def enqueue(self):
        lib = self.library
        lib.must(lib.c.nsa_run(self.plan, self.bindings, ctypes.c_size_t(len(self.bindings)), self.place, self.size,
                               lib.stream(), ctypes.byref(lib.error)))

    def finish(self):
        lib = self.library
        lib.must(lib.c.nsa_plan_status(self.plan, lib.stream(), ctypes.byref(lib.error)))

    def run(self):
        self.enqueue()
        self.finish()
        return self

    def __del__(self):
        self.library.c.nsa_plan_destroy(self.plan)


def empty_like_all(tensors, names):
    """Tensors for gradients, which hold NaN."""
    return {"d_" + name: torch.full_like(tensors[name], float("nan")) for name in names}


def training_calls(library, fields, inputs, d_out, weights=()):
    """nsa and nsa_bwd of the same tensors. The gradient takes from the forward pass all that it can."""
    q, v = inputs["q"], inputs["v"]
    batch, tokens, heads, _ = q.shape
    kv_heads, blocks = v.shape[2], max((tokens - BLOCK) // STRIDE + 1, 0)

    def make(*shape, dtype=q.dtype):
        return torch.zeros(shape, dtype=dtype, device=q.device)

    saved = {"o_" + branch: make(batch, tokens, heads, v.shape[3]) for branch in ("cmp", "sel", "win")}
    saved |= {"lse_" + branch: make(batch, tokens, heads, dtype=torch.float32) for branch in ("cmp", "sel", "win")}
    saved["block_list"] = make(batch, tokens, kv_heads, SEL_COUNT, dtype=torch.int32)
    saved |= {name + "_comp": make(batch, blocks, kv_heads, inputs[name].shape[3]) for name in ("k", "v")}
    gradients = empty_like_all(inputs, ("q", "k", "v", "gates", *weights))
    forward = Call(library, "nsa", fields, inputs | saved | {"out": torch.full_like(saved["o_cmp"], float("nan"))})
    return forward, Call(library, "nsa_bwd", fields, inputs | saved | {"d_out": d_out} | gradients), gradients


def same_bits(first, second):
    """Whether two results have the same bits (0 and -0 differ) and no NaN, which gradients hold before a call."""
    bits = {2: torch.int16, 4: torch.int32}[first.element_size()]
    return torch.equal(first.view(bits), second.view(bits)) and not second.isnan().any()


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def fields_of(config, dtype, **more):
    return {name: config[name] for name in ("query_heads", "kv_heads", "qk_dim", "v_dim")} | {"dtype": DTYPES[dtype]} | more


def draw(generator, device, dtype, config, batch, tokens):
    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float32, device=device).to(dtype)

    heads, kv_heads, qk_dim, v_dim = (config[name] for name in ("query_heads", "kv_heads", "qk_dim", "v_dim"))
    inputs = {
        "q": normal(batch, tokens, heads, qk_dim),
        "k": normal(batch, tokens, kv_heads, qk_dim),
        "v": normal(batch, tokens, kv_heads, v_dim),
        "gates": torch.sigmoid(normal(batch, tokens, heads, 3)),
    }
    return inputs, normal(batch, tokens, heads, v_dim), normal


def masks(first, tokens, keys, lists):
    """Which keys each branch attends: queries from `first` on, of one sequence and key/value head."""
    position = torch.arange(first, first + lists.shape[0], device=lists.device)[:, None]
    token = torch.arange(keys, device=lists.device)[None]
    block = torch.arange(max((tokens - BLOCK) // STRIDE + 1, 0), device=lists.device)[None]
    listed = torch.zeros(lists.shape[0], -(-tokens // SEL_BLOCK) + 1, dtype=torch.bool, device=lists.device)
    listed.scatter_(1, torch.where(lists >= 0, lists, listed.shape[1] - 1).long(), True)
    listed[:, -1] = False
    selected = listed.repeat_interleave(SEL_BLOCK, 1)[:, :keys]
    return {
        "cmp": block * STRIDE + BLOCK - 1 <= position,
        "sel": selected & (token <= position),
        "win": (token <= position) & (token > position - WINDOW),
    }


def weights_of(scores, mask):
    """The softmax over the keys of a mask; 0 where there is none."""
    return torch.nan_to_num(torch.softmax(scores.masked_fill(~mask, -torch.inf), -1), nan=0.0)


def compressed(x, kind, weights, suffix):
    """Phi: [time, heads, dim] to [blocks, heads, dim]."""
    blocks = x.unfold(0, BLOCK, STRIDE).permute(0, 1, 3, 2)  # [blocks, heads, BLOCK, dim]
    if kind == "mean":
        return blocks.mean(2)
    rows = (blocks + weights["pe_" + suffix]).flatten(2)
    if kind == "linear":
        return rows @ weights["w_" + suffix].flatten(0, 1) + weights["b_" + suffix]
    hidden = torch.nn.functional.silu(rows @ weights["w1_" + suffix] + weights["b1_" + suffix])
    return hidden @ weights["w2_" + suffix] + weights["b2_" + suffix]


def rounded(x, dtype):
    """Rounds to the io type; the rounding counts as the identity for gradients."""
    return x + (x.to(dtype).double() - x).detach()


def autograd(library, report):
    config = {"query_heads": 8, "kv_heads": 2, "qk_dim": 48, "v_dim": 32}
    group, batch, tokens = 4, 2, 1200  # longer than a list of blocks
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for kind in ("mean", "linear", "mlp"):
            generator = torch.Generator(device=library.device).manual_seed(7)
            inputs, d_out, normal = draw(generator, library.device, dtype, config, batch, tokens)
            hidden = 40
            for suffix, dim in (("k", 48), ("v", 32)):
                if kind != "mean":
                    inputs["pe_" + suffix] = normal(BLOCK, dim) / 4
                if kind == "linear":
                    inputs |= {"w_" + suffix: normal(BLOCK, dim, dim) * (BLOCK * dim) ** -0.5, "b_" + suffix: normal(dim) / 4}
                if kind == "mlp":
                    inputs |= {
                        "w1_" + suffix: normal(BLOCK * dim, hidden) * (BLOCK * dim) ** -0.5,
                        "b1_" + suffix: normal(hidden) / 4,
                        "w2_" + suffix: normal(hidden, dim) * hidden**-0.5,
                        "b2_" + suffix: normal(dim) / 4,
                    }
            weights = [name for name in inputs if name not in ("q", "k", "v", "gates")]
            fields = fields_of(config, dtype, cmp_kind=library.numbers["NSA_CMP_" + kind.upper()],
                               mlp_hidden=hidden, mlp_activation=library.numbers["NSA_SILU"])
            forward, backward, gradients = training_calls(library, fields, inputs, d_out, weights)
            forward.run()
            backward.run()

            exact = {name: tensor.double().requires_grad_() for name, tensor in inputs.items()}
            out = []
            for n in range(batch):
                k, v = exact["k"][n], exact["v"][n]
                k_comp = rounded(compressed(k, kind, exact, "k"), dtype)
                v_comp = rounded(compressed(v, kind, exact, "v"), dtype)
                heads = []
                for head in range(config["query_heads"]):
                    own = head // group
                    seen = masks(0, tokens, tokens, forward.tensors["block_list"][n, :, own])
                    total = 0
                    for branch, name in enumerate(("cmp", "sel", "win")):
                        keys, values = (k_comp, v_comp) if name == "cmp" else (k, v)
                        p = weights_of(exact["q"][n, :, head] @ keys[:, own].T * 48**-0.5, seen[name])
                        total = total + exact["gates"][n, :, head, branch, None] * (p @ values[:, own])
                    heads.append(total)
                out.append(torch.stack(heads, 1))
            torch.stack(out).backward(d_out.double())
            found = {name: exact[name.removeprefix("d_")].grad for name in gradients}
            # What moves all compressed keys alike changes no softmax, so terms cancel in these gradients. Their error is
            # relative to the gradient of the same weight of the values.
            alike = {name: found[name[:-1] + "v"] for name in ALIKE[kind]}
            errors = {
                name: ((gradients[name].double() - found[name]).norm() / alike.get(name, found[name]).norm()).item()
                for name in gradients
            }
            report("autograd", f"{kind}, {str(dtype).removeprefix('torch.')}, {batch} x {tokens}", errors,
                   dict.fromkeys(errors, LIMITS[dtype]))


def exact_head(inputs, d_out, lists, branches):
    """The gradients of one sequence and key/value head in fp64: q, d_out [time, group, dim], k, v [time, dim], gates
    [time, group, 3] or None, and lists [time, n]. Queries go by in chunks; each has its softmax over all keys."""
    q, k, v = (inputs[name].double() for name in ("q", "k", "v"))
    tokens, group, scale = q.shape[0], q.shape[1], q.shape[2] ** -0.5
    gates = inputs["gates"].double() if "gates" in inputs else q.new_ones(tokens, group, 1)
    blocks = max((tokens - BLOCK) // STRIDE + 1, 0)
    comp = {name: rounded(x.unfold(0, BLOCK, STRIDE).mean(-1), inputs[name].dtype) for name, x in (("k", k), ("v", v))}
    d_q, d_gates, d_k, d_v = (torch.zeros_like(x) for x in (q, gates, k, v))
    d_comp = {name: torch.zeros_like(x) for name, x in comp.items()}
    chunk = max(1, (1 << 26) // (tokens * group))
    for first in range(0, tokens, chunk):
        past = min(first + chunk, tokens)
        seen = masks(first, tokens, past, lists[first:past])
        rows, flat = q[first:past].flatten(0, 1), d_out[first:past].double()
        for branch, name in enumerate(branches):
            begin = max(0, first - WINDOW + 1) if name == "win" else 0
            keys, values = (comp["k"], comp["v"]) if name == "cmp" else (k[begin:past], v[begin:past])
            to_k, to_v = (d_comp["k"], d_comp["v"]) if name == "cmp" else (d_k[begin:past], d_v[begin:past])
            mask = seen[name] if name == "cmp" else seen[name][:, begin:]
            if name == "cmp":  # blocks behind the chunk are not seen
                some = min(blocks, max((past - BLOCK) // STRIDE + 1, 0))
                keys, values, to_k, to_v, mask = keys[:some], values[:some], to_k[:some], to_v[:some], mask[:, :some]
            p = weights_of(rows @ keys.T * scale, mask.repeat_interleave(group, 0))
            gate = gates[first:past, :, branch, None]
            d_o = (gate * flat).flatten(0, 1)
            o = p @ values
            d_gates[first:past, :, branch] = (flat.flatten(0, 1) * o).sum(-1).view(past - first, group)
            d_s = p * (d_o @ values.T - (d_o * o).sum(-1, keepdim=True)) * scale
            d_q[first:past] += (d_s @ keys).view(past - first, group, -1)
            to_k += d_s.T @ rows
            to_v += p.T @ d_o
    for x, name in ((d_k, "k"), (d_v, "v")):
        for i in range(BLOCK):  # a token has a share of each block that covers it
            x[i : i + blocks * STRIDE : STRIDE] += d_comp[name] / BLOCK
    return {"d_q": d_q, "d_k": d_k, "d_v": d_v, "d_gates": d_gates}


def selected(library, report):
    config, tokens, dtype = json.loads((library.configs / "nsa128.json").read_text()), 2048, torch.bfloat16
    generator = torch.Generator(device=library.device).manual_seed(11)
    inputs, d_out, _ = draw(generator, library.device, dtype, config, 1, tokens)
    forward, _, _ = training_calls(library, fields_of(config, dtype), inputs, d_out)
    lists = forward.run().tensors["block_list"]
    own = {name: inputs[name] for name in ("q", "k", "v")} | {"block_list": lists}
    out, lse = torch.zeros_like(d_out), torch.zeros(d_out.shape[:3], dtype=torch.float32, device=d_out.device)
    Call(library, "sel", fields_of(config, dtype), own | {"out": out, "lse": lse}).run()
    gradients = empty_like_all(own, ("q", "k", "v"))
    Call(library, "sel_bwd", fields_of(config, dtype), own | {"out": out, "lse": lse, "d_out": d_out} | gradients).run()
    group = config["query_heads"] // config["kv_heads"]
    exact = {name: torch.zeros_like(tensor, dtype=torch.float64) for name, tensor in gradients.items()}
    for head in range(config["kv_heads"]):
        mine = slice(head * group, (head + 1) * group)
        part = {"q": inputs["q"][0, :, mine], "k": inputs["k"][0, :, head], "v": inputs["v"][0, :, head]}
        found = exact_head(part, d_out[0, :, mine], lists[0, :, head], ("sel",))
        exact["d_q"][0, :, mine] = found["d_q"]
        for name in ("d_k", "d_v"):
            exact[name][0, :, head] = found[name]
    errors = {name: relative_error(gradients[name], exact[name]) for name in gradients}
    report("selected", f"nsa128, bfloat16, {tokens}", errors, SELECTED_LIMITS)


def whole(library, report):
    tokens, repeats, dtype = library.tokens, library.repeats, torch.bfloat16
    for path in sorted(library.configs.glob("*.json")):
        config = json.loads(path.read_text())
        generator = torch.Generator(device=library.device).manual_seed(13)
        inputs, d_out, normal = draw(generator, library.device, dtype, config, 1, tokens)
        forward, backward, gradients = training_calls(library, fields_of(config, dtype), inputs, d_out)
        forward.run()
        backward.run()
        group = config["query_heads"] // config["kv_heads"]
        head = config["kv_heads"] - 1
        mine = slice(head * group, (head + 1) * group)
        part = {name: inputs[name][0, :, mine] for name in ("q", "gates")}
        part |= {name: inputs[name][0, :, head] for name in ("k", "v")}
        exact = exact_head(part, d_out[0, :, mine], forward.tensors["block_list"][0, :, head], ("cmp", "sel", "win"))
        errors = {
            name: relative_error(gradients[name][0, :, head if name in ("d_k", "d_v") else mine], exact[name])
            for name in gradients
        }
        del exact
        first = {name: tensor.clone() for name, tensor in gradients.items()}
        changed = 0
        for _ in range(repeats):
            for tensor in gradients.values():
                tensor.fill_(float("nan"))
            backward.enqueue()
            changed += any(not same_bits(first[name], gradients[name]) for name in gradients)
        more = {"repeats": repeats, "repeats_with_other_bits": changed}
        if library.device.type == "cuda":
            more["replays_with_other_bits"] = other_replays(forward, backward, gradients, inputs, normal)
        backward.finish()
        report("whole", f"{path.stem}, bfloat16, {tokens}, key/value head {head}", errors,
               dict.fromkeys(errors, LIMITS[dtype]), more)
        del forward, backward, gradients, first, inputs, d_out, part


def other_replays(forward, backward, gradients, inputs, normal):
    """Captures a step of training, and counts replays on new queries that differ from a step that is not captured."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.cuda.graph(graph, stream=stream):
        forward.enqueue()
        backward.enqueue()
    different = 0
    for _ in range(3):
        inputs["q"].copy_(normal(*inputs["q"].shape))
        forward.run()
        backward.run()
        expected = {name: tensor.clone() for name, tensor in gradients.items()}
        for tensor in gradients.values():
            tensor.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        different += any(not same_bits(expected[name], gradients[name]) for name in gradients)
    return different


def main():
    parts = {"autograd": autograd, "selected": selected, "whole": whole}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--parts", default=",".join(parts))
    parser.add_argument("--tokens", type=int, default=32768, help="of the part whole")
    parser.add_argument("--repeats", type=int, default=100, help="of the part whole")
    arguments = parser.parse_args()
    wanted = arguments.parts.split(",")
    if not set(wanted) <= set(parts):
        parser.error(f"--parts {arguments.parts}: must be of {','.join(parts)}")

    library = Library(arguments.bundle, arguments.device)
    library.configs, library.tokens, library.repeats = (
        arguments.bundle / "libexec/nsa/configs", arguments.tokens, arguments.repeats)
    results, failed, began = [], [], time.monotonic()

    def report(part, case, errors, limits, more=None):
        more = more or {}
        # A NaN is above every limit.
        bad = [name for name, error in errors.items() if not error <= limits[name]]
        bad += [name for name, count in more.items() if name.endswith("other_bits") and count]
        failed.extend(f"{part}: {case}: {name}" for name in bad)
        seconds = round(time.monotonic() - began, 1)
        results.append({"part": part, "case": case, "worst_error": max(errors.values()), "within": not bad, **errors, **more, "at_s": seconds})
        print(f"{'FAILED' if bad else 'right '} {part}: {case}: " +
              ", ".join(f"{name} {error:.2e}" for name, error in errors.items()) +
              "".join(f", {name} {count}" for name, count in more.items()) + f" ({seconds} s)", flush=True)

    for part in wanted:
        parts[part](library, report)
    if arguments.record:
        is_cuda = library.device.type == "cuda"
        machine = {
            "device": {"name": torch.cuda.get_device_name(library.device), "kind": "gpu"} if is_cuda else {"name": "cpu"},
            "source": library.c.nsa_source_id().decode(),
            "version": library.c.nsa_version().decode(),
            "date": time.strftime("%Y-%m-%d"),
        }
        peers = {"python": sys.version.split()[0], "torch": torch.__version__}
        table = [{"title": title, "field": field} for title, field in (
            ("part", "part"), ("case", "case"), ("worst relative error", "worst_error"), ("repeats", "repeats"),
            ("of them with other bits", "repeats_with_other_bits"),
            ("replays with other bits", "replays_with_other_bits"))]
        record = {"machine": machine, "peers": peers, "table": table, "results": results}
        arguments.record.write_text(json.dumps(record, indent=1) + "\n")
    for text in failed:
        print(f"beyond its limit: {text}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
