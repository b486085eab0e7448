import "./check-node.ts";

export { SkeinStore } from "./adapters/langgraph/item-store.ts";
export type { LangGraphOptions } from "./adapters/langgraph/peer.ts";
export { type SaverOptions, SkeinSaver } from "./adapters/langgraph/saver.ts";
