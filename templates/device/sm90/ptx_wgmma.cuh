// Matrix products of a warpgroup (PTX ISA, "wgmma"; sm_90a): d += a b for a 64 x 16 `a`, a 16 x N `b` and a 64 x N `d`.
// `a` and `b` are bf16 or f16, `d` is float, and N is a multiple of 8 up to 256. All four warps of the warpgroup
// execute wgmma. A product of wgmma runs asynchronously. Between wgmma_fence and the wgmma_wait that ends the product,
// no code may touch the registers of `d`, or of `a` if it is in registers. A descriptor names an operand of wgmma in
// shared memory (descriptor.cuh).
//
// Registers of wgmma (PTX ISA, "Register Fragments for wgmma m64nNk16"): warp w of the warpgroup holds 16 rows from row
// 16 w on, in the fragment layout of layout.cuh. The element of `d` at a column tile, a half and an index is d[4 * tile
// + 2 * half + index]. If the operand `a` is in registers, the registers hold two column tiles of 16-bit elements in
// the same order as `d`.
#pragma once

#include "types.cuh"

namespace nsa {

// Call wgmma_fence before the first wgmma, and before a wgmma whose registers were touched since the last wgmma.
NSA_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

// Closes the group of the products that were issued since the last commit.
NSA_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }

// Waits until at most kPending of the latest groups of products are incomplete. After wgmma_wait, pass the registers of
// the completed products to wgmma_hold.
template <int32 kPending> NSA_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kPending) : "memory");
}

// wgmma_hold keeps the compiler from moving code that uses `registers` across the call. wgmma_hold emits no
// instruction. wgmma_hold is needed because the compiler does not know that wgmma still accesses its registers after
// the instruction has been issued.
template <int32 kCount> NSA_DEVICE void wgmma_hold(float (&registers)[kCount]) {
#pragma unroll
  for (int32 i = 0; i < kCount; ++i)
    asm volatile("" : "+f"(registers[i]) : : "memory");
}
template <int32 kCount> NSA_DEVICE void wgmma_hold(uint32 (&registers)[kCount]) {
#pragma unroll
  for (int32 i = 0; i < kCount; ++i)
    asm volatile("" : "+r"(registers[i]) : : "memory");
}

