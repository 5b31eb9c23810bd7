#!/usr/bin/env python3
"""The attention kernels that torch carries, measured for nsa_bench_attention (peer_session.py has the protocol).

A question has "op", "dtype", "query_heads", "kv_heads", "qk_dim", "v_dim", "tokens", "window" and "checked_queries".
Copies that a backend needs (key and value heads expanded to the query heads, values padded to the query's head size)
are made by "prepare" and are not in its times. The ops that end with "_bwd" are the gradients of the others; "prepare"
runs the forward pass, and the times are of the backward pass alone. A question "dense_decode" has "batch" and
"new_tokens" too: that many queries of each sequence see all "tokens" keys. On a GPU a step is the replay of a captured
graph, as the bench's own steps are.
"""

from peer_session import TOLERANCE, WARM_UPS, dtype_of, first_line, serve


class Problem:
    """One shape with its tensors, [batch, time, heads, dim] as the bench's own."""

    def __init__(self, torch, device, question):
        self.torch = torch
        self.op, self.window = question["op"].removesuffix("_bwd"), int(question["window"])
        self.is_backward, self.is_decode = question["op"].endswith("_bwd"), question["op"] == "dense_decode"
        self.tokens, self.v_dim = int(question["tokens"]), int(question["v_dim"])
        self.checked_queries = question["checked_queries"]
        self.dtype_name = question["dtype"]
        dtype = dtype_of(torch, self.dtype_name)
        self.group = int(question["query_heads"]) // int(question["kv_heads"])
        self.scale = int(question["qk_dim"]) ** -0.5
        generator = torch.Generator(device=device).manual_seed(1)

        def draw(heads, dim, tokens=self.tokens):
            shape = (int(question.get("batch", 1)), int(tokens), int(heads), int(dim))
            return torch.randn(shape, generator=generator, dtype=dtype, device=device)

        self.q = draw(question["query_heads"], question["qk_dim"], question.get("new_tokens", self.tokens))
        self.k = draw(question["kv_heads"], question["qk_dim"])
        self.v = draw(question["kv_heads"], question["v_dim"])
        self.d_out = draw(question["query_heads"], question["v_dim"]) if self.is_backward else None

    def keys_and_values(self, expand, pad):
        """k and v, expanded to the query heads and v padded to the query's head size where that is wanted."""
        k, v = (t.repeat_interleave(self.group, dim=2) if expand else t for t in (self.k, self.v))
        return k, self.torch.nn.functional.pad(v, (0, self.q.shape[-1] - self.v_dim)) if pad else v

    def relative_error(self, out):
        """Of the rows of `out` that the bench checks of its own kernels too, against fp64 arithmetic. A backward pass
        gives the gradient of the queries in the place of `out`."""
        torch, error, norm = self.torch, 0.0, 0.0
        columns = self.q.shape[-1] if self.is_backward else self.v_dim
        for query in self.checked_queries:
            first = max(0, query - self.window + 1) if self.op == "window" else 0
            q = self.q[0, query].double().unflatten(0, (-1, self.group))
            past = self.tokens if self.is_decode else query + 1
            k, v = (tensor[0, first:past].double() for tensor in (self.k, self.v))
            weights = torch.softmax(torch.einsum("ghd,tgd->ght", q, k) * self.scale, dim=-1)
            expected = torch.einsum("ght,tgd->ghd", weights, v)
            if self.is_backward:
                d_out = self.d_out[0, query].double().unflatten(0, (-1, self.group))
                delta = (d_out * expected).sum(-1, keepdim=True)
                d_scores = weights * (torch.einsum("ghd,tgd->ght", d_out, v) - delta)
                expected = torch.einsum("ght,tgd->ghd", d_scores, k) * self.scale
            expected = expected.flatten(0, 1)
            error += (out[0, query, :, :columns].double() - expected).square().sum().item()
            norm += expected.square().sum().item()
        return (error / norm) ** 0.5


def sdpa_runner(problem, backend, expand, pad):
    torch = problem.torch
    q, k, v = (tensor.transpose(1, 2) for tensor in (problem.q, *problem.keys_and_values(expand, pad)))
    grouped = not expand and problem.group > 1
    if problem.is_backward:
        return sdpa_backward_runner(problem, backend, (q, k, v), grouped)

    def run():
        with torch.nn.attention.sdpa_kernel([backend]):
            out = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=not problem.is_decode, scale=problem.scale, enable_gqa=grouped
            )
        return out.transpose(1, 2)

    return run


def sdpa_backward_runner(problem, backend, inputs, grouped):
    """The session asks in inference mode, in which nothing is recorded; copies made outside of it are."""
    torch = problem.torch
    with torch.inference_mode(False), torch.enable_grad(), torch.nn.attention.sdpa_kernel([backend]):
        inputs = [tensor.clone().requires_grad_() for tensor in inputs]
        out = torch.nn.functional.scaled_dot_product_attention(
            *inputs, is_causal=True, scale=problem.scale, enable_gqa=grouped
        )
        d_out = torch.nn.functional.pad(problem.d_out.clone(), (0, out.shape[-1] - problem.v_dim)).transpose(1, 2)

    def run():
        with torch.inference_mode(False):
            return torch.autograd.grad(out, inputs, d_out, retain_graph=True)[0].transpose(1, 2)

    return run


def flash_window_runner(problem, expand, pad):
    """FlashAttention-2 as torch carries it: SDPA has no window, the operator below it has."""
    torch = problem.torch
    k, v = problem.keys_and_values(expand, pad)
    window = {"scale": problem.scale, "window_size_left": problem.window - 1, "window_size_right": 0}

    def forward():
        return torch.ops.aten._flash_attention_forward(
            problem.q, k, v, None, None, problem.tokens, problem.tokens, 0.0, True, False, **window
        )  # fmt: skip

    if not problem.is_backward:
        return lambda: forward()[0]
    out, lse, state, offset = forward()[:4]
    d_out = torch.nn.functional.pad(problem.d_out, (0, out.shape[-1] - problem.v_dim))
    return lambda: torch.ops.aten._flash_attention_backward(
        d_out, problem.q, k, v, out, lse, None, None, problem.tokens, problem.tokens, 0.0, True, state, offset, **window
    )[0]  # fmt: skip


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


def captured(torch, run):
    """Replays of a graph of `run`, which has run before. Each replay takes its times without Python's."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def prepared(torch, device, question):
    problem = Problem(torch, device, question)
    for name, maker in implementations(problem, device):
        run, facts = ready(problem, maker)
        if run and problem.is_decode and device != "cpu":
            try:
                run = captured(torch, run)
            except Exception as refused:
                run, facts = None, {"trouble": first_line(refused)}
        yield name, run, facts


if __name__ == "__main__":
    serve("Measures torch's attention kernels for nsa_bench_attention.", prepared)
