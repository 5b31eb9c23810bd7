// RUN: nsa-opt %s --tile-plan-buffers=limit=100000 | FileCheck %s

// CHECK: func.func @plan() attributes {tile.shared_bytes = 22656 : i64}
func.func @plan() {
  // 16 * 24 * 2 = 768 bytes.
  // CHECK: tile.buffer {tile.shared_offset = 1152 : i64}
  %q = tile.buffer : !tile.buffer<tensor<16x24xbf16>>
  // 32 * 64 * 2 * 3 stages = 12288 bytes.
  // CHECK: tile.buffer {tile.shared_offset = 1920 : i64}
  %k = tile.buffer : !tile.buffer<tensor<32x64xbf16>, 3>
  // 8 * 8 * 2 = 128 bytes.
  // CHECK: tile.buffer {tile.shared_offset = 14208 : i64}
  %small = tile.buffer : !tile.buffer<tensor<8x8xbf16>>
  // 65 * 64 * 2 = 8320 bytes; 14208 + 128 is aligned already.
  // CHECK: tile.buffer {tile.shared_offset = 14336 : i64}
  %v = tile.buffer : !tile.buffer<tensor<65x64xbf16>>
  // Lists come first: 4 * (32 + 4) * 8 = 1152 bytes.
  // CHECK: tile.top_create {tile.shared_offset = 0 : i64}
  %best = tile.top_create : !tile.top<32, 4>
  return
}

// CHECK: func.func @none() attributes {tile.shared_bytes = 0 : i64}
func.func @none() {
  return
}

