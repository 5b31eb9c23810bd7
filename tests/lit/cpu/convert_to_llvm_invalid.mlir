// RUN: nsa-opt %s --tile-convert-to-llvm --verify-diagnostics

func.func @left_over(%x: f32) {
  // expected-error@+1 {{failed to legalize operation 'math.exp2'}}
  %y = math.exp2 %x : f32
  return
}
