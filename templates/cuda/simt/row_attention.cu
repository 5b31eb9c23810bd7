// Causal attention with one warp per row (a pair of a query and a head) and without tensor cores. It computes the
// operators of templates/tile/attention.tile where no tile of that program can hold the head size. It is also the
// simple variant that short lengths are measured against. Each lane holds pairs of columns. The whole warp computes one
// product per key. Only keys that the row may attend are read, so no other bytes can reach a result.
//
//! kernel  row_attention serves dense, window, cmp
//! include header/causal_attention.inc
//! targets gpu
//! require page_size == 0
//! choice  rows_per_block = 2 | 4 | 8
//! choice  keys_in_flight = 1 | 2 | 4
// A lane holds its columns of the query, of the result, and of the keys and values in flight. If the head is so large
// that they exceed the limit, one key in flight is the only choice: slow, but the result is right.
//! require keys_in_flight == 1 || (keys_in_flight + 1) * (qk_dim + v_dim) <= 5120
// The cost of one row with 1024 keys, in the unit of tile/attention.tile: scalar products instead of matrix products,
// and five shuffles and one update of the result per batch of keys.
//! cost    1024 * (8 * (qk_dim + v_dim) + 600 / keys_in_flight) + 8192 / rows_per_block
//! grid    ceildiv(max_seqlen_q * group, rows_per_block), kv_heads, batch
//! threads 32 * rows_per_block
//! include header/causal_attention_arguments.inc

#include "pair.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"
#include "sequence_place.cuh"

using namespace nsa;

${facts}

${arguments}

using Element = Facts::Element;

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
NSA_DEVICE float multiply(const Columns<Facts::kQkDim> &a, const Columns<Facts::kQkDim> &b) {
  float sum = 0;
#pragma unroll
  for (int32 pair = 0; pair < a.kPairs; ++pair)
    sum = fmaf(a.values[pair][0], b.values[pair][0], fmaf(a.values[pair][1], b.values[pair][1], sum));
#pragma unroll
  for (int32 distance = kWarpSize / 2; distance > 0; distance /= 2)
    sum += shuffle_xor(sum, distance);
  return sum;
}

NSA_DEVICE void scale_columns(Columns<Facts::kVDim> &o, float factor) {
#pragma unroll
  for (int32 pair = 0; pair < o.kPairs; ++pair) {
    o.values[pair][0] *= factor;
    o.values[pair][1] *= factor;
  }
}

// o += factor * v.
NSA_DEVICE void add_columns(Columns<Facts::kVDim> &o, float factor, const Columns<Facts::kVDim> &v) {
#pragma unroll
  for (int32 pair = 0; pair < o.kPairs; ++pair) {
    o.values[pair][0] = fmaf(factor, v.values[pair][0], o.values[pair][0]);
    o.values[pair][1] = fmaf(factor, v.values[pair][1], o.values[pair][1]);
  }
}

// While all scores so far are -inf, weights are taken against 0 instead of the maximum, and are 0.
NSA_DEVICE float finite_maximum(float m) { return m == -infinity() ? 0.0f : m; }

// The factor by which sums against the maximum `m` become sums against the maximum `m_next`. It is computed from the
// difference of the maxima. If the maximum does not change, the factor is exactly 1, and earlier weights keep all their
// bits however many keys follow.
NSA_DEVICE float decay_between(float m, float m_next, float scale_log2) {
  return exp2_approx((m - finite_maximum(m_next)) * scale_log2);
}

