// Causal attention with one warp per row (a pair of a query and a head) and without tensor cores. It computes the
// operators of templates/tile/attention.mlir where no tile of that program can hold the head size. It is also the
// simple variant that short lengths are measured against. Each lane holds pairs of columns. The whole warp computes one
// product per key. Only keys that the row may attend are read, so no other bytes can reach a result.
//
//! template row_attention
//! operator dense, window, cmp
//! targets gpu
//! fixed   dtype, qk_dim, v_dim, group, packed, page_size, many_queries
//! fixed   cmp: cmp_block, cmp_stride
//! let     windowed = op == window
//! let     compressed = op == cmp
// Position p sees the keys below (p + sight) / key_stride. If that is negative, it sees no key.
//! let     key_stride = compressed ? cmp_stride : 1
//! let     sight = compressed ? 1 + cmp_stride - cmp_block : 1
//! require page_size == 0
//! choice  rows_per_block = 2 | 4 | 8
//! choice  keys_in_flight = 1 | 2 | 4
// A lane holds its columns of the query, of the result, and of the keys and values in flight. If the head is so large
// that they exceed the limit, one key in flight is the only choice: slow, but the result is right.
//! require keys_in_flight == 1 || (keys_in_flight + 1) * (qk_dim + v_dim) <= 5120
// The cost of one row with 1024 keys, in the unit of tile/attention.mlir: scalar products instead of matrix products,
// and five shuffles and one update of the result per batch of keys.
//! cost    1024 * (8 * (qk_dim + v_dim) + 600 / keys_in_flight) + 8192 / rows_per_block
//! grid    ceildiv(max_seqlen_q * group, rows_per_block), kv_heads, batch
//! threads 32 * rows_per_block
//! param view q dtype 3
//! param view k dtype 3
//! param view v dtype 3
//! param view out dtype 3
//! param view lse fp32 3
//! param view reads int32 3
//! param view sequences int32 2
//! param i32 seqlen_q
//! param i32 seqlen_k
//! param i32 query_begin
//! param i32 query_end
//! param i32 window
//! param f32 scale_log2

#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"
#include "view.cuh"

using namespace nsa;

using Element = ${element};
constexpr int32 kQkDim = ${qk_dim};
constexpr int32 kVDim = ${v_dim};
constexpr int32 kGroup = ${group};
constexpr bool kPacked = ${packed};
constexpr bool kWindowed = ${windowed};
constexpr bool kCompressed = ${compressed};
constexpr int32 kKeyStride = ${key_stride};
constexpr int32 kSight = ${sight};
constexpr int32 kRowsPerBlock = ${rows_per_block};
constexpr int32 kKeysInFlight = ${keys_in_flight};

struct Arguments {
  View<Element, 3> q;
  View<Element, 3> k;
  View<Element, 3> v;
  View<Element, 3> out;
  View<float, 3> lse;
  View<int32, 3> reads;
  View<int32, 2> sequences;
  alignas(8) int32 seqlen_q;
  alignas(8) int32 seqlen_k;
  alignas(8) int32 query_begin;
  alignas(8) int32 query_end;
  alignas(8) int32 window;
  alignas(8) float scale_log2;
};

// Where the block's sequence lies in the tensors, and the queries of it that this launch computes: `queries` queries
// from time `first_time` on. `earlier` tokens stand before the first of them.
struct Sequence {
  int32 q_entry;
  int32 k_entry;
  int32 k_begin;
  int32 first_time;
  int32 queries;
  int32 earlier;
};

