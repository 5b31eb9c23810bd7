#!/usr/bin/env python3
"""The attention kernels that torch carries, measured for nsa_bench_attention.

It is started by the bench and speaks one JSON object a line: questions on its input, answers on its output. It greets
with {"versions": ...}, or with {"unavailable": reason} and ends. Then
  {"command": "prepare", "op", "dtype", "query_heads", "kv_heads", "qk_dim", "v_dim", "tokens", "window", "flush_bytes",
   "checked_queries"}
      draws the tensors, runs and checks every implementation that serves the operator ->
      {"implementations": [{"name", "relative_error", "note"} or {"name", "trouble"}, ...]}
  {"command": "sample", "name"} -> {"milliseconds": of one run by CUDA events, begun with a cold L2}
and it leaves at the end of its input. Copies that a backend needs (key and value heads expanded to the query heads,
values padded to the query's head size) are made by "prepare" and are not in its times.
"""

import argparse
import json
import os
import re
import sys

WARM_UPS = 3
# The device waits a tenth of a millisecond or two before the first event, so that it never waits for Python after it.
PAUSE_CYCLES = 300_000
# Relative RMS of the checked rows against fp64 arithmetic; a backend beyond it computes something else.
TOLERANCE = {"bf16": 5e-3, "fp16": 1e-3, "fp32": 1e-3}


def import_torch(device):
    """torch, or the reason why nothing can be measured."""
    try:
        import torch
    except ImportError as error:
        return None, f"torch cannot be imported: {error}"
    if device != "cpu":
        ordinal, count = int(device.partition(":")[2] or 0), torch.cuda.device_count()
        if ordinal >= count:
            return None, f"torch sees {count} CUDA devices, so there is no {device}"
        torch.cuda.set_device(ordinal)  # whose stream the events and the pause are in
    return torch, None


def versions(torch, device):
    facts = {"python": sys.version.split()[0], "torch": torch.__version__}
    if device != "cpu":
        facts["cudnn"] = str(torch.backends.cudnn.version())
        facts["cuda"] = str(torch.version.cuda)
        facts["device"] = torch.cuda.get_device_name(device)
    return facts


class Timer:
    """Milliseconds of one call: CUDA events behind a write that fills the L2, or the host's clock on the CPU."""

    def __init__(self, torch, device, flush_bytes):
        self.torch, self.cuda = torch, device != "cpu"
        if self.cuda:
            self.flush = torch.empty(max(flush_bytes, 1), dtype=torch.uint8, device=device)
            self.before = torch.cuda.Event(enable_timing=True)
            self.after = torch.cuda.Event(enable_timing=True)

    def __call__(self, run):
        if not self.cuda:
            from time import perf_counter

            start = perf_counter()
            run()
            return (perf_counter() - start) * 1e3
        self.flush.zero_()
        self.torch.cuda._sleep(PAUSE_CYCLES)
        self.before.record()
        run()
        self.after.record()
        self.after.synchronize()
        return self.before.elapsed_time(self.after)


class Problem:
    """One shape with its tensors, [batch, time, heads, dim] as the bench's own."""

    def __init__(self, torch, device, question):
        self.torch = torch
        self.op, self.window = question["op"], int(question["window"])
        self.tokens, self.v_dim = int(question["tokens"]), int(question["v_dim"])
        self.checked_queries = question["checked_queries"]
        self.dtype_name = question["dtype"]
        dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[self.dtype_name]
        self.group = int(question["query_heads"]) // int(question["kv_heads"])
        self.scale = int(question["qk_dim"]) ** -0.5
        generator = torch.Generator(device=device).manual_seed(1)

        def draw(heads, dim):
            shape = (1, self.tokens, int(heads), int(dim))
            return torch.randn(shape, generator=generator, dtype=dtype, device=device)

        self.q = draw(question["query_heads"], question["qk_dim"])
        self.k = draw(question["kv_heads"], question["qk_dim"])
        self.v = draw(question["kv_heads"], question["v_dim"])

    def keys_and_values(self, expand, pad):
        """k and v, expanded to the query heads and v padded to the query's head size where that is wanted."""
        k, v = (t.repeat_interleave(self.group, dim=2) if expand else t for t in (self.k, self.v))
        return k, self.torch.nn.functional.pad(v, (0, self.q.shape[-1] - self.v_dim)) if pad else v

    def relative_error(self, out):
        """Of the rows of `out` that the bench checks of its own kernels too, against fp64 arithmetic."""
        torch, error, norm = self.torch, 0.0, 0.0
        for query in self.checked_queries:
            first = max(0, query - self.window + 1) if self.op == "window" else 0
            q = self.q[0, query].double().unflatten(0, (-1, self.group))
            k, v = (tensor[0, first : query + 1].double() for tensor in (self.k, self.v))
            weights = torch.softmax(torch.einsum("ghd,tgd->ght", q, k) * self.scale, dim=-1)
            expected = torch.einsum("ght,tgd->ghd", weights, v).flatten(0, 1)
            error += (out[0, query, :, : self.v_dim].double() - expected).square().sum().item()
            norm += expected.square().sum().item()
        return (error / norm) ** 0.5


