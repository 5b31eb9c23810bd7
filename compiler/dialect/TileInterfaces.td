// Interfaces of operations of the `tile` dialect.

#ifndef NSA_TILE_INTERFACES_TD
#define NSA_TILE_INTERFACES_TD

include "mlir/IR/OpBase.td"

def LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let description = [{
    An operation that reads or makes tiles says which layouts it demands for them, and in which layouts it can make its
    result. AssignLayouts asks each operation, and refuses an operation that does not say.
  }];
  let cppNamespace = "::nsa::tile";
  let methods = [
    InterfaceMethod<"Calls `demand` with each tile whose layout matters to the operation, and with that layout. By default these "
                    "are the operands, in their ordinary layouts.",
      "void", "demandLayouts", (ins "::nsa::tile::LayoutTarget":$target, "::nsa::tile::LayoutDemand":$demand), "", [{
        for (::mlir::Value operand : $_op->getOperands())
          if (isTile(operand))
            demand(operand, ordinaryLayout(operand, target));
      }]>,
    InterfaceMethod<"Whether the operation can make its result in `layout`. By default it can in the ordinary layout alone.",
      "bool", "offersLayout", (ins "::nsa::tile::LayoutTarget":$target, "::nsa::tile::Layout":$layout), "", [{
        return layout == ordinaryLayout($_op->getResult(0), target);
      }]>,
  ];
}

#endif // NSA_TILE_INTERFACES_TD
