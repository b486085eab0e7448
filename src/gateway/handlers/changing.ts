import type { HandlersOf } from "../calls/contract.ts";
import { importingHandlers } from "./changing/importing.ts";
import { makingHandlers } from "./changing/making.ts";
import { markingHandlers } from "./changing/marking.ts";
import { removingHandlers } from "./changing/removing.ts";
import type { UpkeepDeps } from "./changing/upkeep.ts";
import { upkeepHandlers } from "./changing/upkeep.ts";
import type { ChangingMethod } from "./families.ts";

/** Methods that change sessions or look after them. `deps` is not copied: its tokens may be opened when they are wanted. */
export function changingHandlers(deps: UpkeepDeps): HandlersOf<ChangingMethod> {
  return {
    ...makingHandlers(deps),
    ...markingHandlers(deps),
    ...removingHandlers(deps),
    ...importingHandlers(deps),
    ...upkeepHandlers(deps),
  };
}