// The registers of `d`: their names in the text of the instruction, and the operands.
#define NSA_SUM_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define NSA_NAMES_4 "%0, %1, %2, %3"
#define NSA_SUMS_4 NSA_SUM_4(0)
#define NSA_NAMES_8 NSA_NAMES_4 ", %4, %5, %6, %7"
#define NSA_NAMES_12 NSA_NAMES_8 ", %8, %9, %10, %11"
#define NSA_NAMES_16 NSA_NAMES_12 ", %12, %13, %14, %15"
#define NSA_NAMES_20 NSA_NAMES_16 ", %16, %17, %18, %19"
#define NSA_NAMES_24 NSA_NAMES_20 ", %20, %21, %22, %23"
#define NSA_NAMES_28 NSA_NAMES_24 ", %24, %25, %26, %27"
#define NSA_NAMES_32 NSA_NAMES_28 ", %28, %29, %30, %31"
#define NSA_NAMES_36 NSA_NAMES_32 ", %32, %33, %34, %35"
#define NSA_NAMES_40 NSA_NAMES_36 ", %36, %37, %38, %39"
#define NSA_NAMES_44 NSA_NAMES_40 ", %40, %41, %42, %43"
#define NSA_NAMES_48 NSA_NAMES_44 ", %44, %45, %46, %47"
#define NSA_NAMES_52 NSA_NAMES_48 ", %48, %49, %50, %51"
#define NSA_NAMES_56 NSA_NAMES_52 ", %52, %53, %54, %55"
#define NSA_NAMES_60 NSA_NAMES_56 ", %56, %57, %58, %59"
#define NSA_NAMES_64 NSA_NAMES_60 ", %60, %61, %62, %63"
#define NSA_NAMES_68 NSA_NAMES_64 ", %64, %65, %66, %67"
#define NSA_NAMES_72 NSA_NAMES_68 ", %68, %69, %70, %71"
#define NSA_NAMES_76 NSA_NAMES_72 ", %72, %73, %74, %75"
#define NSA_NAMES_80 NSA_NAMES_76 ", %76, %77, %78, %79"
#define NSA_NAMES_84 NSA_NAMES_80 ", %80, %81, %82, %83"
#define NSA_NAMES_88 NSA_NAMES_84 ", %84, %85, %86, %87"
#define NSA_NAMES_92 NSA_NAMES_88 ", %88, %89, %90, %91"
#define NSA_NAMES_96 NSA_NAMES_92 ", %92, %93, %94, %95"
#define NSA_NAMES_100 NSA_NAMES_96 ", %96, %97, %98, %99"
#define NSA_NAMES_104 NSA_NAMES_100 ", %100, %101, %102, %103"
#define NSA_NAMES_108 NSA_NAMES_104 ", %104, %105, %106, %107"
#define NSA_NAMES_112 NSA_NAMES_108 ", %108, %109, %110, %111"
#define NSA_NAMES_116 NSA_NAMES_112 ", %112, %113, %114, %115"
#define NSA_NAMES_120 NSA_NAMES_116 ", %116, %117, %118, %119"
#define NSA_NAMES_124 NSA_NAMES_120 ", %120, %121, %122, %123"
#define NSA_NAMES_128 NSA_NAMES_124 ", %124, %125, %126, %127"
#define NSA_SUMS_8 NSA_SUMS_4, NSA_SUM_4(4)
#define NSA_SUMS_12 NSA_SUMS_8, NSA_SUM_4(8)
#define NSA_SUMS_16 NSA_SUMS_12, NSA_SUM_4(12)
#define NSA_SUMS_20 NSA_SUMS_16, NSA_SUM_4(16)
#define NSA_SUMS_24 NSA_SUMS_20, NSA_SUM_4(20)
#define NSA_SUMS_28 NSA_SUMS_24, NSA_SUM_4(24)
#define NSA_SUMS_32 NSA_SUMS_28, NSA_SUM_4(28)
#define NSA_SUMS_36 NSA_SUMS_32, NSA_SUM_4(32)
#define NSA_SUMS_40 NSA_SUMS_36, NSA_SUM_4(36)
#define NSA_SUMS_44 NSA_SUMS_40, NSA_SUM_4(40)
#define NSA_SUMS_48 NSA_SUMS_44, NSA_SUM_4(44)
#define NSA_SUMS_52 NSA_SUMS_48, NSA_SUM_4(48)
#define NSA_SUMS_56 NSA_SUMS_52, NSA_SUM_4(52)
#define NSA_SUMS_60 NSA_SUMS_56, NSA_SUM_4(56)
#define NSA_SUMS_64 NSA_SUMS_60, NSA_SUM_4(60)
#define NSA_SUMS_68 NSA_SUMS_64, NSA_SUM_4(64)
#define NSA_SUMS_72 NSA_SUMS_68, NSA_SUM_4(68)
#define NSA_SUMS_76 NSA_SUMS_72, NSA_SUM_4(72)
#define NSA_SUMS_80 NSA_SUMS_76, NSA_SUM_4(76)
#define NSA_SUMS_84 NSA_SUMS_80, NSA_SUM_4(80)
#define NSA_SUMS_88 NSA_SUMS_84, NSA_SUM_4(84)
#define NSA_SUMS_92 NSA_SUMS_88, NSA_SUM_4(88)
#define NSA_SUMS_96 NSA_SUMS_92, NSA_SUM_4(92)
#define NSA_SUMS_100 NSA_SUMS_96, NSA_SUM_4(96)
#define NSA_SUMS_104 NSA_SUMS_100, NSA_SUM_4(100)
#define NSA_SUMS_108 NSA_SUMS_104, NSA_SUM_4(104)
#define NSA_SUMS_112 NSA_SUMS_108, NSA_SUM_4(108)
#define NSA_SUMS_116 NSA_SUMS_112, NSA_SUM_4(112)
#define NSA_SUMS_120 NSA_SUMS_116, NSA_SUM_4(116)
#define NSA_SUMS_124 NSA_SUMS_120, NSA_SUM_4(120)
#define NSA_SUMS_128 NSA_SUMS_124, NSA_SUM_4(124)

// wgmma(T{}, d, a, b, accumulate): the operands `a` and `b` are in shared memory. If `accumulate` is 0, wgmma
// overwrites `d`. kRowDepthA and kRowDepthB say that operand `a` or `b` is stored with its depth as rows
// (row_depth_descriptor).
#define NSA_WGMMA_SHARED(type, text, columns, count, a, b, s, ta, tb)                                                  \
  template <bool kRowDepthA, bool kRowDepthB>                                                                          \
  NSA_DEVICE void wgmma(type, float (&d)[count], uint64 a_descriptor, uint64 b_descriptor, int32 accumulate) {         \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " s ", 0;\n"                                                        \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." text "." text " {" NSA_NAMES_##count           \
                 "}, " a ", " b ", p, 1, 1, " ta ", " tb ";\n}"                                                        \
                 : NSA_SUMS_##count                                                                                    \
                 : "l"(a_descriptor), "l"(b_descriptor), "r"(accumulate), "n"(kRowDepthA ? 1 : 0),                     \
                   "n"(kRowDepthB ? 1 : 0));                                                                           \
  }