// A packed launch reads the place from the table of sequences. The table holds a malformed sequence as one without
// queries.
NSA_DEVICE Sequence find_sequence(const Arguments &args, int32 batch) {
  const int32 q_begin = kPacked ? load_scalar(args.sequences, batch, 0) : 0;
  const int32 q_length = kPacked ? load_scalar(args.sequences, batch, 1) : args.seqlen_q;
  const int32 k_begin = kPacked ? load_scalar(args.sequences, batch, kCompressed ? 4 : 2) : 0;
  const int32 k_length = kPacked ? load_scalar(args.sequences, batch, 3) : args.seqlen_k;
  const int32 k_entry = kPacked ? load_scalar(args.sequences, batch, 6) : batch;
  const int32 q_entry = kPacked ? load_scalar(args.sequences, batch, 7) : batch;
  const int32 q_past = q_begin + q_length;
  const int32 first_time = max(q_begin, args.query_begin);
  const int32 queries = max(min(q_past, args.query_end) - first_time, 0);
  return {q_entry, k_entry, k_begin, first_time, queries, k_length - (q_past - first_time)};
}

// The columns of a row that a lane holds: pairs of neighbouring columns, 64 columns apart.
template <int32 kDim> struct Columns {
  static constexpr int32 kPairs = (kDim + 2 * kWarpSize - 1) / (2 * kWarpSize);
  float values[kPairs][2];

  NSA_DEVICE static int32 first(int32 pair) {
    return 2 * (pair * kWarpSize + static_cast<int32>(threadIdx.x) % kWarpSize);
  }
};

// kTogether: rows begin at multiples of 16 bytes, so one access moves both columns of a pair.
template <int32 kDim, bool kTogether> NSA_DEVICE Columns<kDim> load_columns(const Element *row, bool exists) {
  Columns<kDim> result;
#pragma unroll
  for (int32 pair = 0; pair < result.kPairs; ++pair) {
    const int32 column = result.first(pair);
    const int32 elements = exists ? columns_from(column, kDim, 2) : 0;
    const Pair<Element> loaded = load_pair(row + column, elements, kTogether);
    result.values[pair][0] = to_float(loaded.get(0));
    result.values[pair][1] = to_float(loaded.get(1));
  }
  return result;
}

template <int32 kDim, bool kTogether> NSA_DEVICE void store_columns(Element *row, const Columns<kDim> &columns, float factor) {
#pragma unroll
  for (int32 pair = 0; pair < columns.kPairs; ++pair) {
    const int32 column = columns.first(pair);
    const float *values = columns.values[pair];
    const auto rounded = Pair<Element>::make(values[0] * factor, values[1] * factor);
    store_pair(row + column, rounded, columns_from(column, kDim, 2), kTogether);
  }
}

// The dot product of two rows. All lanes get the same value.
NSA_DEVICE float multiply(const Columns<kQkDim> &a, const Columns<kQkDim> &b) {
  float sum = 0;
#pragma unroll
  for (int32 pair = 0; pair < a.kPairs; ++pair)
    sum = fmaf(a.values[pair][0], b.values[pair][0], fmaf(a.values[pair][1], b.values[pair][1], sum));
#pragma unroll
  for (int32 distance = kWarpSize / 2; distance > 0; distance /= 2)
    sum += shuffle_xor(sum, distance);
  return sum;
}

