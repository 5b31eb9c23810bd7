// The operators `rotate` and `rotate_bwd`: rotary position embedding. Each pair of the first `rotary_dims` elements of
// a head turns by the angle of its token's position, and `rotate_bwd` turns it by the negative angle. The other elements
// are copied.
//
// A row of a tile is a pair of one token: pairs are fastest, and a program loops over the pairs of its tokens. Elements
// that do not turn form pairs too, behind the pairs that turn. An angle is the same for all heads, so a program computes
// it once for the heads of its tile.
//
//! template rotate
//! operator rotate, rotate_bwd
//! fixed   dtype, qk_dim, rotary_dims, rotary_style, packed
//! let     backward = op == rotate_bwd
//! let     turning_pairs = rotary_dims / 2
// The columns of a pair that turns: two neighbours, or one in each half of the elements that turn.
//! let     is_half = rotary_style == half
//! let     pair_step = is_half ? 1 : 2
//! let     pair_gap = is_half ? turning_pairs : 1
//! let     pairs = turning_pairs + ceildiv(qk_dim - rotary_dims, 2)
//! choice  row_tile = 32 | 64 | 128 | 256
//! choice  pair_tile = 16 | 32 | 64
//! choice  head_tile = 1 | 4 | 16
//! choice  warps = 1 | 2 | 4 | 8
//! require cpu ? warps == 1 : row_tile % (16 * warps) == 0 && row_tile <= 64 * warps
//! require row_tile >= pair_tile && (pair_tile == 16 || pair_tile < 2 * pairs)
//! let     token_tile = row_tile / pair_tile
// Pairs beyond the last one cost as much as others. The angle of a row costs as much as moving its elements of several
// heads. A GPU thread waits for its rows one after the other, so few rows for each warp are best. On a CPU a program
// has a fixed cost.
//! let     padded = roundup(pairs, pair_tile)
//! let     gpu_cost = padded * (16 + 64 / head_tile) * (24 + row_tile / warps) + 8 * max(warps - 4, 4 - warps) + 64 / pair_tile
//! let     cpu_cost = padded * (16 + 64 / head_tile) + 40000 / (row_tile * head_tile)
//! cost    cpu ? cpu_cost : gpu_cost
//! grid    ceildiv(max_seqlen_q, token_tile), ceildiv(kv_heads, head_tile), batch
//! threads 32 * warps

