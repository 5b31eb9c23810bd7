// RUN: nsa-opt %s --tile-insert-barriers --split-input-file | FileCheck %s

// One wait serves the copies that follow each other. Operations without an effect on memory may stand between them. Tiles are
// read behind the wait, in registers or where they are.
// CHECK-LABEL: func.func @one_wait
// CHECK: tile.copy
// CHECK: arith.addi
// CHECK-NEXT: tile.copy
// CHECK: tile.commit_copies
// CHECK-NEXT: tile.wait_copies 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: %[[A:.*]] = tile.read %{{.*}} {tile.layout = #tile.layout<operand_a>}
// CHECK-NEXT: %[[B:.*]] = tile.read %{{.*}} {tile.layout = #tile.layout<shared>}
// CHECK-NEXT: tile.dot %[[A]], %[[B]]
// CHECK-NOT: tile.barrier
func.func @one_wait(%x: !tile.view<bf16, 1>, %n: i32, %ok: i1, %acc: tensor<16x16xf32>) {
  %a_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %b_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  tile.copy %x to %a_buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %a = tile.read %a_buffer {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<16x16xbf16>>
  %m = arith.addi %n, %n : i32
  tile.copy %x to %b_buffer rows(%r) {
    tile.at [%m] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %b_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %s = tile.dot %a, %b, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// Loads, stores, branches, loops without a ring, and the end of a block wait for all copies. An arm that copied waits at
// its end, and an iteration that copied ends with a barrier, because the next one overwrites its tile.
// CHECK-LABEL: func.func @waits
// CHECK: tile.copy
// CHECK: tile.commit_copies
// CHECK-NEXT: tile.wait_copies 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.load_scalar
// CHECK: scf.if
// CHECK: tile.copy
// CHECK: tile.commit_copies
// CHECK-NEXT: tile.wait_copies 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: {{^ +[}]$}}
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.copy
// CHECK: tile.commit_copies
// CHECK-NEXT: tile.wait_copies 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: {{^ +[}]$}}
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: {{^ +[}]$}}
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.load_scalar
// CHECK-NEXT: {{^ +[}]$}}
func.func @waits(%x: !tile.view<bf16, 1>, %list: !tile.view<i32, 1>, %n: i32, %ok: i1) {
  %buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %arm_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %loop_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  tile.copy %x to %buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %a = tile.read %buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %m = tile.load_scalar %list[%n] : !tile.view<i32, 1>
  scf.if %ok {
    tile.copy %x to %arm_buffer rows(%r) {
      tile.at [%r] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
    %b = tile.read %arm_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  }
  scf.for %i = %n to %m step %n : i32 {
    scf.for %j = %n to %m step %n : i32 {
      tile.copy %x to %loop_buffer rows(%r) {
        tile.at [%j] if %ok
      } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
      %b = tile.read %loop_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    }
  }
  scf.for %i = %n to %m step %n : i32 {
    %k = tile.load_scalar %list[%i] : !tile.view<i32, 1>
  }
  return
}

// -----

// A pipelined loop starts its first copies before it waits for earlier ones, the oldest of its groups. If only the loop reads
// them and they stay in shared memory, they are read behind its own first wait.
// CHECK-LABEL: func.func @pipeline
// CHECK: tile.copy
// CHECK: tile.commit_copies
// CHECK-NEXT: %[[FETCH:.*]] = tile.fetch
// CHECK: scf.for
// CHECK-NEXT: tile.wait_copies 1
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read %{{.*}} {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
// CHECK-NEXT: tile.fetch_ahead %[[FETCH]]
// CHECK-NEXT: tile.commit_copies
// CHECK-NEXT: tile.read %{{.*}} : !tile.buffer<tensor<16x16xbf16>, 3>
// CHECK-NEXT: tile.dot
// CHECK-NEXT: {{^ +[}]$}}
func.func @pipeline(%x: !tile.view<bf16, 1>, %n: i32, %m: i32, %ok: i1, %acc: tensor<16x16xf32>) {
  %a_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 3>
  tile.copy %x to %a_buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %a = tile.read %a_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %m step %n stages(3) : i32 (%i, %stage) {
    tile.copy %x to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 3>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %b = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 3>
    %s = tile.dot %a, %b, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  return
}

// -----

// Tiles that go to registers, and tiles that others read too, are waited for in front of the loop: the S - 1 groups of the loop
// may be under way.
// CHECK-LABEL: func.func @operand
// CHECK: tile.commit_copies
// CHECK-NEXT: tile.fetch
// CHECK: tile.wait_copies 1
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read %{{.*}} {tile.layout = #tile.layout<operand_a>}
// CHECK-NEXT: tile.read %{{.*}} {tile.layout = #tile.layout<shared>}
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.wait_copies 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.fetch_ahead
// CHECK-NEXT: tile.commit_copies
func.func @operand(%x: !tile.view<bf16, 1>, %n: i32, %m: i32, %ok: i1, %acc: tensor<16x16xf32>) {
  %a_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %b_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  tile.copy %x to %a_buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %a = tile.read %a_buffer {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<16x16xbf16>>
  tile.copy %x to %b_buffer rows(%r) {
    tile.at [%n] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %b_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %x to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %c = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %c, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  %t = tile.dot %a, %b, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// A loop that carries a copied tile reads it, so its own copies start after the wait. In an outer loop no wait is left to the
// inner one, which may not run, and the outer iteration ends with a barrier.
// CHECK-LABEL: func.func @carried_and_nested
// CHECK: tile.wait_copies 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.fetch
// CHECK: scf.for
// CHECK-NEXT: tile.wait_copies 0
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: tile.commit_copies
// CHECK-NEXT: tile.fetch
// CHECK: tile.wait_copies 1
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: scf.for
// CHECK: {{^ +[}]$}}
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: {{^ +[}]$}}
func.func @carried_and_nested(%x: !tile.view<bf16, 1>, %n: i32, %m: i32, %ok: i1, %acc: tensor<16x16xf32>) {
  %a_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %b_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  %other_ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  tile.copy %x to %a_buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %a = tile.read %a_buffer {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %x to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  %last = scf.for %i = %n to %m step %n iter_args(%carried = %a) -> (tensor<16x16xbf16>) : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %c = tile.read %ring[%stage] {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<16x16xbf16>, 2>
    scf.yield %c : tensor<16x16xbf16>
  }
  scf.for %j = %n to %m step %n : i32 {
    tile.copy %x to %b_buffer rows(%r) {
      tile.at [%j] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
    %b = tile.read %b_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %inner = tile.fetch %n to %j step %n stages(2) : i32 (%i, %stage) {
      tile.copy %x to %other_ring[%stage] rows(%r) {
        tile.at [%i] if %ok
      } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
    }
    scf.for %i = %n to %j step %n : i32 {
      %stage = tile.fetch_ahead %inner at %i : i32
      %c = tile.read %other_ring[%stage] {tile.layout = #tile.layout<operand_a>} : !tile.buffer<tensor<16x16xbf16>, 2>
      %s = tile.dot %c, %b, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    }
  }
  return
}

// -----

// A written tile is read behind a barrier. The next write waits until all threads have read; one that follows a barrier
// need not. Copies that are under way stay so until something reads them.
// CHECK-LABEL: func.func @written
// CHECK: tile.write %arg1
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: %[[X:.*]] = tile.read
// CHECK-NEXT: tile.dot %[[X]]
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.write %arg1
// CHECK-NEXT: tile.write_partials
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: %[[Y:.*]] = tile.read
// CHECK-NEXT: tile.read_partials
// CHECK-NEXT: tile.dot %[[Y]]
// CHECK-NEXT: return
func.func @written(%a: tensor<16x16xbf16>, %x: tensor<16x16xbf16>, %s: tensor<16x16xf32>, %acc: tensor<16x16xf32>) {
  %first = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %second = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %partials = tile.buffer : !tile.buffer<tensor<8x16xf32>>
  tile.write %x to %first : !tile.buffer<tensor<16x16xbf16>>
  %y = tile.read %first {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %t = tile.dot %y, %y, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  tile.write %x to %second : !tile.buffer<tensor<16x16xbf16>>
  %z = tile.read %second {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  tile.write_partials add %s to %partials : tensor<16x16xf32>, !tile.buffer<tensor<8x16xf32>>
  %sum = tile.read_partials add %partials {tile.layout = #tile.layout<column>} : !tile.buffer<tensor<8x16xf32>> -> tensor<16xf32, #tile.column>
  %u = tile.dot %z, %z, %t {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// In a loop the threads that are ahead must not write while others read the tile of the iteration before: a barrier comes
// first, unless the iteration begins with one.
// CHECK-LABEL: func.func @written_in_loops
// CHECK: scf.for
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.write
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.dot
// CHECK-NEXT: {{^ +[}]$}}
// CHECK: scf.for
// CHECK-NEXT: tile.wait_copies 0
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.fetch_ahead
// CHECK-NEXT: tile.commit_copies
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.write
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.dot
// CHECK-NEXT: {{^ +[}]$}}
func.func @written_in_loops(%v: !tile.view<bf16, 1>, %x: tensor<16x16xbf16>, %acc: tensor<16x16xf32>, %n: i32, %ok: i1) {
  %first = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  scf.for %i = %n to %n step %n : i32 {
    tile.write %x to %first : !tile.buffer<tensor<16x16xbf16>>
    %y = tile.read %first {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %t = tile.dot %y, %y, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  %fetch = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %n step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %k = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    tile.write %x to %first : !tile.buffer<tensor<16x16xbf16>>
    %y = tile.read %first {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %t = tile.dot %y, %k, %acc {tile.layout = #tile.layout<accumulator>, transpose_a} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  return
}

// -----

// A write that nothing has read yet is made visible before a pipelined loop starts its copies.
// CHECK-LABEL: func.func @written_before_pipeline
// CHECK: tile.write
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.read
// CHECK-NEXT: tile.fetch
func.func @written_before_pipeline(%v: !tile.view<bf16, 1>, %x: tensor<16x16xbf16>, %acc: tensor<16x16xf32>, %n: i32, %ok: i1) {
  %first = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  tile.write %x to %first : !tile.buffer<tensor<16x16xbf16>>
  %y = tile.read %first {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %n step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %n step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %k = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %t = tile.dot %k, %y, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  return
}

// -----

// PlanBuffers may place what is copied behind a pipelined loop into the loop's ring, so all threads have left the loop.
// CHECK-LABEL: func.func @behind_pipeline
// CHECK: tile.fetch_ahead
// CHECK: {{^ +[}]$}}
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.copy
// CHECK: {{^ +[}].*$}}
// CHECK-NEXT: tile.copy
func.func @behind_pipeline(%x: !tile.view<bf16, 1>, %n: i32, %m: i32, %ok: i1, %acc: tensor<16x16xf32>) {
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 3>
  %a_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %b_buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %m step %n stages(3) : i32 (%i, %stage) {
    tile.copy %x to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 3>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %r = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 3>
    %s = tile.dot %r, %r, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  tile.copy %x to %a_buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  tile.copy %x to %b_buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %a = tile.read %a_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %b_buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %t = tile.dot %a, %b, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// A loop without a ring needs none.
// CHECK-LABEL: func.func @behind_loop
// CHECK: scf.for
// CHECK: {{^ +[}]$}}
// CHECK-NEXT: tile.copy
func.func @behind_loop(%x: !tile.view<bf16, 1>, %n: i32, %m: i32, %ok: i1, %a: tensor<16x16xf32>, %acc: tensor<16x16xf32>) {
  %buffer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %sum = scf.for %i = %n to %m step %n iter_args(%s = %acc) -> (tensor<16x16xf32>) : i32 {
    %t = arith.addf %s, %a : tensor<16x16xf32>
    scf.yield %t : tensor<16x16xf32>
  }
  tile.copy %x to %buffer rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %buffer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %o = tile.dot %b, %b, %sum {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

// The ring of a loop may lie in the ring of the loop in front of it.
// CHECK-LABEL: func.func @ring_behind_pipeline
// CHECK: tile.fetch_ahead
// CHECK: {{^ +[}]$}}
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.fetch
func.func @ring_behind_pipeline(%x: !tile.view<bf16, 1>, %n: i32, %m: i32, %ok: i1, %acc: tensor<16x16xf32>) {
  %first = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  %second = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %x to %first[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %r = tile.read %first[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %r, %r, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  %again = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %x to %second[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %again at %i : i32
    %r = tile.read %second[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %r, %r, %acc {tile.layout = #tile.layout<accumulator>} : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  return
}

// -----

// A loop that only loads what was stored in front of it waits once, and not in each iteration.
// CHECK-LABEL: func.func @loop_of_loads
// CHECK: tile.store
// CHECK: tile.barrier
// CHECK-NEXT: scf.for
// CHECK-NOT: tile.barrier
// CHECK: tile.load_scalar
// CHECK: {{^ +[}]$}}
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.store
// CHECK-NOT: tile.barrier
func.func @loop_of_loads(%counts: !tile.view<i32, 1>, %first: i32, %past: i32, %step: i32, %ok: i1, %value: tensor<16xi32>) {
  tile.store %value, %counts rows(%r) {
    tile.at [%r] if %ok
  } : tensor<16xi32>, !tile.view<i32, 1>
  scf.for %n = %first to %past step %step : i32 {
    %number = tile.load_scalar %counts[%n] : !tile.view<i32, 1>
  }
  tile.store %value, %counts rows(%r) {
    tile.at [%r] if %ok
  } : tensor<16xi32>, !tile.view<i32, 1>
  return
}

// -----

// What one thread stored to a tensor, another one may load, in the next iteration too, and what one loaded, another one may
// store to. Other tensors need no barrier. A choice between two tensors may be either of them.
// CHECK-LABEL: func.func @inout
// CHECK-SAME: (%[[COUNTS:.*]]: !tile.view<i32, 1>, %[[OTHER:.*]]: !tile.view<i32, 1>
// CHECK: scf.for
// CHECK-NEXT: tile.barrier
// CHECK-NEXT: tile.load %[[COUNTS]]
// CHECK: tile.store %{{.*}}, %[[OTHER]]
// CHECK: tile.barrier
// CHECK-NEXT: tile.store %{{.*}}, %[[COUNTS]]
// CHECK: tile.barrier
// CHECK-NEXT: tile.load_scalar %[[COUNTS]]
// CHECK-NOT: tile.barrier
// CHECK: arith.select
// CHECK: tile.barrier
// CHECK-NEXT: tile.store %{{.*}}, %{{.*}} rows
// CHECK-NOT: tile.barrier
func.func @inout(%counts: !tile.view<i32, 1>, %other: !tile.view<i32, 1>, %first: i32, %past: i32, %step: i32, %ok: i1) {
  scf.for %n = %first to %past step %step : i32 {
    %count = tile.load %counts rows(%r) {
      tile.at [%r] if %ok
    } : !tile.view<i32, 1> -> tensor<16xi32>
    tile.store %count, %other rows(%r) {
      tile.at [%n] if %ok
    } : tensor<16xi32>, !tile.view<i32, 1>
    tile.store %count, %counts rows(%r) {
      tile.at [%r] if %ok
    } : tensor<16xi32>, !tile.view<i32, 1>
    %number = tile.load_scalar %counts[%n] : !tile.view<i32, 1>
    %either = arith.select %ok, %counts, %other : !tile.view<i32, 1>
    tile.store %count, %either rows(%r) {
      tile.at [%number] if %ok
    } : tensor<16xi32>, !tile.view<i32, 1>
  }
  return
}