// wgmma with `a` in registers.
#define NSA_WGMMA_REGISTERS(type, text, columns, count, a0, a1, a2, a3, b, s, tb)                                      \
  template <bool kRowDepthB>                                                                                           \
  NSA_DEVICE void wgmma(type, float (&d)[count], const uint32(&a)[4], uint64 b_descriptor, int32 accumulate) {         \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " s ", 0;\n"                                                        \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." text "." text " {" NSA_NAMES_##count           \
                 "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " b ", p, 1, 1, " tb ";\n}"                                     \
                 : NSA_SUMS_##count                                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b_descriptor), "r"(accumulate),                     \
                   "n"(kRowDepthB ? 1 : 0));                                                                           \
  }

#define NSA_WGMMA(columns, count, p0, p1, p2, p3, p4, p5, p6)                                                          \
  NSA_WGMMA_SHARED(bf16, "bf16", columns, count, p0, p1, p2, p3, p4)                                                   \
  NSA_WGMMA_SHARED(f16, "f16", columns, count, p0, p1, p2, p3, p4)                                                     \
  NSA_WGMMA_REGISTERS(bf16, "bf16", columns, count, p0, p1, p2, p3, p4, p5, p6)                                        \
  NSA_WGMMA_REGISTERS(f16, "f16", columns, count, p0, p1, p2, p3, p4, p5, p6)

// Arguments of NSA_WGMMA: the number N of columns, the number of registers of `d` per thread, and the names (%n) of the
// asm operands that come after the registers of `d`.
NSA_WGMMA("8", 4, "%4", "%5", "%6", "%7", "%8", "%9", "%10")
NSA_WGMMA("16", 8, "%8", "%9", "%10", "%11", "%12", "%13", "%14")
NSA_WGMMA("24", 12, "%12", "%13", "%14", "%15", "%16", "%17", "%18")
NSA_WGMMA("32", 16, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
NSA_WGMMA("40", 20, "%20", "%21", "%22", "%23", "%24", "%25", "%26")
NSA_WGMMA("48", 24, "%24", "%25", "%26", "%27", "%28", "%29", "%30")
NSA_WGMMA("56", 28, "%28", "%29", "%30", "%31", "%32", "%33", "%34")
NSA_WGMMA("64", 32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
NSA_WGMMA("72", 36, "%36", "%37", "%38", "%39", "%40", "%41", "%42")
NSA_WGMMA("80", 40, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
NSA_WGMMA("88", 44, "%44", "%45", "%46", "%47", "%48", "%49", "%50")
NSA_WGMMA("96", 48, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
NSA_WGMMA("104", 52, "%52", "%53", "%54", "%55", "%56", "%57", "%58")
NSA_WGMMA("112", 56, "%56", "%57", "%58", "%59", "%60", "%61", "%62")
NSA_WGMMA("120", 60, "%60", "%61", "%62", "%63", "%64", "%65", "%66")
NSA_WGMMA("128", 64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
NSA_WGMMA("136", 68, "%68", "%69", "%70", "%71", "%72", "%73", "%74")
NSA_WGMMA("144", 72, "%72", "%73", "%74", "%75", "%76", "%77", "%78")
NSA_WGMMA("152", 76, "%76", "%77", "%78", "%79", "%80", "%81", "%82")
NSA_WGMMA("160", 80, "%80", "%81", "%82", "%83", "%84", "%85", "%86")
NSA_WGMMA("168", 84, "%84", "%85", "%86", "%87", "%88", "%89", "%90")
NSA_WGMMA("176", 88, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
NSA_WGMMA("184", 92, "%92", "%93", "%94", "%95", "%96", "%97", "%98")
NSA_WGMMA("192", 96, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
NSA_WGMMA("200", 100, "%100", "%101", "%102", "%103", "%104", "%105", "%106")
NSA_WGMMA("208", 104, "%104", "%105", "%106", "%107", "%108", "%109", "%110")
NSA_WGMMA("216", 108, "%108", "%109", "%110", "%111", "%112", "%113", "%114")
NSA_WGMMA("224", 112, "%112", "%113", "%114", "%115", "%116", "%117", "%118")
NSA_WGMMA("232", 116, "%116", "%117", "%118", "%119", "%120", "%121", "%122")
NSA_WGMMA("240", 120, "%120", "%121", "%122", "%123", "%124", "%125", "%126")
NSA_WGMMA("248", 124, "%124", "%125", "%126", "%127", "%128", "%129", "%130")
NSA_WGMMA("256", 128, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

#undef NSA_WGMMA
#undef NSA_WGMMA_REGISTERS
#undef NSA_WGMMA_SHARED
} // namespace nsa