// Computes one row, with the online softmax in base 2 over batches of keys (Milakov and Gimelshein, arXiv 1805.02867).
template <bool kTogether>
NSA_DEVICE void attend(const Arguments &args, const Sequence &sequence, int32 kv_head, int32 row) {
  const int32 query = row / kGroup;
  const int32 head = kv_head * kGroup + row % kGroup;
  const int32 time = sequence.first_time + query;
  const int32 past_key = (sequence.earlier + query + kSight) / kKeyStride;
  const int32 first_key = kWindowed ? max(past_key - args.window, 0) : 0;

  const auto q = load_columns<kQkDim, kTogether>(args.q.data + args.q.at(sequence.q_entry, time, head).offset, true);
  Columns<kVDim> o = {};
  float m = -infinity();
  float l = 0;
  for (int32 key = first_key; key < past_key; key += kKeysInFlight) {
    Columns<kQkDim> k[kKeysInFlight];
    Columns<kVDim> v[kKeysInFlight];
#pragma unroll
    for (int32 i = 0; i < kKeysInFlight; ++i) {
      const int32 key_time = sequence.k_begin + key + i;
      const bool exists = key + i < past_key;
      k[i] = load_columns<kQkDim, kTogether>(args.k.data + args.k.at(sequence.k_entry, key_time, kv_head).offset, exists);
      v[i] = load_columns<kVDim, kTogether>(args.v.data + args.v.at(sequence.k_entry, key_time, kv_head).offset, exists);
    }
    float s[kKeysInFlight];
    float m_next = m;
#pragma unroll
    for (int32 i = 0; i < kKeysInFlight; ++i) {
      s[i] = multiply(q, k[i]);
      if (key + i >= past_key)
        s[i] = -infinity();
      m_next = max_number(m_next, s[i]);
    }
    // While all scores so far are -inf, weights are taken against 0 instead of the maximum, and are 0.
    const float m_finite = m_next == -infinity() ? 0.0f : m_next;
    const float m_minus = -m_finite * args.scale_log2;
    // The decay is computed from the difference of the maxima. If the maximum does not change, the decay is exactly 1,
    // and earlier weights keep all their bits however many keys follow.
    const float decay = exp2_approx((m - m_finite) * args.scale_log2);
    l *= decay;
#pragma unroll
    for (int32 pair = 0; pair < o.kPairs; ++pair) {
      o.values[pair][0] *= decay;
      o.values[pair][1] *= decay;
    }
#pragma unroll
    for (int32 i = 0; i < kKeysInFlight; ++i) {
      const float p = exp2_approx(fmaf(s[i], args.scale_log2, m_minus));
      l += p;
#pragma unroll
      for (int32 pair = 0; pair < o.kPairs; ++pair) {
        o.values[pair][0] = fmaf(p, v[i].values[pair][0], o.values[pair][0]);
        o.values[pair][1] = fmaf(p, v[i].values[pair][1], o.values[pair][1]);
      }
    }
    m = m_next;
  }

  // A row without weight has the result 0 and the log-sum-exp -inf.
  store_columns<kVDim, kTogether>(args.out.data + args.out.at(sequence.q_entry, time, head).offset, o, l == 0 ? 0.0f : 1 / l);
  if (threadIdx.x % kWarpSize != 0)
    return;
  if (args.lse.present()) {
    constexpr float kLn2 = 0.693147181f;
    const float lse = l == 0 ? -infinity() : (m * args.scale_log2 + log2_approx(l)) * kLn2;
    args.lse.data[args.lse.at(sequence.q_entry, time, head).offset] = lse;
  }
  // The number of keys that the loop read. All heads of a group read the same keys, so the first head's row writes it.
  if (args.reads.present() && row % kGroup == 0)
    args.reads.data[args.reads.at(sequence.q_entry, time, kv_head).offset] = max(past_key - first_key, 0);
}

extern "C" __global__ void __launch_bounds__(kRowsPerBlock * kWarpSize)
row_attention(const __grid_constant__ Arguments args) {
  const int32 block = blockIdx.x;
  const int32 kv_head = blockIdx.y;
  const Sequence sequence = find_sequence(args, blockIdx.z);

  // The last rows see most keys, so they start first.
  const int32 rows = sequence.queries * kGroup;
  const int32 row_blocks = (rows + kRowsPerBlock - 1) / kRowsPerBlock;
  const int32 row = (row_blocks - 1 - block) * kRowsPerBlock + static_cast<int32>(threadIdx.x) / kWarpSize;
  if (block >= row_blocks || row >= rows)
    return;
  if (args.q.rows_aligned() && args.k.rows_aligned() && args.v.rows_aligned() && args.out.rows_aligned())
    attend<true>(args, sequence, kv_head, row);
  else
    attend<false>(args, sequence, kv_head, row);
}