def sdpa_runner(problem, backend, expand, pad):
    torch = problem.torch
    q, k, v = (tensor.transpose(1, 2) for tensor in (problem.q, *problem.keys_and_values(expand, pad)))
    grouped = not expand and problem.group > 1

    def run():
        with torch.nn.attention.sdpa_kernel([backend]):
            out = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, scale=problem.scale, enable_gqa=grouped
            )
        return out.transpose(1, 2)

    return run


def flash_window_runner(problem, expand, pad):
    """FlashAttention-2 as torch carries it: SDPA has no window, the operator below it has."""
    torch = problem.torch
    k, v = problem.keys_and_values(expand, pad)

    def run():
        return torch.ops.aten._flash_attention_forward(
            problem.q, k, v, None, None, problem.tokens, problem.tokens, 0.0, True, False,
            scale=problem.scale, window_size_left=problem.window - 1, window_size_right=0,
        )[0]  # fmt: skip

    return run


def implementations(problem, device):
    """(name, maker of a runner from (expand, pad)) of all that could serve the operator."""
    if problem.op == "window":
        return [("torch flash", lambda expand, pad: flash_window_runner(problem, expand, pad))]
    backends = problem.torch.nn.attention.SDPBackend
    named = [("torch flash", backends.FLASH_ATTENTION), ("torch cudnn", backends.CUDNN_ATTENTION)]
    named.append(("torch efficient", backends.EFFICIENT_ATTENTION))
    if device == "cpu":
        named = [("torch math", backends.MATH)]
    return [(name, lambda expand, pad, it=backend: sdpa_runner(problem, it, expand, pad)) for name, backend in named]


def first_line(error):
    return (str(error) or type(error).__name__).splitlines()[0][:160]


def ready(problem, maker):
    """The first form of the call that a backend takes and computes right, the cheapest one first."""
    trouble = ""
    unequal = problem.v_dim != problem.q.shape[-1]
    for pad in [False, True] if unequal else [False]:
        for expand in [False, True] if problem.group > 1 else [False]:
            try:
                run = maker(expand, pad)
                for _ in range(WARM_UPS):
                    out = run()
                error = problem.relative_error(out)
            except Exception as refused:  # each backend refuses in its own way; the reason is all that is wanted
                trouble = first_line(refused)
                continue
            if not error <= TOLERANCE[problem.dtype_name]:
                trouble = f"relative error {error:.2g}"
                continue
            note = [text for text, done in (("k and v expanded", expand), ("v padded", pad)) if done]
            return run, {"relative_error": error, "note": ", ".join(note)}
    return None, {"trouble": trouble}


class Session:
    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.problem = self.timer = None
        self.runners = {}

    def prepare(self, question):
        self.problem = self.timer = None
        self.runners = {}
        if self.device != "cpu":
            self.torch.cuda.empty_cache()
        self.problem = Problem(self.torch, self.device, question)
        self.timer = Timer(self.torch, self.device, int(question["flush_bytes"]))
        answers = []
        for name, maker in implementations(self.problem, self.device):
            run, facts = ready(self.problem, maker)
            if run:
                self.runners[name] = run
            answers.append({"name": name, **facts})
        return {"implementations": answers}

    def sample(self, question):
        return {"milliseconds": self.timer(self.runners[question["name"]])}

    def answer(self, question):
        command = {"prepare": self.prepare, "sample": self.sample}.get(question.get("command"))
        if not command:
            return {"trouble": f"unknown command {question.get('command')!r}"}
        try:
            with self.torch.inference_mode():
                return command(question)
        except Exception as error:  # one shape's trouble must not end the others
            return {"trouble": first_line(error)}


def main():
    parser = argparse.ArgumentParser(description="Measures torch's attention kernels for nsa_bench_attention.")
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or cpu to try the protocol")
    device = parser.parse_args().device
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        parser.error(f"--device {device}: must be cpu or cuda:N")

    # The protocol keeps the output for itself; whatever the libraries print goes where errors go.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(answer):
        print(json.dumps(answer), file=output, flush=True)

    torch, reason = import_torch(device)
    if reason:
        say({"unavailable": reason})
        return
    say({"versions": versions(torch, device)})
    session = Session(torch, device)
    for line in sys.stdin:
        say(session.answer(json.loads(line)))


if __name__ == "__main__":
    main()