func.func @rotate(
    %x: !tile.view<${element}, 4>, %cos: !tile.view<f32, 2>, %sin: !tile.view<f32, 2>, %rotated: !tile.view<${element}, 4>,
    %sequences: !tile.view<i32, 2>, %seqlen_q: i32, %seqlen_k: i32, %kv_heads: i32,
    %rotary_step: f32, %rotary_step_rest: f32) attributes {tile.warps = ${warps} : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %two = arith.constant 2 : i32
  %packed = arith.constant ${packed} : i1
  %backward = arith.constant ${backward} : i1
  %pair_step = arith.constant ${pair_step} : i32
  %pair_gap = arith.constant ${pair_gap} : i32
  %qk_dim = arith.constant ${qk_dim} : i32
  %turning_pairs = arith.constant ${turning_pairs} : i32
  %pairs = arith.constant ${pairs} : i32
  %pair_tile = arith.constant ${pair_tile} : i32
  %token_tile = arith.constant ${token_tile} : i32
  %head_tile = arith.constant ${head_tile} : i32

  %block = tile.program_id x
  %head_block = tile.program_id y
  %batch = tile.program_id z

  // Where this sequence lies. The table holds a malformed sequence as one without queries.
  %entry, %begin, %q_length, %k_length = scf.if %packed -> (i32, i32, i32, i32) {
    %field_q_begin = arith.constant ${sequence_q_begin} : i32
    %field_q_length = arith.constant ${sequence_q_length} : i32
    %field_k_length = arith.constant ${sequence_k_length} : i32
    %field_q_entry = arith.constant ${sequence_q_entry} : i32
    %table_begin = tile.load_scalar %sequences[%batch, %field_q_begin] : !tile.view<i32, 2>
    %table_q_length = tile.load_scalar %sequences[%batch, %field_q_length] : !tile.view<i32, 2>
    %table_k_length = tile.load_scalar %sequences[%batch, %field_k_length] : !tile.view<i32, 2>
    %table_entry = tile.load_scalar %sequences[%batch, %field_q_entry] : !tile.view<i32, 2>
    scf.yield %table_entry, %table_begin, %table_q_length, %table_k_length : i32, i32, i32, i32
  } else {
    scf.yield %batch, %zero, %seqlen_q, %seqlen_k : i32, i32, i32, i32
  }

  %token_less_one = arith.subi %token_tile, %one : i32
  %length_rounded = arith.addi %q_length, %token_less_one : i32
  %blocks = arith.divsi %length_rounded, %token_tile : i32
  %has_tokens = arith.cmpi slt, %block, %blocks : i32
  scf.if %has_tokens {
    %first_token = arith.muli %block, %token_tile : i32
    // Tokens are the last ones of their sequence.
    %earlier = arith.subi %k_length, %q_length : i32
    %first_position = arith.addi %earlier, %first_token : i32
    %first_time = arith.addi %begin, %first_token : i32
    %first_head = arith.muli %head_block, %head_tile : i32
    %past_full_head = arith.addi %first_head, %head_tile : i32
    %past_head = arith.minsi %past_full_head, %kv_heads : i32

    scf.for %first_pair = %zero to %pairs step %pair_tile : i32 {
      %row = tile.iota 0 : tensor<${row_tile}xi32>
      %pair_tile_row = arith.constant dense<${pair_tile}> : tensor<${row_tile}xi32>
      %first_pair_row = tile.splat %first_pair : tensor<${row_tile}xi32>
      %first_position_row = tile.splat %first_position : tensor<${row_tile}xi32>
      %has_tables = tile.present %cos : !tile.view<f32, 2>
      %cos_row, %sin_forward = scf.if %has_tables -> (tensor<${row_tile}xf32>, tensor<${row_tile}xf32>) {
        %cos_read = tile.load %cos rows(%r) {
          %token_in_tile = arith.divsi %r, %pair_tile : i32
          %token = arith.addi %first_token, %token_in_tile : i32
          %position = arith.addi %first_position, %token_in_tile : i32
          %pair_in_tile = arith.remsi %r, %pair_tile : i32
          %pair = arith.addi %first_pair, %pair_in_tile : i32
          %is_token = arith.cmpi slt, %token, %q_length : i32
          %turns = arith.cmpi slt, %pair, %turning_pairs : i32
          %exists = arith.andi %is_token, %turns : i1
          tile.at [%position, %pair] if %exists
        } : !tile.view<f32, 2> -> tensor<${row_tile}xf32>
        %sin_read = tile.load %sin rows(%r) {
          %token_in_tile = arith.divsi %r, %pair_tile : i32
          %token = arith.addi %first_token, %token_in_tile : i32
          %position = arith.addi %first_position, %token_in_tile : i32
          %pair_in_tile = arith.remsi %r, %pair_tile : i32
          %pair = arith.addi %first_pair, %pair_in_tile : i32
          %is_token = arith.cmpi slt, %token, %q_length : i32
          %turns = arith.cmpi slt, %pair, %turning_pairs : i32
          %exists = arith.andi %is_token, %turns : i1
          tile.at [%position, %pair] if %exists
        } : !tile.view<f32, 2> -> tensor<${row_tile}xf32>
        scf.yield %cos_read, %sin_read : tensor<${row_tile}xf32>, tensor<${row_tile}xf32>
      } else {
        // The angle in turns, computed in f64: at position 2^20 an f32 would leave no digit behind the point. The
        // frequency is 2^(pair * step) / (2 pi), and the two parts of the step hold log2(base) to 48 digits. What f32
        // keeps of the angle is its distance from the nearest whole turn.
        %token_of_row = arith.divsi %row, %pair_tile_row : tensor<${row_tile}xi32>
        %pair_of_row = arith.remsi %row, %pair_tile_row : tensor<${row_tile}xi32>
        %pair_row = arith.addi %first_pair_row, %pair_of_row : tensor<${row_tile}xi32>
        %position_row = arith.addi %first_position_row, %token_of_row : tensor<${row_tile}xi32>
        %pair_f = arith.sitofp %pair_row : tensor<${row_tile}xi32> to tensor<${row_tile}xf64>
        %position_f = arith.sitofp %position_row : tensor<${row_tile}xi32> to tensor<${row_tile}xf64>
        %step_f = tile.splat %rotary_step : tensor<${row_tile}xf32>
        %rest_f = tile.splat %rotary_step_rest : tensor<${row_tile}xf32>
        %step_high = arith.extf %step_f : tensor<${row_tile}xf32> to tensor<${row_tile}xf64>
        %step_low = arith.extf %rest_f : tensor<${row_tile}xf32> to tensor<${row_tile}xf64>
        %step = arith.addf %step_high, %step_low : tensor<${row_tile}xf64>
        %log2_ratio = arith.mulf %pair_f, %step : tensor<${row_tile}xf64>
        %ratio = math.exp2 %log2_ratio : tensor<${row_tile}xf64>
        %radians = arith.mulf %position_f, %ratio : tensor<${row_tile}xf64>
        %one_over_two_pi = arith.constant dense<0.15915494309189535> : tensor<${row_tile}xf64>
        %turns = arith.mulf %radians, %one_over_two_pi : tensor<${row_tile}xf64>
        %whole_turns = math.roundeven %turns : tensor<${row_tile}xf64>
        %part_of_turn = arith.subf %turns, %whole_turns : tensor<${row_tile}xf64>
        %part = arith.truncf %part_of_turn : tensor<${row_tile}xf64> to tensor<${row_tile}xf32>

        // Both functions are sin(2 pi w) of a distance w of at most a quarter turn: an odd polynomial, with an error
        // below 1e-8.
        %quarter = arith.constant dense<0.25> : tensor<${row_tile}xf32>
        %half_turn = arith.constant dense<0.5> : tensor<${row_tile}xf32>
        %c_1 = arith.constant dense<6.283185307179586> : tensor<${row_tile}xf32>
        %c_3 = arith.constant dense<-41.34170224039975> : tensor<${row_tile}xf32>
        %c_5 = arith.constant dense<81.60524927607504> : tensor<${row_tile}xf32>
        %c_7 = arith.constant dense<-76.70585975306136> : tensor<${row_tile}xf32>
        %c_9 = arith.constant dense<42.05869394489765> : tensor<${row_tile}xf32>
        %c_11 = arith.constant dense<-15.094642576822984> : tensor<${row_tile}xf32>
        %c_13 = arith.constant dense<3.819952585848282> : tensor<${row_tile}xf32>
        %part_size = math.absf %part : tensor<${row_tile}xf32>
        %cos_w = arith.subf %quarter, %part_size : tensor<${row_tile}xf32>
        %cos_w2 = arith.mulf %cos_w, %cos_w : tensor<${row_tile}xf32>
        %cos_p11 = math.fma %c_13, %cos_w2, %c_11 : tensor<${row_tile}xf32>
        %cos_p9 = math.fma %cos_p11, %cos_w2, %c_9 : tensor<${row_tile}xf32>
        %cos_p7 = math.fma %cos_p9, %cos_w2, %c_7 : tensor<${row_tile}xf32>
        %cos_p5 = math.fma %cos_p7, %cos_w2, %c_5 : tensor<${row_tile}xf32>
        %cos_p3 = math.fma %cos_p5, %cos_w2, %c_3 : tensor<${row_tile}xf32>
        %cos_p1 = math.fma %cos_p3, %cos_w2, %c_1 : tensor<${row_tile}xf32>
        %cos_computed = arith.mulf %cos_w, %cos_p1 : tensor<${row_tile}xf32>
        // Beyond a quarter turn the sine falls as it rose.
        %minus_quarter = arith.negf %quarter : tensor<${row_tile}xf32>
        %minus_half_turn = arith.negf %half_turn : tensor<${row_tile}xf32>
        %is_above = arith.cmpf ogt, %part, %quarter : tensor<${row_tile}xf32>
        %is_below = arith.cmpf olt, %part, %minus_quarter : tensor<${row_tile}xf32>
        %falling = arith.subf %half_turn, %part : tensor<${row_tile}xf32>
        %rising = arith.subf %minus_half_turn, %part : tensor<${row_tile}xf32>
        %below_or_part = arith.select %is_below, %rising, %part : tensor<${row_tile}xi1>, tensor<${row_tile}xf32>
        %sin_w = arith.select %is_above, %falling, %below_or_part : tensor<${row_tile}xi1>, tensor<${row_tile}xf32>
        %sin_w2 = arith.mulf %sin_w, %sin_w : tensor<${row_tile}xf32>
        %sin_p11 = math.fma %c_13, %sin_w2, %c_11 : tensor<${row_tile}xf32>
        %sin_p9 = math.fma %sin_p11, %sin_w2, %c_9 : tensor<${row_tile}xf32>
        %sin_p7 = math.fma %sin_p9, %sin_w2, %c_7 : tensor<${row_tile}xf32>
        %sin_p5 = math.fma %sin_p7, %sin_w2, %c_5 : tensor<${row_tile}xf32>
        %sin_p3 = math.fma %sin_p5, %sin_w2, %c_3 : tensor<${row_tile}xf32>
        %sin_p1 = math.fma %sin_p3, %sin_w2, %c_1 : tensor<${row_tile}xf32>
        %sin_computed = arith.mulf %sin_w, %sin_p1 : tensor<${row_tile}xf32>
        scf.yield %cos_computed, %sin_computed : tensor<${row_tile}xf32>, tensor<${row_tile}xf32>
      }
      %sin_row = scf.if %backward -> (tensor<${row_tile}xf32>) {
        %sin_negative = arith.negf %sin_forward : tensor<${row_tile}xf32>
        scf.yield %sin_negative : tensor<${row_tile}xf32>
      } else {
        scf.yield %sin_forward : tensor<${row_tile}xf32>
      }

      scf.for %head = %first_head to %past_head step %one : i32 {
        %first_tile = tile.load %x rows(%r) {
          %token_in_tile = arith.divsi %r, %pair_tile : i32
          %token = arith.addi %first_token, %token_in_tile : i32
          %time = arith.addi %first_time, %token_in_tile : i32
          %pair_in_tile = arith.remsi %r, %pair_tile : i32
          %pair = arith.addi %first_pair, %pair_in_tile : i32
          %turns = arith.cmpi slt, %pair, %turning_pairs : i32
          %step = arith.select %turns, %pair_step, %two : i32
          %first_column = arith.muli %pair, %step : i32
          %is_token = arith.cmpi slt, %token, %q_length : i32
          %is_column = arith.cmpi slt, %first_column, %qk_dim : i32
          %exists = arith.andi %is_token, %is_column : i1
          tile.at [%entry, %time, %head, %first_column] if %exists
        } : !tile.view<${element}, 4> -> tensor<${row_tile}x${element}>
        %second_tile = tile.load %x rows(%r) {
          %token_in_tile = arith.divsi %r, %pair_tile : i32
          %token = arith.addi %first_token, %token_in_tile : i32
          %time = arith.addi %first_time, %token_in_tile : i32
          %pair_in_tile = arith.remsi %r, %pair_tile : i32
          %pair = arith.addi %first_pair, %pair_in_tile : i32
          %turns = arith.cmpi slt, %pair, %turning_pairs : i32
          %step = arith.select %turns, %pair_step, %two : i32
          %first_column = arith.muli %pair, %step : i32
          %gap = arith.select %turns, %pair_gap, %one : i32
          %column = arith.addi %first_column, %gap : i32
          %is_token = arith.cmpi slt, %token, %q_length : i32
          %is_column = arith.cmpi slt, %column, %qk_dim : i32
          %exists = arith.andi %is_token, %is_column : i1
          tile.at [%entry, %time, %head, %column] if %exists
        } : !tile.view<${element}, 4> -> tensor<${row_tile}x${element}>
        %first = tile.cast %first_tile : tensor<${row_tile}x${element}> -> tensor<${row_tile}xf32>
        %second = tile.cast %second_tile : tensor<${row_tile}x${element}> -> tensor<${row_tile}xf32>
        %first_cos = arith.mulf %first, %cos_row : tensor<${row_tile}xf32>
        %second_cos = arith.mulf %second, %cos_row : tensor<${row_tile}xf32>
        %minus_sin = arith.negf %sin_row : tensor<${row_tile}xf32>
        %first_turned = math.fma %second, %minus_sin, %first_cos : tensor<${row_tile}xf32>
        %second_turned = math.fma %first, %sin_row, %second_cos : tensor<${row_tile}xf32>
        // A product with a sine of 0 is no copy of NaN and infinity.
        %row_of_pair = tile.iota 0 : tensor<${row_tile}xi32>
        %pairs_of_row = arith.constant dense<${pair_tile}> : tensor<${row_tile}xi32>
        %pair_of_tile = arith.remsi %row_of_pair, %pairs_of_row : tensor<${row_tile}xi32>
        %pair_before = tile.splat %first_pair : tensor<${row_tile}xi32>
        %pair_index = arith.addi %pair_before, %pair_of_tile : tensor<${row_tile}xi32>
        %past_turning = arith.constant dense<${turning_pairs}> : tensor<${row_tile}xi32>
        %is_turning = arith.cmpi slt, %pair_index, %past_turning : tensor<${row_tile}xi32>
        %first_f = arith.select %is_turning, %first_turned, %first : tensor<${row_tile}xi1>, tensor<${row_tile}xf32>
        %second_f = arith.select %is_turning, %second_turned, %second : tensor<${row_tile}xi1>, tensor<${row_tile}xf32>
        %first_out = tile.cast %first_f : tensor<${row_tile}xf32> -> tensor<${row_tile}x${element}>
        %second_out = tile.cast %second_f : tensor<${row_tile}xf32> -> tensor<${row_tile}x${element}>
        tile.store %first_out, %rotated rows(%r) {
          %token_in_tile = arith.divsi %r, %pair_tile : i32
          %token = arith.addi %first_token, %token_in_tile : i32
          %time = arith.addi %first_time, %token_in_tile : i32
          %pair_in_tile = arith.remsi %r, %pair_tile : i32
          %pair = arith.addi %first_pair, %pair_in_tile : i32
          %turns = arith.cmpi slt, %pair, %turning_pairs : i32
          %step = arith.select %turns, %pair_step, %two : i32
          %first_column = arith.muli %pair, %step : i32
          %is_token = arith.cmpi slt, %token, %q_length : i32
          %is_column = arith.cmpi slt, %first_column, %qk_dim : i32
          %exists = arith.andi %is_token, %is_column : i1
          tile.at [%entry, %time, %head, %first_column] if %exists
        } : tensor<${row_tile}x${element}>, !tile.view<${element}, 4>
        tile.store %second_out, %rotated rows(%r) {
          %token_in_tile = arith.divsi %r, %pair_tile : i32
          %token = arith.addi %first_token, %token_in_tile : i32
          %time = arith.addi %first_time, %token_in_tile : i32
          %pair_in_tile = arith.remsi %r, %pair_tile : i32
          %pair = arith.addi %first_pair, %pair_in_tile : i32
          %turns = arith.cmpi slt, %pair, %turning_pairs : i32
          %step = arith.select %turns, %pair_step, %two : i32
          %first_column = arith.muli %pair, %step : i32
          %gap = arith.select %turns, %pair_gap, %one : i32
          %column = arith.addi %first_column, %gap : i32
          %is_token = arith.cmpi slt, %token, %q_length : i32
          %is_column = arith.cmpi slt, %column, %qk_dim : i32
          %exists = arith.andi %is_token, %is_column : i1
          tile.at [%entry, %time, %head, %column] if %exists
        } : tensor<${row_tile}x${element}>, !tile.view<${element}, 4>
      }
    }
  }
  return
}
