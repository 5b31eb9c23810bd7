"""The example programs (docs/examples/programs) as kernels in Triton: one kernel and one launch for each.

`KERNELS` names for each program its kernel, its launch and the configurations from which the fastest one is taken.
Bases of exponents are 2, as in the tile programs.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def nothing(y):
    pass


@triton.jit
def softmax(y, x, columns, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    z = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf")).to(tl.float32) * LOG2_E
    p = tl.exp2(z - tl.max(z, 0))
    tl.store(y + row * columns + at, (p / tl.sum(p, 0)).to(y.dtype.element_ty), mask=at < columns)


def launch_softmax(t, config):
    rows, columns = t["x"].shape
    softmax[(rows,)](t["y"], t["x"], columns, block=triton.next_power_of_2(columns), **config)


@triton.jit
def rms_norm(y, new_residual, x, residual, weight, columns, epsilon, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    place, inside = row * columns + at, at < columns
    r = tl.load(x + place, mask=inside, other=0).to(tl.float32)
    r += tl.load(residual + place, mask=inside, other=0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(r * r, 0) / columns + epsilon)
    tl.store(new_residual + place, r.to(new_residual.dtype.element_ty), mask=inside)
    w = tl.load(weight + at, mask=inside, other=0).to(tl.float32)
    tl.store(y + place, (r * scale * w).to(y.dtype.element_ty), mask=inside)


def launch_rms_norm(t, config):
    rows, columns = t["x"].shape
    rms_norm[(rows,)](
        t["y"], t["new_residual"], t["x"], t["residual"], t["weight"], columns, t["epsilon"],
        block=triton.next_power_of_2(columns), **config,
    )  # fmt: skip


@triton.jit
def gemm(out, a, b, bias, rows, columns, depth, tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr,
         band: tl.constexpr):  # fmt: skip
    chunks, tiles = tl.cdiv(columns, tile_n), tl.cdiv(rows, tile_m)
    first = tl.program_id(0) // (band * chunks) * band
    members = min(tiles - first, band)
    inner = tl.program_id(0) % (band * chunks)
    row = (first + inner % members) * tile_m + tl.arange(0, tile_m)
    column = inner // members * tile_n + tl.arange(0, tile_n)
    k = tl.arange(0, tile_k)
    a_at = a + (row % rows)[:, None] * depth + k[None, :]
    b_at = b + (column % columns)[None, :] * depth + k[:, None]
    total = tl.zeros((tile_m, tile_n), dtype=tl.float32)
    for part in range(0, tl.cdiv(depth, tile_k)):
        left = tl.load(a_at, mask=k[None, :] < depth - part * tile_k, other=0)
        right = tl.load(b_at, mask=k[:, None] < depth - part * tile_k, other=0)
        total = tl.dot(left, right, total, input_precision="ieee")
        a_at += tile_k
        b_at += tile_k
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    total += tl.load(bias + column, mask=column < columns, other=0).to(tl.float32)[None, :]
    total = total / (1 + tl.exp2(-total * LOG2_E))
    tl.store(out + row[:, None] * columns + column[None, :], total.to(out.dtype.element_ty), mask=inside)


def launch_gemm(t, config):
    (rows, depth), columns = t["a"].shape, t["b"].shape[0]
    grid = (triton.cdiv(rows, config["tile_m"]) * triton.cdiv(columns, config["tile_n"]),)
    gemm[grid](t["out"], t["a"], t["b"], t["bias"], rows, columns, depth, band=8, **config)


@triton.jit
def alibi(out, q, k, v, slopes, length, heads, scale, tile_m: tl.constexpr, tile_n: tl.constexpr, width: tl.constexpr):
    block, head, entry = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1), tl.program_id(2)
    base = (entry.to(tl.int64) * length * heads + head) * width
    d, step = tl.arange(0, width), heads * width
    index = block * tile_m + tl.arange(0, tile_m)
    inside = (index < length)[:, None]
    q_tile = tl.load(q + base + index[:, None] * step + d[None, :], mask=inside, other=0)
    slope = tl.load(slopes + head) * LOG2_E
    m = tl.full((tile_m,), -float("inf"), tl.float32)
    l = tl.zeros((tile_m,), tl.float32)
    o = tl.zeros((tile_m, width), tl.float32)
    last = block * tile_m + tile_m - 1
    for first in range(0, min(last + 1, length), tile_n):
        at = first + tl.arange(0, tile_n)
        k_tile = tl.load(k + base + at[None, :] * step + d[:, None], mask=(at < length)[None, :], other=0)
        v_tile = tl.load(v + base + at[:, None] * step + d[None, :], mask=(at < length)[:, None], other=0)
        s = tl.dot(q_tile, k_tile, input_precision="ieee") * (scale * LOG2_E)
        s = tl.where(at[None, :] <= index[:, None], s + slope * (at - last)[None, :], -float("inf"))
        m_next = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_next[:, None])
        shrink = tl.exp2(m - m_next)
        l = l * shrink + tl.sum(p, 1)
        o = tl.dot(p.to(v_tile.dtype), v_tile, o * shrink[:, None], input_precision="ieee")
        m = m_next
    place = out + base + index[:, None] * step + d[None, :]
    tl.store(place, (o / l[:, None]).to(out.dtype.element_ty), mask=inside)


def launch_alibi(t, config):
    batch, length, heads, width = t["q"].shape
    grid = (triton.cdiv(length, config["tile_m"]), heads, batch)
    alibi[grid](t["out"], t["q"], t["k"], t["v"], t["slopes"], length, heads, t["scale"], width=width, **config)


@triton.jit
def soft_cap(out, q, k, v, length, kv_heads, scale, cap, group: tl.constexpr, tile_m: tl.constexpr,
             tile_n: tl.constexpr, width: tl.constexpr):  # fmt: skip
    block, kv_head, entry = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1), tl.program_id(2)
    base = (entry.to(tl.int64) * length * kv_heads + kv_head) * width
    d, step = tl.arange(0, width), kv_heads * width
    index = block * tile_m + tl.arange(0, tile_m)
    time, inside = index // group, (index < length * group)[:, None]
    place = base * group + (time * step * group + index % group * width)[:, None] + d[None, :]
    q_tile = tl.load(q + place, mask=inside, other=0)
    m = tl.full((tile_m,), -float("inf"), tl.float32)
    l = tl.zeros((tile_m,), tl.float32)
    o = tl.zeros((tile_m, width), tl.float32)
    last = (block * tile_m + tile_m - 1) // group
    for first in range(0, min(last + 1, length), tile_n):
        at = first + tl.arange(0, tile_n)
        k_tile = tl.load(k + base + at[None, :] * step + d[:, None], mask=(at < length)[None, :], other=0)
        v_tile = tl.load(v + base + at[:, None] * step + d[None, :], mask=(at < length)[:, None], other=0)
        s = tl.dot(q_tile, k_tile, input_precision="ieee") * (scale / cap)
        s = (1 - 2 / (tl.exp2(s * (2 * LOG2_E)) + 1)) * (cap * LOG2_E)
        s = tl.where(at[None, :] <= time[:, None], s, -float("inf"))
        m_next = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_next[:, None])
        shrink = tl.exp2(m - m_next)
        l = l * shrink + tl.sum(p, 1)
        o = tl.dot(p.to(v_tile.dtype), v_tile, o * shrink[:, None], input_precision="ieee")
        m = m_next
    tl.store(out + place, (o / l[:, None]).to(out.dtype.element_ty), mask=inside)


def launch_soft_cap(t, config):
    batch, length, kv_heads, width = t["k"].shape
    group = t["q"].shape[2] // kv_heads
    grid = (triton.cdiv(length * group, config["tile_m"]), kv_heads, batch)
    soft_cap[grid](
        t["out"], t["q"], t["k"], t["v"], length, kv_heads, t["scale"], t["cap"], group=group, width=width, **config
    )


ROWS = [{"num_warps": warps} for warps in (4, 1, 2, 8, 16)]
PRODUCTS = [
    {"tile_m": m, "tile_n": n, "tile_k": k, "num_stages": stages, "num_warps": warps}
    for m, n, k, stages, warps in ((128, 128, 64, 4, 4), (128, 256, 64, 3, 8), (128, 128, 64, 3, 8), (64, 128, 64, 4, 4),
                                   (128, 128, 32, 4, 4))
]  # fmt: skip
ATTENTION = [
    {"tile_m": m, "tile_n": n, "num_stages": stages, "num_warps": warps}
    for m, n, stages, warps in ((128, 64, 3, 4), (128, 128, 3, 8), (128, 64, 3, 8), (128, 128, 2, 8), (64, 64, 3, 4))
]
KERNELS = {
    "softmax": (softmax, launch_softmax, ROWS),
    "rms_norm": (rms_norm, launch_rms_norm, ROWS),
    "gemm": (gemm, launch_gemm, PRODUCTS),
    "alibi": (alibi, launch_alibi, ATTENTION),
    "soft_cap": (soft_cap, launch_soft_cap, ATTENTION),
}
