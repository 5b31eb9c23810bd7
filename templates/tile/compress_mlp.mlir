// The operator `compress` by a perceptron: block c of a sequence becomes act(concat_i(x[c*d + i] + pe[i]) W1 + b1) W2 +
// b2, in K and in V. K and V have different weights, which all heads share. The first product is the product of
// compress_linear.mlir, for one chunk of hidden values at a time. The hidden values stay in registers, are the left
// side of the second product, and are never stored. x + pe and the hidden values are rounded to the tensors' type where
// the product takes no wider type. The relative errors are as large as that of rounding the result. A program computes
// one chunk of the columns of K or of V, for one head. If a head has several chunks, each of them computes the hidden
// values again. So a chunk is a whole head as long as registers hold it. Outputs that the caller did not pass are not
// computed.
//
//! template compress_mlp
//! operator compress
//! fixed   dtype, packed, page_size, qk_dim, v_dim, cmp_block, cmp_stride, cmp_kind, mlp_hidden, mlp_activation
// The number of rows in a page of compressed rows if the cache has pages.
//! let     comp_page = page_size / cmp_stride
//! let     is_relu = mlp_activation == relu
//! let     is_gelu = mlp_activation == gelu
//! require cmp_kind == mlp
//! choice  block_tile = 16 | 32 | 64 | 128
//! choice  input_tile = 16 | 32 | 64 | 128
//! choice  hidden_tile = 16 | 32 | 64 | 96 | 128 | 192 | 256
//! choice  column_tile = 16 | 32 | 48 | 64 | 96 | 128 | 192 | 256
//! choice  stages = 1 | 2 | 3
//! choice  warps = 1 | 2 | 4 | 8
//! require cpu ? warps == 1 && stages == 1 : block_tile % (16 * warps) == 0 && block_tile <= 32 * warps && stages > 1
// A chunk is no wider than the larger head or the hidden layer, so no chunk holds padding alone.
//! let     widest = max(qk_dim, v_dim)
//! require column_tile == 16 || column_tile < widest + 16
//! require input_tile == 16 || input_tile < widest + 16
//! require hidden_tile == 16 || hidden_tile < roundup(mlp_hidden, 16) + 64
//! let     k_chunks = ceildiv(qk_dim, column_tile)
//! let     v_chunks = ceildiv(v_dim, column_tile)
//! let     k_inputs = ceildiv(qk_dim, input_tile)
//! let     v_inputs = ceildiv(v_dim, input_tile)
//! let     hidden_chunks = ceildiv(mlp_hidden, hidden_tile)
//! let     ring_bytes = stages * input_tile * (block_tile * (dtype_bytes == 2) + hidden_tile) * dtype_bytes
//! let     shared_bytes = ring_bytes + hidden_tile * column_tile * dtype_bytes
//! require cpu || shared_bytes <= shared_limit
// Registers of a GPU thread: sums, hidden values, the left side, and the pe that is added to it. If the hidden values
// are a single chunk, they are computed before there are sums.
//! let     widths = hidden_chunks == 1 ? max(column_tile + hidden_tile * dtype_bytes / 4, hidden_tile + input_tile * dtype_bytes / 2) : column_tile + hidden_tile + input_tile * dtype_bytes / 2
//! let     registers = block_tile * widths / (32 * warps)
//! require cpu || registers <= 168
// The cost of one block: both products with their padding, its tokens once for each chunk of hidden values, its share
// of the weights that a step loads, and its share of the step's fixed cost. If blocks are few, small tiles keep more
// programs busy.
//! let     k_products = k_chunks * hidden_chunks * k_inputs
//! let     v_products = v_chunks * hidden_chunks * v_inputs
//! let     products = (k_products + v_products) * input_tile * hidden_tile
//! let     tokens = (k_products + v_products) * input_tile * dtype_bytes * (cpu ? 16 : 6)
//! let     weights = (k_products + v_products) * input_tile * hidden_tile * (cpu ? 16 : 6 * dtype_bytes) / block_tile
//! let     steps = (k_products + v_products) * (cpu ? 20000 : stages == 2 ? 60000 : 40000 + shared_bytes / 8) / block_tile
//! let     second = (k_chunks + v_chunks) * hidden_chunks * hidden_tile * column_tile
//! let     cpu_bytes = 4 * (block_tile * (input_tile + hidden_tile) + input_tile * hidden_tile)
//! let     crowding = cpu ? max(0, cpu_bytes / 1024 - 96) + block_tile * 2 : max(0, registers - 112) + 15 * max(0, warps - 4) + block_tile * max(hidden_tile, max(column_tile, 64)) / 32 + 8 * max(0, block_tile - 64) + 20 * (block_tile / (16 * warps))
//! cost    (cmp_block * (products + tokens + weights + steps) + second) * (1024 + crowding) / 1024
//! grid    ceildiv(max_blocks_c, block_tile) * (k_chunks + v_chunks), kv_heads, batch
//! threads 32 * warps