// Computes one row, with the online softmax in base 2 over batches of keys (Milakov and Gimelshein, arXiv 1805.02867).
template <bool kTogether>
NSA_DEVICE void attend(const Arguments &args, const SequencePlace &sequence, int32 kv_head, int32 row) {
  const int32 query = row / Facts::kGroup;
  const int32 head = kv_head * Facts::kGroup + row % Facts::kGroup;
  const int32 time = sequence.first_time + query;
  const int32 position = sequence.earlier + query;
  const int32 past_key = past_real_key<Facts>(position, sequence.k_length);
  const int32 first_key = Facts::kWindowed ? first_windowed_key<Facts>(position, args.window) : 0;

  const auto q = load_columns<Facts::kQkDim, kTogether>(args.q.data + args.q.at(sequence.q_entry, time, head).offset, true);
  // Sums of the last keys, and of all segments of keys before them against the maximum `m_total`. A single sum over
  // 65536 keys would lose the bits of small weights: its error reaches the limit of fp32 (docs/specification.md 11).
  constexpr int32 kSegment = 256;
  static_assert(kSegment % Facts::kKeysInFlight == 0);
  Columns<Facts::kVDim> o_total = {}, o = {};
  float l_total = 0, l = 0;
  float m_total = -infinity(), m = -infinity();
  const auto end_segment = [&] {
    const float decay = decay_between(m_total, m, args.scale_log2);
    l_total = fmaf(l_total, decay, l);
    scale_columns(o_total, decay);
    add_columns(o_total, 1, o);
    m_total = m;
    o = {};
    l = 0;
  };
  for (int32 key = first_key; key < past_key; key += Facts::kKeysInFlight) {
    Columns<Facts::kQkDim> k[Facts::kKeysInFlight];
    Columns<Facts::kVDim> v[Facts::kKeysInFlight];
#pragma unroll
    for (int32 i = 0; i < Facts::kKeysInFlight; ++i) {
      const int32 key_time = sequence.k_begin + key + i;
      const bool exists = key + i < past_key;
      k[i] = load_columns<Facts::kQkDim, kTogether>(args.k.data + args.k.at(sequence.k_entry, key_time, kv_head).offset, exists);
      v[i] = load_columns<Facts::kVDim, kTogether>(args.v.data + args.v.at(sequence.k_entry, key_time, kv_head).offset, exists);
    }
    float s[Facts::kKeysInFlight];
    float m_next = m;
#pragma unroll
    for (int32 i = 0; i < Facts::kKeysInFlight; ++i) {
      s[i] = multiply(q, k[i]);
      if (key + i >= past_key)
        s[i] = -infinity();
      m_next = max_number(m_next, s[i]);
    }
    const float decay = decay_between(m, m_next, args.scale_log2);
    const float m_minus = -finite_maximum(m_next) * args.scale_log2;
    l *= decay;
    scale_columns(o, decay);
#pragma unroll
    for (int32 i = 0; i < Facts::kKeysInFlight; ++i) {
      const float p = exp2_approx(fmaf(s[i], args.scale_log2, m_minus));
      l += p;
      add_columns(o, p, v[i]);
    }
    m = m_next;
    if ((key - first_key + Facts::kKeysInFlight) % kSegment == 0)
      end_segment();
  }
  end_segment();

  // A row without weight has the result 0 and the log-sum-exp -inf.
  store_columns<Facts::kVDim, kTogether>(args.out.data + args.out.at(sequence.q_entry, time, head).offset, o_total,
                                          l_total == 0 ? 0.0f : 1 / l_total);
  if (threadIdx.x % kWarpSize != 0)
    return;
  if (args.lse.present()) {
    constexpr float kLn2 = 0.693147181f;
    const float lse = l_total == 0 ? -infinity() : (m * args.scale_log2 + log2_approx(l_total)) * kLn2;
    args.lse.data[args.lse.at(sequence.q_entry, time, head).offset] = lse;
  }
  // The number of keys that the loop read. All heads of a group read the same keys, so the first head's row writes it.
  if (args.reads.present() && row % Facts::kGroup == 0)
    args.reads.data[args.reads.at(sequence.q_entry, time, kv_head).offset] = max(past_key - first_key, 0);
}

extern "C" __global__ void NSA_LAUNCH_BOUNDS(Facts::kRowsPerBlock * kWarpSize)
row_attention(const __grid_constant__ Arguments args) {
  const int32 block = blockIdx.x;
  const int32 kv_head = blockIdx.y;
  const SequencePlace sequence = place_sequence<Facts>(args, blockIdx.z);

  // The last rows see most keys, so they start first.
  const int32 rows = sequence.queries * Facts::kGroup;
  const int32 row_blocks = (rows + Facts::kRowsPerBlock - 1) / Facts::kRowsPerBlock;
  const int32 row = (row_blocks - 1 - block) * Facts::kRowsPerBlock + static_cast<int32>(threadIdx.x) / kWarpSize;
  if (block >= row_blocks || row >= rows)
    return;
  if (args.q.rows_aligned() && args.k.rows_aligned() && args.v.rows_aligned() && args.out.rows_aligned())
    attend<true>(args, sequence, kv_head, row);
  else
    attend<false>(args, sequence, kv_head, row);
}
