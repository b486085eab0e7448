import "./check-node.ts";

export type { Case, StoreHarness, StoreUnderTest } from "./conformance/harness.ts";
export { type Saboteur, saboteurs } from "./conformance/saboteurs.ts";
export { storeConformance } from "./conformance/store.ts";