// Computed tiles share bytes if one is read for the last time before the other is written. A tile that a loop reads is alive
// in the whole loop. What is copied shares nothing with them. 16 * 16 * 2 = 512 bytes each.
// CHECK: func.func @lifetimes({{.*}}) attributes {tile.shared_bytes = 1536 : i64}
func.func @lifetimes(%x: tensor<16x16xbf16>, %v: !tile.view<bf16, 1>, %acc: tensor<16x16xf32>, %n: i32, %ok: i1) {
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 0 : i64}
  %copied = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 512 : i64}
  %outer = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 1024 : i64}
  %inner = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 1024 : i64}
  %later = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 512 : i64}
  %last = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  tile.copy %v to %copied rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  tile.write %x to %outer : !tile.buffer<tensor<16x16xbf16>>
  scf.for %i = %n to %n step %n : i32 {
    %o = tile.read %outer {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %s = tile.dot %o, %o, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    tile.write %x to %inner : !tile.buffer<tensor<16x16xbf16>>
    %t = tile.read %inner {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %u = tile.dot %t, %t, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    tile.write %x to %later : !tile.buffer<tensor<16x16xbf16>>
    %w = tile.read %later {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %y = tile.dot %w, %w, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  tile.write %x to %last : !tile.buffer<tensor<16x16xbf16>>
  return
}

// A tile that is copied behind a pipelined loop lies in the loop's ring, of 2 * 512 bytes.
// CHECK: func.func @behind_a_ring({{.*}}) attributes {tile.shared_bytes = 1024 : i64}
func.func @behind_a_ring(%v: !tile.view<bf16, 1>, %acc: tensor<16x16xf32>, %n: i32, %m: i32, %ok: i1) {
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 0 : i64}
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 0 : i64}
  %behind = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %a = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %a, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  tile.copy %v to %behind rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %behind {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %t = tile.dot %b, %b, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// A loop around both runs the copies of the ring again while others may read the tile. No barrier stands in front
// of the first copy in a branch.
// CHECK: func.func @not_behind_a_ring({{.*}}) attributes {tile.shared_bytes = 3072 : i64}
func.func @not_behind_a_ring(%v: !tile.view<bf16, 1>, %acc: tensor<16x16xf32>, %n: i32, %m: i32, %ok: i1) {
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 0 : i64}
  %inner = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 1024 : i64}
  %in_loop = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 1536 : i64}
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 2560 : i64}
  %in_branch = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  scf.for %o = %n to %m step %n : i32 {
    %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
      tile.copy %v to %inner[%stage] rows(%r) {
        tile.at [%i] if %ok
      } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
    }
    scf.for %i = %n to %m step %n : i32 {
      %stage = tile.fetch_ahead %fetch at %i : i32
      %a = tile.read %inner[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
      %s = tile.dot %a, %a, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
    }
    tile.copy %v to %in_loop rows(%r) {
      tile.at [%r] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
    %b = tile.read %in_loop {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %t = tile.dot %b, %b, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %a = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %a, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  scf.if %ok {
    tile.copy %v to %in_branch rows(%r) {
      tile.at [%r] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
    %b = tile.read %in_branch {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
    %t = tile.dot %b, %b, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  return
}

// The barrier in front of a copy in a branch does not guard what other threads read in the ring, if the tile is read behind the
// branch.
// CHECK: func.func @copied_in_a_branch({{.*}}) attributes {tile.shared_bytes = 1536 : i64}
func.func @copied_in_a_branch(%v: !tile.view<bf16, 1>, %acc: tensor<16x16xf32>, %n: i32, %m: i32, %ok: i1) {
  %ring = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  %behind = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %ring[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %a = tile.read %ring[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %a, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  scf.if %ok {
    tile.copy %v to %behind rows(%r) {
      tile.at [%r] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  }
  %b = tile.read %behind {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %t = tile.dot %b, %b, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// Two tiles behind one ring are alive together. A tile in front of a ring is alive until its last use, and a tile behind a second
// ring may lie in both rings.
// CHECK: func.func @two_rings({{.*}}) attributes {tile.shared_bytes = 2560 : i64}
func.func @two_rings(%v: !tile.view<bf16, 1>, %acc: tensor<16x16xf32>, %n: i32, %m: i32, %ok: i1) {
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 0 : i64}
  %front = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 512 : i64}
  %first = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 512 : i64}
  %one = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 1024 : i64}
  %two = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 1536 : i64}
  %second = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 1536 : i64}
  %last = tile.buffer : !tile.buffer<tensor<16x16xbf16>>
  tile.copy %v to %front rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %f = tile.read %front {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %first[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %a = tile.read %first[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %f, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  tile.copy %v to %one rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  tile.copy %v to %two rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %b = tile.read %one {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %c = tile.read %two {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %t = tile.dot %b, %c, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  %again = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %second[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %again at %i : i32
    %a = tile.read %second[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %f, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  tile.copy %v to %last rows(%r) {
    tile.at [%r] if %ok
  } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>>
  %d = tile.read %last {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>>
  %u = tile.dot %d, %f, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// The ring of a loop lies in the ring of the loop in front of it.
// CHECK: func.func @ring_behind_a_ring({{.*}}) attributes {tile.shared_bytes = 1024 : i64}
func.func @ring_behind_a_ring(%v: !tile.view<bf16, 1>, %acc: tensor<16x16xf32>, %n: i32, %m: i32, %ok: i1) {
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 0 : i64}
  %first = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  // CHECK-NEXT: tile.buffer {tile.shared_offset = 0 : i64}
  %second = tile.buffer : !tile.buffer<tensor<16x16xbf16>, 2>
  %fetch = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %first[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %fetch at %i : i32
    %a = tile.read %first[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %a, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  %again = tile.fetch %n to %m step %n stages(2) : i32 (%i, %stage) {
    tile.copy %v to %second[%stage] rows(%r) {
      tile.at [%i] if %ok
    } : !tile.view<bf16, 1>, !tile.buffer<tensor<16x16xbf16>, 2>
  }
  scf.for %i = %n to %m step %n : i32 {
    %stage = tile.fetch_ahead %again at %i : i32
    %a = tile.read %second[%stage] {tile.layout = #tile.layout<shared>} : !tile.buffer<tensor<16x16xbf16>, 2>
    %s = tile.dot %a, %a, %acc : tensor<16x16xbf16>, tensor<16x16xbf16> -> tensor<16x16xf32>
  }
  return
}
