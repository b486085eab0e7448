import type { SkeinOptions } from "../../src/index.ts";

type TestStore = NonNullable<SkeinOptions["store"]>;

type OpenStore = (options: Pick<SkeinOptions, "clock" | "newId">) => Promise<TestStore>;

let openStore: OpenStore | null = null;
/** The stores that the current file has opened. */
const opened: TestStore[] = [];

/** Makes `emptyStore` open other stores than those in memory. Closing one also removes its data. */
export function openStoresWith(open: OpenStore | null): void {
  openStore = open;
}

/** Returns the options for an empty store that nothing else uses: in memory, or in the store that the project tests. */
export async function emptyStore({
  clock,
  newId,
}: Partial<SkeinOptions>): Promise<Pick<SkeinOptions, "memory" | "store">> {
  if (openStore === null) return { memory: true };
  const store = await openStore({ ...(clock && { clock }), ...(newId && { newId }) });
  opened.push(store);
  return { store };
}

/** Called after each file. */
export async function closeEmptyStores(): Promise<void> {
  await Promise.all(opened.splice(0).map((store) => store.close()));
}