func.func @compress_mlp(
    %k: !tile.view<${element}, 3>, %v: !tile.view<${element}, 3>,
    %pe_k: !tile.view<${element}, 1>, %pe_v: !tile.view<${element}, 1>,
    %w1_k: !tile.view<${element}, 2>, %w1_v: !tile.view<${element}, 2>,
    %b1_k: !tile.view<${element}, 1>, %b1_v: !tile.view<${element}, 1>,
    %w2_k: !tile.view<${element}, 1>, %w2_v: !tile.view<${element}, 1>,
    %b2_k: !tile.view<${element}, 1>, %b2_v: !tile.view<${element}, 1>,
    %k_comp: !tile.view<${element}, 3, ${comp_page}>, %v_comp: !tile.view<${element}, 3, ${comp_page}>,
    %sequences: !tile.view<i32, 2>, %seqlen_k: i32) attributes {tile.warps = ${warps} : i32} {
  %always = arith.constant true
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %packed = arith.constant ${packed} : i1
  %cmp_block = arith.constant ${cmp_block} : i32
  %cmp_stride = arith.constant ${cmp_stride} : i32
  %block_tile = arith.constant ${block_tile} : i32
  %input_tile = arith.constant ${input_tile} : i32
  %hidden_tile = arith.constant ${hidden_tile} : i32
  %hidden_chunks = arith.constant ${hidden_chunks} : i32
  %mlp_hidden = arith.constant ${mlp_hidden} : i32
  %is_relu = arith.constant ${is_relu} : i1
  %is_gelu = arith.constant ${is_gelu} : i1
  %zero_f = arith.constant 0.0 : f32

  //! part compress_chunk
  %k_inputs = arith.constant ${k_inputs} : i32
  %v_inputs = arith.constant ${v_inputs} : i32
  %input_chunks = arith.select %of_keys, %k_inputs, %v_inputs : i32
  %x = arith.select %of_keys, %k, %v : !tile.view<${element}, 3>
  %pe = arith.select %of_keys, %pe_k, %pe_v : !tile.view<${element}, 1>
  %w1 = arith.select %of_keys, %w1_k, %w1_v : !tile.view<${element}, 2>
  %w2 = arith.select %of_keys, %w2_k, %w2_v : !tile.view<${element}, 1>

  // Where this sequence and its blocks lie. A packed launch reads it from a table whose lengths were checked.
  //! part compress_blocks
  scf.if %works {
    %past_tile = arith.addi %first_block, %block_tile : i32
    %past_block = arith.minsi %past_tile, %blocks : i32
    %has_pe = tile.present %pe : !tile.view<${element}, 1>
    %no_hidden = tile.splat %zero_f : tensor<${block_tile}x${hidden_tile}xf32>
    %no_output = tile.splat %zero_f : tensor<${block_tile}x${column_tile}xf32>

    %outputs = scf.for %hidden_chunk = %zero to %hidden_chunks step %one
        iter_args(%output = %no_output) -> (tensor<${block_tile}x${column_tile}xf32>) : i32 {
      %first_hidden = arith.muli %hidden_chunk, %hidden_tile : i32
      %w2_tile = tile.load %w2 rows(%r) {
        %hidden_row = arith.addi %first_hidden, %r : i32
        %exists = arith.cmpi slt, %hidden_row, %mlp_hidden : i32
        tile.at [%hidden_row] if %exists
      } chunk(%chunk of %columns) : !tile.view<${element}, 1> -> tensor<${hidden_tile}x${column_tile}x${element}>

      //! part compress_sums weights=w1 chunk=hidden_chunk of=mlp_hidden width=${hidden_tile} none=no_hidden

      //! part compress_bias bias=b1 sums=sums biased=biased chunk=hidden_chunk of=mlp_hidden width=${hidden_tile}

      // Hidden values of padding are 0 before the activation, and each of the three activations keeps 0.
      %active = scf.if %is_relu -> (tensor<${block_tile}x${hidden_tile}xf32>) {
        %is_negative = arith.cmpf olt, %biased, %no_hidden : tensor<${block_tile}x${hidden_tile}xf32>
        %relu = arith.select %is_negative, %no_hidden, %biased : tensor<${block_tile}x${hidden_tile}xi1>, tensor<${block_tile}x${hidden_tile}xf32>
        scf.yield %relu : tensor<${block_tile}x${hidden_tile}xf32>
      } else {
        %one_f = arith.constant 1.0 : f32
        %ones = tile.splat %one_f : tensor<${block_tile}x${hidden_tile}xf32>
        %smooth = scf.if %is_gelu -> (tensor<${block_tile}x${hidden_tile}xf32>) {
          %half_f = arith.constant 0.5 : f32
          %root_f = arith.constant 0.707106781186548 : f32
          %half = tile.splat %half_f : tensor<${block_tile}x${hidden_tile}xf32>
          %root = tile.splat %root_f : tensor<${block_tile}x${hidden_tile}xf32>
          %scaled = arith.mulf %biased, %root : tensor<${block_tile}x${hidden_tile}xf32>
          %erf = math.erf %scaled : tensor<${block_tile}x${hidden_tile}xf32>
          %share = arith.addf %erf, %ones : tensor<${block_tile}x${hidden_tile}xf32>
          %halved = arith.mulf %biased, %half : tensor<${block_tile}x${hidden_tile}xf32>
          %gelu = arith.mulf %halved, %share : tensor<${block_tile}x${hidden_tile}xf32>
          scf.yield %gelu : tensor<${block_tile}x${hidden_tile}xf32>
        } else {
          %minus_log2_e_f = arith.constant -1.44269504088896 : f32
          %minus_log2_e = tile.splat %minus_log2_e_f : tensor<${block_tile}x${hidden_tile}xf32>
          %power = arith.mulf %biased, %minus_log2_e : tensor<${block_tile}x${hidden_tile}xf32>
          %decay = math.exp2 %power : tensor<${block_tile}x${hidden_tile}xf32>
          %divisor = arith.addf %decay, %ones : tensor<${block_tile}x${hidden_tile}xf32>
          %silu = arith.divf %biased, %divisor : tensor<${block_tile}x${hidden_tile}xf32>
          scf.yield %silu : tensor<${block_tile}x${hidden_tile}xf32>
        }
        scf.yield %smooth : tensor<${block_tile}x${hidden_tile}xf32>
      }
      %hidden = tile.cast %active : tensor<${block_tile}x${hidden_tile}xf32> -> tensor<${block_tile}x${hidden_tile}x${mma_element}>
      %output_next = tile.dot %hidden, %w2_tile, %output : tensor<${block_tile}x${hidden_tile}x${mma_element}>, tensor<${hidden_tile}x${column_tile}x${element}> -> tensor<${block_tile}x${column_tile}xf32>
      scf.yield %output_next : tensor<${block_tile}x${column_tile}xf32>
    }

    //! part compress_bias bias=b2 sums=outputs biased=outputs_biased chunk=chunk of=columns width=${column_tile}
    %result = tile.cast %outputs_biased : tensor<${block_tile}x${column_tile}xf32> -> tensor<${block_tile}x${column_tile}x${element}>
    //! part compress_store
  }
  return
}
