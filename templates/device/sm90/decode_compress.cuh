// The compressed row that new tokens complete, which are so few that they complete one row at most. The blocks that
// use the row have it in shared memory, and the block that owns it stores it, in the cluster of the token that
// completes it. templates/tile/compress_mean.tile, compress_linear.tile and compress_mlp.tile define the row.
//
// Each block that takes the row makes a mean by itself. Weights are read once by a cluster: half of its blocks multiply
// with the weights of K and half with those of V, each with a part of them. A block sends the sums of its part to the
// blocks that take the row, and these add up what the parts are.
#pragma once

#include "ptx_convert.cuh"
#include "ptx_math.cuh"
#include "ptx_warp.cuh"
#include "sm90/decode_exchange.cuh"

namespace nsa {

// Where the elements of the new row go, in a block that takes it.
template <typename Team, typename Arguments> struct FreshRow {
  using T = typename Team::Element;
  static constexpr int32 kColumns = Team::kQkDim + Team::kVDim; // of K, and then of V

  NSA_DEVICE FreshRow(const Arguments &args, const DecodePlace &place, const DecodeMemory<Team> &memory)
      : args(args), place(place), memory(memory), owns(place.completes && place.owns_fresh(Team::kInner)),
        at(find_row(args.k_comp, place.k_entry, place.fresh_key, owns, args.pages)) {}

  NSA_DEVICE static bool is_of_keys(int32 i) { return i < Team::kQkDim; }
  NSA_DEVICE static int32 column(int32 i) { return is_of_keys(i) ? i : i - Team::kQkDim; }

  NSA_DEVICE const View<T, 3> &pool(bool of_keys) const {
    return of_keys ? static_cast<const View<T, 3> &>(args.k_comp) : args.v_comp;
  }
  // Rounds element i and puts it where it belongs.
  NSA_DEVICE void put(const View<T, 3> &pool, int32 i, int32 column, float value) const {
    const T rounded = to<T>(value);
    reinterpret_cast<T *>(memory.fresh())[i] = rounded;
    if (owns && pool.present())
      row_address(pool, at.first, at.second, place.kv_head)[column] = rounded;
  }

  const Arguments &args;
  const DecodePlace &place;
  const DecodeMemory<Team> &memory;
  const bool owns;
  const PoolRow at;
};

// The tokens of the new row: those in front of the new tokens are in the ring.
template <typename Team, typename Arguments> struct FreshTokens {
  using T = typename Team::Element;
  static constexpr int32 kBlock = Team::Facts::kCmpBlock;

  NSA_DEVICE FreshTokens(const Arguments &args, const DecodePlace &place)
      : args(args), place(place), first(place.fresh_key * Team::Facts::kCmpStride), held(place.cached() - first) {}

  NSA_DEVICE const View<T, 3> &ring(bool of_keys) const { return of_keys ? args.k_raw : args.v_raw; }
  NSA_DEVICE int32 ring_place(int32 token) const {
    const int32 behind = static_cast<int32>(static_cast<uint32>(first) % kBlock) + token;
    return behind < kBlock ? behind : behind - kBlock;
  }
  // The row of a token that the ring does not hold.
  NSA_DEVICE const T *new_row(bool of_keys, int32 token) const {
    return row_address(of_keys ? args.k_cmp : args.v_cmp, place.q_entry, place.q_time + first + token - place.position,
                       place.kv_head);
  }

  const Arguments &args;
  const DecodePlace &place;
  const int32 first; // in the sequence
  const int32 held;  // tokens that the ring has
};

// Makes the row as a mean.
template <typename Team, typename Arguments>
NSA_DEVICE void average_fresh(const Arguments &args, const DecodePlace &place, const DecodeMemory<Team> &memory) {
  using T = typename Team::Element;
  using Row = FreshRow<Team, Arguments>;
  if (!place.takes_fresh(Team::kInner) || !args.k_comp.present())
    return;
  const Row row(args, place, memory);
  const FreshTokens<Team, Arguments> tokens(args, place);
  constexpr int32 kAtOnce = tokens.kBlock < 16 ? tokens.kBlock : 16; // loads in flight
#pragma unroll 1
  for (int32 i = Team::thread(); i < Row::kColumns; i += Team::kThreads) {
    const bool of_keys = Row::is_of_keys(i);
    const int32 column = Row::column(i);
    const View<T, 3> &pool = row.pool(of_keys);
    const View<T, 3> &ring = tokens.ring(of_keys);
    const View<T, 3> &added = of_keys ? args.k_cmp : args.v_cmp;
    if (!added.present())
      continue;
    const T *old = row_address(ring, place.sequence, 0, place.kv_head) + column;
    const T *next = tokens.new_row(of_keys, tokens.held) + column;
    float sum = 0;
#pragma unroll 1
    for (int32 first = 0; first < tokens.kBlock; first += kAtOnce) {
      float numbers[kAtOnce];
#pragma unroll
      for (int32 j = 0; j < kAtOnce; ++j) {
        const int32 token = min(first + j, tokens.kBlock - 1);
        const T *from = token < tokens.held ? old + tokens.ring_place(token) * ring.strides[1]
                                            : next + (token - tokens.held) * added.strides[1];
        numbers[j] = to_float(*from);
      }
#pragma unroll
      for (int32 j = 0; j < kAtOnce; ++j)
        sum += first + j < tokens.kBlock ? numbers[j] : 0;
    }
    row.put(pool, i, column, sum / static_cast<float>(tokens.kBlock));
  }
}

// Makes the row by a linear map or by a perceptron. The steps are `multiply`, the meeting of the cluster, `exchange`.
template <typename Team, typename Arguments> struct WeightedRow {
  using T = typename Team::Element;
  using Facts = typename Team::Facts;
  static constexpr int32 kElements = kChunkBytes / static_cast<int32>(sizeof(T)); // columns of a thread
  static constexpr int32 kParts = Facts::kWeightParts;

  // Leaves the sums of the block's part of the weights in shared memory. Without neighbours the block has all weights.
  NSA_DEVICE void multiply() const {
    if (!has_weights<Team>(place))
      return;
#pragma unroll 1
    for (int32 side = 0; side < (Team::kCluster == 1 ? 2 : 1); ++side) {
      const bool of_keys = side == 0 && has_key_weights<Team>(place);
      if (of_keys || Team::kQkDim == Team::kVDim) // both by the same instructions
        multiply_side<Team::kQkDim>(of_keys);
      else
        multiply_side<Team::kVDim>(false);
    }
  }

  // Sends the sums to the blocks that take the row, adds up what they sent, and makes the row. All threads of the team
  // have met behind `multiply`, and all blocks of the cluster have prepared their barriers.
  NSA_DEVICE void exchange() const {
    using Row = FreshRow<Team, Arguments>;
    if (Team::kCluster > 1 && has_weights<Team>(place)) {
      const bool of_keys = has_key_weights<Team>(place);
      push_sums(of_keys, of_keys ? Team::kQkDim : Team::kVDim);
    }
    if (!place.takes_fresh(Team::kInner))
      return;
    await(memory, kFreshSums);
    const Row row(args, place, memory);
#pragma unroll 1
    for (int32 i = Team::thread(); i < Row::kColumns; i += Team::kThreads) {
      const bool of_keys = Row::is_of_keys(i);
      const int32 column = Row::column(i);
      float sum = 0;
#pragma unroll
      for (int32 part = 0; part < kParts; ++part)
        sum += memory.fresh_sums(of_keys, part)[column];
      const View<T, 1> &bias = bias_of(of_keys);
      row.put(row.pool(of_keys), i, column, bias.present() ? sum + to_float(bias.data[column]) : sum);
    }
  }

  const Arguments &args;
  const DecodePlace &place;
  const DecodeMemory<Team> memory;

private:
  NSA_DEVICE int32 part() const { return place.rank % kParts; }
  NSA_DEVICE float *inputs() const { return memory.floats(Team::kInputsAt); }
  NSA_DEVICE float *hidden() const { return memory.floats(Team::kHiddenAt); }
  // The sums of a warp, in the place of the inputs.
  NSA_DEVICE float *of_warp(int32 warp) const { return memory.floats(Team::kInputsAt) + warp * Facts::kWeightColumns; }

  NSA_DEVICE const View<T, 1> &bias_of(bool of_keys) const {
    if constexpr (Facts::kIsLinear != 0)
      return of_keys ? args.b_k : args.b_v;
    else
      return of_keys ? args.b2_k : args.b2_v;
  }

  // Rows of weights for some inputs, of which each token has kDim.
  template <int32 kDim> struct WeightRows {
    const T *origin;
    int64 stride;
    int64 gap;           // elements between two tokens that belong to no row
    int32 input;         // the first input
    int32 columns;       // that are used
    bool come_in_chunks; // rows without a gap begin at multiples of 16 bytes, and so do their ends

    NSA_DEVICE const T *row(int32 i) const {
      return origin + (input + i) * stride + static_cast<uint32>(input + i) / kDim * gap;
    }
  };

  // The part of a linear map is some of its inputs. The part of a perceptron is some of its hidden values.
  template <int32 kDim> NSA_DEVICE void multiply_side(bool of_keys) const {
    constexpr int32 kInputs = Facts::kCmpBlock * kDim;
    float *result = memory.fresh_sums(of_keys, part());
    if constexpr (Facts::kIsLinear != 0) {
      constexpr int32 kShare = (kInputs + kParts - 1) / kParts;
      const int32 first = min(part() * kShare, kInputs);
      multiply_inputs<kDim>(of_keys, first, min(first + kShare, kInputs), of_keys ? args.w_k : args.w_v, 0, kDim);
    } else {
      constexpr int32 kMostColumns = kWarpSize * kElements;
      const View<T, 1> &bias = of_keys ? args.b1_k : args.b1_v;
      const View<T, 1> &w2 = of_keys ? args.w2_k : args.w2_v;
      const int32 first = min(part() * Facts::kHiddenShare, Facts::kMlpHidden);
      const int32 count = min(Facts::kMlpHidden - first, Facts::kHiddenShare);
#pragma unroll 1
      for (int32 done = 0; done < count; done += kMostColumns) {
        const int32 columns = min(count - done, kMostColumns);
        multiply_inputs<kDim>(of_keys, 0, kInputs, of_keys ? args.w1_k : args.w1_v, first + done, columns);
        if (const int32 column = Team::thread(); column < columns) {
          const float sum = add_warps(column);
          hidden()[done + column] = activate(bias.present() ? sum + to_float(bias.data[first + done + column]) : sum);
        }
      }
      meet<Team>();
      float sums[kElements] = {};
      const int64 stride = w2.strides[0];
      add_products<kDim, lanes_of(kDim)>(sums, hidden(), count,
                                         {w2.data, stride, /*gap=*/0, first, kDim, w2.rows_aligned()});
      store_sums<lanes_of(kDim)>(sums, kDim);
    }
    if (const int32 column = Team::thread(); column < kDim)
      result[column] = add_warps(column);
  }

  // Multiplies the inputs [first, past) with `columns` columns of their weights from `column` on, and leaves the sums
  // of each warp in shared memory.
  template <int32 kDim>
  NSA_DEVICE void multiply_inputs(bool of_keys, int32 first, int32 past, const View<T, 2> &weights, int32 column,
                                  int32 columns) const {
    constexpr int32 kLanes = lanes_of(Facts::kIsLinear != 0 ? kDim : int32{Facts::kHiddenShare});
    const int64 stride = weights.strides[1];
    const int64 gap = weights.strides[0] - kDim * stride;
    const bool come_in_chunks =
        weights.rows_aligned() && gap == 0 && (Facts::kIsLinear != 0 || Facts::kMlpHidden % kElements == 0);
    float sums[kElements] = {};
#pragma unroll 1
    for (int32 tile = first; tile < past; tile += Facts::kInputTile) {
      const int32 count = min(past - tile, Facts::kInputTile);
      meet<Team>(); // all have read what the memory held before
      load_inputs<kDim>(of_keys, tile, count);
      meet<Team>();
      add_products<kDim, kLanes>(sums, inputs(), count,
                                 {weights.data + column, stride, gap, tile, columns, come_in_chunks});
    }
    store_sums<kLanes>(sums, columns);
  }

  // Brings inputs into shared memory: elements of tokens, with what is added to them.
  template <int32 kDim> NSA_DEVICE void load_inputs(bool of_keys, int32 first, int32 count) const {
    const FreshTokens<Team, Arguments> tokens(args, place);
    const View<T, 1> &pe = of_keys ? args.pe_k : args.pe_v;
    // Loads that do not wait for a store.
    constexpr int32 kLoads = (Facts::kInputTile + Team::kThreads - 1) / Team::kThreads;
    constexpr int32 kAtOnce = kLoads < 8 ? kLoads : 8;
#pragma unroll 1
    for (int32 base = Team::thread(); base < count; base += kAtOnce * Team::kThreads) {
      float numbers[kAtOnce];
#pragma unroll
      for (int32 j = 0; j < kAtOnce; ++j) {
        const uint32 i = first + min(base + j * Team::kThreads, count - 1);
        const int32 token = i / kDim;
        const T *row = token < tokens.held
                           ? row_address(tokens.ring(of_keys), place.sequence, tokens.ring_place(token), place.kv_head)
                           : tokens.new_row(of_keys, token);
        numbers[j] = to_float(row[i % kDim]);
        if (pe.present())
          numbers[j] += to_float(pe.data[pe.at(token).offset + i % kDim]);
      }
#pragma unroll
      for (int32 j = 0; j < kAtOnce; ++j)
        if (const int32 i = base + j * Team::kThreads; i < count)
          inputs()[i] = numbers[j];
    }
  }

  // Lanes that share a row of weights of so many columns: a power of two.
  NSA_DEVICE static constexpr int32 lanes_of(int32 columns) {
    int32 lanes = 1;
    while (lanes < kWarpSize && lanes * kElements < columns)
      lanes *= 2;
    return lanes;
  }

  // Adds products of `count` numbers with rows of weights to the thread's sums. A thread takes kElements columns of
  // every (kThreads / kLanes)-th row.
  template <int32 kDim, int32 kLanes>
  NSA_DEVICE void add_products(float (&sums)[kElements], const float *numbers, int32 count,
                               const WeightRows<kDim> &rows) const {
    constexpr int32 kRows = Team::kThreads / kLanes;
    const int32 column = Team::thread() % kLanes * kElements;
    if (column >= rows.columns)
      return;
    int32 i = Team::thread() / kLanes;
    if (rows.come_in_chunks) {
      constexpr int32 kAtOnce = 8; // loads in flight
      const T *next = rows.row(i) + column;
      const int64 step = kRows * rows.stride;
      const auto add = [&](const Chunk &weights, int32 input) {
        const float number = numbers[input];
#pragma unroll
        for (int32 j = 0; j < kElements; ++j)
          sums[j] = fmaf(number, to_float(T{static_cast<uint16>(weights.words[j / 2] >> j % 2 * 16)}), sums[j]);
      };
#pragma unroll 1
      for (; i + (kAtOnce - 1) * kRows < count; i += kAtOnce * kRows) {
        Chunk weights[kAtOnce];
#pragma unroll
        for (int32 j = 0; j < kAtOnce; ++j, next += step)
          weights[j] = *reinterpret_cast<const Chunk *>(next);
#pragma unroll
        for (int32 j = 0; j < kAtOnce; ++j)
          add(weights[j], i + j * kRows);
      }
#pragma unroll 1
      for (; i < count; i += kRows, next += step)
        add(*reinterpret_cast<const Chunk *>(next), i);
    } else {
#pragma unroll 1
      for (; i < count; i += kRows) {
        const T *weights = rows.row(i) + column;
#pragma unroll
        for (int32 j = 0; j < kElements; ++j)
          if (column + j < rows.columns)
            sums[j] = fmaf(numbers[i], to_float(weights[j]), sums[j]);
      }
    }
  }

  // Adds up the sums of the lanes of a warp with the same columns, and leaves them in shared memory.
  template <int32 kLanes> NSA_DEVICE void store_sums(float (&sums)[kElements], int32 columns) const {
#pragma unroll
    for (int32 distance = kLanes; distance < kWarpSize; distance *= 2)
#pragma unroll
      for (int32 j = 0; j < kElements; ++j)
        sums[j] += shuffle_xor(sums[j], distance);
    meet<Team>(); // all have read the inputs
    const int32 lane = Team::thread() % kWarpSize;
    if (lane < kLanes)
#pragma unroll
      for (int32 j = 0; j < kElements; ++j)
        if (lane * kElements + j < columns)
          of_warp(Team::thread() / kWarpSize)[lane * kElements + j] = sums[j];
    meet<Team>();
  }

  NSA_DEVICE float add_warps(int32 column) const {
    float sum = 0;
#pragma unroll
    for (int32 warp = 0; warp < Team::kWarps; ++warp)
      sum += of_warp(warp)[column];
    return sum;
  }

  // templates/tile/library/activation.tile
  NSA_DEVICE static float activate(float x) {
    if constexpr (Facts::kIsRelu != 0)
      return x < 0 ? 0 : x;
    else if constexpr (Facts::kIsGelu != 0)
      return x * 0.5f * (erff(x * 0.707106781f) + 1);
    else
      return x / (exp2_approx(x * -1.44269504f) + 1);
  }

  // Each lane finds out whether a block takes the row.
  NSA_DEVICE void push_sums(bool of_keys, int32 columns) const {
    DecodePlace other = place;
    other.rank = static_cast<int32>(threadIdx.x) % kWarpSize;
    divide_keys<Team>(other, place.position + 1, args.window);
    const bool takes = other.rank < Team::kCluster && other.rank != place.rank && other.takes_fresh(Team::kInner);
    const uint32 receivers = ballot(takes);
    float *own = memory.fresh_sums(of_keys, part());
#pragma unroll 1
    for (int32 column = 4 * Team::thread(); column < columns; column += 4 * Team::kThreads) {
      const float quad[4] = {own[column], own[column + 1], own[column + 2], own[column + 3]};
#pragma unroll 1
      for (uint32 left = receivers; left != 0; left &= left - 1)
        send(memory, kFreshSums, count_bits(~left & (left - 1)), own + column, quad);
    }
  }
};

} // namespace nsa
