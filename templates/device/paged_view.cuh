// PagedView<T, R, P>: a view whose rows lie in pages of P rows, as in a paged KV cache. The first coordinate of a
// PagedView is a sequence. The second coordinate of a PagedView is a row of the sequence. The page table gives, for
// each P consecutive rows of a sequence, the number of the page in the pool that holds the rows. As a kernel argument,
// a PagedView consists of the slots of a View, the address of the page table, and the distance between rows of the page
// table in elements (runtime/base/manifest.h). The caller owns the memory of a PagedView.
#pragma once

#include "ptx_load.cuh"
#include "view.cuh"

namespace nsa {

// `data` and `strides` of the base class View describe the pool of pages. The first two coordinates of the pool are the
// page and the row in the page.
template <typename T, int32 kRank, int32 kPageRows> struct PagedView : View<T, kRank> {
  static_assert(kRank >= 2 && kPageRows >= 1, "a view of pages has a sequence and a row for coordinates");

  const int32 *table;
  int64 table_stride;

  // The page table is read only if `exists` is true. Table entries after the end of a sequence may hold any value, or
  // may not exist.
  template <typename... Index> NSA_DEVICE Row at_if(bool exists, int32 sequence, int32 row, Index... index) const {
    const uint32 number = static_cast<uint32>(row) / kPageRows;
    const uint32 row_in_page = static_cast<uint32>(row) % kPageRows;
    int32 page = 0;
    if (exists)
      page = load_unchanging(table + static_cast<uint32>(sequence) * table_stride + number);
    return View<T, kRank>::at(page, row_in_page, index...).only_if(exists);
  }

  template <typename... Index> NSA_DEVICE Row at(Index... index) const { return at_if(true, index...); }
};

template <typename T, int32 kRank, int32 kPageRows, typename... Index>
NSA_DEVICE T load_scalar(const PagedView<T, kRank, kPageRows> &view, Index... index) {
  return view.data[view.at(index...).offset];
}

static_assert(sizeof(PagedView<float, 3, 64>) == 56, "a view of pages takes two slots more than a view");

} // namespace nsa
